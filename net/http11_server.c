/* One request at a time: the parser pauses behind each message, and what the
 * client sent beyond it waits in `in` until the answer has left. */
#include "net/http11_server.h"

#include <errno.h>
#include <stdio.h>

#include "net/http11_llhttp.h"

/* Pipelined bytes kept before the connection is not read. */
#define AHEAD_FULL 16384
#define AHEAD_MAX ((size_t)131072)
/* A request's body beyond the first window that was read along with it. */
#define BODY_MAX ((size_t)131072)
#define CHUNK_FRAME 16
#define FIELD_COST 32

struct http11_server {
        struct http_session base;
        llhttp_t parser;
        struct http_stream *current;
        struct buf in;    /* came too early */
        struct buf out;   /* heads to send */
        struct buf field; /* the name (or target) and value under way */
        size_t name_len;
        uint32_t trailer_bytes; /* of fields behind the body, by their cost */
        bool keep_alive;
        bool is_chunked; /* the answer under way */
        bool expects_100;
        bool is_http10;
        bool is_head_done; /* fields that come now are trailers */
        bool is_closing;   /* no request will be taken any more */
        bool is_draining;
};

static struct http11_server *self_of(struct http_session *s) {
        return NET_CONTAINER_OF(s, struct http11_server, base);
}

static struct http11_server *parser_owner(llhttp_t *p) {
        return NET_CONTAINER_OF(p, struct http11_server, parser);
}

/* ---- parsing ---- */

static int on_message_begin(llhttp_t *p) {
        struct http11_server *h = parser_owner(p);
        h->current = http_stream_new(&h->base, 1);
        if (!h->current)
                return -1;
        buf_fini(&h->current->body);
        buf_init(&h->current->body, BODY_MAX);
        h->base.head_since_ms = h->base.now_ms;
        h->expects_100 = false;
        h->is_head_done = false;
        h->trailer_bytes = 0;
        h->name_len = 0;
        buf_eat(&h->field, buf_len(&h->field));
        return 0;
}

static int collect(llhttp_t *p, const char *at, size_t len) {
        struct http11_server *h = parser_owner(p);
        if (buf_append(&h->field, at, len) != 0)
                h->current->head.over_budget = true;
        return 0;
}

static void field_take(struct http_stream *st, struct span name, struct span value) {
        struct http_field_seen f = http_field_see(name, value);
        http_stream_field(st, &f);
}

static int on_url_complete(llhttp_t *p) {
        struct http11_server *h = parser_owner(p);
        field_take(h->current, SPAN(":path"), buf_span(&h->field));
        buf_eat(&h->field, buf_len(&h->field));
        return 0;
}

