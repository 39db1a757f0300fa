#include "net/http_pool.h"

#include <errno.h>
#include <stdlib.h>

#include "net/http_pool_entry.h"

#define BACKOFF_FIRST_MS 20
#define BACKOFF_MAX_MS 1000

/* One connection. `is_leaving`: the peer takes no new calls, the open ones
 * finish; it no longer counts. `is_doomed`: to be closed at the turn's end.
 * HTTP/1.1: those without a call are among `idle`, the last used first. */
struct pool_conn {
        struct pool_conn *next;
        struct pool_conn *idle_prev, *idle_next;
        bool is_idle;
        struct http_pool *pool;
        struct http_client *client;
        uint32_t timeouts; /* in a row */
        bool is_ready, is_leaving, is_doomed;
};

struct http_pool {
        struct loop *loop;
        struct http_pool_conf conf;
        struct pool_conn *conns;
        uint32_t n_conns;      /* without the leaving ones */
        uint32_t n_connecting; /* of them, not yet ready */
        struct pool_conn *idle;
        struct pool_queue waiting;
        struct loop_defer turn;
        struct loop_timer timer;
        int64_t timer_at_ms;
        int64_t reopen_at_ms;
        int64_t backoff_ms;
        uint32_t failed_connects, timeouts; /* in a row */
        bool is_away;
        bool has_tripped; /* to go away at the turn's end */
        bool is_deaf;     /* away for want of answers, not of connections */
        int64_t probe_at_ms;
        bool is_freed;
        struct http_pool_stats stats;
};

static void on_turn_end(struct loop_defer *d);

static void ask_turn_end(struct http_pool *p) {
        if (!p->is_freed)
                loop_defer(p->loop, &p->turn, on_turn_end);
}

/* The timer serves the earliest instant asked for; what it finds to do asks
 * for the next. */
static void ask_timer(struct http_pool *p, int64_t at_ms) {
        int64_t after = at_ms - loop_now_ms(p->loop);

        if (at_ms >= p->timer_at_ms || p->is_freed)
                return;
        p->timer_at_ms = at_ms;
        loop_timer_start(&p->timer, after > 0 ? after : 0);
}

/* Ends a call that is neither waiting nor in flight any more. */
static void tell_end(struct http_pool *p, struct pool_entry *e, enum http_call_outcome outcome) {
        struct http_call *call = e->call;

        pool_entry_free(&p->waiting, e);
        call->pool = NULL;
        call->keeper = NULL;
        ask_turn_end(p);
        call->events->on_done(call, outcome);
}

/* Away: nothing waits for a host that does not answer. */
static void go_away(struct http_pool *p) {
        struct pool_entry *e;

        p->is_away = true;
        p->is_deaf = p->timeouts >= p->conf.breaker_failures;
        p->has_tripped = false;
        p->probe_at_ms = loop_now_ms(p->loop) + p->conf.breaker_ms;
        while (!p->is_freed && (e = pool_queue_take_first(&p->waiting)))
                tell_end(p, e, HTTP_CALL_UNSENT);
}

static void come_back(struct http_pool *p) {
        p->is_away = false;
        p->is_deaf = false;
        p->failed_connects = 0;
        p->timeouts = 0;
}

/* Counts an answer, or the want of one, against connection and pool. */
static void judge(struct http_pool *p, struct pool_entry *e, enum http_call_outcome outcome) {
        struct pool_conn *c = e->conn;
        bool is_probe = e->is_probe && p->is_away;

        switch (outcome) {
        case HTTP_CALL_PROTOCOL:
                p->stats.failures_total++;
                c->timeouts = 0;
                come_back(p);
                break;
        case HTTP_CALL_OK:
                c->timeouts = 0;
                come_back(p);
                break;
        case HTTP_CALL_TIMEOUT:
                p->stats.timeouts_total++;
                p->timeouts++;
                c->timeouts++;
                c->is_doomed |= is_probe || c->timeouts >= p->conf.breaker_failures;
                p->has_tripped |= is_probe || p->timeouts >= p->conf.breaker_failures;
                break;
        case HTTP_CALL_LOST:
                p->stats.failures_total++;
                break;
        case HTTP_CALL_UNSENT:
                break;
        }
}

static void idle_add(struct pool_conn *c);
static void on_call_done(struct http_call *call, enum http_call_outcome outcome);
static void on_call_cancel(struct http_call *call);

