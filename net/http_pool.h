/* net/http_pool.h - connections to one address, for many calls: few multiplexed
 * ones of HTTP/2, or as many of HTTP/1.1 as there are calls at a time, the one
 * used last first.
 *
 * Connections are opened when first needed and reopened with back-off. A call
 * that finds no room waits (bounded, in order of arrival) and its deadline
 * runs meanwhile. Nothing is sent twice: a call that may have been acted upon
 * ends as HTTP_CALL_LOST; one that surely was not ends as HTTP_CALL_UNSENT,
 * after one silent second try on another connection.
 *
 * After `breaker_failures` failed connects or timeouts in a row the pool is
 * away: calls fail at once with -EHOSTDOWN, but for one every `breaker_ms`, the
 * probe. A connection brings it back from failed connects, only an answer from
 * timeouts. A connection with as many timeouts in a row is dropped.
 *
 * Units      counts, milliseconds.
 * Context    the loop's thread.
 */
#ifndef NET_HTTP_POOL_H
#define NET_HTTP_POOL_H

#include "net/http_client.h"

struct http_pool;

struct http_pool_conf {
        enum http_protocol protocol;
        const char *address;
        struct tls_context *tls; /* NULL: in the clear */
        const char *server_name;
        uint32_t connections; /* at most */
        uint32_t in_flight;   /* calls open on all connections together */
        uint32_t waiting;     /* calls waiting for room */
        uint32_t header_bytes;
        uint32_t window_bytes;
        uint32_t breaker_failures;
        int64_t connect_ms;
        int64_t idle_ms;    /* HTTP/1.1: closes a connection without a call; 0: never */
        int64_t breaker_ms; /* between probes while away */
        struct http_client_counters *counters; /* NULL, or living longer */
};

struct http_pool_stats {
        uint64_t calls_total, in_flight, waiting, connections_open;
        uint64_t failures_total; /* failed connects, calls lost or malformed */
        uint64_t timeouts_total, refused_full, refused_away;
};

NET_MUST int http_pool_new(struct loop *l, const struct http_pool_conf *conf,
                           struct http_pool **out);
/* Calls still open end as HTTP_CALL_LOST or HTTP_CALL_UNSENT. May be called by
 * an on_done. */
void http_pool_free(struct http_pool **p);

/* 0: on_done will follow; a deadline that passes while the call waits for room
 * ends it as HTTP_CALL_TIMEOUT like any other. -EHOSTDOWN: away. -ENOBUFS: the
 * queue is full. -ENOMEM, and what http_client_check() says. */
NET_MUST int http_pool_start(struct http_pool *p, struct http_call *call,
                             const struct http_call_request *request);
/* Whether a call started now would be refused as away. False again when the
 * next probe is due: the call that comes then is the probe. */
bool http_pool_is_away(const struct http_pool *p);
/* Calls wait, and no connection is being opened for them: only the end of
 * another call gives them room. */
bool http_pool_is_full(const struct http_pool *p);
void http_pool_stats(const struct http_pool *p, struct http_pool_stats *out);

#endif
