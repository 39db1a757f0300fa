/* admission/pace.h - how fast shoppers may enter one sale.
 *
 * Two limits. The allowance is how many keys may stand at or below the
 * frontier: it grows evenly, falls by one with each pass, and is never more
 * than one second's worth above those already invited, so nothing is saved
 * up. The window is hard: 61 one-second buckets, the oldest counted whole,
 * never hold more than the rate, so no 60 s ever see more.
 *
 * Units      keys (shoppers); milliseconds of sale time.
 * Ownership  a plain value without pointers; lives in the shared map.
 * Context    under the sale's lock.
 */
#ifndef ADMISSION_PACE_H
#define ADMISSION_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define ADM_PACE_BUCKETS 61

struct adm_pace {
        int64_t allowance_micro;           /* millionths of a key, >= 0 */
        int64_t seen_ms;                   /* latest instant shown; 0 none yet */
        int64_t second;                    /* the second of the newest bucket */
        uint32_t bucket[ADM_PACE_BUCKETS]; /* passes issued, by second % 61 */
};

/* Time passes: earns what the rate gives and cuts what is saved up above
 * `invited` keys. A rate of 0 earns nothing and is no limit. */
void adm_pace_advance(struct adm_pace *p, uint32_t rate_per_minute, uint32_t invited,
                      int64_t now_ms);

/* After a pause: nothing was earned meanwhile. */
void adm_pace_reset(struct adm_pace *p, int64_t now_ms);

/* How many keys the allowance covers. */
int64_t adm_pace_keys(const struct adm_pace *p);

/* Does the hard window let one more pass be issued now? */
bool adm_pace_may_issue(struct adm_pace *p, uint32_t rate_per_minute, int64_t now_ms);

void adm_pace_issued(struct adm_pace *p, int64_t now_ms);

/* Passes a second, in thousandths, over the last 30 whole seconds or since
 * the first of them; 0 when there is nothing to measure. */
int64_t adm_pace_measured_milli(struct adm_pace *p, int64_t now_ms);

#endif
