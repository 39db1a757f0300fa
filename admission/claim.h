/* admission/claim.h - a shopper comes to the line: join, find, ask, claim.
 *
 * Who asks with POST (join) gets a place, finds the old one, or claims when
 * it is their turn. Who asks with GET (poll) is told, and invited when it
 * is their turn. A plain waiter's GET is answered from the notice, the
 * ticket and one mark, without a lock.
 *
 * Units      ms of sale time.
 * Ownership  works on a hall in place.
 * Context    adm_claim_poll_free: any thread, no lock; the rest under the
 *            sale's lock. Results as store.h says.
 */
#ifndef ADMISSION_CLAIM_H
#define ADMISSION_CLAIM_H

#include "admission/hall.h"
#include "admission/position.h"

/* Order keys: arrival region, generation, number. */
uint64_t adm_key_make(uint32_t generation, uint64_t number);

int adm_claim_join(struct adm_hall *l, const struct adm_join *j, int64_t now_ms,
                   struct adm_place *out);

/* True when `out` (and `*rc`) is the answer. False: take the lock. */
bool adm_claim_poll_free(const struct adm_hall *l, uint32_t handle, const struct adm_ticket *t,
                         const struct adm_asker *a, struct adm_place *out);

int adm_claim_poll(struct adm_hall *l, const struct adm_ticket *t, uint32_t random, int64_t now_ms,
                   struct adm_place *out);

void adm_claim_look(struct adm_hall *l, uint32_t random, int64_t now_ms, struct adm_place *out);

void adm_claim_leave(struct adm_hall *l, const struct adm_tag *tag, int64_t now_ms);

#endif
