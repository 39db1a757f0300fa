/* gateway/hold.h - holds: asked for with a pass, read and changed by the
 * account they belong to. The origin decides; the store hears what it said.
 *
 * Context    the worker's thread.
 */
#ifndef GATEWAY_HOLD_H
#define GATEWAY_HOLD_H

#include "gateway/request.h"

/* Key and body of POST holds. Parks for the body. */
enum gw_next gw_hold_read(struct gw_request *r);

/* Whether POST holds, holds/H and its verbs may go to the origin. */
enum gw_next gw_hold_place(struct gw_request *r);

/* Asks the origin; parks. */
enum gw_next gw_hold_forward(struct gw_request *r);

#endif
