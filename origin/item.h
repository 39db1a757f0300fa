/* origin/item.h - stock over HTTP: an item's numbers, and its total.
 *
 * Context    the loop's thread. Each takes the call over.
 */
#ifndef ORIGIN_ITEM_H
#define ORIGIN_ITEM_H

#include "origin/call.h"

void org_item_put(struct org_call *c); /* PUT …/items/I {"total":n} */
void org_item_get(struct org_call *c);
void org_invariant(struct org_call *c); /* GET /v1/invariant */

#endif
