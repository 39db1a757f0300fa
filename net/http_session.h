/* net/http_session.h - what a server session of HTTP/2 or HTTP/1.1 is to the
 * connection that feeds it: bytes in, events out, bytes out. No socket, no
 * clock, no TLS; no frame and no version is visible from outside.
 *
 * A turn of a connection:
 *
 *   feed bytes (any number of times)        the session only records
 *   while next: judge, dispatch, tell       answers may be given here
 *   pull bytes until it gives none          they go to the socket
 *
 * A stream whose client reset it before `next` reached it is never seen.
 *
 * Units      bytes; `now_ms` of the loop, set by the connection before each
 *            feed and pull.
 * Ownership  the session owns its streams. One that `next` has shown is held
 *            until http_stream_release() and lives at least as long.
 * Context    one loop.
 */
#ifndef NET_HTTP_SESSION_H
#define NET_HTTP_SESSION_H

#include "net/buf.h"
#include "net/h2_limits.h"
#include "net/http_head.h"
#include "net/http_page.h"

enum http_stream_event {
        HTTP_STREAM_HEAD = 1,  /* the head is complete: judge it and dispatch */
        HTTP_STREAM_BODY = 2,  /* `body` has grown, or it is complete */
        HTTP_STREAM_DRAIN = 4, /* `out` fell below half of HTTP_STREAM_QUEUE */
        HTTP_STREAM_GONE = 8,  /* over before its answer was; comes alone */
};

/* A peer has so long to acknowledge our SETTINGS (RFC 9113, 6.5.3). */
#define HTTP_SESSION_ACK_MS 10000

#define HTTP_STREAM_WINDOW ((size_t)65535)
#define HTTP_STREAM_QUEUE ((size_t)65536)
/* `out` past this breaks the stream: its writer does not listen. */
#define HTTP_STREAM_QUEUE_MAX ((size_t)1 << 20)

struct http_session;

/* One request and its answer. The connection reads all fields and writes
 * those marked so. */
struct http_stream {
        struct http_session *session;
        struct http_stream *prev, *next; /* of the session's streams */
        struct http_stream *next_event;
        struct arena arena; /* of this struct, the head, the exchange */
        struct http_head head;
        struct h2_repeat *repeat; /* the head lies in it; or NULL */
        void *user;               /* the connection's */
        int32_t id;
        uint32_t stored; /* its share of the session's stored_bytes */
        unsigned events; /* enum http_stream_event or'ed, not yet shown */
        bool queued;     /* among the session's events */
        bool held;
        bool closed;       /* the session is done with it */
        bool head_seen;    /* shown to the connection */
        bool received_end; /* the request is complete */
        bool answered;     /* the answer's head was given */
        bool sent_end;     /* its last byte was pulled */
        bool discard_body; /* nobody wants the body: drop what comes */
        bool is_head;      /* no body in the answer */
        bool want_drain;
        /* the request's body */
        struct buf body;   /* ceiling: a window, until the connection sets it */
        bool body_lost;    /* it did not fit or there was no memory */
        size_t unconsumed; /* bytes of the body not yet given back as window */
        /* the answer's body: `fixed`, then `out` */
        struct http_page *page; /* a reference, or NULL */
        struct span fixed;
        size_t fixed_at;
        struct buf out;
        bool out_end; /* nothing will be added */
        /* progress, the connection's */
        int64_t head_at_ms;
        int64_t sent_end_at_ms; /* the session's */
        int64_t progress_at_ms;
        size_t progress_bytes; /* pulled since then */
        uint64_t priv[12];     /* the session's */
};

/* The head of an answer. Names and values must live as long as the stream. */
struct http_answer {
        int status;
        const struct http_header *headers;
        size_t n;
        bool has_body;        /* more than the head will follow */
        bool is_length_known; /* `headers` has content-length, or needs none */
};                            /* of the stream's `page` if it has one */

