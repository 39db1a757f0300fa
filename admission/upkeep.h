/* admission/upkeep.h - what happens to a sale by time alone.
 *
 * Invitations lapse, passes end, slots become free, marks grow old. A turn
 * is settled when it is due: by the tick, or by the next call that meets
 * its account, whichever is first.
 *
 * Units      ms of sale time.
 * Ownership  works on a hall in place.
 * Context    under the sale's lock.
 */
#ifndef ADMISSION_UPKEEP_H
#define ADMISSION_UPKEEP_H

#include <stdint.h>

struct adm_hall;

/* Everything due, then the frontier and the notice. */
void adm_upkeep_tick(struct adm_hall *l, int64_t now_ms);

/* One turn, if it is due. */
void adm_upkeep_settle(struct adm_hall *l, uint32_t turn, int64_t now_ms);

/* Takes back invitations of places at or above `from`: no turn is missed. */
void adm_upkeep_void_invitations(struct adm_hall *l, uint32_t from);

/* A hard pause ends: each pass that lived in it gets its length back, once. */
void adm_upkeep_lengthen(struct adm_hall *l, int64_t now_ms);

/* Before a wipe: no turn belongs to anybody; slots stay for a second. */
void adm_upkeep_orphan_turns(struct adm_hall *l, int64_t now_ms);

/* After a crash: accounts and turns name each other again. */
void adm_upkeep_relink(struct adm_hall *l);

#endif
