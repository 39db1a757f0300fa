#include "net/http_exchange.h"

#include <errno.h>
#include <stdio.h>

#define ALLOC_MAX ((size_t)65536)
/* A body up to this is copied next to its head, a longer one on its own. */
#define SMALL_BODY 2048
#define ANSWER_BODY_MAX ((size_t)64 << 20)

/* The handler sees the first member. */
struct exchange {
        struct http_exchange pub;
        struct http_conn *conn;
        struct http_stream *stream;
        size_t allocated; /* by the handler, bytes */
        size_t body_max;
        bool body_asked;
        bool body_told;
        bool started;  /* a streamed answer's head is given */
        bool bodiless; /* of an answer that must not have data */
};

static struct exchange *full_of(struct http_exchange *x) {
        return NET_CONTAINER_OF(x, struct exchange, pub);
}

struct http_exchange *http_exchange_open(struct http_conn *c, struct http_stream *st) {
        struct exchange *x = arena_take(&st->arena, sizeof *x);
        if (!x)
                return NULL;
        *x = (struct exchange){
                .pub = {.request = st->head.request,
                        .peer = &c->peer,
                        .is_tls = c->tls != NULL,
                        .loop = c->hub->loop},
                .conn = c,
                .stream = st,
        };
        st->user = x;
        metrics_set(&c->hub->counters.exchanges_open, ++c->hub->exchanges_open);
        return &x->pub;
}

static void exchange_leave(struct exchange *x) {
        struct http_hub *hub = x->conn->hub;
        metrics_set(&hub->counters.exchanges_open, --hub->exchanges_open);
        http_stream_release(x->stream);
}

/* ---- the body ---- */

static int body_outcome(const struct exchange *x) {
        const struct http_stream *st = x->stream;
        if (st->body_lost || buf_len(&st->body) > x->body_max ||
            (x->pub.request.content_length > 0 &&
             (uint64_t)x->pub.request.content_length > x->body_max))
                return HTTP_BODY_TOO_LARGE;
        return st->received_end ? HTTP_BODY_DONE : -EAGAIN;
}

static void body_drop(struct http_stream *st) {
        st->discard_body = true;
        st->session->ops->consume(st, st->unconsumed);
        buf_release(&st->body);
}

static void body_tell(struct exchange *x, int outcome) {
        x->body_told = true;
        if (outcome == HTTP_BODY_DONE)
                x->pub.body = buf_span(&x->stream->body);
        else
                body_drop(x->stream);
        if (x->pub.events && x->pub.events->on_body)
                x->pub.events->on_body(&x->pub, outcome);
}

static void body_grown(struct exchange *x) {
        struct http_stream *st = x->stream;
        if (!x->body_asked || x->body_told)
                return;
        int outcome = body_outcome(x);
        if (outcome >= 0)
                body_tell(x, outcome);
        else
                st->session->ops->consume(st, st->unconsumed);
}

void http_exchange_body_late(struct http_stream *st) {
        struct exchange *x = st->user;
        if (x && x->body_asked && !x->body_told)
                body_tell(x, HTTP_BODY_LATE);
}

void http_exchange_read_body(struct http_exchange *pub, size_t max) {
        struct exchange *x = full_of(pub);
        struct http_stream *st = x->stream;
        assert(!x->body_asked && pub->events);
        x->body_asked = true;
        x->body_max = max;
        st->body.ceiling = max + HTTP_STREAM_WINDOW;
        if (!st->received_end && body_outcome(x) < 0)
                st->session->ops->want_body(st);
        http_stream_note(st, HTTP_STREAM_BODY);
        http_conn_flush_later(x->conn);
}

/* ---- what happens to it ---- */

void http_exchange_tell(struct http_stream *st, unsigned events) {
        struct exchange *x = st->user;
        if (events & HTTP_STREAM_GONE) {
                if (x->pub.events && x->pub.events->on_gone)
                        x->pub.events->on_gone(&x->pub);
                exchange_leave(x);
                return;
        }
        /* Its handler may end it in on_body; then `user` is no more. */
        if (events & HTTP_STREAM_BODY)
                body_grown(x);
        if ((events & HTTP_STREAM_DRAIN) && st->held && st->user == x && x->pub.events &&
            x->pub.events->on_drain)
                x->pub.events->on_drain(&x->pub);
}

void *http_exchange_alloc(struct http_exchange *pub, size_t n) {
        struct exchange *x = full_of(pub);
        if (n > ALLOC_MAX - x->allocated)
                return NULL;
        x->allocated += n;
        return arena_take(&x->stream->arena, n);
}

/* ---- answers ---- */

static bool is_bodiless(const struct http_stream *st, int status) {
        return st->is_head || status == 204 || status == 304 || status < 200;
}

static void answer_head(struct http_stream *st, const struct http_answer *a) {
        assert(!st->answered);
        st->session->ops->answer(st, a);
        st->answered = true;
        st->out_end = st->out_end || !a->has_body;
}

/* After the last word: nobody reads the rest of the request. */
static void answer_end(struct exchange *x) {
        struct http_conn *c = x->conn;
        if (!x->stream->closed && !x->stream->received_end)
                body_drop(x->stream);
        exchange_leave(x);
        http_conn_flush_later(c);
}

