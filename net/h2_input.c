/* Bytes become frames, frames become events of streams. A frame goes through
 *
 *   HEAD -> PREFIX -> PAYLOAD -> PADDING -> its end, and the next HEAD
 *
 * where only the head and the prefix (at most nine bytes) need to be whole;
 * the rest is taken as it comes, so that nothing is kept between two reads but
 * a few bytes. What a frame asks for is recorded; nothing is sent from here but
 * control frames into their queue. */
#include "net/h2_session.h"

#include <errno.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define PREFACE_BYTES (sizeof PREFACE - 1)
#define CONTINUATIONS_MAX 8
#define SETTINGS_MAX 32
#define SETTING_BYTES 6

struct input {
        const uint8_t *at;
        const uint8_t *end;
};

static size_t input_len(const struct input *in) {
        return (size_t)(in->end - in->at);
}

int h2_fail(struct h2_server *h, enum h2_error code, enum http_session_why why) {
        uint8_t payload[8];
        if (h->base.why == HTTP_SESSION_FINE)
                h->base.why = (uint8_t)why;
        h2_number32_put(payload, (uint32_t)h->served_id);
        h2_number32_put(payload + 4, code);
        h2_control_put(h, (struct h2_frame){8, H2_GOAWAY, 0, 0}, payload);
        h->is_dead = true;
        return -EPROTO;
}

int h2_break(struct h2_server *h, enum h2_error code) {
        return h2_fail(h, code, HTTP_SESSION_PROTOCOL);
}

/* `n` bytes in one piece, from the input or put together over several; NULL
 * while they are not there. */
static const uint8_t *take(struct h2_server *h, struct input *in, size_t n) {
        if (h->n_part == 0 && input_len(in) >= n) {
                const uint8_t *p = in->at;
                in->at += n;
                return p;
        }
        assert(n <= sizeof h->part);
        while (h->n_part < n && in->at < in->end)
                h->part[h->n_part++] = *in->at++;
        if (h->n_part < n)
                return NULL;
        h->n_part = 0;
        return h->part;
}

/* ---- bodies ---- */

/* All of a DATA frame counts against the windows, padding included. */
static int data_begin(struct h2_server *h) {
        int32_t id = h->frame.stream;
        int32_t len = (int32_t)h->frame.len;
        if (id > h->last_id || id % 2 == 0)
                return h2_break(h, H2_PROTOCOL_ERROR);
        if (len > h->receive_window)
                return h2_break(h, H2_FLOW_CONTROL_ERROR);
        h->receive_window -= len;
        h->owed += h->frame.len - h->left; /* padding */
        struct http_stream *st = h2_stream_find(h, id);
        if (!st)
                return h2_fate_of(h, id) == H2_FATE_RESET ? 0 : h2_break(h, H2_STREAM_CLOSED);
        struct h2_priv *p = h2_priv_of(st);
        enum h2_error fault = st->received_end          ? H2_STREAM_CLOSED
                              : len > p->receive_window ? H2_FLOW_CONTROL_ERROR
                                                        : H2_NO_ERROR;
        p->receive_window -= len;
        p->owed += h->frame.len - h->left;
        h2_message_body(&p->message, h->left);
        if (fault == H2_NO_ERROR && p->message.is_malformed)
                fault = H2_PROTOCOL_ERROR;
        if (fault != H2_NO_ERROR) {
                h2_stream_reset(h, st, fault, true);
                return 0;
        }
        h->block = st; /* whose payload comes now */
        if (h->left == 0 && !(h->frame.flags & H2_FLAG_END_STREAM))
                h2_glitch(h, H2_GLITCH_EMPTY);
        return 0;
}

static void data_take(struct h2_server *h, struct span piece) {
        struct http_stream *st = h->block;
        if (!st) { /* there is none, or it ended in mid-frame */
                h->owed += (uint32_t)piece.len;
                return;
        }
        if (piece.len == 0)
                return;
        h2_useful(h, piece.len);
        if (http_stream_body(st, piece.p, piece.len))
                st->unconsumed += piece.len;
        else
                h->owed += (uint32_t)piece.len;
        http_stream_note(st, HTTP_STREAM_BODY);
}

static void data_end(struct h2_server *h) {
        struct http_stream *st = h->block;
        h->block = NULL;
        if (st && (h->frame.flags & H2_FLAG_END_STREAM))
                h2_request_end(h, st, HTTP_STREAM_BODY);
}

/* ---- settings ---- */

