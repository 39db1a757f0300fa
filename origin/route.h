/* origin/route.h - which of the origin's resources a path names.
 *
 * Paths are matched byte by byte, nothing is decoded: names that may stand in
 * a path need no coding.
 *
 * Ownership  spans point into the path.
 * Context    any thread; pure.
 */
#ifndef ORIGIN_ROUTE_H
#define ORIGIN_ROUTE_H

#include "net/http.h"

enum org_resource {
        ORG_OUTSIDE,   /* not ours: the demo page, or nothing */
        ORG_UNKNOWN,   /* below /v1, and nothing of ours */
        ORG_MALFORMED, /* a name that cannot be one; `field` says which */
        ORG_HEALTHZ,
        ORG_READYZ,
        ORG_METRICS,
        ORG_SNAPSHOT,
        ORG_INVARIANT,
        ORG_ITEM,
        ORG_ITEM_HOLDS,
        ORG_ORDERS,
        ORG_SALES,
        ORG_SALE,
        ORG_SALE_VERB,
        ORG_SALE_AUDIT,
        ORG_LOCKS,
        ORG_HOLD,
        ORG_HOLD_VERB,
        ORG_HOLD_EVENTS,
        ORG_RESOURCE_COUNT,
};

struct org_route {
        enum org_resource resource;
        struct span tenant, item, sale, hold, verb;
        struct span query; /* behind "?", p NULL when there is none */
        const char *field; /* MALFORMED: the name of the bad part */
        const char *expected;
};

struct org_route org_route_of(struct span path);

/* [a-z0-9][a-z0-9-]{0,62} */
bool org_sale_name_is_good(struct span name);
/* Tenants and items: [A-Za-z0-9][A-Za-z0-9._-]{0,62} */
bool org_stock_name_is_good(struct span name);
#define ORG_SALE_NAME_EXPECTED "expected 1..63 of a-z, 0-9 and -, no - first"
#define ORG_STOCK_NAME_EXPECTED                                                                    \
        "expected 1..63 of A-Z, a-z, 0-9, . _ and -, first a letter or digit"

/* The value of `name` in a query; p NULL when it is not there. */
struct span org_query_value(struct span query, struct span name);

#endif
