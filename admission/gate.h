/* admission/gate.h - how many more may enter.
 *
 * Answers about holds overtake each other: one that came first may carry numbers
 * that have the units of others taken out, whose passes still take their slots.
 * Such units, `ahead`, are counted once.
 *
 * The gate counts units: a pass weighs `per_account` when it is issued. No
 * pass is issued when outstanding >= floor(overbook x (available + ahead)).
 * Counted in keys, that many can be issued one after the other:
 *
 *   ceil((floor(overbook x (available + ahead)) - outstanding) / per_account)
 *
 * Units      units of stock, keys (shoppers).
 * Ownership  plain values.
 * Context    any thread; no state.
 */
#ifndef ADMISSION_GATE_H
#define ADMISSION_GATE_H

#include "admission/sale.h"

/* More than any line is long. */
#define ADM_GATE_UNLIMITED INT64_C(1000000000000)

struct adm_gate_in {
        const struct adm_sale_facts *facts;
        bool shut;              /* paused, away, closed, unknown, not yet open */
        int64_t outstanding;    /* units */
        int64_t ahead;          /* units of them that `available` lacks already */
        int64_t active;         /* passes that take a slot */
        int64_t allowance_keys; /* of the pace; used when a rate is set */
};

/* Units free for holds; may be negative. ADM_GATE_UNLIMITED without item. */
int64_t adm_gate_room_units(const struct adm_gate_in *in);

/* Keys that may stand at or below the frontier, >= 0. */
int64_t adm_gate_room_keys(const struct adm_gate_in *in);

#endif
