#include "tests/unit/h2_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/h2_hpack.h"
#include "net/h2_repeat.h"
#include "net/h2_server.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static void put_raw(struct frames *f, const void *data, size_t n) {
        assert(n <= sizeof(f->data) - f->len);
        memcpy(f->data + f->len, data, n);
        f->len += n;
}

static void session_open(struct peer *p) {
        memset(p, 0, sizeof *p);
        p->pool = pool_new();
        assert_non_null(p->pool);
        p->coder = h2_coder_new(p->pool);
        p->repeats = h2_repeats_new(p->pool, PEER_REPEATS, &p->evicted);
        assert_true(p->coder && p->repeats);
        p->conf = (struct http_session_conf){
                .pool = p->pool,
                .coder = p->coder,
                .repeats = p->repeats,
                .head = {.fields = 100, .bytes = 16384},
                .streams = 100,
                .glitches = {.burst = 1000, .per_s = 10},
                .resets = {.burst = 100, .per_s = 20},
                .is_tls = true,
        };
        const struct http_header headers[] = {{SPAN("content-type"), SPAN("text/plain"), 0}};
        p->page = http_page_new(200, headers, 1, SPAN("hello"));
        p->session = h2_server_new(&p->conf, 1000);
        assert_non_null(p->session);
        put_raw(&p->to, PREFACE, sizeof PREFACE - 1);
        frame_settings(&p->to, 0, 0);
}

void peer_open(struct peer *p) {
        session_open(p);
        frame_settings_ack(&p->to);
        peer_turn(p);
}

void peer_open_deaf(struct peer *p) {
        session_open(p);
        peer_turn(p);
}

void peer_close(struct peer *p) {
        p->session->ops->free(p->session);
        http_page_free(&p->page);
        h2_coder_free(&p->coder);
        h2_repeats_free(&p->repeats);
        pool_free(&p->pool);
}

struct peer *peer; /* too large for a stack */

int peer_setup(void **state) {
        (void)state;
        peer = calloc(1, sizeof *peer);
        assert_non_null(peer);
        peer_open(peer);
        return 0;
}

int peer_teardown(void **state) {
        (void)state;
        peer_close(peer);
        free(peer);
        return 0;
}

/* RFC 7541, 5.1 with a prefix of 7 bits. */
static size_t put_length(char *to, size_t n) {
        size_t used = 0;
        if (n < 127) {
                to[used++] = (char)n;
                return used;
        }
        to[used++] = 127;
        for (n -= 127; n >= 128; n /= 128)
                to[used++] = (char)(128 + n % 128);
        to[used++] = (char)n;
        return used;
}

/* Literal, never indexed, new name (6.2.3). */
static size_t put_field(char *to, const char *name, const char *value) {
        size_t used = 0;
        to[used++] = 0x10;
        used += put_length(to + used, strlen(name));
        memcpy(to + used, name, strlen(name));
        used += strlen(name);
        used += put_length(to + used, strlen(value));
        memcpy(to + used, value, strlen(value));
        return used + strlen(value);
}

/* A block larger than one frame goes on in CONTINUATIONs. */
static void put_block(struct peer *p, int32_t stream, struct span block, bool end) {
        enum frame_type type = FRAME_HEADERS;
        unsigned flags = end ? FRAME_END : 0;
        do {
                size_t n = block.len < 16384 ? block.len : 16384;
                bool last = n == block.len;
                frame_put(&p->to, type, flags | (last ? FRAME_END_HEADERS : 0u), stream,
                          (struct span){block.p, n});
                block.p += n;
                block.len -= n;
                type = FRAME_CONTINUATION;
                flags = 0;
        } while (block.len > 0);
}

void peer_fields(struct peer *p, int32_t stream, const struct peer_field *fields, bool end) {
        static char block[131072];
        size_t n = 0;
        for (; fields->name; fields++)
                n += put_field(block + n, fields->name, fields->value);
        put_block(p, stream, (struct span){block, n}, end);
}

void peer_request(struct peer *p, int32_t stream, const char *path, const struct peer_field *more,
                  bool end) {
        struct peer_field fields[256] = {
                {":method", end ? "GET" : "POST"},
                {":scheme", "https"},
                {":authority", "a.test"},
                {":path", path},
        };
        size_t n = 4;
        for (; more && more->name; more++)
                fields[n++] = *more;
        fields[n] = (struct peer_field){NULL, NULL};
        peer_fields(p, stream, fields, end);
}

void peer_answer(struct peer *p, struct http_stream *st) {
        struct http_answer a = {.status = 200, .is_length_known = true};
        a.headers = http_page_sent_headers(p->page, &a.n);
        a.has_body = !st->is_head;
        if (a.has_body)
                st->fixed = http_page_body(p->page);
        http_page_take(p->page);
        st->page = p->page;
        st->out_end = true;
        st->session->ops->answer(st, &a);
        st->answered = true;
        http_stream_release(st);
}

static void head_shown(struct peer *p, struct http_stream *st) {
        p->shown++;
        p->outcome = http_head_end(&st->head, &st->arena, true, !st->received_end);
        st->is_head = st->head.request.method == HTTP_HEAD;
        if (p->mode == PEER_ANSWER) {
                peer_answer(p, st);
        } else {
                assert_true(p->n_held < PEER_HELD_MAX);
                p->held[p->n_held++] = st;
        }
}

static void events_take(struct peer *p) {
        struct http_stream *st;
        unsigned events;
        while ((st = http_session_next(p->session, &events))) {
                if (events & HTTP_STREAM_GONE) {
                        p->gone++;
                        http_stream_release(st);
                        continue;
                }
                if (events & HTTP_STREAM_BODY)
                        p->bodies++;
                if (events & HTTP_STREAM_HEAD)
                        head_shown(p, st);
        }
}

static void frame_seen(struct peer *p, const struct frame *f) {
        if (f->type < PEER_TYPES)
                p->seen[f->type]++;
        if ((f->type == FRAME_HEADERS || f->type == FRAME_DATA) && (f->flags & FRAME_END))
                p->ended++;
        if (f->type == FRAME_HEADERS)
                p->last_head = f->payload;
        if (f->type == FRAME_DATA)
                p->data_bytes += f->payload.len;
        if (f->type == FRAME_RST)
                p->rst_code = frame_number(f->payload, 0);
        if (f->type == FRAME_GOAWAY) {
                p->goaway_last = (int32_t)frame_number(f->payload, 0);
                p->goaway_code = frame_number(f->payload, 4);
        }
}

void peer_feed(struct peer *p) {
        p->fed = p->session->ops->feed(p->session, p->to.data, p->to.len);
        p->to.len = 0;
}

void peer_turn(struct peer *p) {
        size_t n;
        peer_feed(p);
        p->from.len = 0;
        do {
                events_take(p);
                n = p->session->ops->pull(p->session, p->from.data + p->from.len,
                                          sizeof p->from.data - p->from.len);
                p->from.len += n;
        } while (n > 0 || http_session_has_events(p->session));
        struct span bytes = {p->from.data, p->from.len};
        struct frame f;
        while (frame_take(&bytes, &f))
                frame_seen(p, &f);
        assert_int_equal(bytes.len, 0);
}
