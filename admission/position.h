/* admission/position.h - turning what is known into what is told.
 *
 * Told honestly: `ahead` is the smaller of what this ticket was told last
 * and what is true now, so it never rises. The ETA is a range around the
 * measured speed and null when there is none. `likely` is false once more
 * stand ahead than units could still come.
 *
 * Units      ms of sale time, seconds for the ETA.
 * Ownership  plain values.
 * Context    any thread; no state.
 */
#ifndef ADMISSION_POSITION_H
#define ADMISSION_POSITION_H

#include "admission/notice.h"
#include "admission/place.h"

struct adm_asker {
        int64_t now_ms;
        uint32_t random;
        uint32_t ahead;     /* live waiters between the frontier and here */
        uint32_t last_told; /* or ADM_AHEAD_UNTOLD */
        bool away;          /* no snapshot lately */
        bool first_contact; /* a guest's: come back in a second */
};

/* The answer to somebody who has no place: state, opening, next poll. */
void adm_position_none(const struct adm_notice *n, const struct adm_asker *a,
                       struct adm_place *out);

/* The answer to a waiter. */
void adm_position_waiting(const struct adm_notice *n, const struct adm_asker *a,
                          struct adm_place *out);

/* `ready`, or `admitted` when `pass` is given. */
void adm_position_front(const struct adm_notice *n, const struct adm_asker *a,
                        const struct adm_pass *pass, struct adm_place *out);

#endif
