/* net/h2_session.h - the inside of the server's side of an HTTP/2 connection,
 * for the files that make it up:
 *
 *   h2_server.c   its operations, its life
 *   h2_input.c    bytes to frames to events
 *   h2_block.c    header blocks to requests
 *   h2_stream.c   which streams there are, and what became of the others
 *   h2_output.c   answers and control frames to bytes
 *
 * Nothing of it allocates but a stream's arena, the queue of control frames
 * while it is not empty, and the decoder's table.
 *
 * Units      bytes; milliseconds of the loop.
 * Source     RFC 9113.
 */
#ifndef NET_H2_SESSION_H
#define NET_H2_SESSION_H

#include "net/h2_frame.h"
#include "net/h2_hpack.h"
#include "net/h2_limits.h"
#include "net/h2_message.h"
#include "net/h2_repeat.h"
#include "net/http_session.h"

/* Where in a frame the next byte belongs. */
enum h2_at {
        H2_AT_PREFACE,
        H2_AT_HEAD,    /* the nine bytes */
        H2_AT_PREFIX,  /* what stands in front: pad length, a whole control frame */
        H2_AT_PAYLOAD, /* block, data, settings, or nothing we read */
        H2_AT_PADDING,
};

/* Streams whose fate is remembered, the youngest. More than may be open. */
#define H2_FATES 128

struct h2_server {
        struct http_session base;
        struct h2_decoder *decoder;
        struct http_stream *block;      /* whose head, trailers or data come now */
        struct http_stream *last_ready; /* of those with something to send; a ring, as above */
        struct h2_repeat *repeat;       /* the head that came twice */
        char *control;                  /* frames to send before all others */
        uint16_t control_at, control_len, control_size; /* sent, written, room */
        struct h2_bucket glitches, resets;
        int64_t useless;   /* bytes received, less eight times those of heads and bodies */
        uint64_t table_id; /* whose `first` block the peer's table holds */
        uint64_t fates[H2_FATES / 32]; /* enum h2_fate, two bits a stream */
        struct h2_frame frame;
        uint32_t left;        /* of its payload, without padding */
        uint32_t pure_hash;   /* of the last block, if it was pure; else 0 */
        uint32_t block_bytes; /* of the fields so far, by their cost */
        int32_t block_id;     /* END_HEADERS has not come yet; 0: none under way */
        int32_t last_id;      /* the highest a client opened; -1: none */
        int32_t served_id;    /* the highest not refused by the end; as told in GOAWAY */
        int32_t first_window; /* the peer's SETTINGS_INITIAL_WINDOW_SIZE */
        int32_t send_window, receive_window;
        uint32_t owed; /* window to give back */
        uint32_t n_open;
        uint8_t at;      /* enum h2_at */
        uint8_t padding; /* of the frame, still to come */
        uint8_t n_part;
        uint8_t n_continuations;
        uint8_t part[10]; /* a prefix, or part of one, over two reads */
        bool had_settings : 1;
        bool is_trailer : 1; /* of the block under way */
        bool is_block_end_stream : 1;
        bool is_dead : 1;  /* the last GOAWAY is queued: nothing else matters */
        bool is_ended : 1; /* the last GOAWAY of an orderly end is */
        bool is_table_off : 1, is_table_off_told : 1;
};

/* Half of what one connection may cost of ours (net/http_conn.h has the other). */
_Static_assert(sizeof(struct h2_server) <= 256, "a session is small");

/* What a session keeps in a stream's `priv`. */
struct h2_priv {
        struct http_stream *next_ready;
        struct span block; /* the answer's, if it is not a page */
        struct h2_message message;
        int32_t send_window, receive_window;
        uint32_t owed;
        bool is_ready;     /* among those that are */
        bool is_head_done; /* the request's head is complete */
        bool is_head_due;  /* the answer's head was given, not yet pulled */
        bool has_body;     /* of the answer */
        bool waits;        /* for the connection's window */
};

_Static_assert(sizeof(struct h2_priv) <= sizeof(((struct http_stream *)0)->priv), "room");

static inline struct h2_priv *h2_priv_of(struct http_stream *st) {
        return (struct h2_priv *)(void *)st->priv;
}

/* ---- h2_input.c ---- */

NET_MUST int h2_input_take(struct h2_server *h, const uint8_t *data, size_t len);
/* Ends the connection with GOAWAY; -EPROTO, for the caller to return. */
int h2_fail(struct h2_server *h, enum h2_error code, enum http_session_why why);
/* The same for a breach of the protocol. */
int h2_break(struct h2_server *h, enum h2_error code);

/* Bytes that were worth sending. */
static inline void h2_useful(struct h2_server *h, size_t n) {
        h->useless -= 8 * (int64_t)n;
}

/* ---- h2_block.c ---- */

/* A HEADERS frame begins, whose block comes now. */
NET_MUST int h2_headers_begin(struct h2_server *h);
/* A piece of its payload, or of a CONTINUATION's; at their end also none. */
NET_MUST int h2_block_take(struct h2_server *h, struct span piece);
/* The client ended its side of the stream, which `event` tells. */
void h2_request_end(struct h2_server *h, struct http_stream *st, unsigned event);

/* ---- h2_stream.c ---- */

enum h2_fate {
        H2_FATE_NONE,  /* never opened, as far as we remember */
        H2_FATE_RESET, /* by us: what still comes was sent before the peer knew */
        H2_FATE_DONE,  /* complete: a reset behind it is no oddness */
        H2_FATE_GONE,  /* over otherwise */
};

/* The client uses this id; all below it that it did not use are void. */
void h2_ids_pass(struct h2_server *h, int32_t id);
struct http_stream *h2_stream_find(const struct h2_server *h, int32_t id);
/* NULL without memory; the id counts as used all the same. */
struct http_stream *h2_stream_open(struct h2_server *h, int32_t id);
void h2_stream_close(struct h2_server *h, struct http_stream *st, enum h2_fate fate);
/* RST_STREAM, and counted as what a peer made us do if `is_peers_fault`. */
void h2_stream_reset(struct h2_server *h, struct http_stream *st, enum h2_error code,
                     bool is_peers_fault);
/* The same for a stream that has no struct. */
void h2_id_reset(struct h2_server *h, int32_t id, enum h2_error code);
enum h2_fate h2_fate_of(const struct h2_server *h, int32_t id);
void h2_fate_set(struct h2_server *h, int32_t id, enum h2_fate fate);
void h2_glitch(struct h2_server *h, uint32_t weight);
void h2_reset_count(struct h2_server *h);

/* ---- h2_output.c ---- */

/* Queues a frame of a few bytes; a peer that lets them pile up is cut off. */
void h2_control_put(struct h2_server *h, struct h2_frame f, const void *payload);
void h2_window_give(struct h2_server *h, int32_t id, uint32_t by);
size_t h2_output_pull(struct h2_server *h, uint8_t *out, size_t size);
/* The stream may have something to send now. */
void h2_ready(struct h2_server *h, struct http_stream *st);
void h2_ready_leave(struct h2_server *h, struct http_stream *st);
/* The connection's window has grown. */
void h2_ready_waiting(struct h2_server *h);

#endif
