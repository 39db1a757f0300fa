/* net/memory_watch.h - how near the process is to its memory's limit, judged a
 * few times a second, forty times once half of it is in use, and told to all loops.
 *
 *   EASY --85 %--> SHUT --92 %--> LEAVE --95 %--> CUT
 *
 * A stage is entered as soon as its share of the limit is in use, and left once
 * three hundredths of the limit less are, so that it does not flap. What the
 * stages mean to a server stands in net/http_memory.h.
 *
 * Units      bytes; milliseconds of the loop.
 * Ownership  a value to embed, zeroed by its owner, to stay until the last loop
 *            that reads `told` has ended.
 * Context    the loop's thread, but for memory_told_*(): any.
 */
#ifndef NET_MEMORY_WATCH_H
#define NET_MEMORY_WATCH_H

#include "net/loop.h"
#include "net/memory_meter.h"
#include "net/metrics.h"

enum memory_stage {
        MEMORY_EASY,
        MEMORY_SHUT,  /* nobody new is let in */
        MEMORY_LEAVE, /* and who asks for nothing is sent away */
        MEMORY_CUT,   /* and the dearest connections are cut */
        MEMORY_STAGES,
};

/* The stage after this measurement. Pure. */
enum memory_stage memory_stage_next(enum memory_stage now, uint64_t used_bytes,
                                    uint64_t limit_bytes);
const char *memory_stage_name(enum memory_stage stage);

/* Written by the watch. */
struct memory_told {
        _Atomic uint32_t stage;        /* enum memory_stage */
        _Atomic uint32_t round;        /* of measurements that were not EASY: act once on each */
        _Atomic uint64_t excess_bytes; /* above the share at which CUT ends */
};

static inline enum memory_stage memory_told_stage(const struct memory_told *t) {
        return (enum memory_stage)atomic_load_explicit(&t->stage, memory_order_relaxed);
}

struct memory_watch {
        struct memory_told told;
        struct memory_meter meter;
        struct loop_timer timer;
        int64_t trim_at_ms; /* the next time it may */
        int64_t tidy_until_ms;
        struct metrics_counter used_bytes;             /* a gauge */
        struct metrics_counter entered[MEMORY_STAGES]; /* [EASY]: returned */
        void (*on_strain)(struct memory_watch *w);     /* measured, and it is not easy; or NULL */
};

/* Measures once, says what was found, and goes on by itself. That first time, too,
 * `on_strain` may be called. `limit_bytes` 0: what the system allows. */
void memory_watch_start(struct memory_watch *w, struct loop *l, uint64_t limit_bytes,
                        void (*on_strain)(struct memory_watch *w));
/* Also when it was never started. */
void memory_watch_stop(struct memory_watch *w);
void memory_watch_render(const struct memory_watch *w, struct metrics_out *o);

#endif
