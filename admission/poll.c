#include "admission/poll.h"

#define L_MIN 20
#define SPREAD_MIN_MS 2000

int64_t adm_poll_jitter_ms(int64_t ms, uint32_t random) {
        int64_t permille = 800 + (int64_t)((uint64_t)random * 401 >> 32);
        return ms * permille / 1000;
}

static int64_t budget_ms(const struct adm_poll_in *in) {
        return in->live * 1000 / (in->polls_per_s ? in->polls_per_s : 1);
}

int64_t adm_poll_after_ms(const struct adm_poll_in *in) {
        int64_t far = budget_ms(in);
        if (far < ADM_POLL_FAR_MS)
                far = ADM_POLL_FAR_MS;
        if (far > ADM_POLL_MAX_MS)
                far = ADM_POLL_MAX_MS;
        int64_t after = ADM_POLL_NEAR_MS;
        if (in->obtainable >= 0) {
                int64_t l = in->obtainable > L_MIN ? in->obtainable : L_MIN;
                after = ADM_POLL_NEAR_MS * (in->ahead + 1) / l;
        }
        if (after > far)
                after = far;
        if (in->rate_per_minute > 0) {
                int64_t half = in->ahead * 30000 / in->rate_per_minute;
                if (after < half)
                        after = half < ADM_POLL_MAX_MS ? half : ADM_POLL_MAX_MS;
        }
        if (after < ADM_POLL_NEAR_MS)
                after = ADM_POLL_NEAR_MS;
        return adm_poll_jitter_ms(after, in->random);
}

int64_t adm_poll_before_opening_ms(const struct adm_poll_in *in, int64_t after_ms, int64_t now_ms,
                                   int64_t opens_at_ms) {
        int64_t left = opens_at_ms - now_ms;
        if (left <= 0 || after_ms < left)
                return after_ms;
        int64_t spread = budget_ms(in);
        if (spread < SPREAD_MIN_MS)
                spread = SPREAD_MIN_MS;
        int64_t after = left + (int64_t)((uint64_t)in->random * (uint64_t)spread >> 32);
        return after < ADM_POLL_HORIZON_MS ? after : ADM_POLL_HORIZON_MS;
}
