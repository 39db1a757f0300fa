#include "net/http_pool.h"

#include <errno.h>
#include <stdlib.h>

#define ENTRY_BYTES 2048 /* of an entry kept for the next call */
#define BACKOFF_FIRST_MS 20
#define BACKOFF_MAX_MS 1000

/* One call and its request, in one block. It is waiting (among `waiting`) or in
 * flight (`conn` set). */
struct entry {
        struct entry *prev, *next;
        struct http_pool *pool;
        struct http_call *call;
        struct conn *conn;
        struct http_call_request request; /* points behind this struct */
        int64_t deadline_at_ms;
        size_t size;
        bool is_second_try;
        bool is_probe; /* let through while the pool was away */
};

/* One connection. `is_leaving`: the peer takes no new calls, the open ones
 * finish; it no longer counts. `is_doomed`: to be closed at the turn's end. */
struct conn {
        struct conn *next;
        struct http_pool *pool;
        struct http_client *client;
        uint32_t timeouts; /* in a row */
        bool is_ready, is_leaving, is_doomed;
};

struct http_pool {
        struct loop *loop;
        struct http_pool_conf conf;
        struct conn *conns;
        uint32_t n_conns; /* without the leaving ones */
        struct entry *first, *last;
        struct entry *spare; /* entries of ENTRY_BYTES */
        uint32_t n_spare;
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

static size_t request_bytes(const struct http_call_request *r) {
        size_t n = r->n_headers * sizeof(*r->headers) + r->method.len + r->scheme.len +
                   r->authority.len + r->path.len + r->body.len;

        for (size_t i = 0; i < r->n_headers; i++)
                n += r->headers[i].name.len + r->headers[i].value.len;
        return n;
}

static struct span copied(char **at, struct span from) {
        struct span to = {*at, from.len};

        if (from.len)
                memcpy(*at, from.p, from.len);
        *at += from.len;
        return to;
}

static void copy_request(struct entry *e, const struct http_call_request *r) {
        struct http_header *headers = (struct http_header *)(void *)(e + 1);
        char *at = (char *)(headers + r->n_headers);

        e->request = (struct http_call_request){
                .method = copied(&at, r->method),
                .scheme = copied(&at, r->scheme),
                .authority = copied(&at, r->authority),
                .path = copied(&at, r->path),
                .headers = headers,
                .n_headers = r->n_headers,
                .body = copied(&at, r->body),
        };
        for (size_t i = 0; i < r->n_headers; i++)
                headers[i] = (struct http_header){.name = copied(&at, r->headers[i].name),
                                                  .value = copied(&at, r->headers[i].value)};
}

static struct entry *entry_new(struct http_pool *p, struct http_call *call,
                               const struct http_call_request *r) {
        size_t size = sizeof(struct entry) + request_bytes(r);
        struct entry *e = p->spare;

        if (size < ENTRY_BYTES)
                size = ENTRY_BYTES;
        if (e && size == ENTRY_BYTES) {
                p->spare = e->next;
                p->n_spare--;
        } else {
                e = malloc(size);
        }
        if (!e)
                return NULL;
        *e = (struct entry){.pool = p,
                            .call = call,
                            .size = size,
                            .deadline_at_ms = loop_now_ms(p->loop) + r->deadline_ms};
        copy_request(e, r);
        return e;
}

static void entry_free(struct http_pool *p, struct entry *e) {
        if (e->size != ENTRY_BYTES || p->n_spare >= p->conf.in_flight) {
                free(e);
                return;
        }
        e->next = p->spare;
        p->spare = e;
        p->n_spare++;
}

static void enqueue(struct http_pool *p, struct entry *e, bool at_front) {
        struct entry **end = at_front ? &p->first : &p->last;
        struct entry *beside = *end;

        e->conn = NULL;
        e->prev = at_front ? NULL : beside;
        e->next = at_front ? beside : NULL;
        *end = e;
        if (!beside)
                p->first = p->last = e;
        else if (at_front)
                beside->prev = e;
        else
                beside->next = e;
        p->stats.waiting++;
}

static void dequeue(struct http_pool *p, struct entry *e) {
        *(e->prev ? &e->prev->next : &p->first) = e->next;
        *(e->next ? &e->next->prev : &p->last) = e->prev;
        p->stats.waiting--;
}

static struct entry *dequeue_first(struct http_pool *p) {
        struct entry *e = p->first;

