/* gateway/operators.h - who may operate sales, and under which name.
 *
 * The file holds a bearer token a line; a name and a blank may stand before it:
 *
 *   4f1c…9a
 *   anna 77b0…e2
 *
 * The name (or `operator`) is what the audit tells. No token holds a blank;
 * empty lines are stepped over.
 *
 * Ownership  a plain value; its memory holds secrets: wiped by fini.
 * Context    reading: start, one thread; then read only.
 */
#ifndef GATEWAY_OPERATORS_H
#define GATEWAY_OPERATORS_H

#include "conf/secret.h"

#define GW_OPERATORS_MAX 32
#define GW_OPERATOR_NAME_MAX 64

struct gw_operator {
        struct span name;
        struct span token;
};

struct gw_operators {
        struct gw_operator at[GW_OPERATORS_MAX];
        size_t count;
        char text[CONF_SECRET_MAX]; /* what the spans point into */
};

/* 0; 1 with one line in `why`, which names no secret. */
NET_MUST int gw_operators_read(struct gw_operators *o, const char *file, char *why, size_t why_cap);

/* NULL when nobody has this token. Every token is compared, and each in a time
 * that does not tell where it differs. */
const struct gw_operator *gw_operators_find(const struct gw_operators *o, struct span token);

/* `to` becomes what `from` is, which is wiped. */
void gw_operators_take(struct gw_operators *to, struct gw_operators *from);

void gw_operators_fini(struct gw_operators *o);

#endif
