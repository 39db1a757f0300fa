#include "gateway/admin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/limits.h"
#include "gateway/metrics.h"
#include "gateway/operators.h"
#include "net/buf.h"
#include "net/http_server.h"
#include "net/log.h"
#include "net/problem.h"

#define ADMIN_BODY_MAX ((size_t)65536)
#define ADMIN_ANSWER_MAX ((size_t)8 * 1024 * 1024)
#define ADMIN_CALL_MS 10000
#define ADMIN_CALLS_MAX 64

struct gw_admin {
        struct gw_control *control;
        struct http_server *server;
        struct gw_operators operators;
        unsigned calls;                 /* passed on and not answered, <= ADMIN_CALLS_MAX */
        struct metrics_counter refused; /* wrong or missing tokens */
};

/* One request on its way to the origin and back. */
struct passing {
        struct gw_admin *admin;
        struct http_exchange *x; /* NULL once the operator has gone */
        struct http_call call;
        struct buf body;
        bool changes; /* not a GET: a fresh snapshot is wanted after it */
        int status;
        char etag[96];
        size_t etag_len;
        char type[96];
        size_t type_len;
        bool too_large;
};

static const struct http_header no_store = {.name = SPAN("cache-control"),
                                            .value = SPAN("no-store")};

static void answer_problem(struct http_exchange *x, enum problem_code code, const char *detail) {
        char text[1024];
        struct json_out o;
        struct http_header headers[] = {
                no_store,
                {.name = SPAN("content-type"), .value = SPAN(PROBLEM_MEDIA_TYPE)},
                {.name = SPAN("www-authenticate"), .value = SPAN("Bearer")},
        };
        json_out_init(&o, text, sizeof text);
        problem_render(&o, code, detail, NULL, NULL);
        http_answer(x, problem_of(code)->status, headers, code == PROBLEM_TOKEN_REQUIRED ? 3 : 2,
                    json_out_done(&o));
}

static void answer_text(struct http_exchange *x, int status, struct span type, struct span body) {
        struct http_header headers[] = {no_store, {.name = SPAN("content-type"), .value = type}};
        http_answer(x, status, headers, 2, body);
}

static void passing_free(struct passing *p) {
        p->admin->calls--;
        buf_fini(&p->body);
        free(p);
}

static void on_head(struct http_call *call, int status, const struct http_header *headers,
                    size_t n) {
        struct passing *p = call->owner;
        p->status = status;
        for (size_t i = 0; i < n; i++) {
                struct span v = headers[i].value;
                if (span_eq(headers[i].name, SPAN("etag")) && v.len <= sizeof p->etag) {
                        memcpy(p->etag, v.p, v.len);
                        p->etag_len = v.len;
                } else if (span_eq(headers[i].name, SPAN("content-type")) &&
                           v.len <= sizeof p->type) {
                        memcpy(p->type, v.p, v.len);
                        p->type_len = v.len;
                }
        }
}

static void on_data(struct http_call *call, struct span data) {
        struct passing *p = call->owner;
        if (!p->too_large && buf_append(&p->body, data.p, data.len) < 0)
                p->too_large = true;
}

static void on_done(struct http_call *call, enum http_call_outcome outcome) {
        struct passing *p = call->owner;
        if (p->x && outcome == HTTP_CALL_OK && !p->too_large) {
                struct http_header headers[] = {
                        no_store,
                        {.name = SPAN("content-type"), .value = {p->type, p->type_len}},
                        {.name = SPAN("etag"), .value = {p->etag, p->etag_len}},
                };
                http_answer(p->x, p->status, headers, p->etag_len > 0 ? 3 : 2, buf_span(&p->body));
        } else if (p->x) {
                answer_problem(p->x,
                               outcome == HTTP_CALL_UNSENT ? PROBLEM_UNAVAILABLE
                                                           : PROBLEM_BAD_GATEWAY,
                               outcome == HTTP_CALL_UNSENT
                                       ? "the origin was not reached; nothing was done"
                                       : "no whole answer from the origin; it may have been done");
        }
        if (p->changes)
                gw_control_pull_now(p->admin->control);
        passing_free(p);
}

static const struct http_call_events call_events = {
        .on_head = on_head,
        .on_data = on_data,
        .on_done = on_done,
};

/* The verb goes on without its operator; only the answer has nowhere to go. */
static void on_gone(struct http_exchange *x) {
        struct passing *p = x->user;
        if (p)
                p->x = NULL;
}

/* Who asks; NULL without a good token. */
static const struct gw_operator *operator_of(const struct gw_admin *a,
                                             const struct http_request *r) {
        struct span given = http_request_field(r, HTTP_FIELD_AUTHORIZATION);
        struct span scheme = SPAN("Bearer ");
        if (!given.p || !span_starts(given, scheme))
                return NULL;
        return gw_operators_find(&a->operators,
                                 (struct span){given.p + scheme.len, given.len - scheme.len});
}

