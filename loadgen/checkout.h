/* loadgen/checkout.h - from the pass to the end: hold, then pay or not.
 *
 * One intention has one idempotency key and is repeated with it until there
 * is a definite answer, whatever breaks meanwhile. The buyer holds at the
 * gateway; the payer, who is the load generator too, confirms at the origin
 * with the service token and one payment reference a hold.
 *
 * Context    the loop's thread.
 */
#ifndef LOADGEN_CHECKOUT_H
#define LOADGEN_CHECKOUT_H

#include "loadgen/crowd.h"

void lg_checkout_init(struct lg_buyer *b);
/* `tab` got the pass: its connection is used, and it is the one to go back to
 * the line if need be. The buyer is in the line and has a pass. */
void lg_checkout_start(struct lg_buyer *b, struct lg_tab *tab);
/* A cheat's second hold is answered: go on to pay for the first. */
void lg_checkout_pay(struct lg_buyer *b);
void lg_checkout_cancel(struct lg_buyer *b);

#endif
