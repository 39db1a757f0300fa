/* net/http_listener.h - a listening socket that feeds a hub.
 *
 * It accepts in batches, pauses while too many handshakes are under way, and
 * sheds connections one by one when the process is out of descriptors.
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
        struct loop_timer rest; /* started: off for a moment */
        int fd;                 /* -1: closed */
        int spare_fd;           /* given up to accept and close one more */
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
