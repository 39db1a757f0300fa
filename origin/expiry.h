/* origin/expiry.h - takes holds back that fell due, in small batches.
 *
 * Tidiness only: every number counts a due hold as free already, and a reserve
 * takes due ones back when it needs them. It sleeps until the next hold falls
 * due, at most `expiry.interval`.
 *
 * Context    the loop's thread.
 */
#ifndef ORIGIN_EXPIRY_H
#define ORIGIN_EXPIRY_H

#include "origin/service.h"

NET_MUST int org_expiry_new(struct org_service *s, struct org_expiry **out);
void org_expiry_free(struct org_expiry **e);

#endif
