/* gateway/names.h - the accounts behind the passes this process has signed.
 *
 * Admission knows tags, a pass needs the name. Whoever asks with the ticket
 * alone shows no name, so the name is remembered when a pass is issued: a
 * table of fixed size in which a newer name takes the place of an older one.
 * Losing one costs nobody their pass, only that one way of being told of it.
 *
 * Ownership  new/free.
 * Context    any thread; one lock, off the hot path.
 */
#ifndef GATEWAY_NAMES_H
#define GATEWAY_NAMES_H

#include "admission/account.h"
#include "net/base.h"
#include "net/jwt.h"

struct gw_names;

/* `entries` is rounded up to a power of two. 0 or -ENOMEM. */
NET_MUST int gw_names_new(size_t entries, struct gw_names **out);
void gw_names_free(struct gw_names **n);

void gw_names_put(struct gw_names *n, const struct adm_tag *tag, struct span name);
/* Bytes copied to `out`, 0 when it is not known. */
size_t gw_names_get(struct gw_names *n, const struct adm_tag *tag, char out[JWT_SUB_MAX]);

#endif
