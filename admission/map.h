/* admission/map.h - the shared file that the store of one machine lives in.
 *
 *   page 0            header: format, sizes, generation, epoch
 *   then, a sale      head (lock, hall), marks, live, before, records,
 *                     table, turns, due, who; each begins on a page
 *
 * The file is sparse: a sale takes disk and memory for what it uses. Every
 * process that has the map holds a shared flock; whoever gets an exclusive
 * one is alone and may make locks and counters anew, so a lock left behind
 * by a power cut does no harm.
 *
 * Units      bytes.
 * Ownership  open/close; pointers into the map live until close.
 * Context    open and close from one thread.
 */
#ifndef ADMISSION_MAP_H
#define ADMISSION_MAP_H

#include <pthread.h>

#include "admission/hall.h"
#include "admission/store_memory.h"

#define ADM_MAP_GENERATION_MAX 0x7fffff /* 23 bits of an order key */

struct adm_map_header {
        uint64_t magic;
        uint32_t format;
        uint32_t max_sales;
        uint32_t capacity; /* numbers a sale */
        uint32_t accounts;
        uint64_t sale_bytes;
        uint64_t file_bytes;
        uint32_t generation;
        uint32_t old_generation;
        uint32_t epoch;
        uint32_t unused;
        uint64_t salt;
        _Atomic int64_t alive_ms;
        _Atomic int64_t born_ms;
        pthread_mutex_t lock; /* who gets which slot */
};

struct adm_map_sale {
        pthread_mutex_t lock;
        uint32_t lock_made;
        uint32_t recs_backed;  /* records that have disk behind them */
        uint32_t turns_backed; /* turns likewise */
        uint32_t unused;
        struct adm_hall_head head;
};

struct adm_map {
        int fd;
        enum adm_found found;
        const char *fault; /* what was broken; a constant text, or NULL */
        struct adm_map_header *h;
        size_t bytes;
        struct adm_hall *halls; /* one a slot, this process's view */
        uint32_t max_sales;
};

/* 0, ADM_MAP_FOREIGN, ADM_MAP_SHAPE, -errno. */
ADM_MUST int adm_map_open(const struct adm_store_conf *c, int64_t now_ms, struct adm_map *out);
void adm_map_close(struct adm_map *m);

/* A handle is a slot under a count of how often the slot was given to a sale:
 * one kept too long names nothing. While the slot is used the count is odd. */
#define ADM_MAP_SLOT_BITS 10

static inline uint32_t adm_map_slot_of(uint32_t handle) {
        return handle & ((1u << ADM_MAP_SLOT_BITS) - 1);
}

static inline bool adm_map_is_used(uint32_t handle) {
        return handle >> ADM_MAP_SLOT_BITS & 1;
}

struct adm_map_sale *adm_map_sale_of(const struct adm_map *m, uint32_t slot);

/* A robust lock of either kind. True when its last holder died in it. */
bool adm_map_lock(pthread_mutex_t *lock);
void adm_map_unlock(pthread_mutex_t *lock);

/* Prepares an unused slot for a new sale. 0 or -errno (no disk). */
ADM_MUST int adm_map_sale_make(struct adm_map *m, uint32_t slot);

/* Disk behind one more record and two more turns, so that a full disk is an
 * error here and not a signal there. 0 or -errno. */
ADM_MUST int adm_map_reserve(struct adm_map *m, uint32_t slot);

/* Could adm_map_reserve have left what stands there? */
bool adm_map_backed_is_good(const struct adm_map *m, const struct adm_map_sale *s);

/* Gives a slot's disk and memory back. */
void adm_map_sale_drop(struct adm_map *m, uint32_t slot);

#endif
