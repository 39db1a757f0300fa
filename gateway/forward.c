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
/* An answer whose client does not read waits for the client alone, whose
 * session has timers of its own: the upstream is not late then. */
#define UNREAD_MS 3600000

/* How soon a place is looked for again while none could be taken back. */
#define PRESSURE_MS 100
#define SEED_UNREAD 11

struct gw_forward {
        struct http_call call;
        struct gw_request *r;
        struct gw_upstream *up;
        bool is_started;   /* the answer's head has gone out */
        bool is_over;      /* all of it is here, the client is still to take it */
        size_t queued;     /* bytes waiting for the client, as last heard */
        size_t unconsumed; /* of these, not yet told to the upstream */
        struct gw_unread unread;
        struct gw_backlog *backlog; /* where `unread` is: the upstream's, the worker's */
};

static void set_queued(struct gw_forward *f, size_t n) {
        struct gw_worker *w = f->r->w;
        assert(w->unread_bytes >= f->queued);
        w->unread_bytes = w->unread_bytes - f->queued + n;
        f->queued = n;
}

static void unread_enter(struct gw_forward *f, struct gw_backlog *backlog) {
        struct gw_request *r = f->r;
        f->backlog = backlog;
        gw_backlog_add(backlog, &f->unread,
                       gw_address_key(&r->address, r->w->shared->hash_seed + SEED_UNREAD),
                       loop_now_ms(r->w->loop));
}

static void unread_leave(struct gw_forward *f) {
        if (f->backlog)
                gw_backlog_remove(f->backlog, &f->unread);
        f->backlog = NULL;
}

static void forward_free(struct gw_forward *f) {
        set_queued(f, 0);
        unread_leave(f);
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
        http_call_extend(call, f->up->conf->request_timeout_ms);
        start_answer(f, status, headers, n, t.length);
}

/* How much of an answer may wait for its client. */
static size_t ahead_of(const struct gw_forward *f) {
        bool has_room = f->r->w->unread_bytes < gw_request_conf(f->r)->forward_unread_bytes;
        return has_room ? f->up->conf->read_ahead_bytes : HTTP_ANSWER_QUEUE;
}

static void press(struct gw_upstream *up) {
        if (up->backlog.count > 0 && http_pool_is_full(up->pool) &&
            !loop_timer_is_started(&up->pressure))
                loop_timer_start(&up->pressure, 0);
}

/* The client takes less than comes: the upstream waits. */
static void hold_back(struct gw_forward *f) {
        http_call_extend(&f->call, UNREAD_MS);
        unread_enter(f, &f->up->backlog);
        press(f->up);
}

static void go_on(struct gw_forward *f) {
        size_t n = f->unconsumed;
        f->unconsumed = 0;
        unread_leave(f);
        http_call_extend(&f->call, f->up->conf->request_timeout_ms);
        http_call_consumed(&f->call, n);
}

static void on_data(struct http_call *call, struct span data) {
        struct gw_forward *f = call->owner;
        set_queued(f, http_answer_data(f->r->x, data, false));
        f->unconsumed += data.len;
        if (f->queued > ahead_of(f))
                hold_back(f);
        else
                go_on(f);
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

static void end_answer(struct gw_forward *f, bool is_whole) {
        struct gw_request *r = f->r;
        struct http_exchange *x = r->x;
        forward_free(f);
        /* Counted before its end goes out: that may be the exchange's end. */
        gw_answer_count(r, GW_ANSWER_FORWARDED);
        if (is_whole)
                (void)http_answer_data(x, (struct span){NULL, 0}, true);
        else
                http_answer_abort(x);
}

static void cut(struct gw_forward *f) {
        log_event_limited(1, LOG_INFO, "forward", "an answer that nobody reads was cut",
                          LOG_S("upstream", f->up->conf->name));
        metrics_add(&f->r->w->counters.forward_cut, 1);
        http_call_cancel(&f->call);
        end_answer(f, false);
}

/* All of it is here. It keeps no place any more, but memory, and of that there
 * is so much for all. */
static void wait_for_client(struct gw_forward *f) {
        struct gw_worker *w = f->r->w;
        uint32_t share = f->up->conf->unread_per_client;
        struct gw_unread *victim;
        f->is_over = true;
        unread_leave(f);
        unread_enter(f, &w->unread);
        while (w->unread_bytes > w->conf->forward_unread_bytes &&
               (victim = gw_backlog_victim(&w->unread, share, INT64_MAX)))
                cut(NET_CONTAINER_OF(victim, struct gw_forward, unread));
}

static void on_done(struct http_call *call, enum http_call_outcome outcome) {
        struct gw_forward *f = call->owner;
        struct gw_request *r = f->r;
        if (!f->is_started) {
                forward_free(f);
                answer_failure(r, outcome == HTTP_CALL_OK ? HTTP_CALL_PROTOCOL : outcome);
        } else if (outcome != HTTP_CALL_OK) {
                metrics_add(&r->w->counters.forward_failed, 1);
                end_answer(f, false);
        } else if (f->queued <= HTTP_ANSWER_QUEUE) {
                end_answer(f, true);
        } else {
                wait_for_client(f);
        }
}

/* ---- places taken back ---- */

void gw_forward_on_pressure(struct loop_timer *t) {
        struct gw_upstream *up = NET_CONTAINER_OF(t, struct gw_upstream, pressure);
        struct http_pool_stats stats;
        struct gw_unread *victim;
        http_pool_stats(up->pool, &stats);
        for (uint64_t n = stats.waiting; n > 0 && http_pool_is_full(up->pool); n--) {
                victim = gw_backlog_victim(&up->backlog, up->conf->unread_per_client,
                                           loop_now_ms(t->loop));
                if (!victim)
                        break;
                cut(NET_CONTAINER_OF(victim, struct gw_forward, unread));
        }
        if (up->backlog.count > 0 && http_pool_is_full(up->pool))
                loop_timer_start(t, PRESSURE_MS);
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
        if (!f)
                return;
        set_queued(f, HTTP_ANSWER_QUEUE / 2);
        if (f->is_over)
                end_answer(f, true);
        else
                go_on(f);
}

static struct gw_upstream *upstream_of(const struct gw_request *r) {
        for (size_t i = 0; i < r->w->n_upstreams; i++)
                if (strcmp(r->w->upstreams[i].conf->name, r->sale->upstream) == 0)
                        return &r->w->upstreams[i];
        return NULL;
}

static void pass_on(struct gw_request *r) {
        struct gw_upstream *up = upstream_of(r);
        struct gw_forward *f = up ? calloc(1, sizeof *f) : NULL;
        if (!f) {
                answer_failure(r, HTTP_CALL_UNSENT);
                return;
        }
        f->call = (struct http_call){.events = &call_events, .owner = f, .manual_window = true};
        f->r = r;
        f->up = up;
        struct gw_forward_head head;
        struct http_call_request q = {
                .body = r->x->body,
                .deadline_ms = up->conf->request_timeout_ms,
        };
        gw_forward_head(&head, r, &q);
        if (up->conf->ca_file)
                q.scheme = SPAN("https");
        if (up->conf->host)
                q.authority = span_of(up->conf->host);
        if (http_pool_start(up->pool, &f->call, &q) < 0) {
                free(f);
                answer_failure(r, HTTP_CALL_UNSENT);
                return;
        }
        r->forward = f;
        gw_count_origin(&r->w->counters, GW_ORIGIN_FORWARD);
        press(up);
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
