/* gateway/walk.h - the way of every request: steps in one listed order.
 *
 * Context    the worker's thread.
 */
#ifndef GATEWAY_WALK_H
#define GATEWAY_WALK_H

#include "net/http_server.h"

/* A request is complete; `owner` is its struct gw_worker. */
void gw_walk_on_request(void *owner, struct http_exchange *x);

#endif
