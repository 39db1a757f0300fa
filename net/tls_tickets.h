/* net/tls_tickets.h - the keys that session tickets are sealed with.
 *
 * All contexts that are to take each other's tickets share one set: the
 * workers, and a context before and after its certificate was changed. The set
 * holds two keys: tickets are sealed with the newer and opened with either, so
 * a ticket lives at least as long as the time between two rotations, and at
 * most twice that. Nothing is ever written to disk.
 *
 * Ownership  reference counted.
 * Context    any thread.
 */
#ifndef NET_TLS_TICKETS_H
#define NET_TLS_TICKETS_H

#include <openssl/ssl.h>

#include "net/tls.h"

/* The callback of SSL_CTX_set_tlsext_ticket_key_evp_cb, which finds the set in
 * the context's ex data (see tls_tickets_attach). */
int tls_tickets_attach(SSL_CTX *ctx, struct tls_tickets *t);

#endif
