/* origin/watch.h - who holds a row that others wait for.
 *
 * While a sale is open the database is asked every `watch.interval` which
 * sessions stand in others' way (pg_stat_activity, pg_blocking_pids); the
 * metrics tell the last look. GET /v1/locks looks at once and tells all.
 *
 * Context    the loop's thread.
 */
#ifndef ORIGIN_WATCH_H
#define ORIGIN_WATCH_H

#include "origin/call.h"

struct org_watch_counters {
        struct metrics_counter looks;   /* with a sale open */
        struct metrics_counter waiting; /* sessions that wait for a lock, at the last look */
        struct metrics_counter holding; /* sessions they wait for */
        struct metrics_counter held_us; /* the oldest of those, since its transaction began */
};

NET_MUST int org_watch_new(struct org_service *s, struct org_watch **out);
void org_watch_free(struct org_watch **w);
const struct org_watch_counters *org_watch_counters(const struct org_watch *w);

void org_watch_get(struct org_call *c); /* GET /v1/locks */

#endif
