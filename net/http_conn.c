#include "net/http_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/h2_server.h"
#include "net/http11_server.h"
#include "net/http_exchange.h"

/* One connection's share of a turn; the others wait meanwhile. */
#define READS_PER_TURN 8
#define WRITES_PER_TURN 16
#define ROUNDS_PER_TURN 4

/* Less than this in stall_ms is no progress: drips do not count. */
#define PROGRESS_BYTES 1024
#define DRAIN_NOTICE_MS 1000
/* Answered in full, the request is not: its rest is dropped for so long, then
 * the stream is reset (RFC 9113, 8.1). At once would be allowed, but clients in
 * wide use, curl 7.88 among them, then lose the answer. */
#define UNREAD_MS 1000
#define LINGER_BYTES ((uint32_t)1 << 20)

static void pending_drop(struct http_conn *c) {
        free(c->pending);
        c->pending = NULL;
        c->pending_at = c->pending_len = 0;
}

/* ---- the end of a connection ---- */

static void exchanges_lose(struct http_conn *c) {
        struct http_stream *next;
        for (struct http_stream *st = c->session->streams; st; st = next) {
                next = st->next;
                if (st->held && st->user)
                        http_exchange_tell(st, HTTP_STREAM_GONE);
        }
}

static void session_close(struct http_conn *c) {
        if (!c->session)
                return;
        switch ((enum http_session_why)c->session->why) {
        case HTTP_SESSION_FINE:
        case HTTP_SESSION_NO_MEMORY:
                break;
        case HTTP_SESSION_PROTOCOL:
                metrics_add(&c->hub->counters.closed_protocol, 1);
                break;
        case HTTP_SESSION_GLITCHES:
                metrics_add(&c->hub->counters.closed_glitches, 1);
                break;
        case HTTP_SESSION_RESETS:
                metrics_add(&c->hub->counters.closed_resets, 1);
                break;
        }
        exchanges_lose(c);
        c->session->ops->free(c->session);
        c->session = NULL;
        pending_drop(c);
        http_hub_flush_cancel(c);
}

void http_conn_cut(struct http_conn *c) {
        session_close(c);
        loop_io_want(&c->io, 0);
        tls_free(&c->tls);
        (void)close(c->io.fd);
        c->io.fd = -1;
        http_hub_retire(c);
}

void http_conn_free(struct http_conn *c) {
        pending_drop(c);
        pool_give(c->hub->pool, c);
}

/* All is said. Closing with unread bytes would make the kernel reset the
 * connection, and the peer might lose what we said last; so read on a little. */
static void linger(struct http_conn *c) {
        if (c->is_eof || c->is_broken) {
                http_conn_cut(c);
                return;
        }
        session_close(c);
        if (c->tls)
                tls_shutdown(c->tls);
        tls_free(&c->tls);
        (void)shutdown(c->io.fd, SHUT_WR);
        http_hub_move(c, HTTP_CONN_LINGERING);
        loop_io_want(&c->io, LOOP_READ);
}

static void linger_read(struct http_conn *c) {
        ssize_t n = recv(c->io.fd, c->hub->in, sizeof c->hub->in, 0);
        if (n > 0)
                c->lingered_bytes += (uint32_t)n;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
            c->lingered_bytes > LINGER_BYTES)
                http_conn_cut(c);
}

void http_conn_end(struct http_conn *c) {
        c->session->ops->drain(c->session, true);
        c->is_failed = true;
        http_conn_flush_later(c);
}

void http_conn_drain(struct http_conn *c) {
        if (c->drain_at_ms != 0)
                return;
        c->drain_at_ms = loop_now_ms(c->hub->loop);
        c->session->ops->drain(c->session, false);
        http_conn_flush_later(c);
}

/* ---- requests ---- */

