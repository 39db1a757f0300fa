/* admission/limiter.h - how often a key may do something (GCRA).
 *
 * A fixed table of 64-bit cells shared by all workers: 24 bits of the key
 * and 40 bits of its theoretical arrival time in milliseconds, changed by
 * one compare-and-swap a check. A key looks at 8 neighbouring cells. When
 * none is free or idle the key shares the cell that is due soonest: a full
 * table is strict, never open.
 *
 * Units      milliseconds of any clock; a clock that steps back earns
 *            nothing. Keys are 64-bit hashes made by the caller with a
 *            secret seed.
 * Ownership  new/free.
 * Context    any thread, no lock, no allocation after new.
 */
#ifndef ADMISSION_LIMITER_H
#define ADMISSION_LIMITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct adm_limiter;

/* `burst` events at once, then one every `period_ms` / `burst`: at most
 * `burst` a period in the long run. Both >= 1; period_ms <= 3,600,000. */
struct adm_limit {
        uint32_t burst;
        uint32_t period_ms;
};

/* `cells` is rounded up to a power of two, at least 64. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int adm_limiter_new(size_t cells, struct adm_limiter **out);
void adm_limiter_free(struct adm_limiter **l);

/* Counts one event. 0: allowed. > 0: refused and not counted; the number is
 * how many ms until it would be allowed. */
int64_t adm_limiter_take(struct adm_limiter *l, uint64_t key, struct adm_limit limit,
                         int64_t now_ms);

/* Same answer, counts nothing: for limits on failures, which are counted
 * by adm_limiter_take only when the failure has happened. */
int64_t adm_limiter_look(struct adm_limiter *l, uint64_t key, struct adm_limit limit,
                         int64_t now_ms);

/* How many checks met a full neighbourhood so far. */
uint64_t adm_limiter_shared_total(const struct adm_limiter *l);

#endif
