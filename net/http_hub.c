#include "net/http_hub.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>

#include "net/h2_hpack.h"
#include "net/h2_repeat.h"
#include "net/http_conn.h"
#include "net/http_memory.h"
#include "net/problem.h"

#define SWEEP_MAX_MS 250
#define SWEEP_MIN_MS 10
#define LINGER_MS 1000
#define TRIM_MS 1000
#define TRIM_ON_MS 10
#define REST_MS 5000
#define LATE_MS 1000
#define CROWD 256

/* ---- lists ---- */

static void list_join(struct http_conn_list *l, struct http_conn *c) {
        c->next = NULL;
        c->prev = l->last;
        if (l->last)
                l->last->next = c;
        else
                l->first = c;
        l->last = c;
}

static void list_leave(struct http_conn_list *l, struct http_conn *c) {
        if (c->prev)
                c->prev->next = c->next;
        else
                l->first = c->next;
        if (c->next)
                c->next->prev = c->prev;
        else
                l->last = c->prev;
        c->prev = c->next = NULL;
}

static void sweep_start(struct http_hub *h) {
        if (loop_timer_is_started(&h->sweep))
                return;
        h->swept_at_ms = loop_now_ms(h->loop);
        loop_timer_start(&h->sweep, h->sweep_ms);
}

void http_hub_move(struct http_conn *c, enum http_conn_state state) {
        struct http_hub *h = c->hub;
        bool was_handshaking = c->state == HTTP_CONN_HANDSHAKING;
        if (c->state == HTTP_CONN_STATES) { /* new */
                metrics_set(&h->counters.connections_open, ++h->n_conns);
                was_handshaking = false;
                sweep_start(h);
        } else {
                assert(c->state != HTTP_CONN_LINGERING || state == HTTP_CONN_LINGERING);
                list_leave(&h->lists[c->state], c);
        }
        if (was_handshaking)
                http_handshake_leave(c);
        h->n_handshaking -= was_handshaking;
        h->n_handshaking += state == HTTP_CONN_HANDSHAKING;
        c->state = (uint8_t)state;
        c->since_ms = loop_now_ms(h->loop);
        list_join(&h->lists[state], c);
        if (was_handshaking && state != HTTP_CONN_HANDSHAKING && h->on_room)
                h->on_room(h);
}

static void on_free_retired(struct loop_defer *d) {
        struct http_hub *h = NET_CONTAINER_OF(d, struct http_hub, free_retired);
        while (h->retired) {
                struct http_conn *c = h->retired;
                h->retired = c->next;
                http_conn_free(c);
        }
        if (h->n_conns == 0 && h->on_empty)
                h->on_empty(h);
}

static void again_leave(struct http_conn *c) {
        struct http_conn **at = &c->hub->again;
        while (*at && *at != c)
                at = &(*at)->next_again;
        if (*at)
                *at = c->next_again;
        c->is_again = false;
}

void http_hub_retire(struct http_conn *c) {
        struct http_hub *h = c->hub;
        if (c->is_again)
                again_leave(c);
        list_leave(&h->lists[c->state], c);
        bool was_handshaking = c->state == HTTP_CONN_HANDSHAKING;
        if (was_handshaking)
                http_handshake_leave(c);
        h->n_handshaking -= was_handshaking;
        metrics_set(&h->counters.connections_open, --h->n_conns);
        c->next = h->retired;
        h->retired = c;
        loop_defer(h->loop, &h->free_retired, on_free_retired);
        if (h->on_room)
                h->on_room(h);
}

/* ---- output ---- */

void http_hub_flush_cancel(struct http_conn *c) {
        if (!c->flush_link)
                return;
        *c->flush_link = c->next_flush;
        if (c->next_flush)
                c->next_flush->flush_link = c->flush_link;
        else
                c->hub->flush_end = c->flush_link;
        c->flush_link = NULL;
}

void http_hub_flush(struct http_hub *h) {
        while (h->flush) {
                struct http_conn *c = h->flush;
                http_hub_flush_cancel(c);
                http_conn_flush(c);
        }
}

static void on_run_flush(struct loop_defer *d) {
        http_hub_flush(NET_CONTAINER_OF(d, struct http_hub, run_flush));
}

void http_hub_flush_later(struct http_conn *c) {
        struct http_hub *h = c->hub;
        if (c->flush_link)
                return;
        c->next_flush = NULL;
        c->flush_link = h->flush_end;
        *h->flush_end = c;
        h->flush_end = &c->next_flush;
        loop_defer(h->loop, &h->run_flush, on_run_flush);
}

/* ---- reading on ---- */

