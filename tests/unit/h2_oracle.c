/* The callbacks of the library record what happened and nothing else: no
 * submit, no decision, no free. What follows from it is done by feed, pull and
 * the calls of the connection. */
#include "tests/unit/h2_oracle.h"

#include <errno.h>
#include <pthread.h>

#include <nghttp2/nghttp2.h>

#include "net/h2_limits.h"

/* Room for the fields of an ordinary answer; longer ones use the arena. */
#define ANSWER_FIELDS 32
#define FRAME_HEAD 9
#define DATA_MIN 1024

struct h2_oracle {
        struct http_session base;
        nghttp2_session *ng;
        const uint8_t *left; /* of the library: made, not yet pulled */
        size_t n_left;
        size_t room;      /* of the pull under way */
        size_t discarded; /* body bytes nobody wanted, to give back as window */
        struct h2_bucket glitches;
        struct h2_bucket resets;
        uint64_t bytes;  /* received */
        uint64_t useful; /* of those, heads and bodies */
        bool had_settings;
        bool is_lost;       /* no memory to go on with */
        bool is_ended;      /* the last GOAWAY of an orderly end was said */
        bool is_abuse_told; /* and the one of the other kind */
};

/* What this file keeps in a stream's `priv`. */
struct h2_priv {
        char status[4];
        bool deferred;
        bool own_reset; /* broken off by our side for no fault of the peer */
};

_Static_assert(sizeof(struct h2_priv) <= sizeof(((struct http_stream *)0)->priv), "room");

static struct h2_priv *priv_of(struct http_stream *st) {
        return (struct h2_priv *)(void *)st->priv;
}

static struct h2_oracle *self_of(struct http_session *s) {
        return NET_CONTAINER_OF(s, struct h2_oracle, base);
}

static void glitch(struct h2_oracle *h, uint32_t weight) {
        if (!h2_bucket_add(&h->glitches, h->base.conf->glitches, weight, h->base.now_ms) &&
            h->base.why == HTTP_SESSION_FINE)
                h->base.why = HTTP_SESSION_GLITCHES;
}

static void reset_count(struct h2_oracle *h) {
        if (!h2_bucket_add(&h->resets, h->base.conf->resets, 1, h->base.now_ms) &&
            h->base.why == HTTP_SESSION_FINE)
                h->base.why = HTTP_SESSION_RESETS;
}

/* ---- callbacks: they only record ---- */

static int on_begin_frame(nghttp2_session *ng, const nghttp2_frame_hd *hd, void *user) {
        struct h2_oracle *h = user;
        (void)ng;
        if (hd->type == NGHTTP2_HEADERS)
                h->base.head_since_ms = h->base.now_ms;
        else if (hd->type != NGHTTP2_CONTINUATION && h->had_settings)
                h->base.head_since_ms = 0;
        if (hd->type > NGHTTP2_CONTINUATION)
                glitch(h, H2_GLITCH_UNKNOWN);
        else if (hd->type == NGHTTP2_PRIORITY) /* ignored, so never received */
                glitch(h, H2_GLITCH_PRIORITY);
        return 0;
}

/* Frames of unknown types are ignored, but they must be seen to be counted. */
static int on_unknown_frame(nghttp2_session *ng, void **payload, const nghttp2_frame_hd *hd,
                            void *user) {
        (void)ng;
        (void)payload;
        (void)hd;
        (void)user;
        return NGHTTP2_ERR_CANCEL;
}

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *user) {
        struct h2_oracle *h = user;
        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        struct http_stream *st = http_stream_new(&h->base, frame->hd.stream_id);
        if (!st)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        (void)nghttp2_session_set_stream_user_data(ng, frame->hd.stream_id, st);
        return 0;
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user) {
        (void)flags;
        (void)user;
        if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0; /* trailers tell us nothing */
        struct http_stream *st = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
        struct http_field_seen f = http_field_see((struct span){(const char *)name, name_len},
                                                  (struct span){(const char *)value, value_len});
        if (st)
                http_stream_field(st, &f);
        return 0;
}

