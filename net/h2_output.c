/* What goes out, in this order: control frames, then the streams that have
 * something to send, one frame each in turn. A head is written when its turn
 * has come, since its shortest form depends on what the peer heard before. */
#include "net/h2_session.h"

/* A peer that has this much to read before it hears more control frames sends
 * requests for them faster than it reads. */
#define CONTROL_MAX 8192
#define CONTROL_SPARE 64 /* of it, for the GOAWAY that tells why it ends */
#define CONTROL_FIRST 128
/* DATA frames are not cut shorter than this for the end of a record. */
#define DATA_MIN 1024

/* ---- control frames ---- */

static bool control_grow(struct h2_server *h, size_t need) {
        size_t size = h->control_size ? h->control_size : CONTROL_FIRST;
        while (size < need)
                size *= 2;
        char *fresh = pool_resize(h->base.conf->pool, h->control, size);
        if (!fresh)
                return false;
        h->control = fresh;
        h->control_size = (uint16_t)size;
        return true;
}

static void control_release(struct h2_server *h) {
        pool_give(h->base.conf->pool, h->control);
        h->control = NULL;
        h->control_at = h->control_len = h->control_size = 0;
}

void h2_control_put(struct h2_server *h, struct h2_frame f, const void *payload) {
        size_t need = h->control_len + H2_FRAME_HEAD + f.len;
        size_t most = f.type == H2_GOAWAY ? CONTROL_MAX : CONTROL_MAX - CONTROL_SPARE;
        if (h->is_dead)
                return;
        if (need > most || (need > h->control_size && !control_grow(h, need))) {
                if (h->base.why == HTTP_SESSION_FINE)
                        h->base.why = need > most ? HTTP_SESSION_GLITCHES : HTTP_SESSION_NO_MEMORY;
                return;
        }
        uint8_t *to = (uint8_t *)h->control + h->control_len;
        h2_frame_head_put(to, f);
        if (f.len > 0)
                memcpy(to + H2_FRAME_HEAD, payload, f.len);
        h->control_len = (uint16_t)need;
}

void h2_window_give(struct h2_server *h, int32_t id, uint32_t by) {
        uint8_t payload[4];
        h2_number32_put(payload, by);
        h2_control_put(h, (struct h2_frame){4, H2_WINDOW_UPDATE, 0, id}, payload);
}

static size_t control_pull(struct h2_server *h, uint8_t *out, size_t size) {
        size_t n = (size_t)h->control_len - h->control_at;
        if (n > size)
                n = size;
        if (n > 0)
                memcpy(out, h->control + h->control_at, n);
        h->control_at = (uint16_t)(h->control_at + n);
        if (h->control && h->control_at == h->control_len)
                control_release(h);
        return n;
}

/* ---- streams that have something to send ---- */

static bool has_output(struct http_stream *st) {
        return h2_priv_of(st)->is_head_due || http_stream_queued(st) > 0 || st->out_end;
}

void h2_ready(struct h2_server *h, struct http_stream *st) {
        struct h2_priv *p = h2_priv_of(st);
        if (p->is_ready || st->closed || st->sent_end || !st->answered || !has_output(st))
                return;
        p->is_ready = true;
        p->waits = false;
        p->next_ready = st;
        if (h->last_ready) {
                struct h2_priv *last = h2_priv_of(h->last_ready);
                p->next_ready = last->next_ready;
                last->next_ready = st;
        }
        h->last_ready = st;
}

static struct http_stream *ready_first(const struct h2_server *h) {
        return h->last_ready ? h2_priv_of(h->last_ready)->next_ready : NULL;
}

void h2_ready_leave(struct h2_server *h, struct http_stream *st) {
        struct h2_priv *p = h2_priv_of(st);
        if (!p->is_ready)
                return;
        struct http_stream *before = h->last_ready;
        while (h2_priv_of(before)->next_ready != st)
                before = h2_priv_of(before)->next_ready;
        h2_priv_of(before)->next_ready = p->next_ready;
        if (h->last_ready == st)
                h->last_ready = before == st ? NULL : before;
        p->is_ready = false;
}

void h2_ready_waiting(struct h2_server *h) {
        for (struct http_stream *st = h->base.streams; st; st = st->next) {
                if (h2_priv_of(st)->waits)
                        h2_ready(h, st);
        }
}

/* ---- writing ---- */

struct writer {
        uint8_t *out;
        size_t n;
        size_t size;
};

static void stream_sent(struct h2_server *h, struct http_stream *st) {
        st->sent_end = true;
        st->sent_end_at_ms = h->base.now_ms;
        if (!st->received_end)
                return;
        h2_stream_close(h, st, H2_FATE_DONE);
        if (st->held)
                http_stream_note(st, 0);
        else
                http_stream_reap(st);
}