static void on_read_again(struct loop_timer *t) {
        struct http_hub *h = NET_CONTAINER_OF(t, struct http_hub, read_again);
        struct http_conn *c = h->again;
        h->again = NULL;
        while (c) {
                struct http_conn *next = c->next_again;
                c->is_again = false;
                http_conn_read_again(c);
                c = next;
        }
}

void http_hub_read_again(struct http_conn *c) {
        struct http_hub *h = c->hub;
        if (c->is_again)
                return;
        c->is_again = true;
        c->next_again = h->again;
        h->again = c;
        if (!loop_timer_is_started(&h->read_again))
                loop_timer_start(&h->read_again, 0);
}

/* ---- the sweep ---- */

static void sweep_aged(struct http_hub *h, enum http_conn_state state, int64_t before_ms,
                       void (*act)(struct http_conn *c)) {
        for (struct http_conn *c = h->lists[state].first; c && c->since_ms <= before_ms;) {
                struct http_conn *next = c->next;
                act(c);
                c = next;
        }
}

static void drain_all(struct http_hub *h, enum http_conn_state state) {
        for (struct http_conn *c = h->lists[state].first; c;) {
                struct http_conn *next = c->next;
                http_conn_drain(c);
                c = next;
        }
}

/* Ours each time; the C library's, where TLS keeps its share, only after a
 * crowd has left: it holds the allocator's lock for a while. */
static void memory_trim(struct http_hub *h) {
        http_hub_trim(h);
        if (h->n_conns > h->most_conns)
                h->most_conns = h->n_conns;
        /* Who was sent away comes back soon, and the others would wait for it. */
        if (h->n_conns > 0 && http_load_was_busy(&h->load, loop_now_ms(h->loop), REST_MS))
                return;
        if (h->most_conns - h->n_conns >= CROWD && h->n_conns <= h->most_conns / 2) {
                h->most_conns = h->n_conns;
                (void)malloc_trim(0);
        }
}

/* In small parts: the system takes a while for a crowd's memory. */
static void on_trim_on(struct loop_timer *t) {
        struct http_hub *h = NET_CONTAINER_OF(t, struct http_hub, trim_on);
        if (pool_trim_some(h->pool))
                loop_timer_start(t, TRIM_ON_MS);
}

void http_hub_trim(struct http_hub *h) {
        pool_trim(h->pool);
        if (!loop_timer_is_started(&h->trim_on))
                loop_timer_start(&h->trim_on, TRIM_ON_MS);
}

/* This loop, not the clients, was late (stopped, or starved): what they sent
 * meanwhile is still unread. They get one more interval. */
static bool was_away(struct http_hub *h, int64_t now_ms) {
        bool is_late = now_ms - h->swept_at_ms > h->sweep_ms + LATE_MS;
        h->swept_at_ms = now_ms;
        h->is_lenient = is_late && !h->is_lenient;
        return h->is_lenient;
}

static void limits_check(struct http_hub *h, int64_t now) {
        const struct http_server_limits *lim = &h->conf.limits;
        http_handshakes_judge(h, now);
        sweep_aged(h, HTTP_CONN_HANDSHAKING, now - lim->handshake_ms, http_handshake_late);
        sweep_aged(h, HTTP_CONN_LINGERING, now - LINGER_MS, http_conn_cut);
        if (h->draining)
                drain_all(h, HTTP_CONN_IDLE);
        else
                sweep_aged(h, HTTP_CONN_IDLE, now - lim->idle_ms, http_conn_end);
        for (struct http_conn *c = h->lists[HTTP_CONN_ACTIVE].first; c;) {
                struct http_conn *next = c->next;
                http_conn_check(c, now);
                c = next;
        }
}

static void on_sweep(struct loop_timer *t) {
        struct http_hub *h = NET_CONTAINER_OF(t, struct http_hub, sweep);
        int64_t now = loop_now_ms(h->loop);
        if (!was_away(h, now))
                limits_check(h, now);
        http_memory_act(h);
        if (now - h->trimmed_at_ms >= TRIM_MS) {
                h->trimmed_at_ms = now;
                memory_trim(h);
        }
        if (h->n_conns > 0)
                h->used_at_ms = now;
        /* Without connections it goes on until their memory is given back. */
        if (now - h->used_at_ms <= 3 * TRIM_MS)
                loop_timer_start(&h->sweep, h->sweep_ms);
}

void http_hub_drain(struct http_hub *h) {
        h->draining = true;
        /* Those in their handshake hear of it when that is done. */
        drain_all(h, HTTP_CONN_IDLE);
        drain_all(h, HTTP_CONN_ACTIVE);
        if (h->n_conns == 0 && h->on_empty)
                h->on_empty(h);
}

/* ---- set up ---- */