static void refuse(struct http_conn *c, struct http_stream *st, int outcome) {
        enum http_refusal which = HTTP_REFUSE_NO_MEMORY;
        if (outcome == HTTP_HEAD_MALFORMED)
                which = HTTP_REFUSE_MALFORMED;
        else if (outcome == HTTP_HEAD_METHOD)
                which = HTTP_REFUSE_METHOD;
        else if (outcome == HTTP_HEAD_TOO_LARGE)
                which = HTTP_REFUSE_TOO_LARGE;
        if (which == HTTP_REFUSE_TOO_LARGE)
                metrics_add(&c->hub->counters.header_limit_hits, 1);
        http_stream_answer_page(st, c->hub->refusals[which]);
}

/* More is asked than the loop can answer: then most of it is answered 503. */
static bool is_shed(struct http_conn *c, struct http_stream *st) {
        struct http_hub *h = c->hub;
        enum http_load_level level = http_load_add(&h->load, h->loop);
        if (level == HTTP_LOAD_FINE)
                return false;
        metrics_add(&h->counters.requests_shed, 1);
        http_stream_answer_page(st, h->refusals[HTTP_REFUSE_BUSY]);
        /* At most half of them in one turn: then the loop sees whether it is enough. */
        if (level == HTTP_LOAD_TOO_BUSY && c->drain_at_ms == 0 &&
            h->load.sent_away <= h->n_conns / 2) {
                h->load.sent_away++;
                metrics_add(&h->counters.connections_sent_away, 1);
                http_conn_drain(c);
        }
        return true;
}

static void head_complete(struct http_conn *c, struct http_stream *st) {
        struct http_hub *h = c->hub;
        bool has_body = !st->received_end || buf_len(&st->body) > 0 || st->body_lost;
        int outcome = http_head_end(&st->head, &st->arena, h->session_conf.is_tls, has_body);
        st->head_at_ms = st->progress_at_ms = c->session->now_ms;
        st->is_head = st->head.request.method == HTTP_HEAD;
        c->is_used = true;
        metrics_add(&h->counters.requests_total, 1);
        if (++c->requests == h->conf.limits.requests_per_connection)
                http_conn_drain(c);
        if (is_shed(c, st))
                return;
        struct http_exchange *x = outcome == HTTP_HEAD_GOOD ? http_exchange_open(c, st) : NULL;
        if (x)
                h->conf.on_request(h->conf.owner, x);
        else
                refuse(c, st, outcome);
}

static void events_run(struct http_conn *c) {
        struct http_stream *st;
        unsigned events;
        while ((st = http_session_next(c->session, &events))) {
                if (events & HTTP_STREAM_HEAD)
                        head_complete(c, st);
                else if (st->user)
                        http_exchange_tell(st, events);
                else
                        http_stream_release(st);
        }
}

/* ---- output ---- */

/* How much the socket took; marks the connection broken when it cannot. */
static size_t send_some(struct http_conn *c, const char *data, size_t len) {
        size_t n = 0;
        if (c->tls) {
                int r = tls_write(c->tls, data, len, &n);
                if (r != TLS_DONE && r != TLS_WANT_READ && r != TLS_WANT_WRITE)
                        c->is_broken = true;
        } else {
                ssize_t r = send(c->io.fd, data, len, MSG_NOSIGNAL);
                if (r > 0)
                        n = (size_t)r;
                else if (r < 0 && errno != EAGAIN && errno != EINTR)
                        c->is_broken = true;
        }
        c->sent_bytes += n;
        return n;
}

static size_t pending_bytes(const struct http_conn *c) {
        return c->pending_len - c->pending_at;
}

static void pending_keep(struct http_conn *c, const char *data, size_t len) {
        c->pending = malloc(len);
        if (!c->pending) {
                c->is_broken = true;
                return;
        }
        memcpy(c->pending, data, len);
        c->pending_len = (uint32_t)len;
}

static bool pending_send(struct http_conn *c) {
        while (c->pending) {
                size_t n = send_some(c, c->pending + c->pending_at, pending_bytes(c));
                if (n == 0)
                        return false;
                c->pending_at += (uint32_t)n;
                if (c->pending_at == c->pending_len)
                        pending_drop(c);
        }
        return true;
}

/* Pulls and sends until the session has nothing more, the socket takes
 * nothing more, or the turn's share is used up. */
