/* The bytes of a head gather in `head`, line by line, and are parsed at once
 * when its last line is there: so every field lies in one piece. Bodies are
 * never copied: the parser pauses after each piece, and `next` goes on. */
#include "net/http11_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "net/buf.h"
#include "net/h2_request.h"
#include "net/http11_llhttp.h"

#define FIELDS_MAX 128
#define SLICE 16384
/* A request without its body: the check's 64 KiB, and what the template adds. */
#define REQUEST_HEAD_MAX ((size_t)65536 + 256)
/* A body up to this leaves in one piece with its head. */
#define SMALL_BODY 4096
/* 1xx answers before a final one. */
#define INTERIM_MAX 16

/*   IDLE ─> HEAD ─> BODY ─> IDLE
 *             └───────────────^      (an answer without a body)
 *   HEAD, BODY ─> IDLE: malformed, or cancelled; then it is going. */
enum state {
        STATE_IDLE, /* no call */
        STATE_HEAD, /* a call, and no final head yet */
        STATE_BODY,
};

struct http11_client {
        struct client_session_conf conf;
        enum state state;
        llhttp_t parser;
        struct client_call *call; /* NULL in IDLE */
        bool is_going;
        bool is_head_request, is_safe;
        bool is_heard;   /* a byte of the answer came */
        bool is_whole;   /* the message under way is complete */
        bool is_kept;    /* it leaves the connection usable */
        bool has_ended;  /* no more input */
        bool is_failed;  /* a callback refused a field */
        uint64_t served; /* calls that were answered */

        struct span in;   /* what is left of the bytes fed */
        struct buf head;  /* the head under way */
        size_t line_at;   /* in `head`: where its unfinished line begins */
        size_t head_used; /* of header_bytes, by this call */
        uint32_t interims;
        struct span data; /* the piece of body just found */
        size_t unconsumed;

        struct buf out; /* the head of the request, and a small body */
        uint64_t bytes_out;
};

/* Of the head that was parsed last, on this thread. */
static _Thread_local struct {
        struct http_header at[FIELDS_MAX];
        size_t n;
} fields;

static struct http11_client *owner_of(llhttp_t *p) {
        return NET_CONTAINER_OF(p, struct http11_client, parser);
}

/* ---- the parser's callbacks: they record ---- */

/* RFC 9110, 5.6.2, in lower case; 0 for bytes that are in no name. */
static const char *lower_of_name(void) {
        static _Thread_local char table[256];

        if (table['a'])
                return table;
        for (int c = '0'; c <= '9'; c++)
                table[c] = (char)c;
        for (int c = 'a'; c <= 'z'; c++)
                table[c] = table[c - 'a' + 'A'] = (char)c;
        for (const char *c = "!#$%&'*+-.^_`|~"; *c; c++)
                table[(unsigned char)*c] = *c;
        return table;
}

static int on_name(llhttp_t *p, const char *at, size_t len) {
        struct http11_client *h = owner_of(p);
        char *name = h->head.data + (at - h->head.data);
        const char *lower = lower_of_name();

        if (fields.n == FIELDS_MAX || len == 0) {
                h->is_failed = true;
                return 0;
        }
        for (size_t i = 0; i < len; i++) {
                char c = lower[(unsigned char)name[i]];

                h->is_failed |= c == 0;
                name[i] = c;
        }
        fields.at[fields.n++] = (struct http_header){.name = {name, len}, .value = {"", 0}};
        return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t len) {
        struct http11_client *h = owner_of(p);
        struct http_header *f = fields.n ? &fields.at[fields.n - 1] : NULL;

        /* In one piece, for the head is: a second one would be a folded line. */
        if (!f || f->value.len) {
                h->is_failed = true;
                return 0;
        }
        while (len && (at[len - 1] == ' ' || at[len - 1] == '\t'))
                len--;
        f->value = (struct span){at, len};
        return 0;
}

static bool is_bodiless(const struct http11_client *h, int status) {
        return h->is_head_request || status < 200 || status == 204 || status == 304;
}

static int on_headers_complete(llhttp_t *p) {
        p->upgrade = 0; /* nothing is upgraded: the message ends where it says */
        return is_bodiless(owner_of(p), p->status_code);
}

static int on_body(llhttp_t *p, const char *at, size_t len) {
        owner_of(p)->data = (struct span){at, len};
        /* Without chunks there is one piece at most, and then perhaps the end,
         * which a pause here would put off. */
        return p->flags & F_CHUNKED ? HPE_PAUSED : HPE_OK;
}

static int on_message_complete(llhttp_t *p) {
        struct http11_client *h = owner_of(p);

        h->is_whole = true;
        h->is_kept = p->http_major == 1 && p->http_minor == 1 && llhttp_should_keep_alive(p);
        return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
        .on_header_field = on_name,
        .on_header_value = on_value,
        .on_headers_complete = on_headers_complete,
        .on_body = on_body,
        .on_message_complete = on_message_complete,
};

