#include "gateway/forward.h"

#include <stdio.h>
#include <stdlib.h>

#include "gateway/answer.h"
#include "gateway/cookie.h"
#include "gateway/forward_head.h"
#include "gateway/origin_call.h"
#include "gateway/steps.h"
#include "net/log.h"

#define FIELDS_MAX 128

struct gw_forward {
        struct http_call call;
        struct gw_request *r;
        bool is_started;     /* the answer's head has gone out */
        int64_t progress_ms; /* the longest time without any */
        size_t unconsumed;   /* bytes the client has not taken yet */
};

static void forward_free(struct gw_forward *f) {
        f->r->forward = NULL;
        free(f);
}

bool gw_forward_drops(struct span name) {
        static const struct span dropped[] = {
                SPAN("connection"),
                SPAN("keep-alive"),
                SPAN("proxy-connection"),
                SPAN("proxy-authenticate"),
                SPAN("transfer-encoding"),
                SPAN("upgrade"),
                SPAN("te"),
                SPAN("trailer"),
                SPAN("content-length"),
        };
        if (span_starts(name, SPAN("sluice-")) || (name.len > 0 && name.p[0] == ':'))
                return true;
        for (size_t i = 0; i < NET_COUNT_OF(dropped); i++)
                if (span_eq(name, dropped[i]))
                        return true;
        return false;
}

/* ---- what the application tells the gateway ---- */

struct told {
        bool is_done, has_available, has_version;
        int64_t available;
        int64_t length; /* -1: none */
        uint64_t timeline, n;
};

static struct told read_told(const struct http_header *headers, size_t n) {
        struct told t = {.length = -1};
        for (size_t i = 0; i < n; i++) {
                struct span name = headers[i].name, value = headers[i].value;
                if (span_eq(name, SPAN("content-length")))
                        (void)gw_digits_parse(value, &t.length);
                else if (span_eq(name, SPAN("sluice-done")))
                        t.is_done = span_eq(value, SPAN("1"));
                else if (span_eq(name, SPAN("sluice-available")))
                        t.has_available = gw_digits_parse(value, &t.available);
                else if (span_eq(name, SPAN("sluice-version")))
                        t.has_version = gw_version_parse(value, &t.timeline, &t.n);
        }
        return t;
}

static void tell_store(struct gw_request *r, const struct told *t) {
        struct adm_store *store = r->w->shared->store;
        int64_t now_ms = gw_worker_sale_time_ms(r->w);
        struct adm_view v;
        if (t->has_available && t->has_version && !r->is_bypassed && r->sale->is_stored &&
            adm_store_view(store, r->sale->handle, now_ms, &v) == ADM_DONE) {
                struct adm_stock k = v.stock;
                k.timeline = t->timeline;
                k.n = t->n;
                k.db_now_ms = 0;
                k.available = t->available;
                k.held = k.total - k.sold - k.available;
                if (k.held >= 0)
                        adm_store_stock(store, r->sale->handle, &k, now_ms);
        }
        if (t->is_done && r->standing == GW_PASS_IN_FORCE) {
                gw_count_store(&r->w->counters, GW_STORE_CONVERT);
                adm_store_pass_done(store, r->sale->handle, &r->shown, now_ms);
                r->pass.renewed = false;
                r->has_place = false;
        }
}

/* ---- the answer ---- */

static void start_answer(struct gw_forward *f, int status, const struct http_header *headers,
                         size_t n, int64_t length) {
        struct gw_request *r = f->r;
        struct http_header out[FIELDS_MAX + GW_HEAD_FIELDS];
        struct gw_head own;
        size_t count = 0;
        gw_head_init(&own);
        bool is_personal = !r->is_bypassed && gw_head_personal(&own, r);
        if (is_personal)
                gw_head_add(&own, SPAN("cache-control"), SPAN("private, no-store"));
        for (size_t i = 0; i < n && count < FIELDS_MAX; i++) {
                struct span name = headers[i].name;
                bool is_replaced = is_personal &&
                                   (span_eq(name, SPAN("cache-control")) ||
                                    span_eq(name, SPAN("expires")) || span_eq(name, SPAN("age")));
                bool is_forged =
                        span_eq(name, SPAN("set-cookie")) && gw_cookie_is_ours(headers[i].value);
                if (!is_replaced && !is_forged && !gw_forward_drops(name))
                        out[count++] = headers[i];
        }
        for (size_t i = 0; i < own.n; i++)
                out[count++] = own.at[i];
        f->is_started = true;
        http_answer_start(r->x, status, out, count, length);
}

static void on_head(struct http_call *call, int status, const struct http_header *headers,
                    size_t n) {
        struct gw_forward *f = call->owner;
        struct told t = read_told(headers, n);
        if (n > FIELDS_MAX)
                log_event_limited(1, LOG_WARN, "forward", "fields of an answer left out",
                                  LOG_U("fields", n));
        tell_store(f->r, &t);
        http_call_extend(call, f->progress_ms);
        start_answer(f, status, headers, n, t.length);
}

static void on_data(struct http_call *call, struct span data) {
        struct gw_forward *f = call->owner;
        size_t queued = http_answer_data(f->r->x, data, false);
        http_call_extend(call, f->progress_ms);
        if (queued <= HTTP_ANSWER_QUEUE)
                http_call_consumed(call, data.len);
        else
                f->unconsumed += data.len;
}

