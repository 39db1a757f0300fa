#include "gateway/route.h"

#define GET_HEAD ((1U << HTTP_GET) | (1U << HTTP_HEAD))
#define ANY                                                                                        \
        (GET_HEAD | (1U << HTTP_POST) | (1U << HTTP_PUT) | (1U << HTTP_PATCH) |                    \
         (1U << HTTP_DELETE) | (1U << HTTP_OPTIONS))

struct row {
        const char *name;
        const char *allow;
        unsigned methods;
};

static const struct row rows[GW_ROUTES] = {
        [GW_ROUTE_FLAG] = {"flag", "GET, HEAD", GET_HEAD},
        [GW_ROUTE_LIST] = {"list", "GET, HEAD", GET_HEAD},
        [GW_ROUTE_JWKS] = {"jwks", "GET, HEAD", GET_HEAD},
        [GW_ROUTE_DRAW] = {"draw", "GET, HEAD", GET_HEAD},
        [GW_ROUTE_LINE] = {"line", "GET, HEAD, POST, DELETE",
                           GET_HEAD | (1U << HTTP_POST) | (1U << HTTP_DELETE)},
        [GW_ROUTE_EVENTS] = {"events", "GET", 1U << HTTP_GET},
        [GW_ROUTE_HOLDS] = {"holds", "POST", 1U << HTTP_POST},
        [GW_ROUTE_HOLD] = {"hold", "GET, HEAD", GET_HEAD},
        [GW_ROUTE_EXTEND] = {"extend", "POST", 1U << HTTP_POST},
        [GW_ROUTE_RELEASE] = {"release", "POST", 1U << HTTP_POST},
        [GW_ROUTE_NONE] = {"none", "", ANY | (1U << HTTP_METHOD_OTHER)},
        [GW_ROUTE_GATED] = {"gated", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS", ANY},
};

unsigned gw_route_methods(enum gw_route_kind kind) {
        assert(kind < GW_ROUTES);
        return rows[kind].methods;
}

struct span gw_route_allow(enum gw_route_kind kind) {
        assert(kind < GW_ROUTES);
        return span_of(rows[kind].allow);
}

const char *gw_route_name(enum gw_route_kind kind) {
        assert(kind < GW_ROUTES);
        return rows[kind].name;
}

static bool is_lower_or_digit(char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool gw_sale_id_is_good(struct span id) {
        if (id.len < 1 || id.len > 63 || !is_lower_or_digit(id.p[0]))
                return false;
        for (size_t i = 1; i < id.len; i++)
                if (!is_lower_or_digit(id.p[i]) && id.p[i] != '-')
                        return false;
        return true;
}

/* Cuts the next segment off the front of `s`, without its slash. */
static struct span take_segment(struct span *s) {
        size_t n = 0;
        while (n < s->len && s->p[n] != '/')
                n++;
        struct span segment = {s->p, n};
        size_t eaten = n < s->len ? n + 1 : n;
        s->p += eaten;
        s->len -= eaten;
        return segment;
}

static enum gw_route_kind hold_route(struct span verb, struct span rest) {
        if (rest.len > 0)
                return GW_ROUTE_NONE;
        if (span_eq(verb, SPAN("extend")))
                return GW_ROUTE_EXTEND;
        if (span_eq(verb, SPAN("release")))
                return GW_ROUTE_RELEASE;
        return GW_ROUTE_NONE;
}

/* What stands behind /_sluice/v1/sales/S/. */
static enum gw_route_kind sale_route(struct span rest, struct gw_route *out) {
        struct span word = take_segment(&rest);
        bool is_end = rest.len == 0;
        if (span_eq(word, SPAN("line"))) {
                if (is_end)
                        return GW_ROUTE_LINE;
                return span_eq(rest, SPAN("events")) ? GW_ROUTE_EVENTS : GW_ROUTE_NONE;
        }
        if (span_eq(word, SPAN("draw")))
                return is_end ? GW_ROUTE_DRAW : GW_ROUTE_NONE;
        if (!span_eq(word, SPAN("holds")))
                return GW_ROUTE_NONE;
        if (is_end)
                return GW_ROUTE_HOLDS;
        out->hold = take_segment(&rest);
        if (rest.len == 0)
                return GW_ROUTE_HOLD;
        struct span verb = take_segment(&rest);
        return hold_route(verb, rest);
}

int gw_route_of(struct span path, struct gw_route *out) {
        const char *query = path.len ? memchr(path.p, '?', path.len) : NULL;
        struct span plain = {path.p, query ? (size_t)(query - path.p) : path.len};
        *out = (struct gw_route){.kind = GW_ROUTE_GATED, .path = plain};
        struct span ours = SPAN("/_sluice");
        if (!span_starts(plain, ours) || (plain.len > ours.len && plain.p[ours.len] != '/'))
                return GW_ROUTE_FOUND;
        out->kind = GW_ROUTE_NONE;
        struct span sales = SPAN("/_sluice/v1/sales");
        if (span_eq(plain, sales)) {
                out->kind = GW_ROUTE_LIST;
        } else if (span_eq(plain, SPAN("/_sluice/v1/jwks.json"))) {
                out->kind = GW_ROUTE_JWKS;
        } else if (span_starts(plain, sales) && plain.p[sales.len] == '/') {
                bool ends_with_slash = plain.p[plain.len - 1] == '/';
                struct span rest = {plain.p + sales.len + 1, plain.len - sales.len - 1};
                out->sale = take_segment(&rest);
                if (!gw_sale_id_is_good(out->sale))
                        return GW_ROUTE_MALFORMED;
                if (ends_with_slash)
                        return GW_ROUTE_FOUND;
                out->kind = rest.len == 0 ? GW_ROUTE_FLAG : sale_route(rest, out);
        }
        return GW_ROUTE_FOUND;
}
