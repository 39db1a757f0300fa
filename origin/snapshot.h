/* origin/snapshot.h - what gateways pull: computed once, however many ask.
 *
 * A snapshot is read from the database in one statement, and numbered when it
 * differs from the one before. Callers that have the newest wait here until
 * there is a newer one. It is read again at most `max_age` after the last time
 * while anybody waits, at once after writes of our own, and when a hold falls
 * due. Nobody waiting: nothing is read. docs/snapshot.md has the format.
 *
 * Conversions are kept with the number of the snapshot they came with, so each
 * caller gets those it has not seen.
 *
 * Context    the loop's thread.
 */
#ifndef ORIGIN_SNAPSHOT_H
#define ORIGIN_SNAPSHOT_H

#include "origin/call.h"

#define ORG_SNAPSHOT_WAITERS 1024 /* callers at once */

NET_MUST int org_snapshot_new(struct org_service *s, struct org_snapshot **out);
void org_snapshot_free(struct org_snapshot **n);

/* Something of ours changed what it says. NULL is nothing. */
void org_snapshot_touch(struct org_snapshot *n);

void org_snapshot_get(struct org_call *c); /* GET /v1/snapshot */
/* Answers all who wait with what there is, unchanged; when the origin drains. */
void org_snapshot_let_go(struct org_snapshot *n);

size_t org_snapshot_waiters(const struct org_snapshot *n);

#endif
