#include "tests/unit/failing_pool.h"

#include <stdlib.h>

struct pool {
        size_t pieces;
};

static unsigned left; /* until the piece that is not given; 0: none */
static bool is_for_good, has_failed;

void failing_pool_arm(unsigned n, bool for_good) {
        left = n;
        is_for_good = for_good;
        has_failed = false;
}

bool failing_pool_failed(void) {
        return has_failed;
}

static bool is_given(void) {
        if (left > 0 && --left == 0)
                has_failed = true;
        else if (!has_failed)
                return true;
        else
                return !is_for_good;
        return false;
}

struct pool *pool_new(void) {
        return calloc(1, sizeof(struct pool));
}

void pool_free(struct pool **p) {
        assert(!*p || (*p)->pieces == 0);
        free(*p);
        *p = NULL;
}

void *pool_take(struct pool *p, size_t n) {
        void *piece = is_given() ? malloc(n ? n : 1) : NULL;
        p->pieces += piece != NULL;
        return piece;
}

void *pool_take_zero(struct pool *p, size_t n) {
        void *piece = pool_take(p, n);
        if (piece)
                memset(piece, 0, n);
        return piece;
}

void *pool_resize(struct pool *p, void *piece, size_t n) {
        if (!piece)
                return pool_take(p, n);
        return is_given() ? realloc(piece, n ? n : 1) : NULL;
}

void pool_give(struct pool *p, void *piece) {
        p->pieces -= piece != NULL;
        free(piece);
}

void pool_trim(struct pool *p) {
        (void)p;
}

bool pool_trim_some(struct pool *p) {
        (void)p;
        return false;
}

size_t pool_bytes(const struct pool *p) {
        return p->pieces; /* of any size: nobody is to depend on it here */
}

/* ---- arenas: a block a piece ---- */

struct arena_block {
        struct arena_block *next;
};

void arena_init(struct arena *a, struct pool *p) {
        *a = (struct arena){.pool = p};
}

void arena_fini(struct arena *a) {
        struct arena whole = *a; /* it may lie in its own block */
        while (whole.blocks) {
                struct arena_block *b = whole.blocks;
                whole.blocks = b->next;
                pool_give(whole.pool, b);
        }
}

void *arena_take(struct arena *a, size_t n) {
        struct arena_block *b = pool_take(a->pool, sizeof *b + n);
        if (!b)
                return NULL;
        b->next = a->blocks;
        a->blocks = b;
        a->bytes += n;
        return b + 1;
}

struct span arena_copy(struct arena *a, struct span from) {
        char *to = arena_take(a, from.len ? from.len : 1);
        if (to && from.len > 0)
                memcpy(to, from.p, from.len);
        return (struct span){to, to ? from.len : 0};
}