static int first_window_set(struct h2_server *h, uint32_t value) {
        if (value > H2_WINDOW_MAX)
                return h2_break(h, H2_FLOW_CONTROL_ERROR);
        int64_t by = (int64_t)value - h->first_window;
        h->first_window = (int32_t)value;
        for (struct http_stream *st = h->base.streams; st; st = st->next) {
                struct h2_priv *p = h2_priv_of(st);
                if (st->closed)
                        continue;
                if (p->send_window + by > H2_WINDOW_MAX)
                        return h2_break(h, H2_FLOW_CONTROL_ERROR);
                p->send_window = (int32_t)(p->send_window + by);
                h2_ready(h, st);
        }
        return 0;
}

static int setting_take(struct h2_server *h, uint32_t id, uint32_t value) {
        switch (id) {
        case H2_SET_HEADER_TABLE_SIZE:
                if (value < H2_TABLE_BYTES)
                        h->is_table_off = true;
                return 0;
        case H2_SET_ENABLE_PUSH:
        case H2_SET_NO_RFC7540_PRIORITIES:
                return value > 1 ? h2_break(h, H2_PROTOCOL_ERROR) : 0;
        case H2_SET_INITIAL_WINDOW_SIZE:
                return first_window_set(h, value);
        case H2_SET_MAX_FRAME_SIZE: /* ours are never longer than its least */
                return value < H2_FRAME_MAX || value > 0xFFFFFF ? h2_break(h, H2_PROTOCOL_ERROR)
                                                                : 0;
        default:
                return 0;
        }
}

static int settings_begin(struct h2_server *h) {
        if (h->frame.len % SETTING_BYTES != 0)
                return h2_break(h, H2_FRAME_SIZE_ERROR);
        if (h->frame.flags & H2_FLAG_ACK) {
                if (h->frame.len != 0)
                        return h2_break(h, H2_FRAME_SIZE_ERROR);
                if (h->base.ack_since_ms == 0)
                        return h2_break(h, H2_PROTOCOL_ERROR);
                h->base.ack_since_ms = 0;
                return 0;
        }
        if (h->frame.len > SETTINGS_MAX * SETTING_BYTES)
                return h2_fail(h, H2_ENHANCE_YOUR_CALM, HTTP_SESSION_GLITCHES);
        if (h->had_settings)
                h2_glitch(h, H2_GLITCH_SETTINGS);
        else
                h->base.head_since_ms = 0;
        h->had_settings = true;
        return 0;
}

static int settings_take(struct h2_server *h, struct input *in) {
        const uint8_t *p;
        while (h->left > 0 && (p = take(h, in, SETTING_BYTES))) {
                h->left -= SETTING_BYTES;
                int r = setting_take(h, h2_number16(p), h2_number32(p + 2));
                if (r < 0)
                        return r;
        }
        return 0;
}

static void settings_end(struct h2_server *h) {
        if (!(h->frame.flags & H2_FLAG_ACK))
                h2_control_put(h, (struct h2_frame){0, H2_SETTINGS, H2_FLAG_ACK, 0}, NULL);
}

/* ---- frames of a few bytes ---- */

static int rst_take(struct h2_server *h) {
        int32_t id = h->frame.stream;
        if (id > h->last_id || id % 2 == 0)
                return h2_break(h, H2_PROTOCOL_ERROR);
        struct http_stream *st = h2_stream_find(h, id);
        if (st) {
                if (!st->sent_end)
                        h2_reset_count(h);
                h2_stream_close(h, st, H2_FATE_GONE);
                http_stream_note(st, 0);
                return 0;
        }
        switch (h2_fate_of(h, id)) {
        case H2_FATE_RESET:
                break;
        case H2_FATE_DONE: /* some clients close every stream so */
                h2_fate_set(h, id, H2_FATE_GONE);
                break;
        case H2_FATE_NONE:
        case H2_FATE_GONE:
                h2_glitch(h, H2_GLITCH_CLOSED);
                break;
        }
        return 0;
}

static int connection_window_take(struct h2_server *h, uint32_t by) {
        if (by == 0)
                return h2_break(h, H2_PROTOCOL_ERROR);
        if ((int64_t)h->send_window + by > H2_WINDOW_MAX)
                return h2_break(h, H2_FLOW_CONTROL_ERROR);
        bool was_shut = h->send_window <= 0;
        h->send_window += (int32_t)by;
        if (was_shut && h->send_window > 0)
                h2_ready_waiting(h);
        return 0;
}

