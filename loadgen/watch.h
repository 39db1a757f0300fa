/* loadgen/watch.h - looks at the gateways' counters again and again during a
 * race, so that little is lost when one of them is killed.
 *
 * Units      counts; milliseconds.
 * Ownership  embedded; borrows the links.
 * Context    the loop's thread.
 */
#ifndef LOADGEN_WATCH_H
#define LOADGEN_WATCH_H

#include "loadgen/link.h"
#include "loadgen/scrape.h"

struct lg_watch;

struct lg_watched {
        struct lg_watch *watch;
        struct lg_link *link;
        struct lg_ask ask;
        struct loop_timer timer;
        struct lg_scrape scrape;
        int64_t seen_at_ms; /* the last look; 0 none */
};

struct lg_watch {
        struct loop *loop;
        struct span sale;
        size_t n;
        struct lg_watched gateway[LG_GATEWAYS_MAX];
};

void lg_watch_init(struct lg_watch *w, struct loop *l, struct lg_links *admins, size_t n,
                   struct span sale);
void lg_watch_cancel(struct lg_watch *w);

/* Runs the loop until every gateway was looked at once more. 0; 1 when one
 * did not answer within `patience_ms`. The loop must not run. */
NET_MUST int lg_watch_all(struct lg_watch *w, int64_t patience_ms);

uint64_t lg_watch_grown(const struct lg_watch *w, enum lg_counter counter);

#endif