struct http_session_ops {
        /* 0, or < 0 after which only pull is of use: the session has said why
         * to its peer, and `why` has the reason. */
        int (*feed)(struct http_session *s, const char *data, size_t len);
        /* Up to `size` bytes to send; 0 when there are none now. */
        size_t (*pull)(struct http_session *s, char *out, size_t size);
        void (*answer)(struct http_stream *st, const struct http_answer *a);
        /* More output, or its end, was added to `out`. */
        void (*resume)(struct http_stream *st);
        /* Breaks the stream off; one answered in full, without an error. */
        void (*abort)(struct http_stream *st);
        /* The client may send `n` further bytes of body. */
        void (*consume)(struct http_stream *st, size_t n);
        /* The handler wants the body (100 Continue). */
        void (*want_body)(struct http_stream *st);
        /* Orderly end: first a notice, later (`final`) no new streams. */
        void (*drain)(struct http_session *s, bool final);
        /* All that was asked for is done: nothing to come in or go out. */
        bool (*is_done)(const struct http_session *s);
        /* Frees the session and every stream; held ones are lost. */
        void (*free)(struct http_session *s);
};

enum http_session_why {
        HTTP_SESSION_FINE,
        HTTP_SESSION_PROTOCOL,
        HTTP_SESSION_GLITCHES,
        HTTP_SESSION_RESETS,
        HTTP_SESSION_NO_MEMORY,
};

struct h2_coder;
struct h2_repeats;

struct http_session_conf {
        struct pool *pool;
        struct h2_coder *coder; /* HTTP/2 */
        struct h2_repeats *repeats;
        struct http_head_limits head;
        uint32_t streams;
        struct h2_bucket_conf glitches, resets;
        bool is_tls;
};

struct http_session {
        const struct http_session_ops *ops;
        const struct http_session_conf *conf; /* lives as long as the server */
        struct http_stream *streams;
        struct http_stream *last_event; /* a ring: its next is the first */
        uint32_t n_streams;
        uint32_t stored_bytes; /* heads of all streams */
        int64_t now_ms;        /* the connection's */
        int64_t head_since_ms; /* a head (or the preface) is half received; 0: none */
        int64_t ack_since_ms;  /* our SETTINGS are not acknowledged; 0: they are */
        uint8_t why;           /* enum http_session_why */
        bool is_full;          /* wants no bytes now */
};

/* Header bytes kept for all streams of a connection. */
#define HTTP_SESSION_STORED_MAX ((uint32_t)262144)

static inline bool http_session_has_events(const struct http_session *s) {
        return s->last_event != NULL;
}

/* The next stream with something to tell, now held; NULL when none is left.
 * GONE comes alone, and never for a stream not shown before. */
struct http_stream *http_session_next(struct http_session *s, unsigned *events);
/* The connection forgets the stream. It may be gone when this returns. */
void http_stream_release(struct http_stream *st);
/* Bytes of answers not yet pulled. */
size_t http_session_queued(const struct http_session *s);

/* ---- for sessions ---- */

/* NULL without memory. */
struct http_stream *http_stream_new(struct http_session *s, int32_t id);
/* Puts the stream among the events, once; `event` 0 only sees to its end. */
void http_stream_note(struct http_stream *st, unsigned event);
/* Frees a stream that is closed, not held and not queued; else nothing. */
void http_stream_reap(struct http_stream *st);
/* Adds a field to the head, within the budget of stream and connection. */
void http_stream_field(struct http_stream *st, const struct http_field_seen *f);
/* Keeps bytes of the body, or drops them and returns false. */
bool http_stream_body(struct http_stream *st, const void *data, size_t len);
void http_session_free_streams(struct http_session *s);

static inline size_t http_stream_queued(const struct http_stream *st) {
        return st->fixed.len - st->fixed_at + buf_len(&st->out);
}

/* Copies up to `size` bytes of the answer's body; `end` when it is complete. */
size_t http_stream_pull(struct http_stream *st, char *out, size_t size, bool *end);

#endif
