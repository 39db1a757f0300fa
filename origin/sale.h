/* origin/sale.h - sale windows over HTTP: PUT, PATCH, GET, list, the
 * operators' verbs, the audit.
 *
 * A PATCH is the kept window with a body laid over it, written back only if
 * its version is still the one that was read.
 *
 * Context    the loop's thread. Each takes the call over.
 */
#ifndef ORIGIN_SALE_H
#define ORIGIN_SALE_H

#include "origin/call.h"

void org_sale_put(struct org_call *c);
void org_sale_patch(struct org_call *c);
void org_sale_get(struct org_call *c);
void org_sale_list(struct org_call *c);
void org_sale_verb(struct org_call *c);
void org_sale_audit(struct org_call *c);

#endif
