/* Header blocks: a stream begins with one and may end with another. Its fields
 * are judged and kept as they are decoded; a stream that is not wanted has its
 * block decoded all the same, because all streams share one table. */
#include "net/h2_session.h"

#include <errno.h>

static void on_field(void *owner, struct span name, struct span value) {
        struct h2_server *h = owner;
        struct http_stream *st = h->block;
        h->block_bytes += (uint32_t)(name.len + value.len + 32);
        if (!st)
                return; /* decoded for the table's sake */
        struct h2_priv *p = h2_priv_of(st);
        struct http_field_seen f = http_field_see(name, value);
        if (h->is_trailer) {
                if (h->block_bytes > h->base.conf->head.bytes)
                        p->message.is_malformed = true;
                else
                        h2_message_trailer(&p->message, &f);
        } else if (!st->head.over_budget) {
                h2_message_field(&p->message, &f);
                http_stream_field(st, &f);
        }
}

static int block_decode(struct h2_server *h, struct span piece, bool is_last) {
        int r = h2_decoder_run(h->decoder, piece, is_last, on_field, h);
        if (r == -ENOMEM)
                return h2_fail(h, H2_INTERNAL_ERROR, HTTP_SESSION_NO_MEMORY);
        return r < 0 ? h2_break(h, H2_COMPRESSION_ERROR) : 0;
}

/* The client ended its side of the stream. */
void h2_request_end(struct h2_server *h, struct http_stream *st, unsigned event) {
        h2_message_end(&h2_priv_of(st)->message);
        if (h2_priv_of(st)->message.is_malformed) {
                h2_stream_reset(h, st, H2_PROTOCOL_ERROR, true);
                return;
        }
        st->received_end = true;
        if (st->sent_end)
                h2_stream_close(h, st, H2_FATE_DONE);
        http_stream_note(st, st->closed ? 0 : event);
}

static void head_end(struct h2_server *h, struct http_stream *st, bool end) {
        struct h2_priv *p = h2_priv_of(st);
        p->is_head_done = true;
        if (st->head.over_budget) { /* its answer is 431 whatever the rest says */
                h2_message_init(&p->message);
                h2_glitch(h, H2_GLITCH_HEAD);
        } else {
                h2_message_head(&p->message, end);
        }
        if (p->message.is_malformed)
                h2_stream_reset(h, st, H2_PROTOCOL_ERROR, true);
        else if (end)
                h2_request_end(h, st, HTTP_STREAM_HEAD);
        else
                http_stream_note(st, HTTP_STREAM_HEAD);
}

static void trailer_end(struct h2_server *h, struct http_stream *st, bool end) {
        if (end)
                h2_request_end(h, st, HTTP_STREAM_BODY);
        else /* only the last block may follow a body (RFC 9113, 8.1) */
                h2_stream_reset(h, st, H2_PROTOCOL_ERROR, true);
}

/* END_HEADERS. Whether END_STREAM was set was said by the first frame. */
static void block_end(struct h2_server *h) {
        struct http_stream *st = h->block;
        bool is_trailer = h->is_trailer;
        bool end = h->is_block_end_stream;
        h->block = NULL;
        h->block_id = 0;
        h->base.head_since_ms = 0;
        if (!st)
                return;
        if (is_trailer)
                trailer_end(h, st, end);
        else
                head_end(h, st, end);
}

/* A stream no longer open. 0 to decode the block and forget it. */
static int closed_headers(struct h2_server *h, int32_t id) {
        switch (h2_fate_of(h, id)) {
        case H2_FATE_RESET:
                return 0;
        case H2_FATE_NONE:
                return h2_break(h, H2_PROTOCOL_ERROR);
        case H2_FATE_DONE:
        case H2_FATE_GONE:
                break;
        }
        return h2_break(h, H2_STREAM_CLOSED);
}