/* ---- the head ---- */

/* CRLF at its end and nowhere else, and no fold. */
static bool is_line_fit(const struct http11_client *h) {
        const char *line = h->head.data + h->head.start + h->line_at;
        size_t len = buf_len(&h->head) - h->line_at;

        if (len < 2 || line[len - 2] != '\r' || memchr(line, '\r', len - 2))
                return false;
        return len == 2 ? h->line_at > 0 : line[0] != ' ' && line[0] != '\t';
}

/* Moves bytes into `head`: 1 when it is whole, 0 when there are not enough. */
static int gather_head(struct http11_client *h) {
        while (h->in.len) {
                const char *end = memchr(h->in.p, '\n', h->in.len);
                size_t n = end ? (size_t)(end - h->in.p) + 1 : h->in.len;
                int r = -EMSGSIZE;

                h->is_heard = true;
                if (n <= h->conf.header_bytes - h->head_used)
                        r = buf_append(&h->head, h->in.p, n);
                if (r < 0)
                        return r;
                h->head_used += n;
                h->in.p += n;
                h->in.len -= n;
                if (!end)
                        return 0;
                if (!is_line_fit(h))
                        return -EPROTO;
                if (buf_len(&h->head) - h->line_at == 2)
                        return 1;
                h->line_at = buf_len(&h->head);
        }
        return 0;
}

static bool names(struct span list, struct span name) {
        while (list.len) {
                const char *comma = memchr(list.p, ',', list.len);
                size_t n = comma ? (size_t)(comma - list.p) : list.len;
                struct span one = {list.p, n};

                while (one.len && (*one.p == ' ' || *one.p == '\t')) {
                        one.p++;
                        one.len--;
                }
                while (one.len && (one.p[one.len - 1] == ' ' || one.p[one.len - 1] == '\t'))
                        one.len--;
                if (one.len == name.len && strncasecmp(one.p, name.p, name.len) == 0)
                        return true;
                list.p += n + (comma != NULL);
                list.len -= n + (comma != NULL);
        }
        return false;
}

static bool is_hop(struct span name) {
        static const struct span hops[] = {
                SPAN("connection"),        SPAN("keep-alive"), SPAN("proxy-connection"),
                SPAN("transfer-encoding"), SPAN("upgrade"),    SPAN("te"),
                SPAN("trailer"),
        };

        for (size_t i = 0; i < NET_COUNT_OF(hops); i++)
                if (span_eq(name, hops[i]))
                        return true;
        return false;
}

/* False where the length could be read in two ways. */
static bool is_length_plain(const struct http11_client *h) {
        size_t encodings = 0, lengths = 0;

        for (size_t i = 0; i < fields.n; i++) {
                const struct http_header *f = &fields.at[i];

                if (span_eq(f->name, SPAN("content-length")))
                        lengths++;
                if (!span_eq(f->name, SPAN("transfer-encoding")))
                        continue;
                encodings++;
                if (f->value.len != 7 || strncasecmp(f->value.p, "chunked", 7) != 0)
                        return false;
        }
        return encodings + lengths <= 1 && (encodings == 0 || h->parser.http_minor == 1);
}

static bool is_named_by_connection(struct span name) {
        for (size_t i = 0; i < fields.n; i++)
                if (span_eq(fields.at[i].name, SPAN("connection")) &&
                    names(fields.at[i].value, name))
                        return true;
        return false;
}

/* Takes out what is about the connection. */
static void keep_end_to_end(void) {
        bool is_dropped[FIELDS_MAX] = {false};
        size_t n = 0;

        for (size_t i = 0; i < fields.n; i++)
                is_dropped[i] =
                        is_hop(fields.at[i].name) || is_named_by_connection(fields.at[i].name);
        for (size_t i = 0; i < fields.n; i++) {
                if (is_dropped[i])
                        continue;
                fields.at[n] = fields.at[i];
                fields.at[n].id = http_field_of(fields.at[n].name);
                n++;
        }
        fields.n = n;
}

static int parse_head(struct http11_client *h) {
        struct span all = buf_span(&h->head);
        enum llhttp_errno e;

        llhttp_init(&h->parser, HTTP_RESPONSE, &settings);
        fields.n = 0;
        h->is_failed = h->is_whole = false;
        e = llhttp_execute(&h->parser, all.p, all.len);
        if (e != HPE_OK && e != HPE_PAUSED)
                return -EPROTO;
        if (e == HPE_PAUSED && llhttp_get_error_pos(&h->parser) != all.p + all.len)
                return -EPROTO;
        if (h->is_failed || h->parser.http_major != 1 || h->parser.status_code < 100 ||
            h->parser.status_code == 101 || !is_length_plain(h))
                return -EPROTO;
        if (e == HPE_PAUSED)
                llhttp_resume(&h->parser);
        return 0;
}

