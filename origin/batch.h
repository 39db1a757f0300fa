/* origin/batch.h - asks for one item that arrive together are decided together.
 *
 * An item's row is handed over once a transaction, so what limits its sale is
 * transactions, not units. While one transaction of an item is under way, asks
 * for it gather, in order of arrival; when it ends, the next one decides all of
 * them, up to a ceiling. There is no timer: an ask that finds nobody at work
 * goes at once and alone, so a quiet item pays nothing.
 *
 *   asks ──> nobody at work ──> alone ────────────────┐
 *      └──> gathered ──> the turn is free ──> one: alone, more: together
 *                                              │
 *                               "again", or the batch failed as a whole
 *                                              └──> alone, beside the turn
 *
 * A batch that fails for a reason one of them may have brought (a row that no
 * rule allows, a deadlock, memory) is taken apart: each is decided alone, so
 * none suffers for another. Where the reason is the item's (a lock, the
 * database) all hear it, and an outcome that is not known is not known to each.
 *
 * Items with `batch` off are found out by their first answer, and are then
 * asked about one by one.
 *
 * Units      milliseconds.
 * Ownership  of the service. A gathered call belongs to it until its answer.
 * Context    the loop's thread.
 */
#ifndef ORIGIN_BATCH_H
#define ORIGIN_BATCH_H

#include "origin/ask.h"

struct org_batch;

/* Upper ends: 1, 2, 4, … 512, and beyond. */
#define ORG_BATCH_BUCKETS 10

struct org_batch_counters {
        struct metrics_counter sizes[ORG_BATCH_BUCKETS + 1]; /* not cumulative */
        struct metrics_counter holds;                        /* in all transactions together */
        struct metrics_counter apart;                        /* batches taken apart */
        struct metrics_counter again;                        /* holds taken out of a batch */
        struct metrics_counter full;                         /* refused: too many had gathered */
        struct metrics_counter items; /* decided alone: too many items at work */
};

NET_MUST int org_batch_new(struct org_service *s, struct org_batch **out);
/* After the database has answered all. */
void org_batch_free(struct org_batch **b);
const struct org_batch_counters *org_batch_counters(const struct org_batch *b);
size_t org_batch_gathered(const struct org_batch *b);

/* Takes the call over; its tenant and item are kept names. */
void org_batch_reserve(struct org_batch *b, struct org_call *c, const struct org_ask *a);

#endif