/* The library would drop such a field and go on; the request is malformed. */
static int on_invalid_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                             size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                             void *user) {
        (void)ng;
        (void)frame;
        (void)name;
        (void)name_len;
        (void)value;
        (void)value_len;
        (void)flags;
        (void)user;
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void headers_received(struct h2_oracle *h, const nghttp2_frame *frame,
                             struct http_stream *st) {
        h->base.head_since_ms = 0;
        h->useful += frame->hd.length;
        if (!st)
                return;
        if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
                st->received_end = true;
        http_stream_note(st, frame->headers.cat == NGHTTP2_HCAT_REQUEST ? HTTP_STREAM_HEAD
                                                                        : HTTP_STREAM_BODY);
}

static void data_received(struct h2_oracle *h, const nghttp2_frame *frame, struct http_stream *st) {
        if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
                if (st) {
                        st->received_end = true;
                        http_stream_note(st, HTTP_STREAM_BODY);
                }
        } else if (frame->hd.length <= frame->data.padlen) {
                glitch(h, H2_GLITCH_EMPTY);
        }
}

static void settings_received(struct h2_oracle *h, const nghttp2_frame *frame) {
        if (frame->hd.flags & NGHTTP2_FLAG_ACK) {
                h->base.ack_since_ms = 0;
                return;
        }
        if (h->had_settings)
                glitch(h, H2_GLITCH_SETTINGS);
        h->had_settings = true;
        h->base.head_since_ms = 0;
}

static int on_frame_recv(nghttp2_session *ng, const nghttp2_frame *frame, void *user) {
        struct h2_oracle *h = user;
        struct http_stream *st =
                frame->hd.stream_id ? nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id)
                                    : NULL;
        switch (frame->hd.type) {
        case NGHTTP2_HEADERS:
                headers_received(h, frame, st);
                break;
        case NGHTTP2_DATA:
                data_received(h, frame, st);
                break;
        case NGHTTP2_RST_STREAM:
                if (st && !st->sent_end)
                        reset_count(h);
                break;
        case NGHTTP2_SETTINGS:
                settings_received(h, frame);
                break;
        case NGHTTP2_PING:
                glitch(h, H2_GLITCH_PING);
                break;
        case NGHTTP2_GOAWAY:
                glitch(h, H2_GLITCH_GOAWAY);
                break;
        case NGHTTP2_WINDOW_UPDATE:
                if (frame->window_update.window_size_increment < H2_TINY_WINDOW)
                        glitch(h, H2_GLITCH_TINY_WINDOW);
                break;
        default:
                break;
        }
        return 0;
}

static int on_data_chunk(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t len, void *user) {
        struct h2_oracle *h = user;
        struct http_stream *st = nghttp2_session_get_stream_user_data(ng, id);
        (void)flags;
        h->useful += len;
        if (st && http_stream_body(st, data, len))
                st->unconsumed += len;
        else
                h->discarded += len;
        if (st)
                http_stream_note(st, HTTP_STREAM_BODY);
        return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t error, void *user) {
        struct h2_oracle *h = user;
        struct http_stream *st = nghttp2_session_get_stream_user_data(ng, id);
        (void)error;
        if (!st)
                return 0;
        st->closed = true;
        h->discarded += st->unconsumed;
        st->unconsumed = 0;
        http_stream_note(st, 0);
        return 0;
}