static size_t passed_headers(const struct gw_admin *a, const struct http_request *r,
                             struct http_header *out) {
        static const enum http_field kept[] = {HTTP_FIELD_CONTENT_TYPE, HTTP_FIELD_IF_MATCH,
                                               HTTP_FIELD_IF_NONE_MATCH,
                                               HTTP_FIELD_IDEMPOTENCY_KEY};
        const struct gw_settings *s = a->control->settings;
        size_t n = 0;
        out[n++] = (struct http_header){.name = SPAN("authorization"),
                                        .value = {s->bearer, s->bearer_len}};
        const struct gw_operator *who = operator_of(a, r);
        if (who)
                out[n++] = (struct http_header){.name = SPAN("sluice-actor"), .value = who->name};
        for (size_t i = 0; i < NET_COUNT_OF(kept); i++) {
                struct span v = http_request_field(r, kept[i]);
                if (v.p)
                        out[n++] =
                                (struct http_header){.name = http_field_name(kept[i]), .value = v};
        }
        return n;
}

static void pass_on(struct gw_admin *a, struct http_exchange *x) {
        struct http_header headers[8];
        struct passing *p = a->calls < ADMIN_CALLS_MAX ? calloc(1, sizeof *p) : NULL;
        if (!p) {
                answer_problem(x, PROBLEM_UNAVAILABLE, "too many operators' requests at once");
                return;
        }
        a->calls++;
        *p = (struct passing){.admin = a, .x = x, .changes = x->request.method != HTTP_GET};
        p->call = (struct http_call){.events = &call_events, .owner = p};
        buf_init(&p->body, ADMIN_ANSWER_MAX);
        struct http_call_request request = {
                .method = x->request.method_text,
                .scheme = SPAN("http"),
                .authority = span_of(a->control->settings->conf->origin.address.text),
                .path = x->request.path,
                .headers = headers,
                .n_headers = passed_headers(a, &x->request, headers),
                .body = x->body,
                .deadline_ms = ADMIN_CALL_MS,
        };
        x->user = p;
        if (http_pool_start(a->control->origin, &p->call, &request) < 0) {
                x->user = NULL;
                answer_problem(x, PROBLEM_UNAVAILABLE, "the origin is away; nothing was done");
                passing_free(p);
        }
}

static void on_body(struct http_exchange *x, int outcome) {
        struct gw_admin *a = x->user;
        x->user = NULL;
        if (outcome == HTTP_BODY_DONE)
                pass_on(a, x);
        else
                answer_problem(x,
                               outcome == HTTP_BODY_TOO_LARGE ? PROBLEM_BODY_TOO_LARGE
                                                              : PROBLEM_REQUEST_TIMEOUT,
                               NULL);
}

static void on_gone_early(struct http_exchange *x) {
        x->user = NULL;
}

static const struct http_exchange_events body_events = {.on_body = on_body,
                                                        .on_gone = on_gone_early};
static const struct http_exchange_events pass_events = {.on_body = on_body, .on_gone = on_gone};

static void answer_metrics(struct gw_admin *a, struct http_exchange *x) {
        struct metrics_out o;
        metrics_out_init(&o, GW_METRICS_MAX_BYTES);
        gw_metrics_render(a->control, &o);
        metrics_family(&o, "sluice_admin_refused_total", METRICS_COUNTER,
                       "Operators' requests without a good token.");
        metrics_sample(&o, "sluice_admin_refused_total", NULL, 0, metrics_read(&a->refused));
        struct span text = metrics_out_done(&o);
        if (text.p)
                answer_text(x, 200, SPAN(METRICS_MEDIA_TYPE), text);
        else
                answer_problem(x, PROBLEM_INTERNAL, "the metrics did not fit 4 MiB");
        metrics_out_fini(&o);
}

static void answer_ready(struct gw_admin *a, struct http_exchange *x) {
        if (gw_control_is_ready(a->control))
                answer_text(x, 200, SPAN("text/plain"), SPAN("ready\n"));
        else
                answer_problem(x, PROBLEM_UNAVAILABLE,
                               a->control->draining ? "draining"
                                                    : "no snapshot from the origin yet");
}

static struct span path_of(const struct http_request *r) {
        const char *q = r->path.len ? memchr(r->path.p, '?', r->path.len) : NULL;
        return (struct span){r->path.p, q ? (size_t)(q - r->path.p) : r->path.len};
}