static void output_send(struct http_conn *c) {
        struct http_hub *h = c->hub;
        c->wants_more = false;
        if (!pending_send(c))
                return;
        for (int i = 0; i < WRITES_PER_TURN; i++) {
                size_t len = c->session->ops->pull(c->session, h->out, sizeof h->out);
                if (len == 0)
                        return;
                size_t n = 0;
                while (n < len) {
                        size_t part = send_some(c, h->out + n, len - n);
                        if (part == 0)
                                break;
                        n += part;
                }
                if (n < len) {
                        pending_keep(c, h->out + n, len - n);
                        return;
                }
        }
        c->wants_more = true;
}

static bool is_paused(struct http_conn *c) {
        if (!c->pending ||
            pending_bytes(c) + http_session_queued(c->session) < c->hub->conf.limits.queued_bytes)
                return false;
        metrics_add(&c->hub->counters.queue_limit_hits, 1);
        return true;
}

static bool is_over(const struct http_conn *c) {
        const struct http_session *s = c->session;
        return c->is_failed || (c->is_eof && s->n_streams == 0) || s->ops->is_done(s);
}

static void state_settle(struct http_conn *c, bool is_waiting) {
        const struct http_session *s = c->session;
        bool is_active = is_waiting || c->is_eof || s->n_streams > 0 || s->head_since_ms != 0 ||
                         s->ack_since_ms != 0 || c->drain_at_ms != 0;
        if (is_active && c->state != HTTP_CONN_ACTIVE) {
                http_hub_move(c, HTTP_CONN_ACTIVE);
                c->mark_at_ms = c->since_ms;
                c->mark_bytes = c->sent_bytes;
        } else if (is_active) {
                assert(c->state == HTTP_CONN_ACTIVE);
        } else if (c->state != HTTP_CONN_IDLE || c->is_used) {
                http_hub_move(c, HTTP_CONN_IDLE);
        }
        c->is_used = false;
}

/* What the connection waits for next, or its end. */
static void settle(struct http_conn *c) {
        bool is_waiting = c->pending || c->wants_more;
        if (c->is_broken) {
                http_conn_cut(c);
                return;
        }
        if (!is_waiting && is_over(c)) {
                linger(c);
                return;
        }
        unsigned was = c->io.wanted;
        unsigned want = is_waiting ? LOOP_WRITE : 0;
        if (!c->is_eof && !c->is_failed && !c->session->is_full && !is_paused(c))
                want |= LOOP_READ;
        loop_io_want(&c->io, want);
        if ((want & LOOP_READ) && !(was & LOOP_READ) && c->tls && tls_has_pending(c->tls))
                http_hub_read_again(c);
        state_settle(c, is_waiting);
}

void http_conn_flush(struct http_conn *c) {
        c->session->now_ms = loop_now_ms(c->hub->loop);
        for (int i = 0; i < ROUNDS_PER_TURN; i++) {
                events_run(c);
                output_send(c);
                if (c->is_broken || !http_session_has_events(c->session))
                        break;
        }
        if (http_session_has_events(c->session))
                c->wants_more = true;
        settle(c);
}

void http_conn_flush_later(struct http_conn *c) {
        http_hub_flush_later(c);
}

/* ---- input ---- */

/* Bytes read into the hub's buffer; 0 when none are there, at the end of the
 * stream (is_eof) and on a failure (is_broken, is_failed). */
static size_t receive(struct http_conn *c) {
        struct http_hub *h = c->hub;
        size_t n = 0;
        if (!c->tls) {
                ssize_t r = recv(c->io.fd, h->in, sizeof h->in, 0);
                if (r == 0)
                        c->is_eof = true;
                else if (r < 0 && errno != EAGAIN && errno != EINTR)
                        c->is_broken = true;
                return r > 0 ? (size_t)r : 0;
        }
        int r = tls_read(c->tls, h->in, sizeof h->in, &n);
        if (r == TLS_CLOSED) {
                c->is_eof = true;
        } else if (r == TLS_ABUSE) {
                metrics_add(&h->counters.closed_glitches, 1);
                c->is_broken = true;
        } else if (r < 0) {
                c->is_broken = true;
        }
        return n;
}

