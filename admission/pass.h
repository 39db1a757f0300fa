/* admission/pass.h - a pass: decided, shown, turned into a hold, ended.
 *
 * Three lives, one jti: until the first use; `pass_seconds` after it; after
 * a hold, as a holder pass, to the hold's end. The slot of a pass ends
 * later than the pass by the verifiers' skew and the time a request may be
 * on its way; freed early it is used again a second later, when every node
 * knows. `exp` and `iat` are whole seconds, as in a JWT.
 *
 * Units      ms of sale time; units of stock.
 * Ownership  works on a hall in place.
 * Context    under the sale's lock. Results as store.h says.
 */
#ifndef ADMISSION_PASS_H
#define ADMISSION_PASS_H

#include "admission/hall.h"

/* A slot freed early is free this much later. */
#define ADM_PASS_VOID_MS 1000

/* Issues the pass of `rec`, whose turn it is. False when there is no turn
 * left to give (a ceiling): nothing changed. */
bool adm_pass_issue(struct adm_hall *l, uint32_t rec, const uint8_t jti[ADM_JTI_LEN],
                    int64_t now_ms);

/* The pass of `rec` in force, or false. */
bool adm_pass_of(const struct adm_hall *l, uint32_t rec, int64_t now_ms, struct adm_pass *out);

int adm_pass_show(struct adm_hall *l, const struct adm_shown *p, bool use, int64_t now_ms,
                  struct adm_pass *out);

int adm_pass_hold_begin(struct adm_hall *l, const struct adm_shown *p, uint32_t qty,
                        int64_t now_ms);
int adm_pass_hold_end(struct adm_hall *l, const struct adm_shown *p, const struct adm_hold_end *e,
                      int64_t now_ms, struct adm_pass *out);
int adm_pass_hold_extended(struct adm_hall *l, const struct adm_shown *p, int64_t hold_end_ms,
                           int64_t now_ms, struct adm_pass *out);
void adm_pass_converted(struct adm_hall *l, const struct adm_converted *c, int64_t now_ms);

void adm_pass_done(struct adm_hall *l, const struct adm_shown *p, int64_t now_ms);
void adm_pass_revoke(struct adm_hall *l, const struct adm_revoked *r, int64_t now_ms);

/* Gives up whatever `rec` has, except a holder pass. */
void adm_pass_leave(struct adm_hall *l, uint32_t rec, int64_t now_ms);

#endif
