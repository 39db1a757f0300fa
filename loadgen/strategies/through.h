/* loadgen/strategies/through.h - the same buyers at our origin, over HTTP/2: with
 * holds decided together and with each by itself.
 *
 * Units      microseconds; counts.
 * Context    blocks; runs a loop of its own.
 */
#ifndef LOADGEN_STRATEGIES_THROUGH_H
#define LOADGEN_STRATEGIES_THROUGH_H

#include "loadgen/strategies/crew.h"
#include "loadgen/addresses.h"

#define LG_THROUGH_MAX 4096 /* buyers at the same time */

struct lg_through {
        const struct lg_endpoint *origin;
        const char *token;
        const char *item; /* and the sale's name, which this makes */
        int64_t units;
        bool is_together;
        uint32_t buyers; /* at the same time: the next comes when one is done */
        uint32_t per_s;  /* instead, so many a second, whoever is done; 0: as above */
        int64_t seconds; /* at most */
};

/* `out->locks` and `held_us` are the origin's own figures. 0; 1 after a line on
 * stderr. */
NET_MUST int lg_through_run(const struct lg_through *what, struct lg_sales *out);

#endif
