/* gateway/admin.h - the operators' listener: TLS, HTTP/2 and HTTP/1.1, on the
 * control thread.
 *
 *   GET /healthz /readyz /metrics   no token
 *   anything under /v1/             bearer token; passed on to the origin, and
 *                                   a fresh snapshot asked for after a change
 *
 * A verb is done when the origin says so; every node hears of it by its long
 * poll. Nothing here is on the public port.
 *
 * Ownership  the control thread's. gw_admin_free comes after the control's
 *            origin pool was freed (its last calls end there) and before the
 *            loop's end.
 */
#ifndef GATEWAY_ADMIN_H
#define GATEWAY_ADMIN_H

#include "gateway/control.h"

/* Starts listening as the settings say. 0 or -errno, with one line in `why`. */
NET_MUST int gw_admin_new(struct gw_control *c, struct gw_admin **out, char *why, size_t why_cap);
void gw_admin_free(struct gw_admin **a);

/* The token and certificate of fresh settings. 0, or -errno with one line in
 * `why` and everything as before. */
NET_MUST int gw_admin_reload(struct gw_admin *a, char *why, size_t why_cap);

/* The port of the i-th listener. */
uint16_t gw_admin_port(const struct gw_admin *a, size_t i);

#endif
