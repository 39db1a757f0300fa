/* net/http_handshake.h - when each TLS handshake of a hub goes on, and whose.
 *
 *   accept -> waiting -> (a step) -> with the client -> waiting -> ... -> over
 *                |
 *                +-> parked: its network has its share under way already
 *
 * Steps are taken at the end of a turn, after the answers of established
 * connections have left, and only so many a turn; the rest waits for the next
 * turn. So a flood of handshakes costs those who are in a few milliseconds.
 *
 * One network may have half of the hub's handshakes under way. What it opens
 * beyond is parked, not refused, until one of its own is over. Handshakes that
 * fail or dawdle are held against it (net/http_networks.h), but not the time
 * that we take; once it is closed, those of its connections that have not begun
 * are closed too.
 *
 * Units      milliseconds of the loop.
 * Ownership  a part of the hub; connections are the hub's.
 * Context    the loop's thread.
 */
#ifndef NET_HTTP_HANDSHAKE_H
#define NET_HTTP_HANDSHAKE_H

#include "net/http_networks.h"
#include "net/loop.h"

struct http_hub;

enum http_shake_place {
        HTTP_SHAKE_NOWHERE, /* not a TLS handshake, or over */
        HTTP_SHAKE_WITH_CLIENT,
        HTTP_SHAKE_WAITING,
        HTTP_SHAKE_PARKED,
};

/* What a connection keeps for its handshake. */
struct http_shake {
        struct http_conn *prev, *next; /* of those waiting, or of the network's parked */
        struct http_network *network;  /* or NULL */
        uint32_t asked_ms;             /* when it last was with the client; the low bits */
        uint32_t client_ms;            /* its times with the client but for that one */
};

struct http_handshakes {
        struct http_networks networks;
        struct http_conn *first, *last; /* waiting for a step */
        uint32_t n_waiting, n_parked;
        struct loop_defer run;
        struct loop_timer go_on;
        bool is_running;
};

NET_MUST int http_handshakes_init(struct http_hub *h);
void http_handshakes_fini(struct http_hub *h);

/* A connection that was just accepted; nothing is read from it yet. False: it
 * is not to be taken, for its network's sake. */
bool http_handshake_join(struct http_conn *c);
/* Its socket is ready. */
void http_handshake_ready(struct http_conn *c);
/* It leaves the state HANDSHAKING, whatever the reason. */
void http_handshake_leave(struct http_conn *c);
/* Its time is up. */
void http_handshake_late(struct http_conn *c);
/* Holds the slow ones against their networks. */
void http_handshakes_judge(struct http_hub *h, int64_t now_ms);

/* Connections that may be accepted in this turn. */
uint32_t http_handshakes_room(const struct http_hub *h);
/* False while as many are under way as may be. */
bool http_handshakes_may_accept(const struct http_hub *h);

#endif
