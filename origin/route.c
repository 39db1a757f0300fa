#include "origin/route.h"

static bool is_small(char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c) {
        return is_small(c) || (c >= 'A' && c <= 'Z');
}

bool org_sale_name_is_good(struct span name) {
        if (name.len < 1 || name.len > 63 || !is_small(name.p[0]))
                return false;
        for (size_t i = 1; i < name.len; i++)
                if (!is_small(name.p[i]) && name.p[i] != '-')
                        return false;
        return true;
}

bool org_stock_name_is_good(struct span name) {
        if (name.len < 1 || name.len > 63 || !is_alnum(name.p[0]))
                return false;
        for (size_t i = 1; i < name.len; i++) {
                char c = name.p[i];

                if (!is_alnum(c) && c != '.' && c != '_' && c != '-')
                        return false;
        }
        return true;
}

struct span org_query_value(struct span query, struct span name) {
        while (query.len > 0) {
                const char *end = memchr(query.p, '&', query.len);
                size_t len = end ? (size_t)(end - query.p) : query.len;
                struct span pair = {query.p, len};

                if (span_starts(pair, name) && len > name.len && pair.p[name.len] == '=')
                        return (struct span){pair.p + name.len + 1, len - name.len - 1};
                query.p += len + (end ? 1 : 0);
                query.len -= len + (end ? 1 : 0);
        }
        return (struct span){NULL, 0};
}

#define PARTS_MAX 7

/* "/v1/a/b" as "v1" "a" "b"; 0 when there are too many or one is empty. */
static size_t split(struct span path, struct span part[PARTS_MAX]) {
        size_t n = 0, i = 1;

        while (i <= path.len) {
                size_t start = i;

                while (i < path.len && path.p[i] != '/')
                        i++;
                if (i == start || n == PARTS_MAX)
                        return 0;
                part[n++] = (struct span){path.p + start, i - start};
                i++;
        }
        return n;
}

static bool is_one_of(struct span word, const char *const *words) {
        for (; *words; words++)
                if (span_eq(word, span_of(*words)))
                        return true;
        return false;
}

static void bad(struct org_route *r, const char *field, const char *expected) {
        r->resource = ORG_MALFORMED;
        r->field = field;
        r->expected = expected;
}

/* /v1/tenants/T/items/I[/holds], /v1/tenants/T/orders */
static void route_tenant(struct org_route *r, const struct span *part, size_t n) {
        bool items = n >= 5 && span_eq(part[3], SPAN("items"));

        if (n == 4 && span_eq(part[3], SPAN("orders")))
                r->resource = ORG_ORDERS;
        else if (items && n == 5)
                r->resource = ORG_ITEM;
        else if (items && n == 6 && span_eq(part[5], SPAN("holds")))
                r->resource = ORG_ITEM_HOLDS;
        else
                return;
        r->tenant = part[2];
        if (items)
                r->item = part[4];
        if (!org_stock_name_is_good(r->tenant))
                bad(r, "tenant", ORG_STOCK_NAME_EXPECTED);
        else if (items && !org_stock_name_is_good(r->item))
                bad(r, "item", ORG_STOCK_NAME_EXPECTED);
}

/* /v1/sales[/S[/VERB]] */
static void route_sale(struct org_route *r, const struct span *part, size_t n) {
        static const char *const verbs[] = {"open",  "pause",  "resume", "close",
                                            "reset", "revoke", NULL};

        if (n == 2)
                r->resource = ORG_SALES;
        else if (n == 3)
                r->resource = ORG_SALE;
        else if (n == 4 && span_eq(part[3], SPAN("audit")))
                r->resource = ORG_SALE_AUDIT;
        else if (n == 4 && is_one_of(part[3], verbs))
                r->resource = ORG_SALE_VERB;
        if (r->resource == ORG_UNKNOWN || n == 2)
                return;
        r->sale = part[2];
        if (n == 4)
                r->verb = part[3];
        if (!org_sale_name_is_good(r->sale))
                bad(r, "sale", ORG_SALE_NAME_EXPECTED);
}

/* /v1/holds/H[/VERB] */
static void route_hold(struct org_route *r, const struct span *part, size_t n) {
        static const char *const verbs[] = {"extend", "confirm", "release", "cancel", "ship", NULL};

        if (n == 3)
                r->resource = ORG_HOLD;
        else if (n == 4 && span_eq(part[3], SPAN("events")))
                r->resource = ORG_HOLD_EVENTS;
        else if (n == 4 && is_one_of(part[3], verbs))
                r->resource = ORG_HOLD_VERB;
        else
                return;
        r->hold = part[2];
        if (n == 4)
                r->verb = part[3];
}

struct org_route org_route_of(struct span path) {
        struct org_route r = {.resource = ORG_OUTSIDE};
        const char *question = path.len > 0 ? memchr(path.p, '?', path.len) : NULL;
        struct span part[PARTS_MAX];
        size_t n;

        if (question) {
                r.query.p = question + 1;
                r.query.len = path.len - (size_t)(question + 1 - path.p);
                path.len = (size_t)(question - path.p);
        }
        if (span_eq(path, SPAN("/healthz")))
                r.resource = ORG_HEALTHZ;
        else if (span_eq(path, SPAN("/readyz")))
                r.resource = ORG_READYZ;
        else if (span_eq(path, SPAN("/metrics")))
                r.resource = ORG_METRICS;
        if (r.resource != ORG_OUTSIDE ||
            !(span_starts(path, SPAN("/v1/")) || span_eq(path, SPAN("/v1"))))
                return r;
        r.resource = ORG_UNKNOWN;
        n = split(path, part);
        if (n == 2 && span_eq(part[1], SPAN("snapshot")))
                r.resource = ORG_SNAPSHOT;
        else if (n == 2 && span_eq(part[1], SPAN("invariant")))
                r.resource = ORG_INVARIANT;
        else if (n == 2 && span_eq(part[1], SPAN("locks")))
                r.resource = ORG_LOCKS;
        else if (n == 2 && span_eq(part[1], SPAN("audit")))
                r.resource = ORG_SALE_AUDIT;
        else if (n >= 4 && span_eq(part[1], SPAN("tenants")))
                route_tenant(&r, part, n);
        else if (n >= 2 && span_eq(part[1], SPAN("sales")))
                route_sale(&r, part, n);
        else if (n >= 3 && span_eq(part[1], SPAN("holds")))
                route_hold(&r, part, n);
        return r;
}
