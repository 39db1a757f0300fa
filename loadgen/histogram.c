/* loadgen/histogram.c - a value v >= 64 with highest bit b is shifted right by
 * b - 6: what is left lies in 64..127 and names the slot inside half b - 6. */
#include "loadgen/histogram.h"

static size_t slot_of(uint64_t us) {
        if (us < 64)
                return (size_t)us;
        unsigned bit = 63U - (unsigned)__builtin_clzll(us);
        unsigned half = bit - 6;
        if (half >= LG_HISTOGRAM_HALVES)
                return LG_HISTOGRAM_SLOTS - 1;
        return 64 + (size_t)half * 64 + (size_t)((us >> half) - 64);
}

static uint64_t slot_end(size_t slot) {
        if (slot < 64)
                return slot;
        unsigned half = (unsigned)((slot - 64) / 64);
        uint64_t base = 64 + (slot - 64) % 64;
        return ((base + 1) << half) - 1;
}

void lg_histogram_add(struct lg_histogram *h, uint64_t us) {
        h->slot[slot_of(us)]++;
        h->count++;
        if (us > h->max_us)
                h->max_us = us;
}

void lg_histogram_merge(struct lg_histogram *h, const struct lg_histogram *from) {
        for (size_t i = 0; i < LG_HISTOGRAM_SLOTS; i++)
                h->slot[i] += from->slot[i];
        h->count += from->count;
        if (from->max_us > h->max_us)
                h->max_us = from->max_us;
}

uint64_t lg_histogram_at(const struct lg_histogram *h, uint32_t per_mille) {
        assert(per_mille <= 1000);
        if (h->count == 0)
                return 0;
        uint64_t rank = (h->count * per_mille + 999) / 1000;
        uint64_t seen = 0;
        for (size_t i = 0; i < LG_HISTOGRAM_SLOTS; i++) {
                seen += h->slot[i];
                if (seen > 0 && seen >= rank) {
                        uint64_t end = slot_end(i);
                        bool last = i == LG_HISTOGRAM_SLOTS - 1;
                        return last || end > h->max_us ? h->max_us : end;
                }
        }
        return h->max_us;
}