static int stream_begin(struct h2_server *h, int32_t id) {
        if (h->is_ended) { /* the GOAWAY told that it would not be served */
                h2_ids_pass(h, id);
                h2_fate_set(h, id, H2_FATE_RESET);
                return 0;
        }
        if (h->n_open >= h->base.conf->streams) {
                /* Before its acknowledgement the client does not know the limit. */
                if (h->base.ack_since_ms == 0)
                        return h2_break(h, H2_PROTOCOL_ERROR);
                h2_ids_pass(h, id);
                h2_id_reset(h, id, H2_REFUSED_STREAM);
                h2_glitch(h, H2_GLITCH_REFUSED);
                return 0;
        }
        h->block = h2_stream_open(h, id);
        if (!h->block)
                h2_id_reset(h, id, H2_INTERNAL_ERROR);
        return 0;
}

int h2_headers_begin(struct h2_server *h) {
        int32_t id = h->frame.stream;
        if (id % 2 == 0) /* a client's are odd */
                return h2_break(h, H2_PROTOCOL_ERROR);
        h->block = NULL;
        h->block_id = id;
        h->block_bytes = 0;
        h->n_continuations = 0;
        h->is_trailer = false;
        h->is_block_end_stream = h->frame.flags & H2_FLAG_END_STREAM;
        if (id > h->last_id)
                return stream_begin(h, id);
        struct http_stream *st = h2_stream_find(h, id);
        if (!st)
                return closed_headers(h, id);
        if (st->received_end) {
                h2_stream_reset(h, st, H2_STREAM_CLOSED, true);
                return 0;
        }
        h->is_trailer = true;
        h->block = st;
        return 0;
}

/* ---- heads that come again ---- */

static uint32_t block_hash(struct span block) {
        uint32_t n = 2166136261; /* FNV-1a; nothing hangs on it but when to begin */
        for (size_t i = 0; i < block.len; i++)
                n = (n ^ (uint8_t)block.p[i]) * 16777619;
        return n | 1;
}

/* The block is the one kept: its fields need not be decoded. */
static bool repeat_use(struct h2_server *h, struct span block) {
        struct http_stream *st = h->block;
        if (!h->repeat || !st || h->is_trailer || !h->is_block_end_stream ||
            !h2_repeat_is(h->repeat, block))
                return false;
        st->repeat = h2_repeat_take(h->repeat, &st->head);
        h2_priv_of(st)->is_head_done = true;
        h->block = NULL;
        h->block_id = 0;
        h->base.head_since_ms = 0;
        st->received_end = true;
        http_stream_note(st, HTTP_STREAM_HEAD);
        return true;
}

/* A pure block made `st`; when it is the second of its kind, its head is kept. */
static void repeat_learn(struct h2_server *h, struct http_stream *st, struct span block) {
        uint32_t hash = block_hash(block);
        bool is_second = hash == h->pure_hash;
        h->pure_hash = hash;
        if (is_second && st && !st->closed && !h->is_trailer && st->received_end &&
            http_head_end(&st->head, &st->arena, h->base.conf->is_tls, false) == HTTP_HEAD_GOOD)
                h2_repeat_keep(h->base.conf->repeats, &h->repeat, block, &st->head);
}

int h2_block_take(struct h2_server *h, struct span piece) {
        bool is_last = piece.len == h->left && (h->frame.flags & H2_FLAG_END_HEADERS);
        bool is_whole = is_last && piece.len == h->frame.len && h->frame.type == H2_HEADERS;
        struct http_stream *st = h->block;
        if (st)
                h2_useful(h, piece.len);
        if (is_whole && repeat_use(h, piece))
                return 0;
        bool is_pure = is_whole && h2_block_is_pure(piece);
        if (!is_pure) {
                h->pure_hash = 0;
                h2_repeat_forget(&h->repeat);
        }
        int r = block_decode(h, piece, is_last);
        if (r < 0 || !is_last)
                return r;
        block_end(h);
        if (is_pure)
                repeat_learn(h, st, piece);
        return 0;
}
