/* gateway/gated.h - a sale's own paths: a page without a pass, straight
 * through with one.
 *
 * Context    the worker's thread.
 */
#ifndef GATEWAY_GATED_H
#define GATEWAY_GATED_H

#include "gateway/request.h"

/* Goes on when the request may be forwarded, or has a place to tell. */
enum gw_next gw_gated_place(struct gw_request *r);

/* True when the request is to be forwarded now. */
bool gw_gated_may_pass(const struct gw_request *r);

#endif
