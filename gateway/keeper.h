/* gateway/keeper.h - what has to happen by the clock: the store's upkeep each
 * 100 ms, states that change with time, the snapshot on disk.
 *
 * Ownership  new/free.
 * Context    the control thread.
 */
#ifndef GATEWAY_KEEPER_H
#define GATEWAY_KEEPER_H

#include "gateway/control.h"

NET_MUST int gw_keeper_new(struct gw_control *c, struct gw_keeper **out);
void gw_keeper_free(struct gw_keeper **k);

/* A new document was published: it is to be saved, soon. */
void gw_keeper_changed(struct gw_keeper *k);

#endif