static struct http_page *refusal_new(enum problem_code code) {
        char text[1024];
        struct json_out o;
        json_out_init(&o, text, sizeof text);
        problem_render(&o, code, NULL, NULL, NULL);
        const struct http_header headers[] = {
                {SPAN("content-type"), SPAN(PROBLEM_MEDIA_TYPE), HTTP_FIELD_CONTENT_TYPE},
                {SPAN("cache-control"), SPAN("private, no-store"), HTTP_FIELD_CACHE_CONTROL},
                {SPAN("retry-after"), SPAN("1"), 0},
        };
        size_t n = NET_COUNT_OF(headers) - (problem_of(code)->status != 503);
        return http_page_new(problem_of(code)->status, headers, n, json_out_done(&o));
}

static bool refusals_make(struct http_hub *h) {
        static const enum problem_code codes[HTTP_REFUSAL_COUNT] = {
                [HTTP_REFUSE_MALFORMED] = PROBLEM_BAD_REQUEST,
                [HTTP_REFUSE_METHOD] = PROBLEM_METHOD_NOT_ALLOWED,
                [HTTP_REFUSE_TOO_LARGE] = PROBLEM_HEADERS_TOO_LARGE,
                [HTTP_REFUSE_NO_MEMORY] = PROBLEM_UNAVAILABLE,
                [HTTP_REFUSE_BUSY] = PROBLEM_UNAVAILABLE,
        };
        for (size_t i = 0; i < HTTP_REFUSAL_COUNT; i++) {
                h->refusals[i] = refusal_new(codes[i]);
                if (!h->refusals[i])
                        return false;
        }
        return true;
}

static int64_t least(int64_t a, int64_t b) {
        return a < b ? a : b;
}

static int64_t sweep_interval(const struct http_server_limits *lim) {
        int64_t ms = least(least(lim->handshake_ms, lim->header_ms),
                           least(least(lim->body_ms, lim->stall_ms), lim->idle_ms)) /
                     4;
        return ms > SWEEP_MAX_MS ? SWEEP_MAX_MS : ms < SWEEP_MIN_MS ? SWEEP_MIN_MS : ms;
}

int http_hub_init(struct http_hub *h, struct loop *l, const struct http_server_conf *conf) {
        const struct http_server_limits *lim = &conf->limits;
        memset(h, 0, sizeof *h);
        h->loop = l;
        h->conf = *conf;
        h->tls = conf->tls;
        if (h->tls)
                tls_context_take(h->tls);
        h->flush_end = &h->flush;
        h->pool = pool_new();
        h->coder = h2_coder_new(h->pool);
        h->repeats = h2_repeats_new(h->pool, lim->repeated_heads, &h->counters.repeats_evicted);
        h->session_conf = (struct http_session_conf){
                .pool = h->pool,
                .coder = h->coder,
                .repeats = h->repeats,
                .head = {.fields = lim->header_fields,
                         .bytes = lim->header_bytes,
                         .keep_unknown = conf->keep_unknown},
                .streams = lim->streams,
                .glitches = {lim->glitch_burst, lim->glitch_per_s},
                .resets = {lim->reset_burst, lim->reset_per_s},
                .is_tls = conf->tls != NULL,
        };
        h->load.ceiling_ms = lim->turn_ms;
        h->sweep_ms = sweep_interval(lim);
        loop_timer_init(l, &h->sweep, on_sweep);
        loop_timer_init(l, &h->read_again, on_read_again);
        loop_timer_init(l, &h->trim_on, on_trim_on);
        /* A peer that is gone must not end the program. */
        (void)signal(SIGPIPE, SIG_IGN);
        int r = http_handshakes_init(h);
        if (r != 0)
                return r;
        return h->pool && h->coder && h->repeats && refusals_make(h) ? 0 : -ENOMEM;
}

void http_hub_fini(struct http_hub *h) {
        h->on_room = NULL;
        h->on_empty = NULL;
        for (size_t i = 0; i < HTTP_CONN_STATES; i++) {
                while (h->lists[i].first)
                        http_conn_cut(h->lists[i].first);
        }
        http_handshakes_fini(h);
        loop_defer_cancel(h->loop, &h->run_flush);
        loop_defer_cancel(h->loop, &h->free_retired);
        on_free_retired(&h->free_retired);
        loop_timer_cancel(&h->sweep);
        loop_timer_cancel(&h->read_again);
        loop_timer_cancel(&h->trim_on);
        for (size_t i = 0; i < HTTP_REFUSAL_COUNT; i++)
                http_page_free(&h->refusals[i]);
        tls_context_free(&h->tls);
        h2_coder_free(&h->coder);
        h2_repeats_free(&h->repeats);
        pool_free(&h->pool);
}
