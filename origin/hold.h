/* origin/hold.h - the life of a hold over HTTP: reserve, the steps, reading.
 *
 * Context    the loop's thread. Each takes the call over.
 */
#ifndef ORIGIN_HOLD_H
#define ORIGIN_HOLD_H

#include "origin/answer.h"

void org_hold_reserve(struct org_call *c); /* POST …/items/I/holds, …/orders */
void org_hold_get(struct org_call *c);     /* GET /v1/holds/H */
void org_hold_events(struct org_call *c);  /* GET /v1/holds/H/events */
void org_hold_step(struct org_call *c);    /* POST /v1/holds/H/VERB */

/* Ends a call that asked for a hold, by the reply to it alone… */
void org_hold_reserved(struct org_call *c, const struct org_reply *r);
/* …or by its row of a batch. */
void org_hold_answered(struct org_call *c, const struct org_answer *a);

#endif
