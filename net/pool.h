/* net/pool.h - memory for one loop's connections: free lists by size, in
 * slabs that go back to the system when they are empty.
 *
 * A connection's session asks for dozens of small pieces and one page run of
 * 16 KiB of which it mostly touches the first page; both come from 64 KiB
 * slabs, aligned to their size, so that a piece needs no header of its own.
 *
 * Units      bytes.
 * Ownership  a piece lives until pool_give(); pool_free() wants all of them
 *            back first.
 * Context    one thread at a time.
 */
#ifndef NET_POOL_H
#define NET_POOL_H

#include "net/base.h"

struct pool;

struct pool *pool_new(void);
void pool_free(struct pool **p);

/* Aligned to 16; NULL when the system gives no memory. `n` of 0 is 1. */
void *pool_take(struct pool *p, size_t n);
void *pool_take_zero(struct pool *p, size_t n);
/* As realloc(3). */
void *pool_resize(struct pool *p, void *piece, size_t n);
void pool_give(struct pool *p, void *piece); /* NULL is nothing */

/* What nobody has needed since the last call may go back to the system: that is
 * pool_trim_some()'s work. */
void pool_trim(struct pool *p);
/* Gives half a MiB of it back. True: there is more. */
bool pool_trim_some(struct pool *p);

/* Bytes of slabs the system has given and not got back. */
size_t pool_bytes(const struct pool *p);

/* ---- pieces that die together ---- */

struct arena_block;

/* A plain value to embed; it may live inside its own first block. */
struct arena {
        struct pool *pool;
        struct arena_block *blocks;
        char *at; /* free bytes of the newest block */
        size_t room;
        size_t bytes; /* handed out */
};

void arena_init(struct arena *a, struct pool *p);
void arena_fini(struct arena *a);
/* Aligned to 8; NULL without memory. */
void *arena_take(struct arena *a, size_t n);
/* A copy; p is NULL without memory. */
struct span arena_copy(struct arena *a, struct span from);

#endif
