#include "gateway/counters.h"

#include <errno.h>
#include <stdlib.h>

const char *gw_answer_name(enum gw_answer a) {
        static const char *const names[GW_ANSWERS] = {
#define X(id, word) [GW_ANSWER_##id] = word,
                GW_ANSWER_TABLE(X)
#undef X
        };
        assert(a < GW_ANSWERS);
        return names[a];
}

const char *gw_origin_kind_name(enum gw_origin_kind k) {
        static const char *const names[GW_ORIGIN_KINDS] = {
#define X(id, word) [GW_ORIGIN_##id] = word,
                GW_ORIGIN_TABLE(X)
#undef X
        };
        assert(k < GW_ORIGIN_KINDS);
        return names[k];
}

const char *gw_store_op_name(enum gw_store_op op) {
        static const char *const names[GW_STORE_OPS] = {
#define X(id, word) [GW_STORE_##id] = word,
                GW_STORE_TABLE(X)
#undef X
        };
        assert(op < GW_STORE_OPS);
        return names[op];
}

int gw_counters_init(struct gw_counters *c, size_t slots) {
        assert(slots >= 1);
        *c = (struct gw_counters){.slots = slots};
        c->sale = calloc(slots, sizeof *c->sale);
        return c->sale ? 0 : -ENOMEM;
}

void gw_counters_fini(struct gw_counters *c) {
        free(c->sale);
        c->sale = NULL;
        c->slots = 0;
}
