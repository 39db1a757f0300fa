/* net/http_conn.h - one accepted connection: its socket and TLS, the session
 * that understands its bytes, its limits in time.
 *
 *   accept -> HANDSHAKING -> ACTIVE <-> IDLE
 *                              |  (idle, failed, drained, or the client left)
 *                              +-> LINGERING -> freed
 *
 * and from every state straight to its end, when it is cut.
 *
 * A state is also the list the connection is on. Times are looked at by one
 * coarse sweep; no connection has a timer of its own. Output is pulled from the
 * session once a turn, at its end.
 *
 * Units      bytes, milliseconds of the loop.
 * Ownership  the hub owns its connections.
 * Context    the loop's thread.
 */
#ifndef NET_HTTP_CONN_H
#define NET_HTTP_CONN_H

#include "net/http_hub.h"

struct http_conn {
        struct http_hub *hub;
        struct http_conn *prev, *next; /* of its state */
        struct http_conn *next_again;
        struct http_conn *next_flush, **flush_link; /* NULL: not on the hub's `flush` */
        struct loop_io io;                          /* its descriptor; -1: closed */
        struct tls *tls;
        struct http_session *session; /* NULL while handshaking, lingering */
        char *pending;                /* pulled, but the socket took no more; NULL: nothing */
        uint32_t pending_at, pending_len;
        int64_t since_ms; /* of the state; IDLE: of the last request */
        union {
                struct http_shake shake;     /* HANDSHAKING under TLS */
                struct {                     /* from then on */
                        int64_t mark_at_ms;  /* output was seen to move, or to be none */
                        int64_t drain_at_ms; /* the notice was given; 0 not */
                        uint64_t sent_bytes;
                        uint64_t mark_bytes; /* sent_bytes then */
                };
        };
        union net_address peer;
        uint32_t requests;
        uint32_t lingered_bytes;
        uint8_t state;       /* enum http_conn_state */
        uint8_t place;       /* enum http_shake_place */
        bool is_begun : 1;   /* its handshake is */
        bool is_struck : 1;  /* its handshake was held against its network */
        bool is_eof : 1;     /* the peer sends no more */
        bool is_failed : 1;  /* the session or the socket is beyond use */
        bool is_broken : 1;  /* the socket is: nothing can be sent */
        bool wants_more : 1; /* the write loop stopped for others' sake */
        bool is_again : 1;   /* on the hub's `again` */
        bool is_used : 1;    /* a request since the last settling */
        bool drain_final : 1;
        uint8_t n_first;
        char first[4]; /* plain text: bytes before the protocol was clear */
};

/* There may be a hundred thousand; the session's struct comes on top. */
_Static_assert(sizeof(struct http_conn) <= 240, "a connection is small");

/* Takes the descriptor over, also when there is no memory for it. */
void http_conn_open(struct http_hub *h, int fd, const union net_address *peer);
/* The handshake is over: begins the session. */
void http_conn_greet(struct http_conn *c);
/* Looks at the limits of an open connection; may end it. */
void http_conn_check(struct http_conn *c, int64_t now_ms);
/* Orderly: what is queued leaves, then the socket closes. */
void http_conn_end(struct http_conn *c);
/* At once. on_gone runs for open exchanges. */
void http_conn_cut(struct http_conn *c);
void http_conn_drain(struct http_conn *c);
/* Reads what TLS has read ahead. */
void http_conn_read_again(struct http_conn *c);
void http_conn_free(struct http_conn *c);

/* Output will be pulled and sent at the end of the turn. */
void http_conn_flush_later(struct http_conn *c);
/* Now; a part of http_hub_flush(). */
void http_conn_flush(struct http_conn *c);

#endif
