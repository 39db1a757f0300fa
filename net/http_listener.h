/* net/http_listener.h - a listening socket that feeds a hub.
 *
 * It accepts in batches no larger than what handshakes can be begun in a turn,
 * pauses while too many of them are under way, and sheds connections one by
 * one when the process is out of descriptors. When clients come faster than
 * that for longer than one may wait, all who are queued are closed: those who
 * come next are served at once, and the others know.
 *
 * Ownership  a value to embed; it must not move while open.
 * Context    the loop's thread.
 */
#ifndef NET_HTTP_LISTENER_H
#define NET_HTTP_LISTENER_H

#include "net/http_hub.h"

struct http_listener {
        struct http_hub *hub;
        struct loop_io io;
        struct loop_timer rest;  /* started: off for a moment */
        int fd;                  /* -1: closed */
        int spare_fd;            /* given up to accept and close one more */
        int64_t behind_since_ms; /* not all who wait could be taken; 0: they were */
        uint16_t port;
};

/* As http_server_listen(). */
NET_MUST int http_listener_open(struct http_listener *li, struct http_hub *h, const char *address,
                                bool reuse_port);
void http_listener_close(struct http_listener *li);
/* The same, after accepting those who have connected already. */
void http_listener_finish(struct http_listener *li);
/* Accepts again if it had paused for want of room. */
void http_listener_wake(struct http_listener *li);

#endif
