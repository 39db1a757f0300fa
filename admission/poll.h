/* admission/poll.h - when a waiting shopper is told to come back.
 *
 *   clamp(2.5 s x (ahead + 1) / L, 2.5 s, far) +- 20 %
 *
 * with L = max(20, units still obtainable) and far = max(30 s, live waiters
 * / budget), at most 120 s. Where a rate limits: at least half the predicted
 * wait. No promise crosses the opening: the last one before it lands spread
 * over max(2 s, live / budget) after it.
 *
 * Units      milliseconds; shoppers; units of stock.
 * Ownership  plain values.
 * Context    any thread; no state.
 */
#ifndef ADMISSION_POLL_H
#define ADMISSION_POLL_H

#include <stdint.h>

#define ADM_POLL_NEAR_MS 2500
#define ADM_POLL_FAR_MS 30000
#define ADM_POLL_MAX_MS 120000
#define ADM_POLL_GUEST_MS 1000
#define ADM_POLL_SCHEDULED_MS 60000

/* No promise lies further ahead than this, whatever is asked. */
#define ADM_POLL_HORIZON_MS 240000

struct adm_poll_in {
        int64_t ahead;            /* >= 0 */
        int64_t obtainable;       /* units; negative: no stock limits */
        int64_t live;             /* live waiters */
        uint32_t rate_per_minute; /* 0 none */
        uint32_t polls_per_s;     /* budget, >= 1 */
        uint32_t random;
};

int64_t adm_poll_after_ms(const struct adm_poll_in *in);

/* Cuts a promise that would cross `opens_at_ms`. */
int64_t adm_poll_before_opening_ms(const struct adm_poll_in *in, int64_t after_ms, int64_t now_ms,
                                   int64_t opens_at_ms);

/* `ms` +- 20 %. */
int64_t adm_poll_jitter_ms(int64_t ms, uint32_t random);

#endif