static void on_request(void *owner, struct http_exchange *x) {
        struct gw_admin *a = owner;
        struct span path = path_of(&x->request);
        bool reads = x->request.method == HTTP_GET || x->request.method == HTTP_HEAD;
        bool open = span_eq(path, SPAN("/healthz")) || span_eq(path, SPAN("/readyz")) ||
                    span_eq(path, SPAN("/metrics"));

        if (open && !reads)
                answer_problem(x, PROBLEM_METHOD_NOT_ALLOWED, NULL);
        else if (span_eq(path, SPAN("/healthz")))
                answer_text(x, 200, SPAN("text/plain"), SPAN("ok\n"));
        else if (span_eq(path, SPAN("/readyz")))
                answer_ready(a, x);
        else if (span_eq(path, SPAN("/metrics")))
                answer_metrics(a, x);
        else if (!operator_of(a, &x->request)) {
                metrics_add(&a->refused, 1);
                answer_problem(x, PROBLEM_TOKEN_REQUIRED, "an operator's bearer token is needed");
        } else if (!span_starts(path, SPAN("/v1/")) || span_eq(path, SPAN("/v1/snapshot")))
                answer_problem(x, PROBLEM_NOT_FOUND, NULL);
        else if (x->request.has_body) {
                x->user = a;
                x->events = &body_events;
                http_exchange_read_body(x, ADMIN_BODY_MAX);
        } else {
                x->events = &pass_events;
                pass_on(a, x);
        }
}

static int admin_tls(const struct conf_gateway *conf, struct tls_context **out, char *why,
                     size_t why_cap) {
        struct tls_server_conf tls = {.certificate_file = conf->admin.certificate,
                                      .key_file = conf->admin.key,
                                      .alpn = TLS_ALPN_H2 | TLS_ALPN_HTTP11};
        return tls_server_new(&tls, out, why, why_cap);
}

/* Operators are few and known: how many, how much they may ask is not theirs to
 * set; how long they may take is as for everybody. */
static struct http_server_limits limits_of(const struct conf_gateway *conf) {
        struct http_server_limits l = conf_server_limits(&conf->limits, 1);
        l.connections = 256;
        l.handshakes = 64;
        l.handshakes_per_turn = 16;
        l.network_strikes = 0;
        l.accept_wait_ms = 0;
        l.turn_ms = 0;
        l.streams = 100;
        l.requests_per_connection = UINT32_MAX;
        l.repeated_heads = 0;
        l.header_fields = 100;
        l.header_bytes = 16384;
        l.queued_bytes = 1 << 20;
        return l;
}

static int start_server(struct gw_admin *a, const struct conf_gateway *conf, char *why,
                        size_t why_cap) {
        struct http_server_conf server = {
                .http11 = true,
                .on_request = on_request,
                .owner = a,
                .limits = limits_of(conf),
        };
        int r = admin_tls(conf, &server.tls, why, why_cap);
        if (r == 0)
                r = http_server_new(a->control->loop, &server, &a->server);
        tls_context_free(&server.tls);
        for (size_t i = 0; r == 0 && i < conf->admin.listen.count; i++) {
                r = http_server_listen(a->server, conf->admin.listen.at[i].text, false);
                if (r < 0)
                        snprintf(why, why_cap, "admin.listen %s: %s", conf->admin.listen.at[i].text,
                                 strerror(-r));
        }
        return r;
}

int gw_admin_new(struct gw_control *c, struct gw_admin **out, char *why, size_t why_cap) {
        struct gw_admin *a = calloc(1, sizeof *a);
        *out = NULL;
        if (!a)
                return -ENOMEM;
        a->control = c;
        int r = gw_operators_read(&a->operators, c->settings->conf->admin.token_file, why, why_cap);
        if (r == 0)
                r = start_server(a, c->settings->conf, why, why_cap);
        if (r != 0)
                gw_admin_free(&a);
        *out = a;
        return r;
}

void gw_admin_free(struct gw_admin **ap) {
        struct gw_admin *a = *ap;
        if (!a)
                return;
        http_server_free(&a->server);
        gw_operators_fini(&a->operators);
        free(a);
        *ap = NULL;
}

int gw_admin_reload(struct gw_admin *a, char *why, size_t why_cap) {
        const struct conf_gateway *conf = a->control->settings->conf;
        struct tls_context *tls = NULL;
        struct gw_operators fresh;
        int r = admin_tls(conf, &tls, why, why_cap);
        if (r == 0)
                r = gw_operators_read(&fresh, conf->admin.token_file, why, why_cap);
        if (r == 0) {
                gw_operators_take(&a->operators, &fresh);
                http_server_set_tls(a->server, tls);
        }
        tls_context_free(&tls);
        return r;
}

uint16_t gw_admin_port(const struct gw_admin *a, size_t i) {
        return http_server_port(a->server, i);
}
