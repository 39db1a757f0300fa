/* gateway/limit.h - how often an address may fail or bring guests, and how
 * often an account may ask one sale.
 *
 * Failures are counted when they have happened, so a verified account never
 * meets the limit of its address, however many others fail behind it.
 *
 * Context    the worker's thread; the table is shared, without locks.
 */
#ifndef GATEWAY_LIMIT_H
#define GATEWAY_LIMIT_H

#include "gateway/request.h"

/* Counts a failed credential of the client's address. True when it has had
 * its share: answer 429; r->retry_after_ms is set. */
bool gw_limit_failure(struct gw_request *r);

/* Counts a new guest of the client's address. As above. */
bool gw_limit_guest(struct gw_request *r);

/* Counts a request of r->tag to r->sale. As above. */
bool gw_limit_account(struct gw_request *r);

#endif
