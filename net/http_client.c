#include "net/http_client.h"

#include <errno.h>
#include <stdlib.h>

#include "net/client_session.h"
#include "net/client_wire.h"
#include "net/h2_request.h"

/* A thread has one turn at a time, so its connections share the memory that
 * bytes pass through; an idle connection owns none. */
#define SCRATCH_BYTES 65536
/* Fills of the scratch a turn, when TLS keeps having more. */
#define READS_PER_TURN 4

static _Thread_local char in_scratch[SCRATCH_BYTES];

/*   CONNECTING ─> SECURING ─> GREETING ─> READY ─> DRAINING ─> CLOSED
 *        └────────────────────────^         └──────────────────────^
 * Every state may become CLOSED. */
enum client_state {
        CLIENT_CONNECTING, /* TCP */
        CLIENT_SECURING,   /* TLS */
        CLIENT_GREETING,   /* HTTP/2: our preface is out, the peer's SETTINGS are not in */
        CLIENT_READY,
        CLIENT_DRAINING, /* no new calls, by our wish or the peer's */
        CLIENT_CLOSED,   /* freed at the end of the turn */
};

struct call {
        struct client_call seen;       /* by the session */
        struct http_call *prev, *next; /* of the client's */
        int64_t deadline_at_ms;
        char *body; /* our copy, or NULL */
};

_Static_assert(sizeof(struct call) <= sizeof(((struct http_call *)0)->priv), "room for a call");

struct http_client {
        struct loop *loop;
        struct http_client_conf conf; /* `address` is not kept */
        enum client_state state;
        int failed; /* -errno to close with at the end of the turn; 0 none */
        struct client_wire wire;
        struct loop_timer timer; /* the connect's deadline, then the calls' */
        int64_t timer_at_ms;     /* INT64_MAX: not started */
        struct loop_defer turn;
        bool read_again;               /* there is more, but no event will say so */
        bool is_paused;                /* the session is full */
        int64_t idle_at_ms;            /* HTTP/1.1: since when without a call */
        struct client_session session; /* open from GREETING on */
        struct http_call *calls;
        uint32_t n_calls;
};

static struct call *call_of(struct http_call *c) {
        return (struct call *)(void *)c->priv;
}

static struct http_call *http_call_of(struct client_call *seen) {
        return NET_CONTAINER_OF(seen, struct http_call, priv);
}

static void on_turn_end(struct loop_defer *d);

static void ask_turn_end(struct http_client *c) {
        if (c->state != CLIENT_CLOSED)
                loop_defer(c->loop, &c->turn, on_turn_end);
}

static bool is_open(const struct http_client *c) {
        return c->state != CLIENT_CLOSED;
}

static void unlink_call(struct http_client *c, struct http_call *call) {
        struct call *p = call_of(call);

        if (p->prev)
                call_of(p->prev)->next = p->next;
        else
                c->calls = p->next;
        if (p->next)
                call_of(p->next)->prev = p->prev;
        c->n_calls--;
        free(p->body);
        p->body = NULL;
        call->client = NULL;
}

static void finish(struct http_client *c, struct http_call *call, enum http_call_outcome outcome) {
        const struct http_call_keeper *keeper = call->keeper;

        unlink_call(c, call);
        call->keeper = NULL;
        if (keeper)
                keeper->on_done(call, outcome);
        else
                call->events->on_done(call, outcome);
}

static void on_retire(struct loop_defer *d) {
        struct http_client *c = NET_CONTAINER_OF(d, struct http_client, turn);

        client_session_close(&c->session);
        free((char *)(uintptr_t)c->conf.server_name);
        free(c);
}

/* A call of which nothing left us was surely not acted upon; one that is as
 * good as that may be repeated, when it was the peer who closed. */
static enum http_call_outcome outcome_at_close(const struct http_client *c, struct http_call *call,
                                               int why) {
        if (call_of(call)->seen.first_byte >= c->wire.accepted)
                return HTTP_CALL_UNSENT;
        if ((why == -ECONNRESET || why == -EPIPE) && client_session_may_repeat(&c->session))
                return HTTP_CALL_UNSENT;
        return HTTP_CALL_LOST;
}

static void close_now(struct http_client *c, int why) {
        if (!is_open(c))
                return;
        c->state = CLIENT_CLOSED;
        loop_timer_cancel(&c->timer);
        loop_defer_cancel(c->loop, &c->turn);
        client_wire_close(&c->wire, why == 0);
        while (c->calls)
                finish(c, c->calls, outcome_at_close(c, c->calls, why));
        if (c->conf.on_closed)
                c->conf.on_closed(c->conf.owner, c, why);
        loop_defer(c->loop, &c->turn, on_retire);
}

