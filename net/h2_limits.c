#include "net/h2_limits.h"

void h2_bucket_init(struct h2_bucket *b, uint32_t burst, uint32_t per_s) {
        *b = (struct h2_bucket){.burst = burst, .per_s = per_s};
}

bool h2_bucket_add(struct h2_bucket *b, uint32_t weight, int64_t now_ms) {
        if (now_ms > b->seen_ms) {
                uint64_t out = (uint64_t)(now_ms - b->seen_ms) * b->per_s;
                b->level_milli = b->level_milli > out ? b->level_milli - out : 0;
                b->seen_ms = now_ms;
        }
        b->level_milli += (uint64_t)weight * 1000;
        return b->level_milli <= (uint64_t)b->burst * 1000;
}
