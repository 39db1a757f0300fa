/* loadgen/cheat.h - attempts to get what is not one's own.
 *
 * A cheat buys like anybody else and tries one thing more on the way. An
 * attempt has won when it got a hold it must not get, or a pass that is not
 * its account's only one. Refusals of any kind are what should happen.
 *
 * Context    the loop's thread. All calls do nothing for honest buyers.
 */
#ifndef LOADGEN_CHEAT_H
#define LOADGEN_CHEAT_H

#include "loadgen/crowd.h"

/* -ENOMEM. */
NET_MUST int lg_cheat_init(struct lg_buyer *b);
/* Forgets the attempt; NULL-safe. */
void lg_cheat_fini(struct lg_buyer *b);

void lg_cheat_on_waiting(struct lg_buyer *b, struct lg_link *link);
void lg_cheat_on_admitted(struct lg_buyer *b, struct lg_link *link);
/* True if it tries for a second hold and calls lg_checkout_pay() after it. */
NET_MUST bool lg_cheat_on_held(struct lg_buyer *b);

#endif
