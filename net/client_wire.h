/* net/client_wire.h - a client's socket, in the clear or under TLS: connects,
 * shakes hands, moves bytes, never waits.
 *
 * It knows no frames. What the socket does not take at once is kept, in order,
 * up to a ceiling.
 *
 * Units      bytes.
 * Ownership  a plain value to embed; close gives everything back.
 * Context    the loop's thread. on_ready is the owner's; watch says what for.
 */
#ifndef NET_CLIENT_WIRE_H
#define NET_CLIENT_WIRE_H

#include "net/buf.h"
#include "net/loop.h"
#include "net/tls.h"

struct client_wire {
        struct loop_io io; /* first the connect, then input and output */
        struct tls *tls;   /* NULL: in the clear */
        struct buf out;    /* waits for the socket */
        uint64_t accepted; /* bytes the socket (or TLS) took, since the start */
        int failed;        /* -errno of a connect that failed at once */
        bool read_wants_write;
};

enum client_wire_outcome {
        CLIENT_WIRE_DONE = 0,
        CLIENT_WIRE_WAIT = 1,   /* on_ready will say when to go on */
        CLIENT_WIRE_CLOSED = 2, /* the peer closed in order */
};

/* "127.0.0.1:80", "[::1]:80". -EINVAL: no such address; no descriptor. Other
 * failures are told by client_wire_connected(). */
NET_MUST int client_wire_open(struct client_wire *w, struct loop *l, const char *address,
                              void (*on_ready)(struct loop_io *, unsigned));
void client_wire_close(struct client_wire *w, bool is_orderly);

/* Once writable: 0, or why there is no connection. */
NET_MUST int client_wire_connected(struct client_wire *w);
/* DONE, WAIT, or -errno; -EPROTO when the peer does not agree on `alpn`, one of
 * enum tls_alpn; for HTTP/1.1 saying nothing is agreeing. The first call begins
 * the handshake. */
NET_MUST int client_wire_secure(struct client_wire *w, struct tls_context *tls,
                                const char *server_name, unsigned alpn);

/* Watches for input if asked to, and for output while something waits. */
void client_wire_watch(struct client_wire *w, bool input);

/* Reads what is at hand, up to `size`. DONE: there may be more; WAIT: that was
 * all; CLOSED or -errno: no more will come. `*n` counts in every case. */
NET_MUST int client_wire_read(struct client_wire *w, char *where, size_t size, size_t *n);
/* There are bytes that no on_ready will tell of. */
bool client_wire_has_more(const struct client_wire *w);

/* Writes what waits. DONE: nothing waits any more. */
NET_MUST int client_wire_flush(struct client_wire *w);
/* After DONE of flush. Writes `data`, and keeps what the socket does not take:
 * then WAIT. */
NET_MUST int client_wire_write(struct client_wire *w, struct span data);

#endif