/* The timer serves the earliest deadline it was ever asked for; the scan that
 * follows sets the next. So a call that ends in time costs no timer at all. */
static void ask_timer(struct http_client *c, int64_t at_ms) {
        int64_t after;

        if (at_ms >= c->timer_at_ms)
                return;
        after = at_ms - loop_now_ms(c->loop);
        c->timer_at_ms = at_ms;
        loop_timer_start(&c->timer, after > 0 ? after : 0);
}

static struct http_call *next_expired(struct http_client *c, int64_t now, int64_t *earliest) {
        *earliest = INT64_MAX;
        for (struct http_call *call = c->calls; call; call = call_of(call)->next) {
                int64_t at = call_of(call)->deadline_at_ms;

                if (at <= now)
                        return call;
                if (at < *earliest)
                        *earliest = at;
        }
        return NULL;
}

static void expire_calls(struct http_client *c) {
        struct http_call *call;
        int64_t earliest;

        while ((call = next_expired(c, loop_now_ms(c->loop), &earliest))) {
                client_session_cancel(&c->session, &call_of(call)->seen);
                finish(c, call, HTTP_CALL_TIMEOUT);
                if (!is_open(c))
                        return;
                ask_turn_end(c);
        }
        if (earliest != INT64_MAX)
                ask_timer(c, earliest);
}

static const enum http_call_outcome outcome_of[] = {
        [CLIENT_END_COMPLETE] = HTTP_CALL_OK,
        [CLIENT_END_REFUSED] = HTTP_CALL_UNSENT,
        [CLIENT_END_BROKEN] = HTTP_CALL_LOST,
        [CLIENT_END_MALFORMED] = HTTP_CALL_PROTOCOL,
};

/* HTTP/1.1: the connection has no call, and can take the next. */
static void tell_idle(struct http_client *c) {
        if (!c->session.http11 || http_client_room(c) == 0)
                return;
        c->idle_at_ms = loop_now_ms(c->loop);
        if (c->conf.idle_ms > 0)
                ask_timer(c, c->idle_at_ms + c->conf.idle_ms);
        if (c->conf.on_ready)
                c->conf.on_ready(c->conf.owner, c);
}

static void deliver_one(struct http_client *c, const struct client_event *e) {
        struct http_call *call = http_call_of(e->call);

        switch (e->kind) {
        case CLIENT_EVENT_HEAD:
                if (call->events->on_head)
                        call->events->on_head(call, e->status, e->headers, e->n_headers);
                break;
        case CLIENT_EVENT_DATA:
                if (!call->manual_window)
                        client_session_consumed(&c->session, e->call, e->data.len);
                if (call->events->on_data)
                        call->events->on_data(call, e->data);
                break;
        case CLIENT_EVENT_END:
                if (buf_len(&c->wire.out))
                        client_session_end_early(&c->session);
                finish(c, call, outcome_of[e->end]);
                tell_idle(c);
                break;
        }
}

/* Tells what the session recorded. Any callback may close the connection. */
static void deliver(struct http_client *c) {
        struct client_event e;

        while (is_open(c) && client_session_next(&c->session, &e))
                deliver_one(c, &e);
        if (is_open(c))
                client_session_done(&c->session);
}

/* Whether nothing is left to do on it. HTTP/1.1 gives a connection up along
 * with what it did not yet send. */
static bool is_finished(const struct http_client *c, int flushed) {
        return c->state == CLIENT_DRAINING && c->n_calls == 0 &&
               (flushed == CLIENT_WIRE_DONE || c->session.http11);
}

/* The end of a turn: everything the turn's callbacks asked for leaves in one
 * write, then the connection closes if it has nothing left to do. */
static void on_turn_end(struct loop_defer *d) {
        struct http_client *c = NET_CONTAINER_OF(d, struct http_client, turn);
        int r = CLIENT_WIRE_WAIT;

        if (c->failed) {
                close_now(c, c->failed);
                return;
        }
        if (!client_session_is_open(&c->session))
                return;
        if (c->state == CLIENT_READY && client_session_is_going(&c->session))
                c->state = CLIENT_DRAINING;
        ask_timer(c, client_session_tick(&c->session, loop_now_ms(c->loop)));
        if (!is_finished(c, r))
                r = client_session_flush(&c->session, &c->wire);
        deliver(c);
        if (!is_open(c))
                return;
        if (r == CLIENT_WIRE_DONE && client_session_is_over(&c->session))
                r = -EPROTO;
        if (r < 0)
                close_now(c, r);
        else if (is_finished(c, r))
                close_now(c, 0);
        else
                client_wire_watch(&c->wire, !client_session_is_full(&c->session));
}

