/* origin/wish.h - what one call asks of one item, put to the database: alone,
 * or several of the same item together.
 *
 * Ownership  org_wish_of borrows from the call's request and the ask;
 *            org_wish_keep copies all of it into one block, freed by free().
 * Context    the loop's thread.
 */
#ifndef ORIGIN_WISH_H
#define ORIGIN_WISH_H

#include "origin/ask.h"
#include "origin/db.h"

struct org_wish {
        struct org_wish *next; /* in a list of kept ones */
        struct org_call *call;
        int64_t since_ms; /* loop_clock_ms() when it was kept */
        size_t bytes;     /* its room in a job of several, at most */
        struct span buyer, sale, key, request, pass_jti, channel, order_ref;
        int64_t qty;
        int64_t round; /* -1: no pass was shown */
        bool is_replay;
        char id[ORG_UUID_HEX]; /* of the hold it may become */
};

/* `text` has room for ORG_ASK_TEXT_MAX and holds the wish's request. */
void org_wish_of(struct org_wish *w, struct org_call *c, const struct org_ask *a, char *text);
/* NULL when out of memory. */
struct org_wish *org_wish_keep(const struct org_wish *w);

/* The query RESERVE. Tenant and item are the call's kept names. */
struct org_job *org_wish_job(const struct org_wish *w, int64_t max_hold_seconds);

/* The query RESERVE_BATCH for a list of n, in its order. `scratch` has room for
 * all their bytes. */
struct org_job *org_wishes_job(const struct org_wish *first, size_t n, int64_t max_hold_seconds,
                               char *scratch, size_t cap);
#define ORG_WISHES_BYTES_MAX 131072 /* of one job; a wish has at most a tenth of it */

#endif