static const struct http_call_keeper keeper = {
        .on_done = on_call_done,
        .on_cancel = on_call_cancel,
};

static void on_call_done(struct http_call *call, enum http_call_outcome outcome) {
        struct pool_entry *e = call->pool;
        struct http_pool *p = e->pool;

        p->stats.in_flight--;
        judge(p, e, outcome);
        if (outcome == HTTP_CALL_UNSENT && !e->is_second_try && !p->is_freed) {
                e->is_second_try = true;
                call->keeper = &keeper;
                pool_queue_put(&p->waiting, e, true);
                ask_timer(p, e->deadline_at_ms);
                ask_turn_end(p);
                return;
        }
        tell_end(p, e, outcome);
}

static void on_call_cancel(struct http_call *call) {
        struct pool_entry *e = call->pool;
        struct http_pool *p = e->pool;

        if (e->conn)
                p->stats.in_flight--;
        else
                pool_queue_take(&p->waiting, e);
        /* It was not sent yet: the connection is as good as before. */
        if (e->conn && http_client_room(e->conn->client) > 0)
                idle_add(e->conn);
        call->pool = NULL;
        pool_entry_free(&p->waiting, e);
        ask_turn_end(p);
}

static void idle_add(struct pool_conn *c) {
        struct http_pool *p = c->pool;

        if (c->is_idle || p->conf.protocol == HTTP_PROTOCOL_H2)
                return;
        c->is_idle = true;
        c->idle_prev = NULL;
        c->idle_next = p->idle;
        if (p->idle)
                p->idle->idle_prev = c;
        p->idle = c;
}

static void idle_remove(struct pool_conn *c) {
        if (!c->is_idle)
                return;
        c->is_idle = false;
        *(c->idle_prev ? &c->idle_prev->idle_next : &c->pool->idle) = c->idle_next;
        if (c->idle_next)
                c->idle_next->idle_prev = c->idle_prev;
}

static void on_conn_ready(void *owner, struct http_client *client) {
        struct pool_conn *c = owner;
        struct http_pool *p = c->pool;

        (void)client;
        idle_add(c);
        if (c->is_ready) {
                if (p->waiting.first)
                        ask_turn_end(p);
                return;
        }
        c->is_ready = true;
        p->n_connecting--;
        p->failed_connects = 0;
        p->backoff_ms = 0;
        if (p->is_away && !p->is_deaf)
                come_back(p);
        ask_turn_end(p);
}

static void count_failed_connect(struct http_pool *p) {
        p->stats.failures_total++;
        p->failed_connects++;
        p->has_tripped |= p->failed_connects >= p->conf.breaker_failures;
        p->backoff_ms = p->backoff_ms ? p->backoff_ms * 2 : BACKOFF_FIRST_MS;
        if (p->backoff_ms > BACKOFF_MAX_MS)
                p->backoff_ms = BACKOFF_MAX_MS;
        p->reopen_at_ms = loop_now_ms(p->loop) + p->backoff_ms;
        ask_turn_end(p);
}

static void on_conn_closed(void *owner, struct http_client *client, int why) {
        struct pool_conn *c = owner;
        struct http_pool *p = c->pool;
        struct pool_conn **link = &p->conns;

        (void)client;
        (void)why;
        while (*link != c)
                link = &(*link)->next;
        *link = c->next;
        idle_remove(c);
        if (!c->is_ready)
                p->n_connecting--;
        if (!c->is_leaving)
                p->n_conns--;
        if (!c->is_ready && !p->is_freed)
                count_failed_connect(p);
        ask_turn_end(p);
        free(c);
}

static void open_conn(struct http_pool *p) {
        struct pool_conn *c = calloc(1, sizeof(*c));
        struct http_client_conf conf = {
                .protocol = p->conf.protocol,
                .idle_ms = p->conf.idle_ms,
                .address = p->conf.address,
                .tls = p->conf.tls,
                .server_name = p->conf.server_name,
                .connect_ms = p->conf.connect_ms,
                .max_streams = p->conf.in_flight,
                .header_bytes = p->conf.header_bytes,
                .window_bytes = p->conf.window_bytes,
                .counters = p->conf.counters,
                .on_ready = on_conn_ready,
                .on_closed = on_conn_closed,
                .owner = c,
        };

        if (!c || http_client_open(p->loop, &conf, &c->client) < 0) {
                free(c);
                count_failed_connect(p);
                return;
        }
        c->pool = p;
        c->next = p->conns;
        p->conns = c;
        p->n_conns++;
        p->n_connecting++;
}

