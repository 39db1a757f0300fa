/* loadgen/scrape.h - growth of a gateway's counters, also over its restarts.
 *
 * A counter that fell belongs to a new life of the process: it began at zero,
 * so all of it is growth. What a process counted between the last look and its
 * death, or up to its old value before the next look, is not seen; hence
 * frequent looks.
 *
 * Units      counts.
 * Ownership  plain values.
 * Context    one thread.
 */
#ifndef LOADGEN_SCRAPE_H
#define LOADGEN_SCRAPE_H

#include "net/base.h"

enum lg_counter {
        LG_COUNTER_ASKED_SNAPSHOT, /* sluice_origin_requests_total{kind=} */
        LG_COUNTER_ASKED_HEALTH,
        LG_COUNTER_ASKED_HOLD,
        LG_COUNTER_ASKED_HOLD_READ,
        LG_COUNTER_ASKED_FORWARD,
        LG_COUNTER_ASKED_OTHER,
        LG_COUNTER_STORE_CALLS,   /* sluice_store_calls_total, all ops */
        LG_COUNTER_PASSES_ISSUED, /* sluice_passes_issued_total{sale=} */
        LG_COUNTER_COUNT
};

struct lg_scrape {
        bool begun; /* the first look is the base line, not growth */
        uint64_t last[LG_COUNTER_COUNT];
        uint64_t grown[LG_COUNTER_COUNT];
};

/* Reads Prometheus text. Series of other names and sales are left alone; a
 * missing series is 0. */
void lg_scrape_read(struct span text, struct span sale, uint64_t now[LG_COUNTER_COUNT]);

/* Takes one look into account. */
void lg_scrape_add(struct lg_scrape *s, const uint64_t now[LG_COUNTER_COUNT]);

#endif
