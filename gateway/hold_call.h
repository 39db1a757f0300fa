/* gateway/hold_call.h - what is asked of the origin about holds, and what
 * becomes of its answers.
 *
 * Whoever asks about a hold by its id must be its buyer: it is read first, and
 * only then changed. Shoppers see the members of a hold that are theirs, not
 * all that the origin knows of it.
 *
 * Context    the worker's thread; `r` is kept.
 */
#ifndef GATEWAY_HOLD_CALL_H
#define GATEWAY_HOLD_CALL_H

#include "gateway/request.h"

/* POST holds. Parks, or has answered. */
void gw_hold_call_reserve(struct gw_request *r);

/* GET holds/H and its verbs. Parks, or has answered. */
void gw_hold_call_read(struct gw_request *r);

#endif