/* The ready connection with the fewest calls; sorts out those that leave. Of
 * HTTP/1.1 the one used last, so that few are kept warm and the rest age. */
static struct pool_conn *pick_conn(struct http_pool *p) {
        struct pool_conn *best = NULL;

        while (p->idle) {
                best = p->idle;
                if (!best->is_doomed && http_client_room(best->client) > 0)
                        return best;
                idle_remove(best);
        }
        if (p->conf.protocol != HTTP_PROTOCOL_H2)
                return NULL;
        for (struct pool_conn *c = p->conns; c; c = c->next) {
                if (c->is_leaving)
                        continue;
                if (c->is_ready && !http_client_is_ready(c->client)) {
                        c->is_leaving = true;
                        p->n_conns--;
                        continue;
                }
                if (c->is_doomed || http_client_room(c->client) == 0)
                        continue;
                if (!best ||
                    http_client_open_calls(c->client) < http_client_open_calls(best->client))
                        best = c;
        }
        return best;
}

static int start_on(struct http_pool *p, struct pool_conn *c, struct pool_entry *e) {
        int64_t left = e->deadline_at_ms - loop_now_ms(p->loop);
        int r;

        e->request.deadline_ms = left > 0 ? left : 1;
        r = http_client_start_kept(c->client, e->call, &e->request, &keeper);
        if (r < 0)
                return r;
        idle_remove(c);
        e->conn = c;
        p->stats.in_flight++;
        return 0;
}

static void close_doomed(struct http_pool *p) {
        struct pool_conn *c = p->conns;

        while (c && !p->is_freed) {
                if (c->is_doomed) {
                        /* Its calls may start others: begin anew. */
                        c->is_doomed = false;
                        http_client_close(c->client);
                        c = p->conns;
                } else {
                        c = c->next;
                }
        }
}

/* Whether the waiting calls wait for a connection that is not being opened. */
static bool wants_conn(const struct http_pool *p) {
        uint64_t room = p->conf.in_flight - p->stats.in_flight;
        uint64_t wanted = p->waiting.count < room ? p->waiting.count : room;

        if (p->conf.protocol == HTTP_PROTOCOL_H2 && wanted > 1)
                wanted = 1; /* it has room for all */
        return wanted > p->n_connecting && p->n_conns < p->conf.connections;
}

/* Gives waiting calls to connections, and opens some when that is what they
 * wait for. */
static void serve_waiting(struct http_pool *p) {
        struct pool_conn *c;

        while (p->waiting.first && p->stats.in_flight < p->conf.in_flight) {
                struct pool_entry *e = p->waiting.first;

                c = pick_conn(p);
                if (!c)
                        break;
                pool_queue_take(&p->waiting, e);
                if (start_on(p, c, e) < 0) {
                        pool_queue_put(&p->waiting, e, true);
                        return;
                }
        }
        while (wants_conn(p)) {
                uint32_t before = p->n_conns;

                if (loop_now_ms(p->loop) < p->reopen_at_ms) {
                        ask_timer(p, p->reopen_at_ms);
                        return;
                }
                open_conn(p);
                if (p->n_conns == before)
                        return;
        }
}

static void on_turn_end(struct loop_defer *d) {
        struct http_pool *p = NET_CONTAINER_OF(d, struct http_pool, turn);

        close_doomed(p);
        if (p->has_tripped && !p->is_freed)
                go_away(p);
        if (!p->is_freed)
                serve_waiting(p);
}

static struct pool_entry *next_expired(struct http_pool *p, int64_t now, int64_t *earliest) {
        *earliest = INT64_MAX;
        for (struct pool_entry *e = p->waiting.first; e; e = e->next) {
                if (e->deadline_at_ms <= now)
                        return e;
                if (e->deadline_at_ms < *earliest)
                        *earliest = e->deadline_at_ms;
        }
        return NULL;
}

static void on_timer(struct loop_timer *t) {
        struct http_pool *p = NET_CONTAINER_OF(t, struct http_pool, timer);
        int64_t earliest;
        struct pool_entry *e;

        p->timer_at_ms = INT64_MAX;
        while (!p->is_freed && (e = next_expired(p, loop_now_ms(p->loop), &earliest))) {
                pool_queue_take(&p->waiting, e);
                tell_end(p, e, HTTP_CALL_TIMEOUT);
        }
        if (p->is_freed)
                return;
        if (earliest != INT64_MAX)
                ask_timer(p, earliest);
        ask_turn_end(p);
}

