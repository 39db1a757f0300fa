/* A stream has a struct while it is open. Of the youngest that are over, two
 * bits remember how they ended, because what may still come differs:
 *
 *              HEADERS           DATA             RST_STREAM     WINDOW_UPDATE
 *   NONE       PROTOCOL_ERROR    STREAM_CLOSED    odd            ignored
 *   RESET      ignored           ignored          ignored        ignored
 *   DONE       STREAM_CLOSED     STREAM_CLOSED    free, once     ignored
 *   GONE       STREAM_CLOSED     STREAM_CLOSED    odd            ignored
 *
 * All older ones count as RESET. */
#include "net/h2_session.h"

struct http_stream *h2_stream_find(const struct h2_server *h, int32_t id) {
        struct http_stream *st = h->base.streams;
        while (st && (st->id != id || st->closed))
                st = st->next;
        return st;
}

/* ---- fates ---- */

#define FATES_A_WORD 32

static unsigned fate_place(int32_t id) {
        return ((unsigned)id >> 1) % H2_FATES;
}

void h2_fate_set(struct h2_server *h, int32_t id, enum h2_fate fate) {
        unsigned place = fate_place(id);
        unsigned shift = place % FATES_A_WORD * 2;
        uint64_t *word = &h->fates[place / FATES_A_WORD];
        if (h->last_id - id < 2 * H2_FATES)
                *word = (*word & ~((uint64_t)3 << shift)) | (uint64_t)fate << shift;
}

enum h2_fate h2_fate_of(const struct h2_server *h, int32_t id) {
        unsigned place = fate_place(id);
        /* Forgotten. It may have been open until just now, and broken off by us. */
        if (h->last_id - id >= 2 * H2_FATES)
                return H2_FATE_RESET;
        return (enum h2_fate)(h->fates[place / FATES_A_WORD] >> (place % FATES_A_WORD * 2) & 3);
}

void h2_ids_pass(struct h2_server *h, int32_t id) {
        int32_t more = (id - (h->last_id + 2)) / 2; /* passed over */
        if (more >= H2_FATES) {
                memset(h->fates, 0, sizeof h->fates);
                more = 0;
        }
        h->last_id = id;
        if (!h->is_ended)
                h->served_id = id;
        for (; more >= 0; more--)
                h2_fate_set(h, id - 2 * more, H2_FATE_NONE);
}

/* ---- life ---- */

struct http_stream *h2_stream_open(struct h2_server *h, int32_t id) {
        h2_ids_pass(h, id);
        struct http_stream *st = http_stream_new(&h->base, id);
        if (!st)
                return NULL;
        struct h2_priv *p = h2_priv_of(st);
        h2_message_init(&p->message);
        p->send_window = h->first_window;
        p->receive_window = H2_WINDOW_FIRST;
        h->n_open++;
        return st;
}

void h2_stream_close(struct h2_server *h, struct http_stream *st, enum h2_fate fate) {
        assert(!st->closed && h->n_open > 0);
        h2_ready_leave(h, st);
        st->closed = true;
        h->n_open--;
        h->owed += (uint32_t)st->unconsumed;
        st->unconsumed = 0;
        if (h->block == st)
                h->block = NULL;
        h2_fate_set(h, st->id, fate);
}

void h2_stream_reset(struct h2_server *h, struct http_stream *st, enum h2_error code,
                     bool is_peers_fault) {
        uint8_t payload[4];
        h2_number32_put(payload, code);
        h2_control_put(h, (struct h2_frame){4, H2_RST_STREAM, 0, st->id}, payload);
        if (is_peers_fault)
                h2_reset_count(h);
        h2_stream_close(h, st, H2_FATE_RESET);
        http_stream_note(st, 0);
}

void h2_id_reset(struct h2_server *h, int32_t id, enum h2_error code) {
        uint8_t payload[4];
        h2_number32_put(payload, code);
        h2_control_put(h, (struct h2_frame){4, H2_RST_STREAM, 0, id}, payload);
        h2_fate_set(h, id, H2_FATE_RESET);
}

/* ---- judging ---- */

void h2_glitch(struct h2_server *h, uint32_t weight) {
        if (!h2_bucket_add(&h->glitches, h->base.conf->glitches, weight, h->base.now_ms) &&
            h->base.why == HTTP_SESSION_FINE)
                h->base.why = HTTP_SESSION_GLITCHES;
}

void h2_reset_count(struct h2_server *h) {
        if (!h2_bucket_add(&h->resets, h->base.conf->resets, 1, h->base.now_ms) &&
            h->base.why == HTTP_SESSION_FINE)
                h->base.why = HTTP_SESSION_RESETS;
}
