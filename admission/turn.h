/* admission/turn.h - invitations and passes of one sale, and their slots.
 *
 *   FREE -> INVITED -> FIRST -> USED -> HOLDER -> FREE
 *              |         |        |
 *              v         v        v
 *            FREE     LINGER   LINGER -> FREE
 *
 * INVITED was told `ready`; FIRST has a pass shown nowhere yet; USED has
 * shown it; HOLDER has a hold and takes no slot. LINGER is a pass that is
 * dead, or void, whose slot is not yet safe to use again.
 *
 * `units` is what a turn takes from the room of the gate. Their sum is
 * `outstanding`. A turn is written before the counters that sum it up; after
 * a crash the counters are built anew from the turns.
 *
 * Units      ms of sale time; units of stock.
 * Ownership  the struct borrows arrays that live in the shared map.
 * Context    under the sale's lock.
 */
#ifndef ADMISSION_TURN_H
#define ADMISSION_TURN_H

#include "admission/place.h"

#define ADM_TURN_NONE UINT32_MAX

enum adm_turn_state {
        ADM_TURN_FREE = 0,
        ADM_TURN_INVITED,
        ADM_TURN_FIRST,
        ADM_TURN_USED,
        ADM_TURN_HOLDER,
        ADM_TURN_LINGER,
};

struct adm_turn {
        uint8_t jti[ADM_JTI_LEN];
        int64_t iat_ms;
        int64_t exp_ms;           /* of the invitation or the pass */
        int64_t due_at_ms;        /* when upkeep has to look at it */
        int64_t in_flight_end_ms; /* after it, nothing is in flight */
        uint32_t rec;             /* whose; FREE: next free turn + 1 */
        uint32_t slot;            /* where it stands among the active */
        uint32_t units;           /* taken from the room */
        uint32_t in_flight;       /* units of holds being forwarded */
        uint32_t stop_stamp;      /* the hard pause that lengthened it */
        uint8_t state;            /* enum adm_turn_state */
        uint8_t is_void;          /* LINGER by revocation, not by time */
        uint8_t is_counted;       /* the known stock lacks what is in flight */
        uint8_t unused;
};

struct adm_turns_head {
        uint32_t high;      /* turns ever used */
        uint32_t free_head; /* first free turn + 1 */
        uint32_t active;    /* turns that are not FREE */
        uint32_t invited;
        uint32_t slots;      /* FIRST, USED and LINGER */
        uint32_t in_flight;  /* units */
        int64_t outstanding; /* units */
        int64_t counted;     /* units in flight of turns that are counted */
        uint64_t issued_total;
        uint64_t missed_total;
};

struct adm_turns {
        struct adm_turns_head *h;
        struct adm_turn *all;
        int64_t *due;  /* of the active, densely: what upkeep scans */
        uint32_t *who; /* the turn of each of them */
        uint32_t capacity;
        uint64_t salt; /* hides the turn inside a jti */
};

/* A new INVITED turn of `rec`, due at `due_at_ms`; ADM_TURN_NONE: full. */
uint32_t adm_turn_new(struct adm_turns *t, uint32_t rec, int64_t due_at_ms);

/* The one setter: state, units and due time in one step. Asserts the move. */
void adm_turn_set(struct adm_turns *t, uint32_t at, enum adm_turn_state state, uint32_t units,
                  int64_t due_at_ms);

/* Units of holds on their way to the origin, until `end_ms` at the latest; are
 * they known to be taken out of the known stock already? */
void adm_turn_fly(struct adm_turns *t, uint32_t at, uint32_t units, int64_t end_ms,
                  bool is_counted);

/* Makes `jti` name the turn: its first four bytes are replaced. */
void adm_turn_name(const struct adm_turns *t, uint32_t at, uint8_t jti[ADM_JTI_LEN]);

/* The turn a jti names, if it bears that jti; else ADM_TURN_NONE. */
uint32_t adm_turn_find(const struct adm_turns *t, const uint8_t jti[ADM_JTI_LEN]);

bool adm_turn_has_pass(const struct adm_turn *t);

/* When upkeep has to look at it: at its end, or, for a holder pass, when
 * what is in flight can no longer be. LINGER: as was set. */
int64_t adm_turn_due(const struct adm_turn *t);

/* After a crash. */
void adm_turns_rebuild(struct adm_turns *t);

#endif
