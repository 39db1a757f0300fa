#include "gateway/snapshot.h"

#include <errno.h>
#include <stdlib.h>

#include "gateway/hash.h"

struct gw_snapshot *gw_snapshot_new(struct gw_settings *settings, size_t sales) {
        struct gw_snapshot *s = calloc(1, sizeof *s);
        if (!s)
                return NULL;
        s->sales = calloc(sales + 1, sizeof *s->sales);
        if (!s->sales) {
                free(s);
                return NULL;
        }
        atomic_init(&s->refs, 1);
        gw_settings_take(settings);
        s->settings = settings;
        return s;
}

void gw_snapshot_take(struct gw_snapshot *s) {
        unsigned before = atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
        assert(before > 0);
}

static void pages_free(struct gw_pages *p) {
        http_page_free(&p->flag);
        http_page_free(&p->flag_304);
        for (size_t i = 0; i < 2; i++) {
                http_page_free(&p->end_line[i]);
                http_page_free(&p->end_gated[i]);
        }
        http_page_free(&p->end_hold);
}

void gw_snapshot_free(struct gw_snapshot **sp) {
        struct gw_snapshot *s = *sp;
        *sp = NULL;
        if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
                return;
        for (size_t i = 0; i < s->n_sales; i++) {
                pages_free(&s->sales[i].pages);
                free(s->sales[i].match.at);
                free(s->sales[i].bypass.at);
        }
        http_page_free(&s->list);
        http_page_free(&s->list_304);
        free(s->sales);
        free(s->index);
        free(s->ranked);
        gw_settings_free(&s->settings);
        free(s);
}

int gw_snapshot_index(struct gw_snapshot *s) {
        size_t slots = 8;
        while (slots < s->n_sales * 2)
                slots *= 2;
        s->index = calloc(slots, sizeof *s->index);
        if (!s->index)
                return -ENOMEM;
        s->index_mask = slots - 1;
        for (uint32_t i = 0; i < s->n_sales; i++) {
                const char *id = s->sales[i].facts.id;
                size_t at = gw_hash(0, id, strlen(id)) & s->index_mask;
                while (s->index[at])
                        at = (at + 1) & s->index_mask;
                s->index[at] = i + 1;
        }
        return 0;
}

const struct gw_sale *gw_snapshot_sale(const struct gw_snapshot *s, struct span id) {
        if (!s->index || id.len >= ADM_ID_LEN)
                return NULL;
        size_t at = gw_hash(0, id.p, id.len) & s->index_mask;
        for (; s->index[at]; at = (at + 1) & s->index_mask) {
                const struct gw_sale *sale = &s->sales[s->index[at] - 1];
                if (memcmp(sale->facts.id, id.p, id.len) == 0 && sale->facts.id[id.len] == '\0')
                        return sale;
        }
        return NULL;
}
