/* Slabs are 64 KiB, aligned to 64 KiB, cut from regions of 1 MiB. The slab of
 * a piece is found by masking its address, and knows its size class:
 *
 *   | head, 64 bytes | piece | piece | ...          |   classes up to 8 KiB
 *   | head, 4 KiB    | 20 KiB | 20 KiB | 20 KiB     |   the page class
 *   | head, 4 KiB    | one piece of any size ...        its own mapping
 *
 * Pieces never used are handed out in order of address, so that pages nobody
 * touched cost nothing. Empty slabs give their pages back to the system when
 * pool_trim() finds that a whole interval did without them, a few at a time. Under AddressSanitizer
 * every piece is malloc's own, or it could not see a use after free. */
#include "net/pool.h"

#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define POOL_IS_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_IS_MALLOC 1
#endif
#endif
#ifndef POOL_IS_MALLOC
#define POOL_IS_MALLOC 0
#endif

#define SLAB_BYTES ((size_t)65536)
#define REGION_BYTES ((size_t)1 << 20)
#define PAGE_BYTES ((size_t)4096)
#define TRIM_SLABS 8   /* at a time: the system takes its time for each */
#define SPARE_SLABS 16 /* kept in any case */

static const uint16_t class_bytes[] = {32,  48,   64,   96,   128,  192,  256,  384,  512,
                                       768, 1024, 1536, 2032, 3104, 4080, 8176, 20480};
#define CLASS_COUNT NET_COUNT_OF(class_bytes)
#define CLASS_PAGES (CLASS_COUNT - 1)
#define CLASS_SINGLE CLASS_COUNT /* a mapping of its own */
#define SMALL_MAX 4080

struct piece {
        struct piece *next;
};

struct slab {
        struct slab *prev, *next; /* among the slabs of its class with room */
        struct piece *given;      /* pieces given back */
        uint32_t fresh;           /* offset of the first piece never used */
        uint16_t used;
        uint16_t kind;
        bool listed;
        size_t mapping; /* bytes of a single's mapping */
};

struct region {
        struct region *next;
        void *map;
        size_t bytes;
};

struct pool {
        struct slab *with_room[CLASS_COUNT];
        struct slab *empty; /* by `next` */
        struct slab *bare;  /* the same, their pages given back */
        size_t n_empty;
        size_t least_empty; /* of n_empty since the last trim */
        size_t surplus;     /* of them may go */
        struct region *regions;
        size_t bytes;
        size_t pieces; /* taken, not given back */
        uint8_t class_of[SMALL_MAX / 16 + 1];
};

