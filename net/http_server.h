/* net/http_server.h - listening sockets whose clients speak HTTP/2 (and, where
 * a listener allows it, HTTP/1.1), as exchanges of one request and one answer.
 *
 * The handler sees heads, bodies it asked for, and drained output; it never
 * sees sockets, TLS or frames. A request is handed over at the end of the read
 * batch that completed its head, and only if it still stands then, so a
 * stream reset at once costs no work.
 *
 * Limits and abuse (weighted bucket, progress timers, header budget, queue
 * ceilings) live below this header and are counted in http_server_stats.
 *
 * Units      bytes, milliseconds, counts.
 * Ownership  an exchange belongs to the server. It dies after its last answer
 *            call, or after on_gone returns; the handler forgets it then.
 * Context    the loop's thread; callbacks never run inside calls made on the
 *            same exchange.
 */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include "net/address.h"
#include "net/http.h"
#include "net/http_page.h"
#include "net/loop.h"
#include "net/tls.h"

struct http_server;
struct http_exchange;
struct memory_told;

struct http_server_limits {
        uint32_t connections;                /* open at once; further ones are closed */
        uint32_t handshakes;                 /* in progress at once; then accept pauses */
        uint32_t handshakes_per_turn;        /* accepts, and steps of handshakes */
        uint32_t network_strikes;            /* that close a network; 0: none is ever */
        uint32_t streams;                    /* concurrent, a connection; <= 100 */
        uint32_t requests_per_connection;    /* then a graceful GOAWAY */
        uint32_t repeated_heads;             /* kept for those who ask again, all together */
        uint32_t header_fields;              /* crumbs counted one by one */
        uint32_t header_bytes;               /* name + value + 32 each */
        uint32_t queued_bytes;               /* output a connection before it is not read */
        uint32_t glitch_burst, glitch_per_s; /* weighted odd frames */
        uint32_t reset_burst, reset_per_s;   /* unfinished streams reset, either side */
        int64_t handshake_ms;                /* accept to Finished */
        int64_t handshake_slow_ms;           /* from then on it is a strike */
        int64_t network_closed_ms;           /* > 0 */
        int64_t turn_ms;        /* of the loop; then requests are answered 503; 0: no limit */
        int64_t accept_wait_ms; /* who may have waited longer is not accepted; 0: no limit */
        int64_t header_ms;      /* first byte of a head to its end */
        int64_t body_ms;        /* head to the end of the body */
        int64_t stall_ms;       /* output without progress; half of it without window */
        int64_t idle_ms;        /* no open exchange */
};

struct http_server_conf {
        struct tls_context *tls; /* NULL: plain text, h2 by prior knowledge */
        bool http11;             /* HTTP/1.1 as well */
        bool keep_unknown;       /* keep fields outside the table */
        struct http_server_limits limits;
        const struct memory_told *memory; /* how short it is; NULL: nobody looks */
        uint32_t memory_shares;           /* servers that free memory together */
        /* A head is complete. Exactly one answer must follow, now or later. */
        void (*on_request)(void *owner, struct http_exchange *x);
        void *owner;
};

enum http_body_outcome {
        HTTP_BODY_DONE = 0,
        HTTP_BODY_TOO_LARGE = 1, /* nothing was kept: answer 413 */
        HTTP_BODY_LATE = 2,      /* answer 408 */
};

struct http_exchange_events {
        /* After http_exchange_read_body(); enum http_body_outcome. */
        void (*on_body)(struct http_exchange *x, int outcome);
        /* The client went away before the answer was complete. Last call. */
        void (*on_gone)(struct http_exchange *x);
        /* Queued answer data fell below half the ceiling (streamed answers). */
        void (*on_drain)(struct http_exchange *x);
};

struct http_exchange {
        struct http_request request;
        struct span body; /* whole body after HTTP_BODY_DONE, else empty */
        const union net_address *peer;
        bool is_tls;
        const struct http_exchange_events *events; /* the handler's; may be NULL
                                                      when it answers at once */
        void *user;                                /* the handler's */
        struct loop *loop;
};

struct http_server_stats { /* this loop's; written by it, read by any thread */
        uint64_t connections_open, connections_total, connections_refused;
        uint64_t requests_shed, connections_sent_away;
        /* closed at once; not among the refused */
        uint64_t refused_network, refused_overload, refused_memory;
        uint64_t handshakes_full, handshakes_resumed, handshakes_failed;
        uint64_t networks_closed, networks_unknown;
        uint64_t abandoned; /* gone before their handshake could begin */
        uint64_t exchanges_open, requests_total;
        uint64_t closed_glitches, closed_resets, closed_timeouts, closed_protocol;
        uint64_t closed_memory, sent_away_memory; /* dear ones; idle ones */
        uint64_t header_limit_hits, queue_limit_hits, accept_errors;
        uint64_t repeats_evicted;
};

NET_MUST int http_server_new(struct loop *l, const struct http_server_conf *conf,
                             struct http_server **out);
/* Closes what is left, at once. on_gone runs for open exchanges. */
void http_server_free(struct http_server **s);

/* "127.0.0.1:8443", "[::1]:0". Port 0 takes a free one. `reuse_port` lets every
 * worker listen on the same address. < 0: -errno of bind or listen, -EINVAL for
 * a bad address. */
NET_MUST int http_server_listen(struct http_server *s, const char *address, bool reuse_port);
/* The port of the i-th listener, in host order. */
uint16_t http_server_port(const struct http_server *s, size_t i);

/* Stops accepting; every connection gets GOAWAY twice and finishes what is
 * open. on_drained (may be NULL) runs when the last connection is gone. */
void http_server_drain(struct http_server *s, void (*on_drained)(void *owner));
/* New connections use `tls` from now on; old ones keep theirs. */
void http_server_set_tls(struct http_server *s, struct tls_context *tls);
/* The shortage of memory that was told has changed: acts on it now. */
void http_server_relieve(struct http_server *s);
void http_server_stats(const struct http_server *s, struct http_server_stats *out);

/* Memory that lives as long as the exchange; NULL past a 64 KiB ceiling. */
void *http_exchange_alloc(struct http_exchange *x, size_t n);

/* Asks for the whole body, at most `max` bytes; on_body follows, never inside
 * this call. A body not asked for is dropped; if it has not ended a second
 * after the answer, the stream ends with RST_STREAM(NO_ERROR) (RFC 9113, 8.1),
 * or the connection does in HTTP/1.1. */
void http_exchange_read_body(struct http_exchange *x, size_t max);

/* The whole answer from memory; HEAD leaves the body out. Hot path. */
void http_answer_page(struct http_exchange *x, struct http_page *page);
/* The whole answer; everything is copied. content-length is added, `date` is
 * not: a recipient that needs one takes the time of arrival (RFC 9110, 6.6.1).
 * A field with control characters in its value is left out. */
void http_answer(struct http_exchange *x, int status, const struct http_header *headers, size_t n,
                 struct span body);

/* A streamed answer: head, then data until `end`. `content_length` -1 when
 * unknown. http_answer_data() copies and returns the bytes now queued for this
 * exchange; above HTTP_ANSWER_QUEUE stop until on_drain. */
#define HTTP_ANSWER_QUEUE ((size_t)65536)
void http_answer_start(struct http_exchange *x, int status, const struct http_header *headers,
                       size_t n, int64_t content_length);
size_t http_answer_data(struct http_exchange *x, struct span data, bool end);
/* Breaks a started answer off (RST_STREAM, or the HTTP/1.1 connection). */
void http_answer_abort(struct http_exchange *x);

#endif
