/* gateway/pull.h - snapshots by long poll, one after another without end.
 *
 * A failed pull is followed by the next one a moment later; silence makes the
 * origin count as away (gateway/shared.h) and changes nothing published.
 *
 * Ownership  new/free; free before the control's pool.
 * Context    the control thread.
 */
#ifndef GATEWAY_PULL_H
#define GATEWAY_PULL_H

#include "gateway/control.h"

NET_MUST int gw_pull_new(struct gw_control *c, struct gw_pull **out);
void gw_pull_free(struct gw_pull **p);

/* Starts now what waits for its moment. */
void gw_pull_hurry(struct gw_pull *p);

#endif
