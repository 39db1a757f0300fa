/* loadgen/addresses.h - what runs where, as the quickstart wrote it down.
 *
 * Only loopback addresses are taken: this program sends a flood, and a flood
 * is nobody else's business.
 *
 * Ownership  a plain value; lg_addresses_fini wipes its secrets.
 * Context    start.
 */
#ifndef LOADGEN_ADDRESSES_H
#define LOADGEN_ADDRESSES_H

#include "net/base.h"
#include "net/jwk.h"

#define LG_GATEWAYS_MAX 16
#define LG_TOKEN_MAX 512
#define LG_FILE_MAX 512

struct lg_endpoint {
        char address[64]; /* 127.0.0.1:PORT, [::1]:PORT */
        char host[48];    /* without port, as the certificate names it */
        bool tls;
};

struct lg_addresses {
        struct lg_endpoint gateways[LG_GATEWAYS_MAX];
        size_t n_gateways; /* 1.. */
        struct lg_endpoint admins[LG_GATEWAYS_MAX];
        size_t n_admins; /* 1.. */
        struct lg_endpoint origin;
        char ca_file[LG_FILE_MAX];
        char service_token[LG_TOKEN_MAX]; /* the token itself */
        struct jwt_keys *account_keys;
};

/* 0; 1 with one line in `why`: which file, which field, what was expected. */
NET_MUST int lg_addresses_load(struct lg_addresses *a, const char *path, char *why, size_t why_cap);
void lg_addresses_fini(struct lg_addresses *a);

/* https://127.0.0.1:8443 and its like. 0; 1 with what was expected in `why`. */
NET_MUST int lg_endpoint_parse(struct lg_endpoint *e, struct span url, char *why, size_t why_cap);

#endif
