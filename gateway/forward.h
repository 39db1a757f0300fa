/* gateway/forward.h - a request passed on to the application behind a sale,
 * and its answer streamed back.
 *
 * The request is rebuilt from validated parts: listed fields, our own length,
 * our own Forwarded, X-Forwarded-*, traceparent and Sluice-*. The answer loses
 * hop-by-hop fields and what the application says to the gateway. A client
 * that reads slowly closes the application's window.
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

/* True for a field of an answer that goes no further. */
bool gw_forward_drops(struct span name);

#endif
