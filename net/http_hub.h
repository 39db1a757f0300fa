/* net/http_hub.h - what the connections of one server share: configuration,
 * memory, buffers, counters, the lists they are on, and the sweep that looks at
 * their times.
 *
 * Units      bytes, milliseconds of the loop.
 * Ownership  the hub owns its connections.
 * Context    the loop's thread; counters may be read by any.
 */
#ifndef NET_HTTP_HUB_H
#define NET_HTTP_HUB_H

#include "net/http_handshake.h"
#include "net/http_load.h"
#include "net/http_server.h"
#include "net/http_session.h"
#include "net/metrics.h"

struct http_conn;

enum http_conn_state {
        HTTP_CONN_HANDSHAKING, /* TLS, or the first bytes of plain text */
        HTTP_CONN_IDLE,        /* nothing open, nothing queued */
        HTTP_CONN_ACTIVE,
        HTTP_CONN_LINGERING, /* said all; reads until the peer has heard it */
        HTTP_CONN_STATES,
};

struct http_counters {
        struct metrics_counter connections_open, connections_total, connections_refused;
        struct metrics_counter refused_network, refused_overload, refused_memory;
        struct metrics_counter requests_shed, connections_sent_away;
        struct metrics_counter handshakes_full, handshakes_resumed, handshakes_failed;
        struct metrics_counter networks_closed, networks_unknown, abandoned;
        struct metrics_counter exchanges_open, requests_total;
        struct metrics_counter closed_glitches, closed_resets, closed_timeouts, closed_protocol;
        struct metrics_counter closed_memory, sent_away_memory;
        struct metrics_counter header_limit_hits, queue_limit_hits, accept_errors;
        struct metrics_counter repeats_evicted;
};

struct http_conn_list {
        struct http_conn *first, *last;
};

/* Refusals given without asking the handler. */
enum http_refusal {
        HTTP_REFUSE_MALFORMED,
        HTTP_REFUSE_METHOD,
        HTTP_REFUSE_TOO_LARGE,
        HTTP_REFUSE_NO_MEMORY,
        HTTP_REFUSE_BUSY,
        HTTP_REFUSAL_COUNT,
};

#define HTTP_READ_BYTES ((size_t)65536)
#define HTTP_RECORD_BYTES ((size_t)16384)

struct http_hub {
        struct loop *loop;
        struct http_server_conf conf;
        struct tls_context *tls; /* a reference, or NULL */
        struct pool *pool;
        struct h2_coder *coder;
        struct h2_repeats *repeats;
        struct http_session_conf session_conf;
        struct http_counters counters;
        struct http_conn_list lists[HTTP_CONN_STATES];
        uint64_t n_conns, n_handshaking, exchanges_open;
        struct http_conn *retired;            /* freed at the end of the turn */
        struct http_conn *again;              /* have read-ahead bytes no event will tell of */
        struct http_conn *flush, **flush_end; /* have output, for the end of the turn */
        struct loop_defer run_flush;
        struct loop_defer free_retired;
        struct loop_timer sweep;
        struct loop_timer read_again;
        struct loop_timer trim_on;
        int64_t sweep_ms; /* its interval */
        int64_t swept_at_ms;
        int64_t trimmed_at_ms; /* memory was looked at */
        uint64_t most_conns;   /* since memory went back to the system */
        int64_t used_at_ms;    /* there was a connection */
        struct http_handshakes handshakes;
        struct http_load load;
        int64_t behind_at_ms; /* a listener could not take all who waited; 0: never */
        struct http_page *refusals[HTTP_REFUSAL_COUNT];
        uint32_t memory_round; /* the last measurement that was acted on */
        bool draining;
        bool is_lenient;                      /* the last sweep judged nobody */
        void (*on_room)(struct http_hub *h);  /* fewer handshakes or connections */
        void (*on_empty)(struct http_hub *h); /* the last connection is gone */
        char in[HTTP_READ_BYTES];
        char out[HTTP_RECORD_BYTES];
};

NET_MUST int http_hub_init(struct http_hub *h, struct loop *l, const struct http_server_conf *conf);
/* Closes every connection at once. */
void http_hub_fini(struct http_hub *h);
/* Two notices and the end for every connection. */
void http_hub_drain(struct http_hub *h);

/* Moves a connection to the list of `state`, at its end, and stamps it. */
void http_hub_move(struct http_conn *c, enum http_conn_state state);
/* Off every list; freed at the end of the turn. */
void http_hub_retire(struct http_conn *c);
/* The connection is flushed at the end of the turn, or before it ends. */
void http_hub_flush_later(struct http_conn *c);
void http_hub_flush_cancel(struct http_conn *c);
/* Flushes all who are due. */
void http_hub_flush(struct http_hub *h);
/* Gives back what nobody has needed since the last call, in small parts, a few
 * milliseconds apart. */
void http_hub_trim(struct http_hub *h);
/* The connection's read goes on in the next turn without an event. */
void http_hub_read_again(struct http_conn *c);

#endif
