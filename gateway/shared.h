/* gateway/shared.h - the few things all threads of a gateway share.
 *
 * Besides these there are published snapshots (gateway/snapshot.h), handed
 * over as pointers, and the counters, summed at the scrape.
 *
 * Units      milliseconds. Monotonic time is net/loop's; sale time is the
 *            origin's clock, which here never runs backwards.
 * Context    any thread.
 */
#ifndef GATEWAY_SHARED_H
#define GATEWAY_SHARED_H

#include <stdatomic.h>

#include "net/base.h"

struct adm_store;
struct adm_limiter;
struct gw_names;
struct memory_told;

struct gw_shared {
        struct adm_store *store;
        struct adm_limiter *limiter;
        struct gw_names *names;
        const struct memory_told *memory; /* how short it is */
        uint64_t hash_seed;               /* of limiter keys */
        _Atomic int64_t offset_ms;        /* sale time minus monotonic time */
        _Atomic int64_t snapshot_at_ms;   /* monotonic; GW_NEVER_MS before the first */
        int64_t away_after_ms;
};

#define GW_NEVER_MS INT64_MIN

static inline int64_t gw_sale_time_ms(const struct gw_shared *s, int64_t mono_ms) {
        return mono_ms + atomic_load_explicit(&s->offset_ms, memory_order_relaxed);
}

/* The origin has been silent for too long (or was never heard). */
static inline bool gw_origin_is_away(const struct gw_shared *s, int64_t mono_ms) {
        int64_t at = atomic_load_explicit(&s->snapshot_at_ms, memory_order_relaxed);
        return at == GW_NEVER_MS || mono_ms - at > s->away_after_ms;
}

#endif
