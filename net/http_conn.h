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
        struct http_conn *prev, *next;
        struct http_conn *next_again;
        enum http_conn_state state;
        int fd;
        struct loop_io io;
        struct loop_defer turn_end;
        struct tls *tls;
        struct http_session *session; /* NULL while handshaking, lingering */
        struct buf pending;           /* pulled, but the socket took no more */
        int64_t since_ms;             /* of the state; IDLE: of the last request */
        int64_t mark_at_ms;           /* output was seen to move, or to be none */
        int64_t drain_at_ms;          /* the notice was given; 0 not */
        uint64_t sent_bytes;
        uint64_t mark_bytes; /* sent_bytes then */
        uint32_t requests;
        uint32_t lingered_bytes;
        bool is_eof;     /* the peer sends no more */
        bool is_failed;  /* the session or the socket is beyond use */
        bool is_broken;  /* the socket is: nothing can be sent */
        bool wants_more; /* the write loop stopped for others' sake */
        bool is_again;   /* on the hub's `again` */
        bool is_used;    /* a request since the last settling */
        bool drain_final;
        uint8_t n_first;
        char first[4]; /* plain text: bytes before the protocol was clear */
        struct sockaddr_storage peer;
};

/* Takes the descriptor over, also when there is no memory for it. */
void http_conn_open(struct http_hub *h, int fd, const struct sockaddr_storage *peer);
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

#endif
