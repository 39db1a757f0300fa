/* loadgen/histogram.h - latencies with a bounded relative error.
 *
 * Every power of two is cut into 64 equal slots, so a value is remembered to
 * within 1/64 of itself whatever its size, and below 64 exactly. Values above
 * the last slot are counted in it.
 *
 * Units      microseconds.
 * Ownership  a plain value of about 15 KiB to embed; nothing to free.
 * Context    one thread at a time.
 */
#ifndef LOADGEN_HISTOGRAM_H
#define LOADGEN_HISTOGRAM_H

#include "net/base.h"

#define LG_HISTOGRAM_HALVES 30 /* powers of two above the exact part */
#define LG_HISTOGRAM_SLOTS (64 + LG_HISTOGRAM_HALVES * 64)

struct lg_histogram {
        uint64_t count;                    /* values seen */
        uint64_t max_us;                   /* the largest, exactly */
        uint64_t slot[LG_HISTOGRAM_SLOTS]; /* values in each slot */
};

void lg_histogram_add(struct lg_histogram *h, uint64_t us);

/* As if all that `from` has seen had been added to `h`, too. */
void lg_histogram_merge(struct lg_histogram *h, const struct lg_histogram *from);

/* The smallest remembered value that at least `per_mille` of all values do
 * not pass, 0..1000; the upper end of its slot, but never above the largest
 * value seen. 0 when nothing was seen. */
uint64_t lg_histogram_at(const struct lg_histogram *h, uint32_t per_mille);

#endif