static int on_frame_send(nghttp2_session *ng, const nghttp2_frame *frame, void *user) {
        struct h2_oracle *h = user;
        uint8_t type = frame->hd.type;
        struct http_stream *st;
        switch (type) {
        case NGHTTP2_HEADERS:
        case NGHTTP2_DATA:
                if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
                        break;
                st = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
                if (!st)
                        break;
                st->sent_end = true;
                st->sent_end_at_ms = h->base.now_ms;
                break;
        case NGHTTP2_RST_STREAM:
                h->base.head_since_ms = 0;
                st = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
                if (frame->rst_stream.error_code != NGHTTP2_NO_ERROR &&
                    !(st && priv_of(st)->own_reset))
                        reset_count(h);
                break;
        case NGHTTP2_GOAWAY:
                if (frame->goaway.error_code != NGHTTP2_NO_ERROR &&
                    h->base.why == HTTP_SESSION_FINE)
                        h->base.why = HTTP_SESSION_PROTOCOL;
                break;
        default:
                break;
        }
        return 0;
}

/* A DATA frame that fills what is left of the TLS record, not more. */
static ssize_t on_read_length(nghttp2_session *ng, uint8_t type, int32_t id, int32_t session_window,
                              int32_t stream_window, uint32_t max_frame, void *user) {
        const struct h2_oracle *h = user;
        (void)ng;
        (void)type;
        (void)id;
        (void)session_window;
        (void)stream_window;
        size_t n = h->room > FRAME_HEAD + DATA_MIN ? h->room - FRAME_HEAD : DATA_MIN;
        return (ssize_t)(n < max_frame ? n : max_frame);
}

static ssize_t on_read(nghttp2_session *ng, int32_t id, uint8_t *out, size_t size, uint32_t *flags,
                       nghttp2_data_source *source, void *user) {
        struct http_stream *st = source->ptr;
        bool end;
        (void)ng;
        (void)id;
        (void)user;
        size_t n = http_stream_pull(st, (char *)out, size, &end);
        st->progress_bytes += n;
        if (end) {
                *flags |= NGHTTP2_DATA_FLAG_EOF;
        } else if (n == 0) {
                priv_of(st)->deferred = true;
                return NGHTTP2_ERR_DEFERRED;
        }
        return (ssize_t)n;
}

/* ---- set up ---- */

static nghttp2_session_callbacks *callbacks;
static nghttp2_option *options;
static pthread_once_t setup_once = PTHREAD_ONCE_INIT;

static void setup(void) {
        int r = nghttp2_session_callbacks_new(&callbacks);
        if (r == 0)
                r = nghttp2_option_new(&options);
        assert(r == 0);
        nghttp2_session_callbacks *c = callbacks;
        nghttp2_session_callbacks_set_on_begin_frame_callback(c, on_begin_frame);
        nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(c, on_header);
        nghttp2_session_callbacks_set_on_invalid_header_callback(c, on_invalid_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data_chunk);
        nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
        nghttp2_session_callbacks_set_on_frame_send_callback(c, on_frame_send);
        nghttp2_session_callbacks_set_unpack_extension_callback(c, on_unknown_frame);
        for (unsigned type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; type++)
                nghttp2_option_set_user_recv_extension_type(options, (uint8_t)type);
        nghttp2_session_callbacks_set_data_source_read_length_callback(c, on_read_length);
        nghttp2_option_set_no_auto_window_update(options, 1);
        nghttp2_option_set_no_closed_streams(options, 1);
        nghttp2_option_set_max_outbound_ack(options, 100);
        nghttp2_option_set_max_settings(options, 32);
        nghttp2_option_set_max_continuations(options, 8);
        /* Only a backstop: it counts honest resets as well. */
        nghttp2_option_set_stream_reset_rate_limit(options, 10000, 1000);
}

static void *mem_take(size_t n, void *pool) {
        return pool_take(pool, n);
}

static void mem_give(void *piece, void *pool) {
        pool_give(pool, piece);
}

static void *mem_take_zero(size_t n, size_t size, void *pool) {
        return pool_take_zero(pool, n * size);
}

static void *mem_resize(void *piece, size_t n, void *pool) {
        return pool_resize(pool, piece, n);
}

/* ---- the session's operations ---- */

