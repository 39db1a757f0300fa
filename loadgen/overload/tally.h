/* loadgen/overload/tally.h - what came of the requests that were due in one
 * phase, and when in the phase something was last refused, or answered late.
 *
 * Units      microseconds; slices of 100 ms.
 * Ownership  a plain value.
 * Context    one thread at a time.
 */
#ifndef LOADGEN_OVERLOAD_TALLY_H
#define LOADGEN_OVERLOAD_TALLY_H

#include "loadgen/histogram.h"

#define TALLY_SLICES 600u
#define TALLY_SLICE_US 100000
/* An answer later than this is as bad as none. */
#define TALLY_LATE_US 100000

struct tally_slice {
        uint32_t good, late, refused;
};

/* Of connections, or of newcomers. */
struct tally_doors {
        uint64_t tried;
        uint64_t opened;  /* the handshake is over */
        uint64_t refused; /* closed before the server said anything */
        uint64_t left;    /* after GOAWAY */
        uint64_t lost;
        uint64_t waiting; /* given up unanswered, or in the middle of it */
};

struct tally {
        int64_t base_us;
        uint64_t offered;  /* requests that were due */
        uint64_t shed;     /* answered 503 */
        uint64_t reset;    /* sent, and refused or lost with their connection */
        uint64_t unsent;   /* due while there was no connection */
        uint64_t given_up; /* due, and not sent for want of streams */
        struct lg_histogram good_us, shed_us, newcomers_us, lag_us;
        struct tally_doors residents, newcomers;
        int64_t last_bad_us; /* refused or late, since base_us; 0: nothing was */
        struct tally_slice slice[TALLY_SLICES];
};

void tally_good(struct tally *t, int64_t now_us);
void tally_late(struct tally *t, int64_t now_us);
void tally_refused(struct tally *t, int64_t now_us);
/* One JSON object. */
void tally_print(const struct tally *t, double rate, int64_t seconds);

#endif