static void clear_head(struct http11_client *h) {
        buf_eat(&h->head, buf_len(&h->head));
        h->line_at = 0;
}

/* 1: the final head is parsed; 0: it is not whole yet. */
static int take_head(struct http11_client *h) {
        for (;;) {
                int r = gather_head(h);

                if (r <= 0)
                        return r;
                r = parse_head(h);
                if (r < 0)
                        return r;
                if (h->parser.status_code >= 200)
                        return 1;
                if (++h->interims > INTERIM_MAX)
                        return -EPROTO;
                clear_head(h);
        }
}

/* ---- events ---- */

static void forget(struct http11_client *h) {
        h->state = STATE_IDLE;
        h->call->ended = true;
        h->call = NULL;
        h->unconsumed = 0;
        buf_eat(&h->out, buf_len(&h->out));
}

static bool is_put_out(const struct http11_client *h) {
        return buf_len(&h->out) == 0 && h->call->body.len == 0;
}

static bool end_call(struct http11_client *h, struct client_event *out, enum client_end end) {
        *out = (struct client_event){.kind = CLIENT_EVENT_END, .end = end, .call = h->call};
        h->is_going |= end != CLIENT_END_COMPLETE || !h->is_kept || h->in.len || h->has_ended ||
                       !is_put_out(h);
        h->served++;
        forget(h);
        return true;
}

static bool next_head(struct http11_client *h, struct client_event *out) {
        int r = take_head(h);

        if (r == 0)
                return false;
        if (r < 0)
                return end_call(h, out, CLIENT_END_MALFORMED);
        keep_end_to_end();
        h->state = STATE_BODY;
        h->call->head_seen = true;
        *out = (struct client_event){.kind = CLIENT_EVENT_HEAD,
                                     .call = h->call,
                                     .status = h->parser.status_code,
                                     .headers = fields.n ? fields.at : NULL,
                                     .n_headers = fields.n};
        return true;
}

/* Runs the parser up to the next piece of body or the end. */
static enum llhttp_errno run(struct http11_client *h) {
        enum llhttp_errno e;
        size_t used;

        h->data.len = 0;
        e = llhttp_execute(&h->parser, h->in.p, h->in.len);
        if (e == HPE_OK) {
                h->in.len = 0;
                return e;
        }
        if (e != HPE_PAUSED)
                return e;
        used = (size_t)(llhttp_get_error_pos(&h->parser) - h->in.p);
        h->in.p += used;
        h->in.len -= used;
        llhttp_resume(&h->parser);
        return HPE_OK;
}

static bool next_body(struct http11_client *h, struct client_event *out) {
        while (!h->is_whole && h->in.len) {
                if (run(h) != HPE_OK)
                        return end_call(h, out, CLIENT_END_MALFORMED);
                if (h->data.len == 0)
                        continue;
                h->unconsumed += h->data.len;
                *out = (struct client_event){
                        .kind = CLIENT_EVENT_DATA, .call = h->call, .data = h->data};
                return true;
        }
        if (!h->is_whole && h->has_ended) {
                enum llhttp_errno e = llhttp_finish(&h->parser);

                if ((e != HPE_OK && e != HPE_PAUSED) || !h->is_whole)
                        return end_call(h, out, CLIENT_END_BROKEN);
        }
        return h->is_whole && end_call(h, out, CLIENT_END_COMPLETE);
}

bool http11_client_next(struct http11_client *h, struct client_event *out) {
        switch (h->state) {
        case STATE_HEAD:
                return next_head(h, out);
        case STATE_BODY:
                return next_body(h, out);
        case STATE_IDLE:
                break;
        }
        return false;
}

int http11_client_feed(struct http11_client *h, struct span data) {
        if (h->state == STATE_IDLE || h->call->first_byte == UINT64_MAX)
                return -EPROTO;
        h->in = data;
        return 0;
}

void http11_client_feed_end(struct http11_client *h) {
        h->has_ended = true;
        h->is_going = true;
}

void http11_client_done(struct http11_client *h) {
        h->is_going |= h->in.len > 0;
        h->in = (struct span){"", 0};
        if (h->state != STATE_HEAD)
                clear_head(h);
}

/* ---- requests ---- */

static char *put(char *to, struct span text) {
        memcpy(to, text.p, text.len);
        return to + text.len;
}

static size_t rendered_size(const struct http_call_request *r) {
        size_t n = r->method.len + r->path.len + r->authority.len + 80;

        for (size_t i = 0; i < r->n_headers; i++)
                n += r->headers[i].name.len + r->headers[i].value.len + 4;
        return n;
}

