/* gateway/disk.h - the last good snapshot, kept so that a restart during an
 * outage still answers.
 *
 * state_directory/snapshot.json, replaced as a whole (written beside, synced,
 * renamed): the origin's document, when it was heard, and the versions of the
 * flags that were shown.
 *
 * The control thread only renders; a thread of its own writes and waits for
 * the disk, so that a disk which hangs delays neither the line nor the next
 * snapshot. Between the two there is one text, the newest.
 *
 * Ownership  new/free; free writes what is still to be written.
 * Context    the control thread.
 */
#ifndef GATEWAY_DISK_H
#define GATEWAY_DISK_H

#include "gateway/control.h"

/* Starts the writer. 0 or -errno. */
NET_MUST int gw_disk_new(const char *folder, struct gw_disk **out);
void gw_disk_free(struct gw_disk **d);

/* Renders what is published and hands it to the writer. 0 or -ENOMEM. */
NET_MUST int gw_disk_save(struct gw_control *c);

/* Publishes what is there. 0; 1 when there is none or it is not usable. */
NET_MUST int gw_disk_load(struct gw_control *c);

#endif
