/* net/tls.h - TLS server and client sides on OpenSSL 3, over a non-blocking
 * socket.
 *
 * TLS 1.2 at least; ALPN h2 (and http/1.1 where a listener asks for it), a
 * client without a common protocol gets the fatal no_application_protocol
 * alert (RFC 7301); ECDSA P-256, X25519 first; one ticket a handshake under
 * keys shared by the workers, no session cache, no renegotiation, no early
 * data; buffers released when idle; the error queue is cleared before every
 * call into the library.
 *
 * Units      bytes; deadlines are the caller's.
 * Ownership  a context is shared by threads and reference counted inside; a
 *            connection belongs to one loop and does not own its descriptor.
 * Errors     TLS_WANT_* and TLS_CLOSED are outcomes, -EPROTO any protocol
 *            failure, other < 0 the socket's -errno.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "net/base.h"

struct tls_context;
struct tls_tickets; /* the keys of session tickets; net/tls_tickets.h */
struct tls;

enum tls_alpn {
        TLS_ALPN_H2 = 1,
        TLS_ALPN_HTTP11 = 2,
};

enum tls_outcome {
        TLS_DONE = 0,
        TLS_WANT_READ = 1,
        TLS_WANT_WRITE = 2,
        TLS_CLOSED = 3, /* the peer closed in order */
        TLS_ABUSE = 4,  /* too many key updates: cut the connection */
};

struct tls_server_conf {
        const char *certificate_file; /* PEM chain */
        const char *key_file;         /* PEM */
        unsigned alpn;                /* enum tls_alpn or'ed, server's preference h2 */
        struct tls_tickets *tickets;  /* shared with other contexts; NULL: its own */
        uint32_t ticket_life_s;       /* 0: two hours */
};

struct tls_client_conf {
        const char *ca_file; /* NULL: the peer is not checked (tests only) */
        unsigned alpn;
        bool resume; /* remember the last ticket and offer it */
};

/* On failure fills `why` with one line fit for an operator. */
NET_MUST int tls_server_new(const struct tls_server_conf *conf, struct tls_context **out, char *why,
                            size_t why_len);
NET_MUST int tls_client_new(const struct tls_client_conf *conf, struct tls_context **out, char *why,
                            size_t why_len);
void tls_context_take(struct tls_context *c);
void tls_context_free(struct tls_context **c);

/* NULL without memory. */
struct tls_tickets *tls_tickets_new(void);
void tls_tickets_take(struct tls_tickets *t);
void tls_tickets_free(struct tls_tickets **t);
/* Seals with a fresh key from now on; the one before still opens. */
void tls_tickets_rotate(struct tls_tickets *t);

/* A server side connection on `fd`. NULL when out of memory. */
struct tls *tls_accept_new(struct tls_context *c, int fd);
/* A client side one; `server_name` is sent as SNI and checked if CA is set. */
struct tls *tls_connect_new(struct tls_context *c, int fd, const char *server_name);
void tls_free(struct tls **t);

/* What a server says last in a TLS 1.3 handshake, its ticket, is held back for the
 * first tls_write or tls_flush after it, so that they leave together. */
NET_MUST int tls_handshake(struct tls *t);
/* Sends what is held back, if anything is. */
NET_MUST int tls_flush(struct tls *t);
/* 0 until the handshake is done, then the protocol agreed on. */
unsigned tls_alpn(const struct tls *t);
bool tls_is_resumed(const struct tls *t);

/* `*n` bytes read or written when TLS_DONE; a short write is possible. After
 * TLS_WANT_* a write is repeated with at least the same bytes (they may have
 * moved). */
NET_MUST int tls_read(struct tls *t, void *data, size_t size, size_t *n);
NET_MUST int tls_write(struct tls *t, const void *data, size_t len, size_t *n);
/* Bytes already decrypted or read ahead, so that no read event will come. */
bool tls_has_pending(const struct tls *t);
/* Sends close_notify if it can without waiting. */
void tls_shutdown(struct tls *t);

#endif