/* After the client's last byte: a request that is not whole never will be. */
static void unfinished_abort(struct http_conn *c) {
        for (struct http_stream *st = c->session->streams; st; st = st->next) {
                if (!st->received_end && !st->closed)
                        c->session->ops->abort(st);
        }
}

static void session_start(struct http_conn *c, bool is_http11) {
        struct http_hub *h = c->hub;
        int64_t now = loop_now_ms(h->loop);
        c->session = is_http11 ? http11_server_new(&h->session_conf, now)
                               : h2_server_new(&h->session_conf, now);
        if (!c->session) {
                http_conn_cut(c);
                return;
        }
        http_hub_move(c, HTTP_CONN_ACTIVE);
        c->mark_at_ms = now;
        c->drain_at_ms = 0;
        c->sent_bytes = c->mark_bytes = 0;
        if (h->draining)
                http_conn_drain(c);
        http_conn_flush_later(c);
}

/* Plain text that may be either version: the preface of HTTP/2 decides.
 * True once there is a session, which has been fed the first bytes. */
static bool protocol_find(struct http_conn *c, const char **data, size_t *len) {
        static const char preface[] = "PRI ";
        while (*len > 0 && c->n_first < sizeof c->first) {
                c->first[c->n_first++] = *(*data)++;
                --*len;
        }
        bool is_same = memcmp(c->first, preface, c->n_first) == 0;
        if (c->n_first == 0 || (is_same && c->n_first < sizeof c->first))
                return false;
        session_start(c, !is_same);
        if (!c->session)
                return false;
        c->session->now_ms = loop_now_ms(c->hub->loop);
        if (c->session->ops->feed(c->session, c->first, c->n_first) < 0)
                c->is_failed = true;
        return true;
}

static void bytes_take(struct http_conn *c, const char *data, size_t len) {
        if (!c->session && !protocol_find(c, &data, &len))
                return;
        if (len > 0 && !c->is_failed && c->session->ops->feed(c->session, data, len) < 0)
                c->is_failed = true;
}

static void conn_read(struct http_conn *c) {
        struct http_hub *h = c->hub;
        bool is_more = true;
        if (c->session)
                c->session->now_ms = loop_now_ms(h->loop);
        for (int i = 0; is_more && i < READS_PER_TURN; i++) {
                size_t n = receive(c);
                if (n > 0)
                        bytes_take(c, h->in, n);
                if (c->io.fd < 0)
                        return;
                is_more = n > 0 && !c->is_failed && !c->is_broken && !c->is_eof &&
                          (c->tls ? tls_has_pending(c->tls) : n == sizeof h->in);
        }
        if (!c->session) { /* the protocol is not clear yet */
                if (c->is_eof || c->is_broken)
                        http_conn_cut(c);
                return;
        }
        if (is_more && c->tls)
                http_hub_read_again(c);
        if (c->is_eof)
                unfinished_abort(c);
        events_run(c);
        http_conn_flush_later(c);
}

void http_conn_read_again(struct http_conn *c) {
        if (c->session && (c->io.wanted & LOOP_READ))
                conn_read(c);
}

void http_conn_greet(struct http_conn *c) {
        session_start(c, tls_alpn(c->tls) != TLS_ALPN_H2);
        if (c->session && tls_has_pending(c->tls))
                conn_read(c);
}

/* A long turn does not keep what it answered first until its end. */
static void flush_early(struct http_hub *h) {
        h->load.wants_flush = false;
        http_hub_flush(h);
}

static void on_ready(struct loop_io *io, unsigned events) {
        struct http_conn *c = NET_CONTAINER_OF(io, struct http_conn, io);
        switch ((enum http_conn_state)c->state) {
        case HTTP_CONN_HANDSHAKING:
                if (c->tls)
                        http_handshake_ready(c);
                else
                        conn_read(c);
                return;
        case HTTP_CONN_IDLE:
        case HTTP_CONN_ACTIVE:
                if (events & LOOP_READ)
                        conn_read(c);
                else
                        http_conn_flush_later(c);
                if (c->hub->load.wants_flush)
                        flush_early(c->hub);
                return;
        case HTTP_CONN_LINGERING:
                linger_read(c);
                return;
        case HTTP_CONN_STATES:
                return;
        }
}