/* The shortest form the peer will understand. */
static struct span head_block(struct h2_server *h, struct http_stream *st) {
        const struct h2_blocks *b = st->page ? http_page_blocks(st->page) : NULL;
        if (!b)
                return h2_priv_of(st)->block;
        if (h->is_table_off || b->first.len == 0)
                return b->plain;
        if (h->table_id == b->id)
                return b->again;
        h->table_id = b->id;
        return b->first;
}

/* False if there is no room for it. */
static bool head_write(struct h2_server *h, struct http_stream *st, struct writer *w) {
        struct h2_priv *p = h2_priv_of(st);
        uint64_t table_id = h->table_id;
        struct span block = head_block(h, st);
        bool tell_off = h->is_table_off && !h->is_table_off_told;
        size_t len = block.len + tell_off;
        uint8_t *to = w->out + w->n;
        if (w->size - w->n < H2_FRAME_HEAD + len) {
                h->table_id = table_id;
                return false;
        }
        uint8_t flags =
                p->has_body ? H2_FLAG_END_HEADERS : H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM;
        h2_frame_head_put(to, (struct h2_frame){(uint32_t)len, H2_HEADERS, flags, st->id});
        to += H2_FRAME_HEAD;
        if (tell_off)
                *to++ = H2_TABLE_OFF;
        h->is_table_off_told |= tell_off;
        memcpy(to, block.p, block.len);
        w->n += H2_FRAME_HEAD + len;
        p->is_head_due = false;
        return true;
}

static size_t least(size_t a, size_t b) {
        return a < b ? a : b;
}

/* Bytes of the body that may go into the next frame. */
static size_t data_room(const struct h2_server *h, struct http_stream *st, const struct writer *w) {
        int32_t window = h2_priv_of(st)->send_window;
        if (h->send_window < window)
                window = h->send_window;
        size_t room = w->size - w->n;
        if (window <= 0 || room <= H2_FRAME_HEAD)
                return 0;
        return least(least(room - H2_FRAME_HEAD, H2_FRAME_MAX), (size_t)window);
}

static void data_write(struct h2_server *h, struct http_stream *st, struct writer *w, size_t room) {
        struct h2_priv *p = h2_priv_of(st);
        uint8_t *to = w->out + w->n;
        bool end;
        size_t n = http_stream_pull(st, (char *)to + H2_FRAME_HEAD, room, &end);
        st->progress_bytes += n;
        p->send_window -= (int32_t)n;
        h->send_window -= (int32_t)n;
        uint8_t flags = end ? H2_FLAG_END_STREAM : 0;
        h2_frame_head_put(to, (struct h2_frame){(uint32_t)n, H2_DATA, flags, st->id});
        w->n += H2_FRAME_HEAD + n;
        if (end)
                stream_sent(h, st);
        else
                h2_ready(h, st);
}

/* One frame of the body of the stream just taken off the list, if there is
 * something to say and the peer wants to hear it. False if the record is full. */
static bool body_write(struct h2_server *h, struct http_stream *st, struct writer *w) {
        size_t queued = http_stream_queued(st);
        size_t free_room = w->size - w->n;
        if (queued == 0 && !st->out_end)
                return true; /* resume() will bring it back */
        if (free_room < H2_FRAME_HEAD + least(queued, DATA_MIN))
                return false;
        size_t room = data_room(h, st, w);
        if (queued > 0 && room == 0) {
                h2_priv_of(st)->waits = h->send_window <= 0;
                return true; /* a window update will */
        }
        data_write(h, st, w, room);
        return true;
}

/* Writes the next frames of the first stream; false if the record is full. */
static bool stream_write(struct h2_server *h, struct writer *w) {
        struct http_stream *st = ready_first(h);
        struct h2_priv *p = h2_priv_of(st);
        if (p->is_head_due && !head_write(h, st, w))
                return false;
        h2_ready_leave(h, st);
        if (!p->has_body) {
                stream_sent(h, st);
                return true;
        }
        if (body_write(h, st, w))
                return true;
        h2_ready(h, st);
        return false;
}

size_t h2_output_pull(struct h2_server *h, uint8_t *out, size_t size) {
        struct writer w = {.out = out, .size = size};
        if (h->owed >= H2_WINDOW_FIRST / 2 && !h->is_dead) {
                h2_window_give(h, 0, h->owed);
                h->receive_window += (int32_t)h->owed;
                h->owed = 0;
        }
        w.n = control_pull(h, out, size);
        while (!h->is_dead && h->last_ready && stream_write(h, &w))
                ;
        return w.n;
}
