/* net/http_client.h - one client connection of HTTP/2 or HTTP/1.1, under TLS or
 * in the clear, and the calls on it: many at a time, or one.
 *
 * A call is one request and its answer. Its struct is embedded by the caller;
 * everything given to start is copied. `on_done` runs exactly once unless the
 * call is cancelled, never inside start, never after cancel.
 *
 * Units      bytes, milliseconds.
 * Ownership  the caller owns the call and keeps it until on_done or cancel.
 *            Spans given to callbacks live during the callback.
 * Context    the loop's thread.
 * Source     RFC 9113; which calls are safe to send again: 8.7, 6.8. RFC 9112,
 *            9.3.
 */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include "net/http.h"
#include "net/loop.h"
#include "net/metrics.h"
#include "net/tls.h"

struct http_client;
struct http_call;

enum http_call_outcome {
        HTTP_CALL_OK,       /* the whole answer came */
        HTTP_CALL_UNSENT,   /* surely not acted upon, or a GET, HEAD or OPTIONS whose kept
                               HTTP/1.1 connection ended without a byte: to be sent again */
        HTTP_CALL_TIMEOUT,  /* the deadline passed: the outcome is unknown */
        HTTP_CALL_LOST,     /* connection or stream broke: outcome unknown */
        HTTP_CALL_PROTOCOL, /* the answer was malformed or over a limit */
};

struct http_call_events {
        /* Final status (1xx are dropped) and fields. */
        void (*on_head)(struct http_call *c, int status, const struct http_header *headers,
                        size_t n);
        /* With manual_window set, say http_call_consumed() when done with it. */
        void (*on_data)(struct http_call *c, struct span data);
        void (*on_done)(struct http_call *c, enum http_call_outcome outcome);
};

/* Who stands between a call and its caller (the pool). Told instead of the
 * caller: the end of the call, and that the caller cancelled it. */
struct http_call_keeper {
        void (*on_done)(struct http_call *c, enum http_call_outcome outcome);
        void (*on_cancel)(struct http_call *c);
};

/* Zeroed before its first start. */
struct http_call {
        const struct http_call_events *events;
        void *owner;
        bool manual_window; /* back-pressure: the window opens on consumed() */
        /* the connection's: */
        struct http_client *client; /* NULL when idle */
        const struct http_call_keeper *keeper;
        void *pool;
        int32_t stream; /* its number, for logs */
        uint64_t priv[24];
};

struct http_call_request {
        struct span method, scheme, authority, path;
        const struct http_header *headers;
        size_t n_headers;
        struct span body;
        int64_t deadline_ms; /* from now; must be > 0 */
};

enum http_protocol {
        HTTP_PROTOCOL_H2, /* without TLS by prior knowledge */
        HTTP_PROTOCOL_HTTP11,
};

/* Cancelled calls of HTTP/2, and what became of them. */
struct http_client_counters {
        struct metrics_counter let_run;  /* the answer was left to end by itself */
        struct metrics_counter resets;   /* RST_STREAM sent, for any reason */
        struct metrics_counter given_up; /* connections with too many of them */
};

struct http_client_conf {
        enum http_protocol protocol;
        const char *address;     /* "127.0.0.1:80" or "[::1]:80" */
        struct tls_context *tls; /* NULL: plain text */
        const char *server_name; /* SNI; NULL without TLS */
        int64_t connect_ms;      /* TCP and TLS together */
        uint32_t max_streams;    /* ours; the peer's setting may be lower */
        uint32_t header_bytes;   /* ceiling of an answer's head */
        uint32_t window_bytes;   /* a stream's receive window */
        int64_t idle_ms;         /* HTTP/1.1: closes without a call; 0: never */
        /* Ready to take calls. HTTP/1.1: and again after each call behind which
         * it can take the next. */
        void (*on_ready)(void *owner, struct http_client *c);
        /* No call is left on it and none can be started; `why` is -errno, or 0
         * for an orderly end. The client is freed after this returns. */
        void (*on_closed)(void *owner, struct http_client *c, int why);
        void *owner;
        struct http_client_counters *counters; /* NULL, or living longer */
};

/* Starts connecting. < 0 only for a bad address or no descriptor. */
NET_MUST int http_client_open(struct loop *l, const struct http_client_conf *conf,
                              struct http_client **out);
/* Ends it at once; open calls get HTTP_CALL_LOST (UNSENT where that is sure),
 * then on_closed. All of it before this returns. */
void http_client_close(struct http_client *c);
/* No new calls; closes when the last one is done. */
void http_client_drain(struct http_client *c);

bool http_client_is_ready(const struct http_client *c);
/* Calls that could be started now. */
uint32_t http_client_room(const struct http_client *c);
uint32_t http_client_open_calls(const struct http_client *c);

/* 0; -EMSGSIZE above 64 KiB or 128 fields, -EINVAL for what may not be in a
 * request: fields about the connection, host, names in upper case, bytes that
 * would end a field. Content-length is written from the body, given or not. */
NET_MUST int http_client_check(const struct http_call_request *request);
/* 0; as check; -ENOTCONN before on_ready or when draining; -EAGAIN without
 * room; -ENOMEM. The bytes leave at the end of the turn. */
NET_MUST int http_client_start(struct http_client *c, struct http_call *call,
                               const struct http_call_request *request);
/* As start, but nothing is copied: all that `request` points to must live until
 * the keeper's on_done or the cancel. It has passed the check. */
NET_MUST int http_client_start_kept(struct http_client *c, struct http_call *call,
                                    const struct http_call_request *request,
                                    const struct http_call_keeper *keeper);
/* Forgets the call (a short answer runs out unread, a long one is reset in time;
 * an HTTP/1.1 connection goes with it once a byte was sent); it may be freed or started anew at
 * once. Idempotent. */
void http_call_cancel(struct http_call *call);
void http_call_consumed(struct http_call *call, size_t n);
/* The deadline is `deadline_ms` > 0 from now instead: for answers that are
 * streamed and make progress. Nothing happens on a call that is not open. */
void http_call_extend(struct http_call *call, int64_t deadline_ms);

#endif
