/* net/h2_repeat.h - a head that a client sends again, byte for byte.
 *
 * Who asks for the same thing again (a poll, a reload, a hammer) sends the same
 * header block. Is that block pure, so that it leaves the peer's table as it
 * was, and was every block since pure too, then decoding it would give the
 * same fields: the judged head of last time is given out instead. A block
 * that is not pure ends this memory of its connection.
 *
 * A connection keeps at most one, from the second time on; a loop keeps so
 * many, and forgets the oldest for a new one.
 *
 * Units      bytes.
 * Ownership  counted: the connection holds one reference, each stream whose
 *            head lies in it another.
 * Context    the loop's thread.
 * Source     RFC 7541 sections 2.3, 6.
 */
#ifndef NET_H2_REPEAT_H
#define NET_H2_REPEAT_H

#include "net/http_head.h"
#include "net/metrics.h"

/* Longer blocks are not worth their memory. */
#define H2_REPEAT_MAX 512

struct h2_repeats; /* a loop's */
struct h2_repeat;

/* `evicted` counts how often the oldest was forgotten for want of room. */
NET_MUST struct h2_repeats *h2_repeats_new(struct pool *pool, uint32_t most,
                                           struct metrics_counter *evicted);
void h2_repeats_free(struct h2_repeats **all);

/* Only indexed fields, and literals that are not added to the table. */
bool h2_block_is_pure(struct span block);

/* Keeps a copy of a head already judged good, in `*slot` until it is forgotten,
 * which sets it to NULL. Nothing happens without memory. */
void h2_repeat_keep(struct h2_repeats *all, struct h2_repeat **slot, struct span block,
                    const struct http_head *head);
void h2_repeat_forget(struct h2_repeat **slot);

bool h2_repeat_is(const struct h2_repeat *r, struct span block);
/* The head, whose bytes live as long as the reference that is given. */
struct h2_repeat *h2_repeat_take(struct h2_repeat *r, struct http_head *head);
/* Drops a reference; NULL is nothing. */
void h2_repeat_free(struct h2_repeat **r);

#endif