/* True once the peer has been told to go. */
static bool abuse_judge(struct h2_oracle *h) {
        if (h->base.why != HTTP_SESSION_GLITCHES && h->base.why != HTTP_SESSION_RESETS)
                return false;
        if (!h->is_abuse_told)
                (void)nghttp2_session_terminate_session(h->ng, NGHTTP2_ENHANCE_YOUR_CALM);
        h->is_abuse_told = true;
        return true;
}

static int h2_feed(struct http_session *s, const char *data, size_t len) {
        struct h2_oracle *h = self_of(s);
        if (h->is_abuse_told)
                return -EPROTO;
        h->bytes += len;
        ssize_t r = nghttp2_session_mem_recv(h->ng, (const uint8_t *)data, len);
        if (r < 0) {
                s->why = r == NGHTTP2_ERR_FLOODED ? HTTP_SESSION_GLITCHES
                         : r == NGHTTP2_ERR_NOMEM ? HTTP_SESSION_NO_MEMORY
                                                  : HTTP_SESSION_PROTOCOL;
                return -EPROTO;
        }
        if (h->bytes / 8 > h->useful + H2_USELESS_BYTES && s->why == HTTP_SESSION_FINE)
                s->why = HTTP_SESSION_GLITCHES;
        return abuse_judge(h) ? -EPROTO : 0;
}

static void windows_give(struct h2_oracle *h) {
        if (h->discarded > 0) {
                (void)nghttp2_session_consume_connection(h->ng, h->discarded);
                h->discarded = 0;
        }
}

static size_t h2_pull(struct http_session *s, char *out, size_t size) {
        struct h2_oracle *h = self_of(s);
        size_t n = 0;
        windows_give(h);
        while (n < size) {
                if (h->n_left == 0) {
                        abuse_judge(h);
                        h->room = size - n;
                        ssize_t r = nghttp2_session_mem_send(h->ng, &h->left);
                        h->is_lost = r < 0;
                        if (r <= 0)
                                break;
                        h->n_left = (size_t)r;
                }
                size_t part = h->n_left < size - n ? h->n_left : size - n;
                memcpy(out + n, h->left, part);
                h->left += part;
                h->n_left -= part;
                n += part;
        }
        return n;
}

/* Values that must not be guessed byte by byte from the size of a compressed
 * answer are never indexed (RFC 7541, 7.1). */
static uint8_t nv_flags(struct span name) {
        uint8_t flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
        if (name.p[0] == 's' &&
            (span_eq(name, SPAN("set-cookie")) || span_eq(name, SPAN("sluice-pass"))))
                flags |= NGHTTP2_NV_FLAG_NO_INDEX;
        return flags;
}

static nghttp2_nv nv_of(struct span name, struct span value, uint8_t flags) {
        return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.p,
                            .value = (uint8_t *)(uintptr_t)value.p,
                            .namelen = name.len,
                            .valuelen = value.len,
                            .flags = flags};
}

static void h2_abort(struct http_stream *st) {
        struct h2_oracle *h = self_of(st->session);
        if (st->closed)
                return;
        uint32_t code = st->sent_end   ? NGHTTP2_NO_ERROR
                        : st->answered ? NGHTTP2_CANCEL
                                       : NGHTTP2_INTERNAL_ERROR;
        priv_of(st)->own_reset = true;
        (void)nghttp2_submit_rst_stream(h->ng, NGHTTP2_FLAG_NONE, st->id, code);
}