/* RFC 9110, 5.6.2. The parser lets a space before the colon pass. */
static bool is_token_byte(char c) {
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
               (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static int on_name_complete(llhttp_t *p) {
        struct http11_server *h = parser_owner(p);
        h->name_len = buf_len(&h->field);
        if (h->name_len == 0 || !h->field.data) {
                h->current->head.is_malformed = true;
                return 0;
        }
        char *name = h->field.data + h->field.start;
        for (size_t i = 0; i < h->name_len; i++) {
                if (name[i] >= 'A' && name[i] <= 'Z')
                        name[i] = (char)(name[i] | 0x20);
                else if (!is_token_byte(name[i]))
                        h->current->head.is_malformed = true;
        }
        return 0;
}

/* Trailers tell us nothing, and never become fields of the head (RFC 9110,
 * 6.5.1); they have a budget like it. */
static int trailer_drop(struct http11_server *h, size_t len) {
        h->trailer_bytes += (uint32_t)len + FIELD_COST;
        return h->trailer_bytes <= h->base.conf->head.bytes ? 0 : -1;
}

static int on_value_complete(llhttp_t *p) {
        struct http11_server *h = parser_owner(p);
        struct span all = buf_span(&h->field);
        int r = 0;
        if (h->is_head_done) {
                r = trailer_drop(h, all.len);
        } else if (all.len >= h->name_len) { /* else it was cut at the ceiling */
                struct span name = {all.p, h->name_len};
                struct span value = {all.p + h->name_len, all.len - h->name_len};
                field_take(h->current, name, value);
        }
        h->name_len = 0;
        buf_eat(&h->field, buf_len(&h->field));
        return r;
}

static int on_headers_complete(llhttp_t *p) {
        struct http11_server *h = parser_owner(p);
        struct http_stream *st = h->current;
        field_take(st, SPAN(":method"), span_of(llhttp_method_name((llhttp_method_t)p->method)));
        field_take(st, SPAN(":scheme"), h->base.conf->is_tls ? SPAN("https") : SPAN("http"));
        h->is_head_done = true;
        p->upgrade = 0; /* nothing is upgraded: the message ends where it says */
        h->is_http10 = p->http_major == 1 && p->http_minor == 0;
        h->keep_alive = llhttp_should_keep_alive(p) && !h->is_draining;
        h->expects_100 = st->head.request.at[HTTP_FIELD_EXPECT] != 0 && !h->is_http10;
        h->base.head_since_ms = 0;
        http_stream_note(st, HTTP_STREAM_HEAD);
        return 0;
}

static int on_body(llhttp_t *p, const char *at, size_t len) {
        struct http11_server *h = parser_owner(p);
        struct http_stream *st = h->current;
        h->expects_100 = false;
        if (http_stream_body(st, at, len))
                st->unconsumed += len;
        h->base.is_full = st->unconsumed >= HTTP_STREAM_WINDOW;
        http_stream_note(st, HTTP_STREAM_BODY);
        return 0;
}

static int on_message_complete(llhttp_t *p) {
        struct http_stream *st = parser_owner(p)->current;
        st->received_end = true;
        http_stream_note(st, HTTP_STREAM_BODY);
        return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
        .on_message_begin = on_message_begin,
        .on_url = collect,
        .on_url_complete = on_url_complete,
        .on_header_field = collect,
        .on_header_field_complete = on_name_complete,
        .on_header_value = collect,
        .on_header_value_complete = on_value_complete,
        .on_headers_complete = on_headers_complete,
        .on_body = on_body,
        .on_message_complete = on_message_complete,
};

/* Bytes that are no HTTP: a head gets its 400, a body breaks the stream. */
static int parse_failed(struct http11_server *h) {
        h->keep_alive = false;
        h->is_closing = true;
        h->base.head_since_ms = 0;
        if (!h->current)
                h->current = http_stream_new(&h->base, 1);
        struct http_stream *st = h->current;
        if (!st || st->head_seen || (st->events & HTTP_STREAM_HEAD)) {
                h->base.why = HTTP_SESSION_PROTOCOL;
                return -EPROTO;
        }
        st->head.is_malformed = true;
        st->received_end = true;
        http_stream_note(st, HTTP_STREAM_HEAD);
        return 0;
}

static bool is_between_messages(const struct http11_server *h) {
        return !h->current || !h->current->received_end;
}

static int parse(struct http11_server *h, const char *data, size_t len) {
        enum llhttp_errno e = llhttp_execute(&h->parser, data, len);
        if (e == HPE_OK)
                return 0;
        if (e != HPE_PAUSED)
                return parse_failed(h);
        size_t used = (size_t)(llhttp_get_error_pos(&h->parser) - data);
        llhttp_resume(&h->parser);
        return buf_append(&h->in, data + used, len - used);
}

static int http11_feed(struct http_session *s, const char *data, size_t len) {
        struct http11_server *h = self_of(s);
        if (h->is_closing)
                return 0;
        if (is_between_messages(h) && buf_len(&h->in) == 0)
                return parse(h, data, len);
        int r = buf_append(&h->in, data, len);
        s->is_full = buf_len(&h->in) >= AHEAD_FULL;
        return r;
}

/* The answer has left: on to what the client sent meanwhile. */
static void message_end(struct http11_server *h) {
        struct http_stream *st = h->current;
        h->current = NULL;
        st->sent_end = true;
        st->closed = true;
        http_stream_note(st, 0);
        if (!h->keep_alive || !st->received_end || h->is_closing) {
                h->is_closing = true;
                buf_release(&h->in);
        }
        h->base.is_full = false;
        if (buf_len(&h->in) == 0)
                return;
        struct buf early = h->in;
        buf_init(&h->in, AHEAD_MAX);
        struct span data = buf_span(&early);
        if (parse(h, data.p, data.len) != 0)
                h->is_closing = true;
        buf_fini(&early);
        h->base.is_full = buf_len(&h->in) >= AHEAD_FULL;
}

/* ---- answers ---- */

static void out_put(struct http11_server *h, struct span text) {
        if (buf_append(&h->out, text.p, text.len) != 0)
                h->is_closing = true;
}

static void status_put(struct http11_server *h, int status) {
        char line[80];
        int n = snprintf(line, sizeof line, "HTTP/1.1 %d %s", status,
                         llhttp_status_name((llhttp_status_t)status));
        for (char *p = line + 8; *p; p++) {
                if (*p == '_')
                        *p = ' ';
        }
        out_put(h, (struct span){line, (size_t)n});
        out_put(h, SPAN("\r\n"));
}

static void http11_answer(struct http_stream *st, const struct http_answer *a) {
        struct http11_server *h = self_of(st->session);
        if (st->closed)
                return;
        if (!st->received_end || h->is_draining)
                h->keep_alive = false;
        h->is_chunked = a->has_body && !a->is_length_known && !h->is_http10;
        if (a->has_body && !a->is_length_known && h->is_http10)
                h->keep_alive = false;
        status_put(h, a->status);
        for (size_t i = 0; i < a->n; i++) {
                out_put(h, a->headers[i].name);
                out_put(h, SPAN(": "));
                out_put(h, a->headers[i].value);
                out_put(h, SPAN("\r\n"));
        }
        if (h->is_chunked)
                out_put(h, SPAN("transfer-encoding: chunked\r\n"));
        if (!h->keep_alive)
                out_put(h, SPAN("connection: close\r\n"));
        else if (h->is_http10)
                out_put(h, SPAN("connection: keep-alive\r\n"));
        out_put(h, SPAN("\r\n"));
}

static size_t chunk_pull(struct http_stream *st, char *out, size_t size, bool *end) {
        char head[CHUNK_FRAME];
        size_t room = size > 2 * CHUNK_FRAME ? size - 2 * CHUNK_FRAME : 0;
        size_t n = 0;
        /* The data first, behind room for the longest head of a chunk. */
        if (room > 0 && http_stream_queued(st) > 0)
                n = http_stream_pull(st, out + CHUNK_FRAME, room, end);
        else
                *end = st->out_end && http_stream_queued(st) == 0;
        size_t used = 0;
        if (n > 0) {
                int len = snprintf(head, sizeof head, "%zx\r\n", n);
                memcpy(out, head, (size_t)len);
                memmove(out + len, out + CHUNK_FRAME, n);
                used = (size_t)len + n;
                memcpy(out + used, "\r\n", 2);
                used += 2;
        }
        if (*end) {
                if (size - used < 5) {
                        *end = false;
                        return used;
                }
                memcpy(out + used, "0\r\n\r\n", 5);
                used += 5;
        }
        return used;
}

static size_t body_pull(struct http11_server *h, char *out, size_t size, bool *end) {
        struct http_stream *st = h->current;
        size_t n = h->is_chunked ? chunk_pull(st, out, size, end)
                                 : http_stream_pull(st, out, size, end);
        st->progress_bytes += n;
        return n;
}

static size_t http11_pull(struct http_session *s, char *out, size_t size) {
        struct http11_server *h = self_of(s);
        size_t n = buf_len(&h->out) < size ? buf_len(&h->out) : size;
        if (n > 0) {
                memcpy(out, buf_span(&h->out).p, n);
                buf_eat(&h->out, n);
        }
        while (h->current && h->current->answered && buf_len(&h->out) == 0 && n < size) {
                bool end;
                size_t more = body_pull(h, out + n, size - n, &end);
                n += more;
                if (end)
                        message_end(h);
                else if (more == 0)
                        break;
        }
        return n;
}

static void http11_resume(struct http_stream *st) {
        (void)st;
}

static void http11_abort(struct http_stream *st) {
        struct http11_server *h = self_of(st->session);
        if (st->closed)
                return;
        h->is_closing = true;
        h->keep_alive = false;
        if (h->current == st)
                h->current = NULL;
        st->closed = true;
        http_stream_note(st, 0);
}

static void http11_consume(struct http_stream *st, size_t n) {
        st->unconsumed -= n;
        if (self_of(st->session)->current == st && !st->received_end)
                st->session->is_full = st->unconsumed >= HTTP_STREAM_WINDOW;
}

static void http11_want_body(struct http_stream *st) {
        struct http11_server *h = self_of(st->session);
        if (h->current == st && h->expects_100)
                out_put(h, SPAN("HTTP/1.1 100 Continue\r\n\r\n"));
        h->expects_100 = false;
}

static void http11_drain(struct http_session *s, bool final) {
        struct http11_server *h = self_of(s);
        h->is_draining = true;
        if (final && !h->current)
                h->is_closing = true;
}

static bool http11_is_done(const struct http_session *s) {
        const struct http11_server *h = NET_CONTAINER_OF(s, struct http11_server, base);
        return h->is_closing && !h->current && buf_len(&h->out) == 0;
}

static void http11_free(struct http_session *s) {
        struct http11_server *h = self_of(s);
        http_session_free_streams(s);
        buf_fini(&h->in);
        buf_fini(&h->out);
        buf_fini(&h->field);
        pool_give(s->conf->pool, h);
}

static const struct http_session_ops http11_ops = {
        .feed = http11_feed,
        .pull = http11_pull,
        .answer = http11_answer,
        .resume = http11_resume,
        .abort = http11_abort,
        .consume = http11_consume,
        .want_body = http11_want_body,
        .drain = http11_drain,
        .is_done = http11_is_done,
        .free = http11_free,
};

struct http_session *http11_server_new(const struct http_session_conf *conf, int64_t now_ms) {
        struct http11_server *h = pool_take_zero(conf->pool, sizeof *h);
        if (!h)
                return NULL;
        h->base = (struct http_session){
                .ops = &http11_ops, .conf = conf, .now_ms = now_ms, .head_since_ms = now_ms};
        buf_init(&h->in, AHEAD_MAX);
        buf_init(&h->out, HTTP_STREAM_QUEUE_MAX);
        buf_init(&h->field, (size_t)conf->head.bytes + 1);
        llhttp_init(&h->parser, HTTP_REQUEST, &settings);
        return &h->base;
}
