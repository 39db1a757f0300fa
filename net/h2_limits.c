#include "net/h2_limits.h"

bool h2_bucket_add(struct h2_bucket *b, struct h2_bucket_conf conf, uint32_t weight,
                   int64_t now_ms) {
        uint32_t gone_ms = (uint32_t)now_ms - b->seen_ms;
        uint64_t out = (uint64_t)gone_ms * conf.per_s;
        uint64_t most = (uint64_t)conf.burst * 1000;
        uint64_t level = b->level_milli > out ? b->level_milli - out : 0;
        level += (uint64_t)weight * 1000;
        b->seen_ms = (uint32_t)now_ms;
        b->level_milli = (uint32_t)(level < UINT32_MAX ? level : UINT32_MAX);
        return level <= most;
}