/* What the bytes just read changed for the connection as a whole. */
static void follow_peer(struct http_client *c) {
        if (c->state == CLIENT_GREETING && client_session_is_greeted(&c->session)) {
                c->state = CLIENT_READY;
                c->timer_at_ms = INT64_MAX;
                loop_timer_cancel(&c->timer);
                if (c->session.http11)
                        tell_idle(c);
                else if (c->conf.on_ready)
                        c->conf.on_ready(c->conf.owner, c);
        }
        if (c->state == CLIENT_READY && client_session_is_going(&c->session))
                c->state = CLIENT_DRAINING;
        ask_turn_end(c);
}

static void on_end_of_input(struct http_client *c, int r) {
        if (r == CLIENT_WIRE_CLOSED)
                r = c->n_calls == 0 && c->state >= CLIENT_READY ? 0 : -ECONNRESET;
        close_now(c, r);
}

/* Feeds what came and tells of it; false when the connection is closed. */
static bool take_input(struct http_client *c, struct span data, bool has_ended, int *r) {
        *r = data.len ? client_session_feed(&c->session, data, loop_now_ms(c->loop)) : 0;
        if (has_ended)
                client_session_feed_end(&c->session);
        deliver(c);
        if (is_open(c) && *r == 0)
                follow_peer(c);
        return is_open(c);
}

static void read_input(struct http_client *c) {
        c->read_again = false;
        for (int i = 0; i < READS_PER_TURN; i++) {
                size_t len;
                int end, r;

                c->is_paused = client_session_is_full(&c->session);
                if (c->is_paused)
                        return;
                end = client_wire_read(&c->wire, in_scratch, SCRATCH_BYTES, &len);
                if (!take_input(c, (struct span){in_scratch, len}, end == CLIENT_WIRE_CLOSED, &r))
                        return;
                if (r < 0 || end < 0 || end == CLIENT_WIRE_CLOSED) {
                        on_end_of_input(c, r < 0 ? r : end);
                        return;
                }
                if (end == CLIENT_WIRE_WAIT)
                        return;
        }
        c->read_again = true;
        ask_timer(c, loop_now_ms(c->loop));
}

static void greet(struct http_client *c) {
        struct client_session_conf conf = {.max_streams = c->conf.max_streams,
                                           .header_bytes = c->conf.header_bytes,
                                           .window_bytes = c->conf.window_bytes,
                                           .counters = c->conf.counters};

        c->state = CLIENT_GREETING;
        c->failed = client_session_open(&c->session, c->conf.protocol, &conf);
        loop_io_want(&c->wire.io, LOOP_READ);
        ask_turn_end(c);
        if (c->failed)
                return;
        follow_peer(c);
        /* SETTINGS may have come with the end of the handshake. */
        if (is_open(c) && client_wire_has_more(&c->wire))
                read_input(c);
}

static void secure(struct http_client *c) {
        unsigned alpn = c->conf.protocol == HTTP_PROTOCOL_H2 ? TLS_ALPN_H2 : TLS_ALPN_HTTP11;
        int r = client_wire_secure(&c->wire, c->conf.tls, c->conf.server_name, alpn);

        if (r < 0)
                close_now(c, r);
        else if (r == CLIENT_WIRE_DONE)
                greet(c);
}

static void on_connected(struct http_client *c) {
        int r = client_wire_connected(&c->wire);

        if (r < 0) {
                close_now(c, r);
                return;
        }
        if (!c->conf.tls) {
                greet(c);
                return;
        }
        c->state = CLIENT_SECURING;
        secure(c);
}

static void on_io(struct loop_io *io, unsigned events) {
        struct http_client *c = NET_CONTAINER_OF(io, struct http_client, wire.io);

        switch (c->state) {
        case CLIENT_CONNECTING:
                on_connected(c);
                break;
        case CLIENT_SECURING:
                secure(c);
                break;
        case CLIENT_GREETING:
        case CLIENT_READY:
        case CLIENT_DRAINING:
                ask_turn_end(c);
                if ((events & LOOP_READ) || c->wire.read_wants_write)
                        read_input(c);
                break;
        case CLIENT_CLOSED:
                break;
        }
}

static void expire_idle(struct http_client *c) {
        int64_t end_ms = c->idle_at_ms + c->conf.idle_ms;

        if (!c->session.http11 || c->conf.idle_ms == 0)
                return;
        if (end_ms <= loop_now_ms(c->loop))
                close_now(c, 0);
        else
                ask_timer(c, end_ms);
}

static void on_timer(struct loop_timer *t) {
        struct http_client *c = NET_CONTAINER_OF(t, struct http_client, timer);

        c->timer_at_ms = INT64_MAX;
        if (c->state < CLIENT_READY) {
                close_now(c, -ETIMEDOUT);
                return;
        }
        expire_calls(c);
        if (is_open(c) && c->n_calls == 0)
                expire_idle(c);
        if (is_open(c) && c->read_again)
                read_input(c);
        ask_turn_end(c);
}

