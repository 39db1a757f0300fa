/* loadgen/setup.h - the sale of a race: made, looked up, waited for; and the
 * stock before and after.
 *
 * Calls go to the origin with the service token; the gateways are only looked
 * at, as any shopper can.
 *
 * Context    before and after the race, while the loop does not run.
 */
#ifndef LOADGEN_SETUP_H
#define LOADGEN_SETUP_H

#include "loadgen/addresses.h"
#include "loadgen/histogram.h"
#include "loadgen/link.h"
#include "loadgen/options.h"

struct lg_stock {
        int64_t total, available, held, sold; /* units */
};

struct lg_sale {
        struct loop *loop;
        struct lg_link *origin;
        const char *token;
        char id[64];
        char tenant[64], item[64];
        int64_t per_account, hold_seconds;
        int64_t opens_at_ms; /* wall clock, by the request */
        char why[320];       /* after a failure: one line about it */
};

/* Makes item and sale `id` as the options want them; a prequeue sale opens
 * `opens_in_ms` from now, every other at once. 0, or 1 with a line in s->why. */
NET_MUST int lg_sale_make(struct lg_sale *s, const struct lg_options *o, int64_t opens_in_ms);
/* Reads tenant, item and limits of the sale `id`. */
NET_MUST int lg_sale_find(struct lg_sale *s);

/* Waits until every gateway's flag tells one of the states in `wanted` (parted
 * by `|`); `flags` counts the answers. 0, or 1 with a line in s->why. */
NET_MUST int lg_sale_await(struct lg_sale *s, struct lg_links *gateways, size_t n_gateways,
                           const char *wanted, struct lg_histogram *flags);

/* 0; 1 when the origin does not answer within `patience_ms`. */
NET_MUST int lg_sale_stock(struct lg_sale *s, int64_t patience_ms, struct lg_stock *out);
/* *known is whether it answered at all. */
void lg_sale_invariant(struct lg_sale *s, int64_t patience_ms, bool *known, bool *ok);

#endif
