/* net/http_load.h - whether a loop keeps up with what its clients ask.
 *
 * The measure is the age of the turn: whatever became ready while a turn is
 * under way waits for the next, so no request waits much longer than two turns
 * take. A turn that has served many requests and is older than it may be is
 * busy: its further requests are answered 503 without asking anybody, and new
 * connections are not taken for a moment. When even that takes twice as long,
 * the connections that go on asking are sent away as well.
 *
 * A turn with few requests is never busy: then the machine was away, and it
 * is not the clients that have to be fewer.
 *
 * Units      milliseconds of the loop.
 * Ownership  a plain value to embed.
 * Context    the loop's thread.
 */
#ifndef NET_HTTP_LOAD_H
#define NET_HTTP_LOAD_H

#include "net/loop.h"

enum http_load_level {
        HTTP_LOAD_FINE,
        HTTP_LOAD_BUSY,     /* refuse the request */
        HTTP_LOAD_TOO_BUSY, /* and send the connection away */
};

struct http_load {
        int64_t ceiling_ms; /* of a turn's age; 0: none */
        int64_t turn_ms;    /* the turn that is counted */
        int64_t busy_at_ms; /* the last busy turn; 0: never */
        uint32_t requests;  /* of it so far */
        enum http_load_level level;
};

/* Counts a request of the present turn and says what is to become of it. */
enum http_load_level http_load_add(struct http_load *l, const struct loop *loop);
/* True in a busy turn and a quarter of a second after. */
bool http_load_is_busy(const struct http_load *l, int64_t now_ms);

#endif