static void stream_page_set(struct http_stream *st, struct http_page *page) {
        struct http_answer a = {.status = http_page_status(page), .is_length_known = true};
        a.headers = http_page_sent_headers(page, &a.n);
        if (st->closed)
                return;
        http_page_take(page);
        st->page = page;
        st->out_end = true;
        if (!is_bodiless(st, a.status))
                st->fixed = http_page_body(page);
        a.has_body = st->fixed.len > 0;
        answer_head(st, &a);
}

void http_answer_page(struct http_exchange *pub, struct http_page *page) {
        struct exchange *x = full_of(pub);
        stream_page_set(x->stream, page);
        answer_end(x);
}

void http_stream_answer_page(struct http_stream *st, struct http_page *page) {
        stream_page_set(st, page);
        if (!st->closed && !st->received_end)
                body_drop(st);
        http_stream_release(st);
}

/* A line end in a field would begin another one in HTTP/1.1. */
static bool field_is_clean(const struct http_header *h) {
        for (size_t i = 0; i < h->value.len; i++) {
                unsigned char c = (unsigned char)h->value.p[i];
                if ((c < 0x20 && c != '\t') || c == 0x7f)
                        return false;
        }
        return h->name.len > 0 && !memchr(h->name.p, '\r', h->name.len) &&
               !memchr(h->name.p, '\n', h->name.len);
}

/* The caller's fields but for unclean ones, and content-length when it is not negative. */
static bool headers_copy(struct http_stream *st, const struct http_header *from, size_t n,
                         int64_t content_length, struct http_answer *a) {
        struct http_header *to = arena_take(&st->arena, (n + 1) * sizeof *to);
        char text[24];
        if (!to)
                return false;
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
                if (!field_is_clean(&from[i]))
                        continue;
                to[kept].name = arena_copy(&st->arena, from[i].name);
                to[kept].value = arena_copy(&st->arena, from[i].value);
                if (!to[kept].name.p || !to[kept].value.p)
                        return false;
                kept++;
        }
        a->headers = to;
        a->n = kept;
        a->is_length_known = content_length >= 0;
        if (content_length < 0)
                return true;
        int len = snprintf(text, sizeof text, "%lld", (long long)content_length);
        to[kept].name = SPAN("content-length");
        to[kept].value = arena_copy(&st->arena, (struct span){text, (size_t)len});
        a->n = kept + 1;
        return to[kept].value.p != NULL;
}

static bool body_copy(struct http_stream *st, struct span body) {
        if (body.len > SMALL_BODY) {
                st->out.ceiling = ANSWER_BODY_MAX;
                return buf_append(&st->out, body.p, body.len) == 0;
        }
        st->fixed = arena_copy(&st->arena, body);
        return st->fixed.p != NULL;
}

void http_answer(struct http_exchange *pub, int status, const struct http_header *headers, size_t n,
                 struct span body) {
        struct exchange *x = full_of(pub);
        struct http_stream *st = x->stream;
        struct http_answer a = {.status = status};
        int64_t length = status == 204 || status == 304 ? -1 : (int64_t)body.len;
        if (is_bodiless(st, status))
                body.len = 0;
        st->out_end = true;
        a.has_body = body.len > 0;
        if (st->closed)
                answer_end(x);
        else if (!headers_copy(st, headers, n, length, &a) || (a.has_body && !body_copy(st, body)))
                http_answer_abort(pub);
        else {
                a.is_length_known = true;
                answer_head(st, &a);
                answer_end(x);
        }
}

void http_answer_start(struct http_exchange *pub, int status, const struct http_header *headers,
                       size_t n, int64_t content_length) {
        struct exchange *x = full_of(pub);
        struct http_stream *st = x->stream;
        struct http_answer a = {.status = status};
        assert(!x->started);
        x->started = true;
        x->bodiless = is_bodiless(st, status);
        if (status == 204 || status == 304)
                content_length = -1;
        a.has_body = !x->bodiless && content_length != 0;
        if (st->closed)
                return;
        if (!headers_copy(st, headers, n, content_length, &a)) {
                st->session->ops->abort(st);
                http_conn_flush_later(x->conn);
                return;
        }
        answer_head(st, &a);
        http_conn_flush_later(x->conn);
}

size_t http_answer_data(struct http_exchange *pub, struct span data, bool end) {
        struct exchange *x = full_of(pub);
        struct http_stream *st = x->stream;
        size_t queued = 0;
        assert(x->started);
        if (!st->closed && !x->bodiless && !st->out_end) {
                if (data.len > 0 && buf_append(&st->out, data.p, data.len) != 0)
                        st->session->ops->abort(st);
                st->out_end = end;
                st->session->ops->resume(st);
                queued = buf_len(&st->out);
                st->want_drain = queued >= HTTP_ANSWER_QUEUE;
        }
        if (end)
                answer_end(x);
        else
                http_conn_flush_later(x->conn);
        return queued;
}

void http_answer_abort(struct http_exchange *pub) {
        struct exchange *x = full_of(pub);
        x->stream->session->ops->abort(x->stream);
        answer_end(x);
}
