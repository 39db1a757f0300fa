#include "origin/service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conf/limits.h"
#include "net/clock.h"
#include "net/log.h"
#include "origin/batch.h"
#include "origin/demo.h"
#include "origin/expiry.h"
#include "origin/hold.h"
#include "origin/item.h"
#include "origin/look.h"
#include "origin/metrics.h"
#include "origin/read.h"
#include "origin/relay.h"
#include "origin/sale.h"
#include "origin/snapshot.h"
#include "origin/watch.h"

int64_t org_service_now_ms(const struct org_service *s) {
        return s->clock_is_known ? loop_clock_ms() + s->clock_offset_ms : clock_wall_ms();
}

void org_service_set_clock(struct org_service *s, int64_t now_ms) {
        s->clock_offset_ms = now_ms - loop_clock_ms();
        s->clock_is_known = true;
}

/* ---- small resources ---- */

static void healthz(struct org_call *c) {
        org_call_json(c, 200, SPAN("{\"ok\":true}"));
}

static void readyz(struct org_call *c) {
        static const char *const why[] = {
                [ORG_DB_DOWN] = "The database cannot be reached.",
                [ORG_DB_NO_SCHEMA] = "The database has no schema of this version.",
        };
        enum org_db_state state = org_db_state(c->s->db);

        if (c->s->is_draining)
                org_call_problem(c, PROBLEM_UNAVAILABLE, "The origin is being stopped.", NULL,
                                 NULL);
        else if (state == ORG_DB_READY)
                org_call_json(c, 200, SPAN("{\"ok\":true}"));
        else
                org_call_problem(c, PROBLEM_UNAVAILABLE, why[state], NULL, NULL);
}

/* ---- who answers what ---- */

#define BIT(method) (1u << HTTP_##method)

static const struct endpoint {
        enum org_resource resource;
        enum http_method method;
        void (*handle)(struct org_call *c);
} endpoints[] = {
        {ORG_HEALTHZ, HTTP_GET, healthz},
        {ORG_READYZ, HTTP_GET, readyz},
        {ORG_METRICS, HTTP_GET, org_metrics_get},
        {ORG_SNAPSHOT, HTTP_GET, org_snapshot_get},
        {ORG_INVARIANT, HTTP_GET, org_invariant},
        {ORG_ITEM, HTTP_GET, org_item_get},
        {ORG_ITEM, HTTP_PUT, org_item_put},
        {ORG_ITEM_HOLDS, HTTP_POST, org_hold_reserve},
        {ORG_ORDERS, HTTP_POST, org_hold_reserve},
        {ORG_SALES, HTTP_GET, org_sale_list},
        {ORG_SALE, HTTP_GET, org_sale_get},
        {ORG_SALE, HTTP_PUT, org_sale_put},
        {ORG_SALE, HTTP_PATCH, org_sale_patch},
        {ORG_SALE_VERB, HTTP_POST, org_sale_verb},
        {ORG_SALE_AUDIT, HTTP_GET, org_sale_audit},
        {ORG_HOLD, HTTP_GET, org_hold_get},
        {ORG_LOCKS, HTTP_GET, org_watch_get},
        {ORG_HOLD_VERB, HTTP_POST, org_hold_step},
        {ORG_HOLD_EVENTS, HTTP_GET, org_hold_events},
};

static const struct endpoint *find(enum org_resource resource, enum http_method method,
                                   bool *known) {
        if (method == HTTP_HEAD)
                method = HTTP_GET;
        *known = false;
        for (size_t i = 0; i < NET_COUNT_OF(endpoints); i++) {
                if (endpoints[i].resource != resource)
                        continue;
                *known = true;
                if (endpoints[i].method == method)
                        return &endpoints[i];
        }
        return NULL;
}

static void answer_method(struct org_call *c) {
        char allow[64];
        size_t len = 0;

        for (size_t i = 0; i < NET_COUNT_OF(endpoints); i++) {
                struct span name = http_method_name(endpoints[i].method);

                if (endpoints[i].resource == c->route.resource)
                        len += (size_t)snprintf(allow + len, sizeof(allow) - len, "%s%.*s",
                                                len > 0 ? ", " : "", (int)name.len, name.p);
        }
        org_call_header(c, "allow", (struct span){allow, len});
        org_call_problem(c, PROBLEM_METHOD_NOT_ALLOWED, NULL, NULL, NULL);
}

static bool has_token(const struct org_service *s, const struct http_request *q) {
        struct span got = http_request_field(q, HTTP_FIELD_AUTHORIZATION);
        struct span own = {s->token, s->token_len};

        if (got.len < 7 || strncasecmp(got.p, "Bearer ", 7) != 0)
                return false;
        got.p += 7;
        got.len -= 7;
        return span_eq_secret(got, own);
}

