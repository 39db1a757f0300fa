/* admission/store.h - the store: every decision about a line and its gate.
 *
 * A store holds the sales it was told of, and for each the numbers given
 * out, the invitations and the passes. Each call below is one atomic step.
 * The interface is a table of functions, so that one machine (store_memory.h)
 * and a fleet can answer the same questions.
 *
 * It leaves to others: signing passes, HTTP, accounts, and the order in
 * which situations are judged (the gateway asks about a shown pass first; here a
 * pass in force wins over every state of the sale).
 *
 * Units      every `now_ms` is ms since the epoch by the origin's clock. One
 *            that runs backwards is taken as the latest seen.
 * Ownership  arguments are borrowed for the call, answers are values.
 * Context    any thread. adm_store_poll takes no lock and allocates nothing
 *            for a plain waiter; the rest take one short lock per sale.
 * Results    0 done, > 0 enum adm_outcome, < 0 -errno.
 */
#ifndef ADMISSION_STORE_H
#define ADMISSION_STORE_H

#include "admission/ask.h"

struct adm_store;

/* ---- what the control thread tells ---- */

/* Makes or updates one sale from a snapshot; `*sale` is its handle, stable
 * until the sale is forgotten. Facts of an older `version` are ADM_STALE
 * (`*sale` is still set) unless they come with a higher timeline; older stock
 * is ignored silently. Repeating an update changes nothing. Another round
 * empties the line. */
ADM_MUST int adm_store_sale(struct adm_store *s, const struct adm_sale_update *u, int64_t now_ms,
                            uint32_t *sale);

/* The handle of a sale known from an earlier life of the map. */
ADM_MUST int adm_store_find(struct adm_store *s, const char *id, uint32_t *sale);

/* The sale has left the snapshot. */
void adm_store_forget_sale(struct adm_store *s, uint32_t sale);

/* A snapshot (or "nothing changed") arrived just now from the origin: said
 * before its sales are told. After "nothing changed" the last updates are repeated all the same: a
 * store that was damaged in between learns its stock again from them. */
void adm_store_alive(struct adm_store *s, int64_t now_ms);

/* Upkeep: frontier, lapsed turns, ended slots, published counts. Every
 * 100 ms from one thread a process; two processes at once do no harm. */
void adm_store_tick(struct adm_store *s, int64_t now_ms);

/* ---- what shoppers ask ---- */

/* POST line, or a navigation to a gated page: joins, finds one's place
 * again, or claims. Always 0 with a place, ADM_NO_SALE or -errno. */
ADM_MUST int adm_store_join(struct adm_store *s, uint32_t sale, const struct adm_join *j,
                            int64_t now_ms, struct adm_place *out);

/* GET line: authorised by the ticket alone, never joins, never claims.
 * ADM_NO_PLACE when the ticket is of another sale or round, forgotten or
 * given up: out->reason says why, out->state is the sale's. */
ADM_MUST int adm_store_poll(struct adm_store *s, uint32_t sale, const struct adm_ticket *t,
                            uint32_t random, int64_t now_ms, struct adm_place *out);

/* What somebody without a place is told: no ticket, position null. */
ADM_MUST int adm_store_look(struct adm_store *s, uint32_t sale, uint32_t random, int64_t now_ms,
                            struct adm_place *out);

/* DELETE line: gives up place, invitation and a pass without a hold. */
void adm_store_leave(struct adm_store *s, uint32_t sale, const struct adm_tag *tag, int64_t now_ms);

/* ---- passes ---- */

/* Is it in force? Changes nothing, except that a live pass unknown to a map
 * younger than the pass is registered. */
ADM_MUST int adm_store_pass_look(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                                 int64_t now_ms, struct adm_pass *out);

/* The same, and counts as its first use: on a gated path, or with a hold. */
ADM_MUST int adm_store_pass_use(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                                int64_t now_ms, struct adm_pass *out);

/* A hold of `qty` is about to be forwarded under a pass in force. Nothing to
 * take before the first hold; a further one takes `qty` from the room or is
 * ADM_NO_ROOM. Each 0 is followed by one adm_store_hold_end. */
ADM_MUST int adm_store_hold_begin(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                                  uint32_t qty, int64_t now_ms);

/* The forwarded hold was answered, refused or lost. Converts the pass and
 * takes the new stock in one step. */
ADM_MUST int adm_store_hold_end(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                                const struct adm_hold_end *e, int64_t now_ms, struct adm_pass *out);

/* The hold of this pass was extended: the holder pass lives as long. */
ADM_MUST int adm_store_hold_extended(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                                     int64_t hold_end_ms, int64_t now_ms, struct adm_pass *out);

/* Sluice-Done: the pass is void, its slot free 1 s later. */
void adm_store_pass_done(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                         int64_t now_ms);

/* An operator revokes an account: pass and place. Idempotent by at_ms. */
void adm_store_revoke(struct adm_store *s, uint32_t sale, const struct adm_revoked *r,
                      int64_t now_ms);

/* Stock numbers that came outside a snapshot. */
void adm_store_stock(struct adm_store *s, uint32_t sale, const struct adm_stock *k, int64_t now_ms);

/* ---- what flags and metrics ask ---- */

ADM_MUST int adm_store_view(struct adm_store *s, uint32_t sale, int64_t now_ms,
                            struct adm_view *out);

/* Keeps what everybody is told of the sale from now on; adm_store_view gives it
 * back, also to whoever opens the store next. */
void adm_store_tell(struct adm_store *s, uint32_t sale, const struct adm_told *told);

/* The handles of all sales known, at most `cap`; -> how many. */
size_t adm_store_all(struct adm_store *s, uint32_t *sales, size_t cap);

/* Flushes nothing that matters: what was answered is already in the map. */
void adm_store_close(struct adm_store **s);

#endif
