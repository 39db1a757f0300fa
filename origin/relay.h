/* origin/relay.h - hands the journal's events on to a Redis stream.
 *
 * The journal is the outbox: an event is written in the transaction that it
 * tells of, and has no mark until Redis has it. One turn:
 *
 *   database: mark what Redis has; whose duty; the next events   (a transaction)
 *      └──> Redis: MULTI, an XADD an event, EXEC                 (none open)
 *              └──> answered: their numbers are the marks of the next turn
 *
 * At least once: a crash between Redis' answer and the mark brings the same
 * event once more, with the same id. In order for each hold: events are read
 * by number, a batch is in the stream wholly and in order or not at all, and
 * the next is read only behind it.
 *
 * Of several origins one relays: a row in the database names it, for the time
 * of a lease, and the row's epoch stands in the ids of the stream's entries, so
 * one that was stopped and goes on later is refused by Redis.
 *
 * Nothing of a hold's way waits for any of this: Redis away means that the
 * journal has more rows without a mark.
 *
 * Context    the loop's thread.
 */
#ifndef ORIGIN_RELAY_H
#define ORIGIN_RELAY_H

#include "origin/service.h"

struct org_relay;

struct org_relay_counters {
        struct metrics_counter sent;     /* events, those that came again among them */
        struct metrics_counter refused;  /* batches that Redis refused, or a lost connection */
        struct metrics_counter late;     /* batches without an answer in time */
        struct metrics_counter fenced;   /* batches that came after another origin's */
        struct metrics_counter database; /* turns that the database did not answer */
        struct metrics_counter takings;  /* of the duty */
        struct metrics_counter backlog;  /* events without a mark, at the last look */
        struct metrics_counter oldest_ms;
        struct metrics_counter in_flight;
        struct metrics_counter has_duty;
};

/* Up to here the backlog is counted. */
#define ORG_RELAY_COUNTED_MAX 100000

NET_MUST int org_relay_new(struct org_service *s, struct org_relay **out);
/* After the database has answered all. */
void org_relay_free(struct org_relay **relay);
/* `relay` NULL: all zero. */
const struct org_relay_counters *org_relay_counters(const struct org_relay *relay);

#endif
