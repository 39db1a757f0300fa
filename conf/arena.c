#include "conf/arena.h"

#include <stdlib.h>

struct conf_chunk {
        struct conf_chunk *next;
        max_align_t bytes[];
};

void *conf_arena_take(struct conf_arena *a, size_t bytes) {
        struct conf_chunk *c = calloc(1, sizeof(*c) + (bytes ? bytes : 1));

        assert(c);
        c->next = a->chunks;
        a->chunks = c;
        return c->bytes;
}

const char *conf_arena_text(struct conf_arena *a, struct span text) {
        char *copy = conf_arena_take(a, text.len + 1);

        if (text.len > 0)
                memcpy(copy, text.p, text.len);
        return copy;
}

void conf_arena_fini(struct conf_arena *a) {
        while (a->chunks) {
                struct conf_chunk *c = a->chunks;

                a->chunks = c->next;
                free(c);
        }
}