int http_client_open(struct loop *l, const struct http_client_conf *conf,
                     struct http_client **out) {
        struct http_client *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        assert(conf->connect_ms > 0 && conf->max_streams > 0);
        c->loop = l;
        c->conf = *conf;
        c->conf.address = NULL;
        c->timer_at_ms = INT64_MAX;
        c->conf.server_name = conf->server_name ? strdup(conf->server_name) : NULL;
        r = conf->server_name && !c->conf.server_name ? -ENOMEM : 0;
        if (r == 0)
                r = client_wire_open(&c->wire, l, conf->address, on_io);
        if (r < 0) {
                free((char *)(uintptr_t)c->conf.server_name);
                free(c);
                return r;
        }
        loop_timer_init(l, &c->timer, on_timer);
        ask_timer(c, loop_now_ms(l) + conf->connect_ms);
        if (c->wire.failed) {
                c->failed = c->wire.failed;
                ask_turn_end(c);
        }
        *out = c;
        return 0;
}

void http_client_close(struct http_client *c) {
        close_now(c, 0);
}

void http_client_drain(struct http_client *c) {
        if (!is_open(c))
                return;
        if (c->state < CLIENT_READY)
                c->failed = -ECANCELED;
        else
                c->state = CLIENT_DRAINING;
        ask_turn_end(c);
}

bool http_client_is_ready(const struct http_client *c) {
        return c->state == CLIENT_READY && !client_session_is_going(&c->session);
}

uint32_t http_client_room(const struct http_client *c) {
        return http_client_is_ready(c) ? client_session_room(&c->session) : 0;
}

uint32_t http_client_open_calls(const struct http_client *c) {
        return c->n_calls;
}

int http_client_check(const struct http_call_request *request) {
        return h2_request_check(request);
}

static int start(struct http_client *c, struct http_call *call, const struct http_call_request *r,
                 const struct http_call_keeper *keeper) {
        struct call *p = call_of(call);
        int64_t deadline_at_ms = loop_now_ms(c->loop) + r->deadline_ms;
        int result;

        assert(r->deadline_ms > 0 && !call->client);
        if (!http_client_is_ready(c))
                return -ENOTCONN;
        *p = (struct call){.deadline_at_ms = deadline_at_ms};
        result = client_session_submit(&c->session, &p->seen, r, keeper != NULL);
        if (result < 0)
                return result;
        call->client = c;
        call->keeper = keeper;
        call->stream = p->seen.stream;
        p->next = c->calls;
        if (c->calls)
                call_of(c->calls)->prev = call;
        c->calls = call;
        c->n_calls++;
        ask_timer(c, deadline_at_ms);
        ask_turn_end(c);
        return 0;
}

int http_client_start_kept(struct http_client *c, struct http_call *call,
                           const struct http_call_request *request,
                           const struct http_call_keeper *keeper) {
        return start(c, call, request, keeper);
}

int http_client_start(struct http_client *c, struct http_call *call,
                      const struct http_call_request *request) {
        struct http_call_request own = *request;
        char *body = NULL;
        int r;

        if (request->body.len) {
                body = malloc(request->body.len);
                if (!body)
                        return -ENOMEM;
                memcpy(body, request->body.p, request->body.len);
                own.body.p = body;
        }
        r = start(c, call, &own, NULL);
        if (r < 0)
                free(body);
        else
                call_of(call)->body = body;
        return r;
}

void http_call_cancel(struct http_call *call) {
        struct http_client *c = call->client;
        const struct http_call_keeper *keeper = call->keeper;

        if (c) {
                client_session_cancel(&c->session, &call_of(call)->seen);
                unlink_call(c, call);
                ask_turn_end(c);
        }
        call->keeper = NULL;
        if (keeper)
                keeper->on_cancel(call);
}

void http_call_consumed(struct http_call *call, size_t n) {
        struct http_client *c = call->client;

        if (!c)
                return;
        client_session_consumed(&c->session, &call_of(call)->seen, n);
        ask_turn_end(c);
        if (!c->is_paused || client_session_is_full(&c->session))
                return;
        c->is_paused = false;
        if (!client_wire_has_more(&c->wire))
                return;
        c->read_again = true;
        ask_timer(c, loop_now_ms(c->loop));
}

void http_call_extend(struct http_call *call, int64_t deadline_ms) {
        struct http_client *c = call->client;

        assert(deadline_ms > 0);
        if (!c)
                return;
        call_of(call)->deadline_at_ms = loop_now_ms(c->loop) + deadline_ms;
        ask_timer(c, call_of(call)->deadline_at_ms);
}