static void answer_failure(struct gw_request *r, enum http_call_outcome outcome) {
        log_event_limited(1, LOG_WARN, "forward", "no answer from the upstream",
                          LOG_S("upstream", r->sale->upstream), LOG_I("outcome", outcome));
        metrics_add(&r->w->counters.forward_failed, 1);
        r->has_place = false;
        if (outcome == HTTP_CALL_TIMEOUT) {
                (void)gw_answer_problem(r, PROBLEM_GATEWAY_TIMEOUT, NULL);
        } else if (outcome == HTTP_CALL_UNSENT) {
                r->retry_after_ms = 2000;
                (void)gw_answer_problem(r, PROBLEM_UNAVAILABLE, "the application is not there");
        } else {
                (void)gw_answer_problem(r, PROBLEM_BAD_GATEWAY, NULL);
        }
}

static void on_done(struct http_call *call, enum http_call_outcome outcome) {
        struct gw_forward *f = call->owner;
        struct gw_request *r = f->r;
        bool is_started = f->is_started;
        forward_free(f);
        if (!is_started) {
                answer_failure(r, outcome == HTTP_CALL_OK ? HTTP_CALL_PROTOCOL : outcome);
                return;
        }
        /* Counted before its end goes out: that may be the exchange's end. */
        struct http_exchange *x = r->x;
        if (outcome != HTTP_CALL_OK)
                metrics_add(&r->w->counters.forward_failed, 1);
        gw_answer_count(r, GW_ANSWER_FORWARDED);
        if (outcome == HTTP_CALL_OK)
                (void)http_answer_data(x, (struct span){NULL, 0}, true);
        else
                http_answer_abort(x);
}

static const struct http_call_events call_events = {
        .on_head = on_head,
        .on_data = on_data,
        .on_done = on_done,
};

/* ---- the exchange ---- */

static void on_gone(struct http_exchange *x) {
        struct gw_request *r = x->user;
        struct gw_forward *f = r->forward;
        if (f) {
                http_call_cancel(&f->call);
                forward_free(f);
        }
        gw_request_drop(r);
}

static void on_drain(struct http_exchange *x) {
        struct gw_request *r = x->user;
        struct gw_forward *f = r->forward;
        if (!f || f->unconsumed == 0)
                return;
        size_t n = f->unconsumed;
        f->unconsumed = 0;
        http_call_extend(&f->call, f->progress_ms);
        http_call_consumed(&f->call, n);
}

static struct http_pool *pool_of(const struct gw_request *r) {
        const struct conf_gateway *conf = gw_request_conf(r);
        for (size_t i = 0; i < conf->upstreams.count && i < r->w->n_upstreams; i++)
                if (strcmp(conf->upstreams.at[i].name, r->sale->upstream) == 0)
                        return r->w->upstreams[i];
        return NULL;
}

static void pass_on(struct gw_request *r) {
        const struct conf_gateway *conf = gw_request_conf(r);
        struct http_pool *pool = pool_of(r);
        struct gw_forward *f = pool ? calloc(1, sizeof *f) : NULL;
        if (!f) {
                answer_failure(r, HTTP_CALL_UNSENT);
                return;
        }
        const struct conf_upstream *up = conf_gateway_upstream(conf, span_of(r->sale->upstream));
        f->call = (struct http_call){.events = &call_events, .owner = f, .manual_window = true};
        f->r = r;
        f->progress_ms = up->request_timeout_ms;
        struct gw_forward_head head;
        struct http_call_request q = {
                .body = r->x->body,
                .deadline_ms = up->request_timeout_ms,
        };
        gw_forward_head(&head, r, &q);
        if (up->ca_file)
                q.scheme = SPAN("https");
        if (up->host)
                q.authority = span_of(up->host);
        if (http_pool_start(pool, &f->call, &q) < 0) {
                free(f);
                answer_failure(r, HTTP_CALL_UNSENT);
                return;
        }
        r->forward = f;
        gw_count_origin(&r->w->counters, GW_ORIGIN_FORWARD);
}

static void on_body(struct http_exchange *x, int outcome) {
        struct gw_request *r = x->user;
        if (outcome == HTTP_BODY_DONE)
                pass_on(r);
        else
                (void)gw_answer_problem(r,
                                        outcome == HTTP_BODY_TOO_LARGE ? PROBLEM_BODY_TOO_LARGE
                                                                       : PROBLEM_REQUEST_TIMEOUT,
                                        NULL);
}

static const struct http_exchange_events exchange_events = {
        .on_body = on_body,
        .on_gone = on_gone,
        .on_drain = on_drain,
};

enum gw_next gw_forward(struct gw_request *r) {
        size_t ceiling = gw_request_conf(r)->forward_body_bytes;
        if (r->x->request.content_length > (int64_t)ceiling)
                return gw_answer_problem(r, PROBLEM_BODY_TOO_LARGE, NULL);
        struct gw_request *k = gw_request_keep(r);
        if (!k)
                return GW_DONE;
        k->x->events = &exchange_events;
        if (k->x->request.has_body)
                http_exchange_read_body(k->x, ceiling);
        else
                pass_on(k);
        return GW_PARKED;
}
