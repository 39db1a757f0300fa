/* admission/store_memory.h - the store of one machine: a shared map.
 *
 * `dir`/admission.map is a sparse, flat, pointer-free file, mapped by every
 * gateway process of the machine (two during a rolling restart). One robust,
 * process-shared mutex a sale; whoever finds that its holder died rebuilds
 * the sale's counters from its entries. kill -9 loses no number, no slot.
 *
 * A file of another format is refused by name. One that was cut short, or made
 * with other sizes while nobody else uses it, is put aside as
 * admission.map.old, one whose content no store can have written as
 * admission.map.broken. Then the map is begun anew: a new generation of
 * numbers and a new epoch, in which nobody is admitted until available is
 * known and 4 s have passed; tickets of the generation before keep their order.
 *
 * Context    open and close from one thread; the rest as store.h says.
 */
#ifndef ADMISSION_STORE_MEMORY_H
#define ADMISSION_STORE_MEMORY_H

#include "admission/store.h"

/* What opening found. */
enum adm_found {
        ADM_FOUND_MAP = 0,  /* taken as it is */
        ADM_FOUND_NONE,     /* nothing was there */
        ADM_FOUND_RESHAPED, /* other sizes, or cut short */
        ADM_FOUND_BROKEN,   /* content that no store can have written */
};

struct adm_store_conf {
        const char *dir;             /* exists, ours to write */
        uint32_t max_sales;          /* 1..1024 */
        uint32_t max_numbers;        /* a sale; 1..16,000,000 */
        uint32_t max_accounts;       /* a sale; 1..16,000,000 */
        uint32_t forward_timeout_ms; /* how long a forwarded request may take */
        uint32_t skew_ms;            /* clocks of verifiers; 2000 */
        uint32_t polls_per_s;        /* budget of polls a sale; 0: 30,000 */
};

/* 0; ADM_MAP_FOREIGN, ADM_MAP_SHAPE; -errno (-EINVAL: conf out of range).
 * `now_ms` may be the local clock: it dates the generation, and whatever the
 * map holds from more than a day after it is broken. */
ADM_MUST int adm_store_open(const struct adm_store_conf *c, int64_t now_ms, struct adm_store **out);

/* `*fault` names what was broken: a constant text, else NULL. */
enum adm_found adm_store_found(const struct adm_store *s, const char **fault);

#endif
