/* loadgen/strategies/crew.h - buyers who come one after the other on several
 * connections, each connection a process, so that they can be killed like one.
 *
 * Units      microseconds of the monotonic clock; counts.
 * Context    one crew at a time; blocks until it has ended, which is at most the
 *            patience of a buyer after the time is over.
 */
#ifndef LOADGEN_STRATEGIES_CREW_H
#define LOADGEN_STRATEGIES_CREW_H

#include "loadgen/histogram.h"
#include "loadgen/strategies/way.h"

#define LG_CREW_MAX 64

struct lg_servers {
        char postgres[512]; /* a URL */
        char redis[256];    /* likewise; "": none */
};

struct lg_crew {
        const struct lg_way *way;
        const struct lg_servers *servers;
        const char *item;
        int64_t units;
        uint32_t connections; /* 1..LG_CREW_MAX */
        uint32_t first;       /* number of the first of them: names are made of it */
        uint64_t most;        /* sales of each connection; 0: as many as it can */
        int64_t seconds;      /* at most */
        bool is_killed;       /* at the end, each in the middle of a sale */
};

struct lg_sales {
        uint64_t sold, gave_up, retries;
        uint64_t locks, held_us;
        double seconds; /* until the last sale */
        struct lg_histogram took;
};

/* 0; 1 after lines on stderr when a buyer met what no way accounts for. */
NET_MUST int lg_crew_run(const struct lg_crew *crew, struct lg_sales *out);

#endif