static void *map_aligned(size_t bytes, void **map, size_t *map_bytes) {
        *map_bytes = bytes + SLAB_BYTES;
        *map = mmap(NULL, *map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (*map == MAP_FAILED)
                return NULL;
        uintptr_t at = ((uintptr_t)*map + SLAB_BYTES - 1) & ~(uintptr_t)(SLAB_BYTES - 1);
        return (void *)at;
}

struct pool *pool_new(void) {
        struct pool *p = calloc(1, sizeof *p);
        if (!p)
                return NULL;
        uint8_t kind = 0;
        for (size_t i = 0; i < sizeof p->class_of; i++) {
                while (class_bytes[kind] < i * 16)
                        kind++;
                p->class_of[i] = kind;
        }
        return p;
}

void pool_free(struct pool **pp) {
        struct pool *p = *pp;
        *pp = NULL;
        if (!p)
                return;
        assert(p->pieces == 0);
        while (p->regions) {
                struct region *r = p->regions;
                p->regions = r->next;
                (void)munmap(r->map, r->bytes);
                free(r);
        }
        free(p);
}

static bool region_add(struct pool *p) {
        struct region *r = malloc(sizeof *r);
        char *at = r ? map_aligned(REGION_BYTES, &r->map, &r->bytes) : NULL;
        if (!at) {
                free(r);
                return false;
        }
        r->next = p->regions;
        p->regions = r;
        for (size_t i = REGION_BYTES / SLAB_BYTES; i-- > 0;) {
                struct slab *s = (struct slab *)(void *)(at + i * SLAB_BYTES);
                s->next = p->bare;
                p->bare = s;
        }
        return true;
}

static uint32_t slab_first(size_t kind) {
        return kind == CLASS_PAGES ? (uint32_t)PAGE_BYTES : 64;
}

static void room_join(struct pool *p, struct slab *s) {
        s->prev = NULL;
        s->next = p->with_room[s->kind];
        if (s->next)
                s->next->prev = s;
        p->with_room[s->kind] = s;
        s->listed = true;
}

static void room_leave(struct pool *p, struct slab *s) {
        if (s->prev)
                s->prev->next = s->next;
        else
                p->with_room[s->kind] = s->next;
        if (s->next)
                s->next->prev = s->prev;
        s->listed = false;
}

static struct slab *slab_open(struct pool *p, size_t kind) {
        if (!p->empty && !p->bare && !region_add(p))
                return NULL;
        struct slab *s = p->empty;
        if (s) {
                p->empty = s->next;
                if (--p->n_empty < p->least_empty)
                        p->least_empty = p->n_empty;
        } else {
                s = p->bare;
                p->bare = s->next;
        }
        *s = (struct slab){.fresh = slab_first(kind), .kind = (uint16_t)kind};
        p->bytes += SLAB_BYTES;
        room_join(p, s);
        return s;
}

static void slab_close(struct pool *p, struct slab *s) {
        room_leave(p, s);
        p->bytes -= SLAB_BYTES;
        s->next = p->empty;
        p->empty = s;
        p->n_empty++;
}

void pool_trim(struct pool *p) {
        p->surplus = p->least_empty > SPARE_SLABS ? p->least_empty - SPARE_SLABS : 0;
        p->least_empty = p->n_empty;
}

bool pool_trim_some(struct pool *p) {
        for (int i = 0; i < TRIM_SLABS && p->surplus > 0 && p->n_empty > SPARE_SLABS; i++) {
                struct slab *s = p->empty;
                p->surplus--;
                p->empty = s->next;
                p->n_empty--;
                (void)madvise(s, SLAB_BYTES, MADV_DONTNEED);
                s->next = p->bare;
                p->bare = s;
        }
        if (p->least_empty > p->n_empty)
                p->least_empty = p->n_empty;
        return p->surplus > 0 && p->n_empty > SPARE_SLABS;
}

static void *single_take(struct pool *p, size_t n) {
        void *map;
        size_t bytes;
        char *at = map_aligned(PAGE_BYTES + n, &map, &bytes);
        if (!at)
                return NULL;
        struct slab *s = (struct slab *)(void *)at;
        /* Trim, so that masking and unmapping need only the head. */
        if (at != (char *)map)
                (void)munmap(map, (size_t)(at - (char *)map));
        bytes -= (size_t)(at - (char *)map);
        *s = (struct slab){.kind = CLASS_SINGLE, .mapping = bytes};
        p->bytes += bytes;
        return at + PAGE_BYTES;
}

static struct slab *slab_of(void *piece) {
        return (struct slab *)(void *)((uintptr_t)piece & ~(uintptr_t)(SLAB_BYTES - 1));
}

static size_t class_for(const struct pool *p, size_t n) {
        if (n <= SMALL_MAX)
                return p->class_of[(n + 15) / 16];
        return n <= class_bytes[CLASS_PAGES - 1] ? CLASS_PAGES - 1 : CLASS_PAGES;
}

static void *piece_take(struct pool *p, size_t n) {
        if (POOL_IS_MALLOC)
                return malloc(n ? n : 1);
        if (n > class_bytes[CLASS_PAGES])
                return single_take(p, n);
        size_t kind = class_for(p, n);
        struct slab *s = p->with_room[kind];
        if (!s && !(s = slab_open(p, kind)))
                return NULL;
        void *piece = s->given;
        if (piece) {
                s->given = s->given->next;
        } else {
                piece = (char *)s + s->fresh;
                s->fresh += class_bytes[kind];
        }
        s->used++;
        if (!s->given && s->fresh + class_bytes[kind] > SLAB_BYTES)
                room_leave(p, s);
        return piece;
}

void *pool_take(struct pool *p, size_t n) {
        void *piece = piece_take(p, n);
        p->pieces += piece != NULL;
        return piece;
}

void *pool_take_zero(struct pool *p, size_t n) {
        void *piece = pool_take(p, n);
        if (piece)
                memset(piece, 0, n);
        return piece;
}

void pool_give(struct pool *p, void *piece) {
        if (!piece)
                return;
        assert(p->pieces > 0);
        p->pieces--;
        if (POOL_IS_MALLOC) {
                free(piece);
                return;
        }
        struct slab *s = slab_of(piece);
        if (s->kind == CLASS_SINGLE) {
                p->bytes -= s->mapping;
                (void)munmap(s, s->mapping);
                return;
        }
        struct piece *back = piece;
        back->next = s->given;
        s->given = back;
        if (!s->listed)
                room_join(p, s);
        assert(s->used > 0);
        if (--s->used == 0 && (s->prev || s->next))
                slab_close(p, s);
}

void *pool_resize(struct pool *p, void *piece, size_t n) {
        if (!piece)
                return pool_take(p, n);
        if (POOL_IS_MALLOC)
                return realloc(piece, n ? n : 1);
        struct slab *s = slab_of(piece);
        size_t has = s->kind == CLASS_SINGLE ? s->mapping - PAGE_BYTES : class_bytes[s->kind];
        if (n <= has)
                return piece;
        void *fresh = pool_take(p, n);
        if (fresh) {
                memcpy(fresh, piece, has);
                pool_give(p, piece);
        }
        return fresh;
}

size_t pool_bytes(const struct pool *p) {
        return p->bytes;
}

/* ---- pieces that die together ---- */

struct arena_block {
        struct arena_block *next;
};

/* One block holds an ordinary request with its exchange. */
#define ARENA_BLOCK 4080

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
        n = (n + 7) & ~(size_t)7;
        if (n > a->room) {
                size_t bytes = sizeof(struct arena_block) + n;
                if (bytes < ARENA_BLOCK)
                        bytes = ARENA_BLOCK;
                struct arena_block *b = pool_take(a->pool, bytes);
                if (!b)
                        return NULL;
                b->next = a->blocks;
                a->blocks = b;
                a->at = (char *)(b + 1);
                a->room = bytes - sizeof *b;
        }
        void *piece = a->at;
        a->at += n;
        a->room -= n;
        a->bytes += n;
        return piece;
}

struct span arena_copy(struct arena *a, struct span from) {
        char *to = arena_take(a, from.len ? from.len : 1);
        if (to && from.len > 0)
                memcpy(to, from.p, from.len);
        return (struct span){to, to ? from.len : 0};
}
