/* gateway/disk.h - the last good snapshot, kept so that a restart during an
 * outage still answers.
 *
 * state_directory/snapshot.json, replaced as a whole (written beside, synced,
 * renamed): the origin's document, when it was heard, and the versions of the
 * flags that were shown.
 *
 * Context    the control thread; waits for the disk.
 */
#ifndef GATEWAY_DISK_H
#define GATEWAY_DISK_H

#include "gateway/control.h"

/* 0 or -errno. */
NET_MUST int gw_disk_save(struct gw_control *c);

/* Publishes what is there. 0; 1 when there is none or it is not usable. */
NET_MUST int gw_disk_load(struct gw_control *c);

#endif
