/* loadgen/inversions.h - who was overtaken in the line, counted from outside.
 *
 * A pair (A, B) is an inversion when B joined after A had its ticket, B was
 * admitted, and a request that A sent after B's admission had arrived was
 * still answered `waiting`. Each comparison is strict and uses the instant
 * that is unfavourable to the charge, so that network delay never makes one.
 *
 * Units      microseconds of one monotonic clock; LG_NEVER where it did not
 *            happen.
 * Ownership  borrows the traces.
 * Context    after the race.
 */
#ifndef LOADGEN_INVERSIONS_H
#define LOADGEN_INVERSIONS_H

#include "net/base.h"

#define LG_NEVER INT64_MIN

/* What one account saw of the line. */
struct lg_trace {
        int64_t joined_us;       /* its first join left */
        int64_t ticket_us;       /* its place was told it */
        int64_t admitted_us;     /* its first 200 arrived */
        int64_t last_waiting_us; /* its last request answered `waiting` left */
};

/* The number of inverted pairs among `n` accounts, in n log n steps; < 0 when
 * out of memory. */
NET_MUST int64_t lg_inversions_count(const struct lg_trace *traces, size_t n);

#endif