static void on_retire(struct loop_defer *d) {
        struct http_pool *p = NET_CONTAINER_OF(d, struct http_pool, turn);

        pool_queue_fini(&p->waiting);
        tls_context_free(&p->conf.tls);
        free((char *)(uintptr_t)p->conf.address);
        free((char *)(uintptr_t)p->conf.server_name);
        free(p);
}

int http_pool_new(struct loop *l, const struct http_pool_conf *conf, struct http_pool **out) {
        struct http_pool *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        assert(conf->connections > 0 && conf->in_flight > 0 && conf->breaker_failures > 0 &&
               conf->breaker_ms > 0);
        p->loop = l;
        p->conf = *conf;
        p->conf.address = strdup(conf->address);
        p->conf.server_name = conf->server_name ? strdup(conf->server_name) : NULL;
        if (!p->conf.address || (conf->server_name && !p->conf.server_name)) {
                free((char *)(uintptr_t)p->conf.address);
                free((char *)(uintptr_t)p->conf.server_name);
                free(p);
                return -ENOMEM;
        }
        if (conf->tls)
                tls_context_take(conf->tls);
        p->timer_at_ms = INT64_MAX;
        p->waiting.keep = conf->in_flight;
        loop_timer_init(l, &p->timer, on_timer);
        *out = p;
        return 0;
}

void http_pool_free(struct http_pool **pp) {
        struct http_pool *p = *pp;
        struct pool_conn *next;
        struct pool_entry *e;

        *pp = NULL;
        if (!p)
                return;
        p->is_freed = true;
        loop_timer_cancel(&p->timer);
        for (struct pool_conn *c = p->conns; c; c = next) {
                next = c->next;
                http_client_close(c->client);
        }
        while ((e = pool_queue_take_first(&p->waiting)))
                tell_end(p, e, HTTP_CALL_UNSENT);
        loop_defer(p->loop, &p->turn, on_retire);
}

bool http_pool_is_away(const struct http_pool *p) {
        return p->is_away && loop_now_ms(p->loop) < p->probe_at_ms;
}

/* Starts the call at once where that overtakes nobody. */
static bool start_now(struct http_pool *p, struct pool_entry *e) {
        struct pool_conn *c;

        if (p->waiting.first || p->stats.in_flight >= p->conf.in_flight)
                return false;
        c = pick_conn(p);
        return c && start_on(p, c, e) == 0;
}

int http_pool_start(struct http_pool *p, struct http_call *call,
                    const struct http_call_request *request) {
        struct pool_entry *e;
        int r = http_client_check(request);

        if (r < 0)
                return r;
        assert(request->deadline_ms > 0 && !call->client && !call->pool);
        if (http_pool_is_away(p)) {
                p->stats.refused_away++;
                return -EHOSTDOWN;
        }
        e = pool_entry_new(&p->waiting, call, request, loop_now_ms(p->loop));

        if (!e)
                return -ENOMEM;
        e->pool = p;
        call->pool = e;
        if (!start_now(p, e)) {
                if (p->waiting.count >= p->conf.waiting) {
                        call->pool = NULL;
                        pool_entry_free(&p->waiting, e);
                        p->stats.refused_full++;
                        return -ENOBUFS;
                }
                call->keeper = &keeper;
                pool_queue_put(&p->waiting, e, false);
                ask_timer(p, e->deadline_at_ms);
                ask_turn_end(p);
        }
        if (p->is_away) {
                e->is_probe = true;
                p->probe_at_ms = loop_now_ms(p->loop) + p->conf.breaker_ms;
        }
        p->stats.calls_total++;
        return 0;
}

bool http_pool_is_full(const struct http_pool *p) {
        return p->waiting.count > 0 && p->n_connecting == 0 && !wants_conn(p);
}

void http_pool_stats(const struct http_pool *p, struct http_pool_stats *out) {
        *out = p->stats;
        out->waiting = p->waiting.count;
        out->connections_open = 0;
        for (const struct pool_conn *c = p->conns; c; c = c->next)
                out->connections_open += c->is_ready;
}