static void dispatch(struct org_call *c) {
        const struct endpoint *e;
        bool known;

        if (c->route.resource == ORG_OUTSIDE && c->s->conf->demo_page) {
                org_demo(c);
                return;
        }
        if (c->route.resource == ORG_OUTSIDE) {
                org_call_problem(c, PROBLEM_NOT_FOUND, NULL, NULL, NULL);
                return;
        }
        if (c->route.resource != ORG_HEALTHZ && c->route.resource != ORG_READYZ &&
            c->route.resource != ORG_METRICS && !has_token(c->s, &c->x->request)) {
                org_call_header(c, "www-authenticate", SPAN("Bearer"));
                org_call_problem(c, PROBLEM_TOKEN_REQUIRED, NULL, NULL, NULL);
                return;
        }
        if (c->route.resource == ORG_MALFORMED) {
                org_call_bad_field(c, c->route.field, c->route.expected);
                return;
        }
        e = find(c->route.resource, c->x->request.method, &known);
        if (e)
                e->handle(c);
        else if (known)
                answer_method(c);
        else
                org_call_problem(c, PROBLEM_NOT_FOUND, NULL, NULL, NULL);
}

static void on_request(void *owner, struct http_exchange *x) {
        struct org_service *s = owner;
        struct org_route route = org_route_of(x->request.path);
        struct org_call *c = org_call_new(s, x, &route);

        if (c)
                dispatch(c);
}

/* ---- start and end ---- */

static int listen_all(struct org_service *s) {
        for (size_t i = 0; i < s->conf->listen.count; i++) {
                const char *address = s->conf->listen.at[i].text;
                int r = http_server_listen(s->server, address, false);

                if (r < 0) {
                        fprintf(stderr, "sluice-origin: cannot listen on %s: %s\n", address,
                                strerror(-r));
                        return 1;
                }
        }
        for (size_t i = 0; i < s->conf->listen.count; i++)
                log_event(LOG_INFO, "http", "listening",
                          LOG_S("address", s->conf->listen.at[i].text),
                          LOG_U("port", http_server_port(s->server, i)));
        return 0;
}

static int read_token(struct org_service *s) {
        char token[CONF_SECRET_MAX];
        size_t len;
        int r = conf_secret_read(s->conf->token_file, token, sizeof(token), &len);

        if (r < 0)
                return r;
        memcpy(s->token, token, len);
        s->token_len = len;
        explicit_bzero(token, sizeof(token));
        return 0;
}

void org_service_reload(struct org_service *s) {
        int r = read_token(s);

        if (r < 0)
                log_event(LOG_ERROR, "reload", "the token stays: its file cannot be read",
                          LOG_S("file", s->conf->token_file), LOG_E("error", r));
}

static int read_keys(struct org_service *s) {
        const char *file = s->conf->pass_jwks;
        char why[160] = "";
        int r = read_token(s);

        if (r < 0) {
                fprintf(stderr, "sluice-origin: token_file %s: %s\n", s->conf->token_file,
                        strerror(-r));
                return 1;
        }
        if (!file)
                return 0;
        r = jwt_keys_new(&s->pass_keys);
        if (r == 0)
                r = jwt_keys_add_file(s->pass_keys, file, why, sizeof(why));
        if (r == 0)
                return 0;
        fprintf(stderr, "sluice-origin: pass_jwks %s: %s\n", file, r > 0 ? why : strerror(-r));
        return 1;
}

static void on_strain(struct memory_watch *w) {
        http_server_relieve(NET_CONTAINER_OF(w, struct org_service, memory)->server);
}

int org_service_open(struct org_service *s, struct loop *l, const struct conf_origin *conf) {
        struct http_server_conf http = {.http11 = true,
                                        .keep_unknown = true,
                                        .limits = conf_server_limits(&conf->limits, 1),
                                        .memory = &s->memory.told,
                                        .memory_shares = 1,
                                        .on_request = on_request,
                                        .owner = s};
        int r;

        *s = (struct org_service){.loop = l, .conf = conf};
        if (read_keys(s) != 0)
                return 1;
        r = http_server_new(l, &http, &s->server);
        if (r == 0 && listen_all(s) != 0)
                return 1;
        if (r == 0)
                r = org_db_new(l, conf, &s->db);
        if (r == 0)
                r = org_batch_new(s, &s->batch);
        if (r == 0)
                r = org_reader_new(s, &s->reader);
        if (r == 0)
                r = org_snapshot_new(s, &s->snapshot);
        if (r == 0)
                r = org_look_new(s, &s->look);
        if (r == 0 && conf->expiry.enabled)
                r = org_expiry_new(s, &s->expiry);
        if (r == 0 && conf->watch.interval_ms > 0)
                r = org_watch_new(s, &s->watch);
        if (r == 0 && conf->relay.redis)
                r = org_relay_new(s, &s->relay);
        if (r == 0) {
                memory_watch_start(&s->memory, l, conf->limits.memory_bytes, on_strain);
                return 0;
        }
        fprintf(stderr, "sluice-origin: cannot start: %s\n", strerror(-r));
        return 1;
}

void org_service_close(struct org_service *s) {
        memory_watch_stop(&s->memory);
        org_db_free(&s->db);
        org_batch_free(&s->batch);
        org_expiry_free(&s->expiry);
        org_watch_free(&s->watch);
        org_reader_free(&s->reader);
        org_relay_free(&s->relay);
        org_look_free(&s->look);
        org_snapshot_free(&s->snapshot);
        http_server_free(&s->server);
        jwt_keys_free(&s->pass_keys);
        explicit_bzero(s->token, sizeof(s->token));
}
