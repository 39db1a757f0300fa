#include "admission/pace.h"

#include <string.h>

#define MICRO 1000000
#define EARN_MS_MAX 1000 /* a stalled upkeep earns one second at most */
#define MEASURED_S 30

/* Empties the buckets of the seconds that have passed. */
static void roll(struct adm_pace *p, int64_t now_ms) {
        int64_t s = now_ms / 1000;
        if (s <= p->second)
                return;
        int64_t gone = s - p->second;
        if (gone >= ADM_PACE_BUCKETS)
                memset(p->bucket, 0, sizeof(p->bucket));
        else
                for (int64_t i = 1; i <= gone; i++)
                        p->bucket[(p->second + i) % ADM_PACE_BUCKETS] = 0;
        p->second = s;
}

void adm_pace_advance(struct adm_pace *p, uint32_t rate_per_minute, uint32_t invited,
                      int64_t now_ms) {
        int64_t dt = p->seen_ms ? now_ms - p->seen_ms : 0;
        if (dt < 0)
                return;
        p->seen_ms = now_ms;
        roll(p, now_ms);
        if (rate_per_minute == 0) {
                p->allowance_micro = 0;
                return;
        }
        if (dt > EARN_MS_MAX)
                dt = EARN_MS_MAX;
        p->allowance_micro += (int64_t)rate_per_minute * dt * 1000 / 60;
        int64_t second = (int64_t)rate_per_minute * MICRO / 60;
        int64_t top = (int64_t)invited * MICRO + (second > MICRO ? second : MICRO);
        if (p->allowance_micro > top)
                p->allowance_micro = top;
}

void adm_pace_reset(struct adm_pace *p, int64_t now_ms) {
        p->allowance_micro = 0;
        if (now_ms > p->seen_ms)
                p->seen_ms = now_ms;
}

int64_t adm_pace_keys(const struct adm_pace *p) {
        return p->allowance_micro / MICRO;
}

bool adm_pace_may_issue(struct adm_pace *p, uint32_t rate_per_minute, int64_t now_ms) {
        if (rate_per_minute == 0)
                return true;
        roll(p, now_ms);
        uint64_t sum = 0;
        for (int i = 0; i < ADM_PACE_BUCKETS; i++)
                sum += p->bucket[i];
        return sum < rate_per_minute;
}

void adm_pace_issued(struct adm_pace *p, int64_t now_ms) {
        roll(p, now_ms);
        p->bucket[p->second % ADM_PACE_BUCKETS]++;
        p->allowance_micro -= p->allowance_micro < MICRO ? p->allowance_micro : MICRO;
}

int64_t adm_pace_measured_milli(struct adm_pace *p, int64_t now_ms) {
        roll(p, now_ms);
        int64_t sum = 0, span = 0;
        for (int64_t i = 0; i < MEASURED_S && p->second - i > 0; i++) {
                uint32_t n = p->bucket[(p->second - i) % ADM_PACE_BUCKETS];
                sum += n;
                if (n > 0)
                        span = i + 1;
        }
        /* One second alone is a burst, not a rate; nothing lately is none. */
        if (sum == 0 || span < 2)
                return 0;
        return sum * 1000 / span;
}
