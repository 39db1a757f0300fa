/* gateway/settings.h - a configuration with everything read because of it:
 * TLS context, keys, the page of public keys.
 *
 * Built as a whole at start and at each SIGHUP; a bad file changes nothing.
 * A published snapshot carries the settings it is to be used with, so that
 * all workers change over between two requests.
 *
 * What only a restart changes (listeners, threads, store, limiter table, pools)
 * was taken from the first settings and is not looked up here again.
 *
 * Ownership  reference counted; immutable once built.
 * Context    building: the control thread. Reading: any thread.
 */
#ifndef GATEWAY_SETTINGS_H
#define GATEWAY_SETTINGS_H

#include <stdatomic.h>
#include <stdio.h>

#include "admission/ticket.h"
#include "conf/gateway.h"
#include "net/http_page.h"
#include "net/jwt.h"
#include "net/tls.h"

#define GW_TOKEN_MAX 512 /* bytes of a bearer token */

struct gw_settings {
        atomic_uint refs;
        struct conf_gateway *conf;
        struct tls_context *tls;
        struct tls_tickets *tls_tickets;   /* the same from start to end */
        struct tls_context **upstream_tls; /* as upstreams in conf; NULL: in the clear */
        struct jwt_keys *account_keys;     /* may be empty */
        struct jwt_keys *pass_keys;        /* the first signs */
        struct adm_ticket_keys *ticket_keys;
        uint8_t guest_key[32];         /* MAC of guest cookies, from the first ticket key */
        char bearer[GW_TOKEN_MAX + 8]; /* "Bearer TOKEN" for the origin */
        size_t bearer_len;
        struct http_page *jwks; /* GET /jwks.json */
        struct http_page *jwks_304;
        char jwks_etag[24];
};

/* Reads FILE. `before` (or NULL): whose tickets of TLS sessions stay good. 0; 1
 * when it was refused, with one line a fault on `faults`; -errno. `*out` is NULL
 * unless 0. */
NET_MUST int gw_settings_load(const char *file, const struct gw_settings *before,
                              struct gw_settings **out, FILE *faults);

void gw_settings_take(struct gw_settings *s);
void gw_settings_free(struct gw_settings **s);

#endif