static int window_take(struct h2_server *h, uint32_t by) {
        int32_t id = h->frame.stream;
        if (by < H2_TINY_WINDOW)
                h2_glitch(h, H2_GLITCH_TINY_WINDOW);
        if (id == 0)
                return connection_window_take(h, by);
        if (id > h->last_id || id % 2 == 0)
                return h2_break(h, H2_PROTOCOL_ERROR);
        struct http_stream *st = h2_stream_find(h, id);
        if (!st)
                return 0;
        struct h2_priv *p = h2_priv_of(st);
        if (by == 0) {
                h2_stream_reset(h, st, H2_PROTOCOL_ERROR, true);
        } else if ((int64_t)p->send_window + by > H2_WINDOW_MAX) {
                h2_stream_reset(h, st, H2_FLOW_CONTROL_ERROR, true);
        } else {
                p->send_window += (int32_t)by;
                h2_ready(h, st);
        }
        return 0;
}

static void ping_take(struct h2_server *h, const uint8_t *p) {
        h2_glitch(h, H2_GLITCH_PING);
        if (!(h->frame.flags & H2_FLAG_ACK))
                h2_control_put(h, (struct h2_frame){8, H2_PING, H2_FLAG_ACK, 0}, p);
}

/* ---- frames ---- */

/* The bytes that must be whole before the frame can be understood. */
static size_t prefix_len(const struct h2_frame *f) {
        switch (f->type) {
        case H2_DATA:
                return f->flags & H2_FLAG_PADDED ? 1 : 0;
        case H2_HEADERS:
                return (f->flags & H2_FLAG_PADDED ? 1u : 0u) +
                       (f->flags & H2_FLAG_PRIORITY ? 5u : 0u);
        case H2_PRIORITY:
                return 5;
        case H2_RST_STREAM:
        case H2_WINDOW_UPDATE:
        case H2_PRIORITY_UPDATE:
                return 4;
        case H2_PING:
        case H2_GOAWAY:
                return 8;
        default:
                return 0;
        }
}

/* Whether a frame of that type belongs to a stream, to the connection, or may
 * to both; and whether its length is its prefix's. */
static int shape_check(struct h2_server *h) {
        const struct h2_frame *f = &h->frame;
        bool is_exact = false;
        bool needs_stream = false;
        bool needs_none = false;
        switch (f->type) {
        case H2_PRIORITY:
        case H2_RST_STREAM:
                is_exact = true;
                needs_stream = true;
                break;
        case H2_DATA:
        case H2_HEADERS:
        case H2_CONTINUATION:
                needs_stream = true;
                break;
        case H2_PING:
                is_exact = true;
                needs_none = true;
                break;
        case H2_SETTINGS:
        case H2_GOAWAY:
        case H2_PRIORITY_UPDATE:
                needs_none = true;
                break;
        case H2_WINDOW_UPDATE:
                is_exact = true;
                break;
        case H2_PUSH_PROMISE: /* a client may not push */
                return h2_break(h, H2_PROTOCOL_ERROR);
        default:
                break;
        }
        if ((needs_stream && f->stream == 0) || (needs_none && f->stream != 0))
                return h2_break(h, H2_PROTOCOL_ERROR);
        if (f->len < prefix_len(f) || (is_exact && f->len != prefix_len(f)))
                return h2_break(h, H2_FRAME_SIZE_ERROR);
        return 0;
}

static int order_check(struct h2_server *h) {
        const struct h2_frame *f = &h->frame;
        if (f->len > H2_FRAME_MAX)
                return h2_break(h, H2_FRAME_SIZE_ERROR);
        if (!h->had_settings && (f->type != H2_SETTINGS || (f->flags & H2_FLAG_ACK)))
                return h2_break(h, H2_PROTOCOL_ERROR);
        bool is_next_of_block = f->type == H2_CONTINUATION && f->stream == h->block_id;
        if ((h->block_id != 0 || f->type == H2_CONTINUATION) && !is_next_of_block)
                return h2_break(h, H2_PROTOCOL_ERROR);
        if (is_next_of_block && ++h->n_continuations > CONTINUATIONS_MAX)
                return h2_fail(h, H2_ENHANCE_YOUR_CALM, HTTP_SESSION_GLITCHES);
        return 0;
}

static int head_take(struct h2_server *h, const uint8_t *p) {
        h->frame = h2_frame_head(p);
        int r = order_check(h);
        if (r == 0)
                r = shape_check(h);
        if (r < 0)
                return r;
        if (h->frame.type == H2_HEADERS)
                h->base.head_since_ms = h->base.now_ms;
        h->at = H2_AT_PREFIX;
        return 0;
}

