/* gateway/publish.h - from the origin's document to what workers answer by.
 *
 * Context    the control thread.
 */
#ifndef GATEWAY_PUBLISH_H
#define GATEWAY_PUBLISH_H

#include <jansson.h>

#include "gateway/control.h"

/* A new document (a reference of its own is taken): tells the store, renders
 * and hands it to all workers. `is_live` is false for the one kept on disk.
 * 0, 1 when it is no snapshot (nothing changes), -ENOMEM. */
NET_MUST int gw_publish_document(struct gw_control *c, json_t *document, bool is_live);

/* The same facts anew: time has moved a state, or there are new settings.
 * 0 or -ENOMEM. */
NET_MUST int gw_publish_again(struct gw_control *c);

/* True when a sale's state by now is not the published one. */
bool gw_publish_is_due(struct gw_control *c);

#endif