static void h2_answer(struct http_stream *st, const struct http_answer *a) {
        struct h2_oracle *h = self_of(st->session);
        nghttp2_nv few[ANSWER_FIELDS + 1];
        nghttp2_nv *nv = few;
        if (st->closed)
                return;
        if (a->n > ANSWER_FIELDS)
                nv = arena_take(&st->arena, (a->n + 1) * sizeof *nv);
        if (!nv) {
                h2_abort(st);
                return;
        }
        char *status = priv_of(st)->status;
        status[0] = (char)('0' + a->status / 100 % 10);
        status[1] = (char)('0' + a->status / 10 % 10);
        status[2] = (char)('0' + a->status % 10);
        nv[0] = nv_of(SPAN(":status"), (struct span){status, 3},
                      NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE);
        for (size_t i = 0; i < a->n; i++)
                nv[i + 1] = nv_of(a->headers[i].name, a->headers[i].value,
                                  nv_flags(a->headers[i].name));
        nghttp2_data_provider body = {.source = {.ptr = st}, .read_callback = on_read};
        if (nghttp2_submit_response(h->ng, st->id, nv, a->n + 1, a->has_body ? &body : NULL) != 0)
                h2_abort(st);
}

static void h2_resume(struct http_stream *st) {
        if (st->closed || !priv_of(st)->deferred)
                return;
        priv_of(st)->deferred = false;
        (void)nghttp2_session_resume_data(self_of(st->session)->ng, st->id);
}

static void h2_consume(struct http_stream *st, size_t n) {
        assert(n <= st->unconsumed || st->closed);
        if (st->closed || n == 0)
                return;
        st->unconsumed -= n;
        (void)nghttp2_session_consume(self_of(st->session)->ng, st->id, n);
}

static void h2_want_body(struct http_stream *st) {
        (void)st; /* the window says it */
}

static void h2_drain(struct http_session *s, bool final) {
        struct h2_oracle *h = self_of(s);
        if (h->is_ended)
                return;
        h->is_ended = final;
        if (!final)
                (void)nghttp2_submit_shutdown_notice(h->ng);
        else
                (void)nghttp2_submit_goaway(h->ng, NGHTTP2_FLAG_NONE,
                                            nghttp2_session_get_last_proc_stream_id(h->ng),
                                            NGHTTP2_NO_ERROR, NULL, 0);
}

static bool h2_is_done(const struct http_session *s) {
        const struct h2_oracle *h = NET_CONTAINER_OF(s, struct h2_oracle, base);
        return h->is_lost || (h->n_left == 0 && !nghttp2_session_want_read(h->ng) &&
                              !nghttp2_session_want_write(h->ng));
}

static void h2_free(struct http_session *s) {
        struct h2_oracle *h = self_of(s);
        nghttp2_session_del(h->ng);
        http_session_free_streams(s);
        pool_give(s->conf->pool, h);
}

static const struct http_session_ops h2_ops = {
        .feed = h2_feed,
        .pull = h2_pull,
        .answer = h2_answer,
        .resume = h2_resume,
        .abort = h2_abort,
        .consume = h2_consume,
        .want_body = h2_want_body,
        .drain = h2_drain,
        .is_done = h2_is_done,
        .free = h2_free,
};

struct http_session *h2_oracle_new(const struct http_session_conf *conf, int64_t now_ms) {
        (void)pthread_once(&setup_once, setup);
        struct h2_oracle *h = pool_take_zero(conf->pool, sizeof *h);
        if (!h)
                return NULL;
        h->base = (struct http_session){.ops = &h2_ops,
                                        .conf = conf,
                                        .now_ms = now_ms,
                                        .head_since_ms = now_ms,
                                        .ack_since_ms = now_ms};
        nghttp2_mem mem = {.mem_user_data = conf->pool,
                           .malloc = mem_take,
                           .free = mem_give,
                           .calloc = mem_take_zero,
                           .realloc = mem_resize};
        nghttp2_settings_entry settings[] = {
                {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, conf->streams},
                {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, conf->head.bytes},
                {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
        };
        int r = nghttp2_session_server_new3(&h->ng, callbacks, h, options, &mem);
        if (r == 0)
                r = nghttp2_submit_settings(h->ng, NGHTTP2_FLAG_NONE, settings,
                                            NET_COUNT_OF(settings));
        if (r != 0) {
                nghttp2_session_del(h->ng);
                pool_give(conf->pool, h);
                return NULL;
        }
        return &h->base;
}
