/* gateway/route.h - which part of the gateway a path asks for.
 *
 * Routes are matched on raw bytes: no decoding, no folding. That a path can be
 * read in one way alone (http_path_is_clean) was seen to before.
 *
 * Ownership  spans point into the path.
 * Context    any thread; no state.
 */
#ifndef GATEWAY_ROUTE_H
#define GATEWAY_ROUTE_H

#include "net/http.h"

enum gw_route_kind {
        GW_ROUTE_FLAG,    /* /_sluice/v1/sales/S */
        GW_ROUTE_LIST,    /* /_sluice/v1/sales */
        GW_ROUTE_JWKS,    /* /_sluice/v1/jwks.json */
        GW_ROUTE_DRAW,    /* …/S/draw */
        GW_ROUTE_LINE,    /* …/S/line */
        GW_ROUTE_EVENTS,  /* …/S/line/events */
        GW_ROUTE_HOLDS,   /* …/S/holds */
        GW_ROUTE_HOLD,    /* …/S/holds/H */
        GW_ROUTE_EXTEND,  /* …/S/holds/H/extend */
        GW_ROUTE_RELEASE, /* …/S/holds/H/release */
        GW_ROUTE_NONE,    /* under /_sluice, but nothing of ours: 404 */
        GW_ROUTE_GATED,   /* everything else: the sales' rules decide */
        GW_ROUTES,
};

struct gw_route {
        enum gw_route_kind kind;
        struct span sale; /* as written; empty where the route has none */
        struct span hold;
        struct span path; /* the part before `?` */
};

enum gw_route_outcome {
        GW_ROUTE_FOUND = 0,
        GW_ROUTE_MALFORMED = 1,
};

NET_MUST int gw_route_of(struct span path, struct gw_route *out);

/* True for `[a-z0-9][a-z0-9-]{0,62}`. */
bool gw_sale_id_is_good(struct span id);

/* One bit a method (1 << enum http_method) that the route answers; gated paths
 * answer every method that has a name. */
unsigned gw_route_methods(enum gw_route_kind kind);

/* The Allow value of a 405. */
struct span gw_route_allow(enum gw_route_kind kind);

/* For logs: "line". */
const char *gw_route_name(enum gw_route_kind kind);

#endif
