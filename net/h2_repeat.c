#include "net/h2_repeat.h"

#include <stdlib.h>

struct h2_repeat {
        struct h2_repeat *older, *newer;
        struct h2_repeat **slot; /* NULL: forgotten, streams still use it */
        struct h2_repeats *all;
        struct arena arena; /* of this struct too */
        struct http_head head;
        uint32_t refs;
        uint32_t len;
        uint8_t block[];
};

struct h2_repeats {
        struct pool *pool;
        struct h2_repeat *oldest, *newest;
        uint32_t n, most;
        struct metrics_counter *evicted;
};

struct h2_repeats *h2_repeats_new(struct pool *pool, uint32_t most,
                                  struct metrics_counter *evicted) {
        struct h2_repeats *all = calloc(1, sizeof *all);
        if (all)
                *all = (struct h2_repeats){.pool = pool, .most = most, .evicted = evicted};
        return all;
}

void h2_repeats_free(struct h2_repeats **all) {
        assert(!*all || (*all)->n == 0);
        free(*all);
        *all = NULL;
}

/* ---- what a block does ---- */

/* RFC 7541, 5.1: a number whose first byte leaves `bits` for it. False if it
 * does not end within the block; larger ones than we can use count as such. */
static bool number_take(struct span *s, unsigned bits, size_t *n) {
        const size_t full = ((size_t)1 << bits) - 1;
        *n = (uint8_t)s->p[0] & full;
        s->p++;
        s->len--;
        if (*n < full)
                return true;
        for (unsigned shift = 0; s->len > 0 && shift < 21; shift += 7) {
                uint8_t c = (uint8_t)s->p[0];
                s->p++;
                s->len--;
                *n += (size_t)(c & 0x7F) << shift;
                if (c < 0x80)
                        return true;
        }
        return false;
}

static bool string_skip(struct span *s) {
        size_t n;
        if (s->len == 0 || !number_take(s, 7, &n) || n > s->len)
                return false;
        s->p += n;
        s->len -= n;
        return true;
}

bool h2_block_is_pure(struct span s) {
        while (s.len > 0) {
                uint8_t c = (uint8_t)s.p[0];
                size_t n;
                if (c & 0x80) { /* indexed */
                        if (!number_take(&s, 7, &n))
                                return false;
                        continue;
                }
                if (c >= 0x20) /* added to the table, or its size */
                        return false;
                if (!number_take(&s, 4, &n) || (n == 0 && !string_skip(&s)) || !string_skip(&s))
                        return false;
        }
        return true;
}

/* ---- keeping ---- */

static void list_leave(struct h2_repeat *r) {
        struct h2_repeats *all = r->all;
        if (r->older)
                r->older->newer = r->newer;
        else
                all->oldest = r->newer;
        if (r->newer)
                r->newer->older = r->older;
        else
                all->newest = r->older;
        all->n--;
}

static void list_join(struct h2_repeat *r) {
        struct h2_repeats *all = r->all;
        r->older = all->newest;
        r->newer = NULL;
        if (r->older)
                r->older->newer = r;
        else
                all->oldest = r;
        all->newest = r;
        all->n++;
}

void h2_repeat_free(struct h2_repeat **rp) {
        struct h2_repeat *r = *rp;
        *rp = NULL;
        if (r && --r->refs == 0)
                arena_fini(&r->arena);
}

void h2_repeat_forget(struct h2_repeat **slot) {
        struct h2_repeat *r = *slot;
        if (!r)
                return;
        list_leave(r);
        r->slot = NULL;
        h2_repeat_free(slot);
}

void h2_repeat_keep(struct h2_repeats *all, struct h2_repeat **slot, struct span block,
                    const struct http_head *head) {
        struct arena arena;
        h2_repeat_forget(slot);
        if (block.len > H2_REPEAT_MAX || all->most == 0)
                return;
        arena_init(&arena, all->pool);
        struct h2_repeat *r = arena_take(&arena, sizeof *r + block.len);
        if (!r || !http_head_copy(&r->head, &arena, head)) {
                arena_fini(&arena);
                return;
        }
        if (all->n == all->most) {
                metrics_add(all->evicted, 1);
                h2_repeat_forget(all->oldest->slot);
        }
        r->arena = arena;
        r->all = all;
        r->slot = slot;
        r->refs = 1;
        r->len = (uint32_t)block.len;
        memcpy(r->block, block.p, block.len);
        list_join(r);
        *slot = r;
}

bool h2_repeat_is(const struct h2_repeat *r, struct span block) {
        return r->len == block.len && memcmp(r->block, block.p, block.len) == 0;
}

struct h2_repeat *h2_repeat_take(struct h2_repeat *r, struct http_head *head) {
        *head = r->head;
        r->refs++;
        return r;
}