static void open_under_tls(struct http_conn *c) {
        if (!http_handshake_join(c))
                http_conn_cut(c);
}

void http_conn_open(struct http_hub *h, int fd, const union net_address *peer) {
        struct http_conn *c = NULL;
        if (h->n_conns < h->conf.limits.connections)
                c = pool_take_zero(h->pool, sizeof *c);
        if (!c) {
                metrics_add(&h->counters.connections_refused, 1);
                (void)close(fd);
                return;
        }
        c->hub = h;
        c->peer = *peer;
        c->state = HTTP_CONN_STATES;
        metrics_add(&h->counters.connections_total, 1);
        loop_io_init(h->loop, &c->io, fd, on_ready);
        http_hub_move(c, HTTP_CONN_HANDSHAKING);
        if (h->tls) {
                open_under_tls(c);
                return;
        }
        loop_io_want(&c->io, LOOP_READ);
        if (!h->conf.http11)
                session_start(c, false);
}

/* ---- limits in time ---- */

static void timed_out(struct http_conn *c) {
        metrics_add(&c->hub->counters.closed_timeouts, 1);
        http_conn_end(c);
}

static bool output_is_stalled(struct http_conn *c, int64_t now_ms) {
        size_t queued = pending_bytes(c) + http_session_queued(c->session);
        if (queued == 0 || c->sent_bytes - c->mark_bytes >= PROGRESS_BYTES) {
                c->mark_at_ms = now_ms;
                c->mark_bytes = c->sent_bytes;
        }
        return now_ms - c->mark_at_ms > c->hub->conf.limits.stall_ms;
}

static void stream_check(struct http_conn *c, struct http_stream *st, int64_t now_ms) {
        const struct http_server_limits *lim = &c->hub->conf.limits;
        /* Who reads but opens no window is heard of sooner than who does not read. */
        int64_t stall_ms = pending_bytes(c) > 0 ? lim->stall_ms : lim->stall_ms / 2;
        if (st->held && !st->received_end && now_ms - st->head_at_ms > lim->body_ms)
                http_exchange_body_late(st);
        if (st->sent_end && !st->received_end && !st->closed &&
            now_ms - st->sent_end_at_ms > UNREAD_MS) {
                c->session->ops->abort(st);
                http_conn_flush_later(c);
        }
        if (http_stream_queued(st) == 0 || st->progress_bytes >= PROGRESS_BYTES) {
                st->progress_at_ms = now_ms;
                st->progress_bytes = 0;
        } else if (now_ms - st->progress_at_ms > stall_ms && !st->closed) {
                c->session->ops->abort(st);
                http_conn_flush_later(c);
        }
}

void http_conn_check(struct http_conn *c, int64_t now_ms) {
        const struct http_server_limits *lim = &c->hub->conf.limits;
        struct http_session *s = c->session;
        if (c->is_failed) {
                if (now_ms - c->mark_at_ms > lim->stall_ms)
                        http_conn_cut(c);
                return;
        }
        s->now_ms = now_ms;
        if ((s->head_since_ms != 0 && now_ms - s->head_since_ms > lim->header_ms) ||
            (s->ack_since_ms != 0 && now_ms - s->ack_since_ms > HTTP_SESSION_ACK_MS)) {
                timed_out(c);
                return;
        }
        if (output_is_stalled(c, now_ms)) {
                metrics_add(&c->hub->counters.closed_timeouts, 1);
                http_conn_cut(c);
                return;
        }
        struct http_stream *next;
        for (struct http_stream *st = s->streams; st; st = next) {
                next = st->next;
                stream_check(c, st, now_ms);
        }
        if (c->drain_at_ms != 0 && !c->drain_final && now_ms - c->drain_at_ms >= DRAIN_NOTICE_MS) {
                c->drain_final = true;
                s->ops->drain(s, true);
                http_conn_flush_later(c);
        }
}
