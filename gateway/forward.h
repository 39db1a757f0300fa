/* gateway/forward.h - a request passed on to the application behind a sale,
 * and its answer streamed back.
 *
 * The request is rebuilt from validated parts: listed fields, our own length,
 * our own Forwarded, X-Forwarded-*, traceparent and Sluice-*. The answer loses
 * hop-by-hop fields and what the application says to the gateway. It is read
 * ahead of its client up to a ceiling; past it the application is made to wait,
 * and when others wait for its place the client is cut off (backlog.h).
 *
 * Nothing is sent twice.
 *
 * Context    the worker's thread.
 */
#ifndef GATEWAY_FORWARD_H
#define GATEWAY_FORWARD_H

#include "gateway/request.h"

/* Parks, or has answered. */
enum gw_next gw_forward(struct gw_request *r);

/* Of a struct gw_upstream. */
void gw_forward_on_pressure(struct loop_timer *t);

/* True for a field of an answer that goes no further. */
bool gw_forward_drops(struct span name);

#endif
