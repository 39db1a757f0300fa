#include "net/h2_server.h"

#include <errno.h>

#include "net/h2_session.h"

static struct h2_server *self_of(struct http_session *s) {
        return NET_CONTAINER_OF(s, struct h2_server, base);
}

static int h2_feed(struct http_session *s, const char *data, size_t len) {
        struct h2_server *h = self_of(s);
        return h->is_dead ? -EPROTO : h2_input_take(h, (const uint8_t *)data, len);
}

static size_t h2_pull(struct http_session *s, char *out, size_t size) {
        return h2_output_pull(self_of(s), (uint8_t *)out, size);
}

static void h2_abort(struct http_stream *st) {
        if (st->closed)
                return;
        enum h2_error code = st->sent_end   ? H2_NO_ERROR
                             : st->answered ? H2_CANCEL
                                            : H2_INTERNAL_ERROR;
        h2_stream_reset(self_of(st->session), st, code, false);
}

/* Compressed now, into the stream's own memory; false if it cannot be. */
static bool block_make(struct http_stream *st, const struct http_answer *a) {
        size_t bound = h2_coder_bound(a->headers, a->n);
        char *out = arena_take(&st->arena, bound);
        int n = out ? h2_coder_run(st->session->conf->coder, a->status, a->headers, a->n, out,
                                   bound)
                    : -ENOMEM;
        if (n < 0 || (size_t)n > H2_FRAME_MAX - H2_FRAME_HEAD - 1) /* one frame, one record */
                return false;
        h2_priv_of(st)->block = (struct span){out, (size_t)n};
        return true;
}

static void h2_answer(struct http_stream *st, const struct http_answer *a) {
        struct h2_priv *p = h2_priv_of(st);
        if (st->closed)
                return;
        if (!st->page && !block_make(st, a)) {
                h2_abort(st);
                return;
        }
        p->is_head_due = true;
        p->has_body = a->has_body;
        st->answered = true;
        h2_ready(self_of(st->session), st);
}

static void h2_resume(struct http_stream *st) {
        h2_ready(self_of(st->session), st);
}

static void h2_consume(struct http_stream *st, size_t n) {
        struct h2_server *h = self_of(st->session);
        struct h2_priv *p = h2_priv_of(st);
        assert(n <= st->unconsumed || st->closed);
        if (st->closed)
                return;
        st->unconsumed -= n;
        h->owed += (uint32_t)n;
        p->owed += (uint32_t)n;
        if (p->owed < H2_WINDOW_FIRST / 2 || st->received_end)
                return;
        h2_window_give(h, st->id, p->owed);
        p->receive_window += (int32_t)p->owed;
        p->owed = 0;
}

static void h2_want_body(struct http_stream *st) {
        (void)st; /* the window says it */
}

static void goaway_put(struct h2_server *h, uint32_t last) {
        uint8_t payload[8];
        bool is_deaf = h->base.ack_since_ms != 0 &&
                       h->base.now_ms - h->base.ack_since_ms > HTTP_SESSION_ACK_MS;
        h2_number32_put(payload, last);
        h2_number32_put(payload + 4, is_deaf ? H2_SETTINGS_TIMEOUT : H2_NO_ERROR);
        h2_control_put(h, (struct h2_frame){8, H2_GOAWAY, 0, 0}, payload);
}

static void h2_drain(struct http_session *s, bool final) {
        struct h2_server *h = self_of(s);
        if (h->is_ended || h->is_dead)
                return;
        h->is_ended = final;
        if (final)
                goaway_put(h, (uint32_t)h->served_id);
        else
                goaway_put(h, H2_WINDOW_MAX);
}

static bool h2_is_done(const struct http_session *s) {
        const struct h2_server *h = NET_CONTAINER_OF(s, struct h2_server, base);
        if (h->control_len > 0)
                return false;
        return h->is_dead || (h->is_ended && h->n_open == 0);
}

static void h2_free(struct http_session *s) {
        struct h2_server *h = self_of(s);
        h2_decoder_free(&h->decoder);
        h2_repeat_forget(&h->repeat);
        http_session_free_streams(s);
        pool_give(s->conf->pool, h->control);
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

static void settings_put(struct h2_server *h) {
        const struct http_session_conf *conf = h->base.conf;
        const struct {
                enum h2_setting id;
                uint32_t value;
        } settings[] = {
                {H2_SET_MAX_CONCURRENT_STREAMS, conf->streams},
                {H2_SET_MAX_HEADER_LIST_SIZE, conf->head.bytes},
                {H2_SET_NO_RFC7540_PRIORITIES, 1},
        };
        uint8_t payload[6 * NET_COUNT_OF(settings)];
        for (size_t i = 0; i < NET_COUNT_OF(settings); i++) {
                payload[6 * i] = 0;
                payload[6 * i + 1] = (uint8_t)settings[i].id;
                h2_number32_put(payload + 6 * i + 2, settings[i].value);
        }
        h2_control_put(h, (struct h2_frame){sizeof payload, H2_SETTINGS, 0, 0}, payload);
}

struct http_session *h2_server_new(const struct http_session_conf *conf, int64_t now_ms) {
        struct h2_server *h = pool_take_zero(conf->pool, sizeof *h);
        if (!h)
                return NULL;
        h->base = (struct http_session){.ops = &h2_ops,
                                        .conf = conf,
                                        .now_ms = now_ms,
                                        .head_since_ms = now_ms,
                                        .ack_since_ms = now_ms};
        h->last_id = -1;
        h->first_window = h->send_window = h->receive_window = H2_WINDOW_FIRST;
        h->decoder = h2_decoder_new(conf->coder);
        if (h->decoder)
                settings_put(h);
        if (h->base.why != HTTP_SESSION_FINE || !h->decoder) {
                if (h->decoder)
                        h2_free(&h->base);
                else
                        pool_give(conf->pool, h);
                return NULL;
        }
        return &h->base;
}