static bool wants_length(const struct http_call_request *r, enum http_method m) {
        return r->body.len > 0 || m == HTTP_POST || m == HTTP_PUT || m == HTTP_PATCH;
}

/* The whole head from one template: nothing in it ends a line but this. */
static int render(struct http11_client *h, const struct http_call_request *r, enum http_method m) {
        char *start, *to;
        int e = buf_reserve(&h->out, rendered_size(r), &start);

        if (e < 0)
                return e;
        to = put(start, r->method);
        to = put(put(to, SPAN(" ")), r->path);
        to = put(put(to, SPAN(" HTTP/1.1\r\nhost: ")), r->authority);
        to = put(to, SPAN("\r\n"));
        for (size_t i = 0; i < r->n_headers; i++) {
                const struct http_header *f = &r->headers[i];

                if (span_eq(f->name, SPAN("content-length")))
                        continue;
                to = put(put(put(to, f->name), SPAN(": ")), f->value);
                to = put(to, SPAN("\r\n"));
        }
        if (wants_length(r, m))
                to += snprintf(to, 40, "content-length: %zu\r\n", r->body.len);
        to = put(to, SPAN("\r\n"));
        buf_commit(&h->out, (size_t)(to - start));
        return 0;
}

int http11_client_submit(struct http11_client *h, struct client_call *call,
                         const struct http_call_request *r, bool checked) {
        enum http_method m = http_method_of(r->method);
        int e;

        if (h->is_going)
                return -ENOTCONN;
        if (h->call)
                return -EAGAIN;
        e = checked ? 0 : h2_request_check(r);
        if (e == 0)
                e = render(h, r, m);
        if (e < 0)
                return e;
        *call = (struct client_call){.body = r->body, .first_byte = UINT64_MAX, .stream = 1};
        if (r->body.len && r->body.len <= SMALL_BODY &&
            buf_append(&h->out, r->body.p, r->body.len) == 0)
                call->body.len = 0;
        h->call = call;
        h->state = STATE_HEAD;
        h->is_head_request = m == HTTP_HEAD;
        h->is_safe = m == HTTP_GET || m == HTTP_HEAD || m == HTTP_OPTIONS;
        h->is_heard = h->is_whole = h->is_kept = false;
        h->head_used = h->interims = 0;
        return 0;
}

void http11_client_cancel(struct http11_client *h, struct client_call *call) {
        assert(h->call == call);
        h->is_going |= call->first_byte != UINT64_MAX;
        forget(h);
}

void http11_client_consumed(struct http11_client *h, struct client_call *call, size_t n) {
        if (h->call != call)
                return;
        assert(n <= h->unconsumed);
        h->unconsumed -= n;
}

int http11_client_output(struct http11_client *h, struct span *out) {
        struct span head = buf_span(&h->out);

        *out = (struct span){"", 0};
        if (!h->call)
                return 0;
        if (h->call->first_byte == UINT64_MAX)
                h->call->first_byte = h->bytes_out;
        if (head.len) {
                *out = (struct span){head.p, head.len < SLICE ? head.len : SLICE};
                buf_eat(&h->out, out->len); /* its memory stays until the next submit */
        } else if (h->call->body.len) {
                *out = h->call->body;
                if (out->len > SLICE)
                        out->len = SLICE;
                h->call->body.p += out->len;
                h->call->body.len -= out->len;
        }
        h->bytes_out += out->len;
        return out->len > 0;
}

/* ---- the connection ---- */

void http11_client_stop(struct http11_client *h) {
        h->is_going = true;
}

bool http11_client_is_going(const struct http11_client *h) {
        return h->is_going;
}

bool http11_client_is_full(const struct http11_client *h) {
        return h->unconsumed >= h->conf.window_bytes;
}

bool http11_client_may_repeat(const struct http11_client *h) {
        return h->call && h->is_safe && h->served > 0 && !h->is_heard;
}

uint32_t http11_client_room(const struct http11_client *h) {
        return !h->is_going && !h->call;
}

struct http11_client *http11_client_new(const struct client_session_conf *conf) {
        struct http11_client *h = calloc(1, sizeof(*h));

        if (!h)
                return NULL;
        h->conf = *conf;
        h->in = (struct span){"", 0};
        buf_init(&h->head, conf->header_bytes);
        buf_init(&h->out, REQUEST_HEAD_MAX + SMALL_BODY);
        return h;
}

void http11_client_free(struct http11_client **hp) {
        struct http11_client *h = *hp;

        *hp = NULL;
        if (!h)
                return;
        buf_fini(&h->head);
        buf_fini(&h->out);
        free(h);
}
