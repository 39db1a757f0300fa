/* net/watchdog.h - notices a turn of a loop that does not end.
 *
 * A loop that spins serves nobody, and nobody outside can tell it from one that
 * is busy. The judge is the processor time of the loop's own thread: a timer on
 * that clock sends the thread a signal four times within the shorter of the two
 * times below (each 5 ms at the most often). Whoever is found in the same turn for
 * `report_ms` of it is written to the log with where it is; after `abort_ms` the
 * process ends with SIGABRT, to be started anew. A process that was stopped,
 * starved, or whose machine stood still burns no time and is never held to account
 * for it. Nor is one that sleeps in a turn: what waits for a disk or a lock is not
 * seen here.
 *
 * A place is MODULE+0xOFFSET, the innermost first: `addr2line -fie MODULE OFFSET`.
 *
 * A loop that waits costs nothing, one that works a few signals a second.
 *
 * Units      milliseconds of the thread's processor time.
 * Ownership  a value to embed; it stays where it is from start to stop.
 * Context    start and stop: the loop's thread. The signal is WATCHDOG_SIGNAL of the
 *            real-time ones, unblocked in that thread.
 */
#ifndef NET_WATCHDOG_H
#define NET_WATCHDOG_H

#include <time.h>

#include "net/loop.h"
#include "net/metrics.h"

#define WATCHDOG_SIGNAL (SIGRTMIN + 2)

struct watchdog_conf {
        uint32_t report_ms; /* 0: never */
        uint32_t abort_ms;  /* 0: never */
};

struct watchdog {
        struct watchdog_conf conf;
        const struct loop *loop;
        const char *name; /* of the thread; a literal */
        timer_t timer;
        bool is_started;
        bool is_reported;            /* this turn is */
        uint64_t turn;               /* as last seen */
        int64_t ticks;               /* in that turn, since it was first seen */
        struct metrics_counter late; /* turns reported */
};

/* A kernel that gives no timer is logged, and the loop is not watched. */
void watchdog_start(struct watchdog *d, const struct loop *l, const char *name,
                    const struct watchdog_conf *conf);
/* Also when it was not started. */
void watchdog_stop(struct watchdog *d);

#endif