        if (!e)
                return NULL;
        p->first = e->next;
        *(e->next ? &e->next->prev : &p->last) = NULL;
        p->stats.waiting--;
        return e;
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
static void tell_end(struct http_pool *p, struct entry *e, enum http_call_outcome outcome) {
        struct http_call *call = e->call;

        entry_free(p, e);
        call->pool = NULL;
        call->keeper = NULL;
        ask_turn_end(p);
        call->events->on_done(call, outcome);
}

/* Away: nothing waits for a host that does not answer. */
static void go_away(struct http_pool *p) {
        struct entry *e;

        p->is_away = true;
        p->is_deaf = p->timeouts >= p->conf.breaker_failures;
        p->has_tripped = false;
        p->probe_at_ms = loop_now_ms(p->loop) + p->conf.breaker_ms;
        while (!p->is_freed && (e = dequeue_first(p)))
                tell_end(p, e, HTTP_CALL_UNSENT);
}

static void come_back(struct http_pool *p) {
        p->is_away = false;
        p->is_deaf = false;
        p->failed_connects = 0;
        p->timeouts = 0;
}

/* Counts an answer, or the want of one, against connection and pool. */
static void judge(struct http_pool *p, struct entry *e, enum http_call_outcome outcome) {
        struct conn *c = e->conn;
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

static void on_call_done(struct http_call *call, enum http_call_outcome outcome);
static void on_call_cancel(struct http_call *call);

static const struct http_call_keeper keeper = {
        .on_done = on_call_done,
        .on_cancel = on_call_cancel,
};

static void on_call_done(struct http_call *call, enum http_call_outcome outcome) {
        struct entry *e = call->pool;
        struct http_pool *p = e->pool;

        p->stats.in_flight--;
        judge(p, e, outcome);
        if (outcome == HTTP_CALL_UNSENT && !e->is_second_try && !p->is_freed) {
                e->is_second_try = true;
                call->keeper = &keeper;
                enqueue(p, e, true);
                ask_timer(p, e->deadline_at_ms);
                ask_turn_end(p);
                return;
        }
        tell_end(p, e, outcome);
}

static void on_call_cancel(struct http_call *call) {
        struct entry *e = call->pool;
        struct http_pool *p = e->pool;

        if (e->conn)
                p->stats.in_flight--;
        else
                dequeue(p, e);
        call->pool = NULL;
        entry_free(p, e);
        ask_turn_end(p);
}

static void on_conn_ready(void *owner, struct http_client *client) {
        struct conn *c = owner;
        struct http_pool *p = c->pool;

        (void)client;
        c->is_ready = true;
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
        struct conn *c = owner;
        struct http_pool *p = c->pool;
        struct conn **link = &p->conns;

        (void)client;
        (void)why;
        while (*link != c)
                link = &(*link)->next;
        *link = c->next;
        if (!c->is_leaving)
                p->n_conns--;
        if (!c->is_ready && !p->is_freed)
                count_failed_connect(p);
        ask_turn_end(p);
        free(c);
}

static void open_conn(struct http_pool *p) {
        struct conn *c = calloc(1, sizeof(*c));
        struct http_client_conf conf = {
                .address = p->conf.address,
                .tls = p->conf.tls,
                .server_name = p->conf.server_name,
                .connect_ms = p->conf.connect_ms,
                .max_streams = p->conf.in_flight,
                .header_bytes = p->conf.header_bytes,
                .window_bytes = p->conf.window_bytes,
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
}

/* The ready connection with the fewest calls; sorts out those that leave. */
static struct conn *pick_conn(struct http_pool *p, bool *is_connecting) {
        struct conn *best = NULL;

        *is_connecting = false;
        for (struct conn *c = p->conns; c; c = c->next) {
                if (c->is_leaving)
                        continue;
                if (c->is_ready && !http_client_is_ready(c->client)) {
                        c->is_leaving = true;
                        p->n_conns--;
                        continue;
                }
                *is_connecting |= !c->is_ready;
                if (c->is_doomed || http_client_room(c->client) == 0)
                        continue;
                if (!best ||
                    http_client_open_calls(c->client) < http_client_open_calls(best->client))
                        best = c;
        }
        return best;
}

static int start_on(struct http_pool *p, struct conn *c, struct entry *e) {
        int64_t left = e->deadline_at_ms - loop_now_ms(p->loop);
        int r;

        e->request.deadline_ms = left > 0 ? left : 1;
        r = http_client_start_kept(c->client, e->call, &e->request, &keeper);
        if (r < 0)
                return r;
        e->conn = c;
        p->stats.in_flight++;
        return 0;
}

static void close_doomed(struct http_pool *p) {
        struct conn *c = p->conns;

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

/* Gives waiting calls to connections, and opens one when that is what they
 * wait for. */
static void serve_waiting(struct http_pool *p) {
        bool is_connecting = false;
        struct conn *c = NULL;

        while (p->first && p->stats.in_flight < p->conf.in_flight &&
               (c = pick_conn(p, &is_connecting))) {
                struct entry *e = p->first;

                dequeue(p, e);
                if (start_on(p, c, e) < 0) {
                        enqueue(p, e, true);
                        break;
                }
        }
        if (!p->first || c || is_connecting || p->stats.in_flight >= p->conf.in_flight ||
            p->n_conns >= p->conf.connections)
                return;
        if (loop_now_ms(p->loop) >= p->reopen_at_ms)
                open_conn(p);
        else
                ask_timer(p, p->reopen_at_ms);
}

static void on_turn_end(struct loop_defer *d) {
        struct http_pool *p = NET_CONTAINER_OF(d, struct http_pool, turn);

        close_doomed(p);
        if (p->has_tripped && !p->is_freed)
                go_away(p);
        if (!p->is_freed)
                serve_waiting(p);
}

static struct entry *next_expired(struct http_pool *p, int64_t now, int64_t *earliest) {
        *earliest = INT64_MAX;
        for (struct entry *e = p->first; e; e = e->next) {
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
        struct entry *e;

        p->timer_at_ms = INT64_MAX;
        while (!p->is_freed && (e = next_expired(p, loop_now_ms(p->loop), &earliest))) {
                dequeue(p, e);
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

        while (p->spare) {
                struct entry *e = p->spare;

                p->spare = e->next;
                free(e);
        }
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
        loop_timer_init(l, &p->timer, on_timer);
        *out = p;
        return 0;
}

void http_pool_free(struct http_pool **pp) {
        struct http_pool *p = *pp;
        struct conn *next;
        struct entry *e;

        *pp = NULL;
        if (!p)
                return;
        p->is_freed = true;
        loop_timer_cancel(&p->timer);
        for (struct conn *c = p->conns; c; c = next) {
                next = c->next;
                http_client_close(c->client);
        }
        while ((e = dequeue_first(p)))
                tell_end(p, e, HTTP_CALL_UNSENT);
        loop_defer(p->loop, &p->turn, on_retire);
}

bool http_pool_is_away(const struct http_pool *p) {
        return p->is_away && loop_now_ms(p->loop) < p->probe_at_ms;
}

/* Starts the call at once where that overtakes nobody. */
static bool start_now(struct http_pool *p, struct entry *e) {
        bool is_connecting;
        struct conn *c;

        if (p->first || p->stats.in_flight >= p->conf.in_flight)
                return false;
        c = pick_conn(p, &is_connecting);
        return c && start_on(p, c, e) == 0;
}

int http_pool_start(struct http_pool *p, struct http_call *call,
                    const struct http_call_request *request) {
        struct entry *e;
        int r = http_client_check(request);

        if (r < 0)
                return r;
        assert(request->deadline_ms > 0 && !call->client && !call->pool);
        if (http_pool_is_away(p)) {
                p->stats.refused_away++;
                return -EHOSTDOWN;
        }
        e = entry_new(p, call, request);
        if (!e)
                return -ENOMEM;
        call->pool = e;
        if (!start_now(p, e)) {
                if (p->stats.waiting >= p->conf.waiting) {
                        call->pool = NULL;
                        entry_free(p, e);
                        p->stats.refused_full++;
                        return -ENOBUFS;
                }
                call->keeper = &keeper;
                enqueue(p, e, false);
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

void http_pool_stats(const struct http_pool *p, struct http_pool_stats *out) {
        *out = p->stats;
        out->connections_open = 0;
        for (const struct conn *c = p->conns; c; c = c->next)
                out->connections_open += c->is_ready;
}