/* The frame is known, its payload is not read yet. */
static int frame_begin(struct h2_server *h, const uint8_t *prefix) {
        switch (h->frame.type) {
        case H2_DATA:
                return data_begin(h);
        case H2_HEADERS:
                return h2_headers_begin(h);
        case H2_CONTINUATION:
                return 0;
        case H2_RST_STREAM:
                return rst_take(h);
        case H2_SETTINGS:
                return settings_begin(h);
        case H2_PING:
                ping_take(h, prefix);
                return 0;
        case H2_GOAWAY:
                h2_glitch(h, H2_GLITCH_GOAWAY); /* it will open no more; we push none */
                return 0;
        case H2_WINDOW_UPDATE:
                return window_take(h, h2_number32(prefix) & 0x7FFFFFFF);
        case H2_PRIORITY:
                h2_glitch(h, H2_GLITCH_PRIORITY);
                return 0;
        case H2_PRIORITY_UPDATE: /* of some stream (RFC 9218, 7.1) */
                h2_glitch(h, H2_GLITCH_PRIORITY);
                return (h2_number32(prefix) & 0x7FFFFFFF) ? 0 : h2_break(h, H2_PROTOCOL_ERROR);
        default:
                h2_glitch(h, H2_GLITCH_UNKNOWN);
                return 0;
        }
}

static int prefix_take(struct h2_server *h, const uint8_t *prefix) {
        size_t n = prefix_len(&h->frame);
        bool is_padded = (h->frame.type == H2_DATA || h->frame.type == H2_HEADERS) &&
                         (h->frame.flags & H2_FLAG_PADDED);
        h->left = h->frame.len - (uint32_t)n;
        h->padding = is_padded ? prefix[0] : 0;
        if (h->padding > h->left)
                return h2_break(h, H2_PROTOCOL_ERROR);
        h->left -= h->padding;
        h->at = H2_AT_PAYLOAD;
        return frame_begin(h, prefix);
}

/* Takes what is there of the payload; the frame's own end waits for all. */
static int payload_take(struct h2_server *h, struct input *in) {
        if (h->frame.type == H2_SETTINGS)
                return settings_take(h, in);
        size_t n = input_len(in) < h->left ? input_len(in) : h->left;
        struct span piece = {(const char *)in->at, n};
        int r = 0;
        in->at += n;
        if (h->frame.type == H2_HEADERS || h->frame.type == H2_CONTINUATION)
                r = n > 0 || h->left == 0 ? h2_block_take(h, piece) : 0;
        else if (h->frame.type == H2_DATA)
                data_take(h, piece);
        h->left -= (uint32_t)n;
        return r;
}

/* Judged frame by frame: a flood in one read is not answered to its end. */
static int frame_end(struct h2_server *h) {
        h->at = H2_AT_HEAD;
        if (h->frame.type == H2_DATA)
                data_end(h);
        else if (h->frame.type == H2_SETTINGS)
                settings_end(h);
        if (h->useless > 8 * H2_USELESS_BYTES)
                h2_glitch(h, UINT16_MAX);
        return h->base.why == HTTP_SESSION_FINE ? 0 : h2_fail(h, H2_ENHANCE_YOUR_CALM, h->base.why);
}

static int preface_take(struct h2_server *h, struct input *in) {
        while (h->n_part < PREFACE_BYTES && in->at < in->end) {
                if (*in->at++ != (uint8_t)PREFACE[h->n_part++])
                        return h2_break(h, H2_PROTOCOL_ERROR);
        }
        if (h->n_part == PREFACE_BYTES) {
                h->n_part = 0;
                h->at = H2_AT_HEAD;
        }
        return 0;
}

/* One step; `*is_short` when it needs more bytes than there are. */
static int step(struct h2_server *h, struct input *in, bool *is_short) {
        const uint8_t *p;
        switch ((enum h2_at)h->at) {
        case H2_AT_PREFACE:
                *is_short = input_len(in) == 0;
                return preface_take(h, in);
        case H2_AT_HEAD:
                p = take(h, in, H2_FRAME_HEAD);
                *is_short = !p;
                return p ? head_take(h, p) : 0;
        case H2_AT_PREFIX:
                p = take(h, in, prefix_len(&h->frame));
                *is_short = !p;
                return p ? prefix_take(h, p) : 0;
        case H2_AT_PAYLOAD: {
                int r = payload_take(h, in);
                *is_short = h->left > 0;
                if (h->left == 0)
                        h->at = H2_AT_PADDING;
                return r;
        }
        case H2_AT_PADDING: {
                size_t n = input_len(in) < h->padding ? input_len(in) : h->padding;
                in->at += n;
                h->padding = (uint8_t)(h->padding - n);
                *is_short = h->padding > 0;
                return *is_short ? 0 : frame_end(h);
        }
        }
        return 0;
}

int h2_input_take(struct h2_server *h, const uint8_t *data, size_t len) {
        struct input in = {data, data + len};
        bool is_short = false;
        int r = 0;
        h->useless += (int64_t)len;
        while (r == 0 && !is_short)
                r = step(h, &in, &is_short);
        return r;
}
