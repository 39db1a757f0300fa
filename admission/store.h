/* admission/store.h - the store: every decision about a line and its gate.
 *
 * A store holds the sales it was told of, and for each the numbers given
 * out, the invitations and the passes. Each call below is one atomic step.
 * The interface is a table of functions, so that one machine (store_memory.h)
 * and a fleet can answer the same questions.
 *
 * It leaves to others: signing passes, HTTP, accounts, and the order in
 * which the contract lets situations answer (the gateway asks about a shown
 * pass first; here a pass in force wins over every state of the sale).
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

#include "admission/place.h"
#include "admission/sale.h"

#define ADM_MUST __attribute__((warn_unused_result))

/* A snapshot older than this makes the sales `paused`. */
#define ADM_AWAY_MS 3000

enum adm_outcome {
        ADM_DONE = 0,
        ADM_NO_SALE,       /* the handle names no sale (any more) */
        ADM_NO_PLACE,      /* the ticket names no place: 404, out->reason */
        ADM_SALES_FULL,    /* no room for another sale */
        ADM_BAD_SALE,      /* adm_sale_check refuses the facts */
        ADM_STALE,         /* facts older than known: nothing changed */
        ADM_PASS_UNKNOWN,  /* no such pass: 403 pass_required */
        ADM_PASS_EXPIRED,  /* life is over: 403 pass_expired, or replay */
        ADM_PASS_REVOKED,  /* by operator, Sluice-Done or leaving */
        ADM_PASS_OTHER,    /* another account's: counts as no pass */
        ADM_PASS_OLD_ROUND,
        ADM_PASS_STOPPED,  /* good, but the sale is paused hard: 503 */
        ADM_NO_ROOM,       /* a further hold finds no room: 409 all_held */
        ADM_MAP_FOREIGN,   /* open: not ours, or another format */
        ADM_MAP_SHAPE,     /* open: made with other sizes, still in use */
};

struct adm_store;

/* ---- what the control thread tells ---- */

/* A pass that the origin saw in a hold it was not asked for by us. */
struct adm_converted {
        uint8_t jti[ADM_JTI_LEN];
        uint32_t qty;
        int64_t hold_end_ms;
};

struct adm_revoked {
        struct adm_tag tag;
        int64_t at_ms; /* passes and places given before this are void */
};

struct adm_sale_update {
        struct adm_sale_facts facts;
        const struct adm_converted *converted;
        size_t n_converted;
        const struct adm_revoked *revoked;
        size_t n_revoked;
};

/* Makes or updates one sale from a snapshot; `*sale` is its handle, stable
 * until the sale is forgotten. Facts of an older `version` are ADM_STALE
 * (`*sale` is still set); older stock is ignored silently. Repeating an
 * update changes nothing. A raised round empties the line. */
ADM_MUST int adm_store_sale(struct adm_store *s, const struct adm_sale_update *u, int64_t now_ms,
                            uint32_t *sale);

/* The handle of a sale known from an earlier life of the map. */
ADM_MUST int adm_store_find(struct adm_store *s, const char *id, uint32_t *sale);

/* The sale has left the snapshot. */
void adm_store_forget_sale(struct adm_store *s, uint32_t sale);

/* A snapshot (or "nothing changed") arrived just now from the origin. */
void adm_store_alive(struct adm_store *s, int64_t now_ms);

/* Upkeep: frontier, lapsed turns, ended slots, published counts. Every
 * 100 ms from one thread a process; two processes at once do no harm. */
void adm_store_tick(struct adm_store *s, int64_t now_ms);

/* ---- what shoppers ask ---- */

struct adm_join {
        struct adm_tag tag;
        bool guest;
        bool ticket_bad;                 /* one was shown that did not decode */
        const struct adm_ticket *ticket; /* decoded, or NULL */
        uint8_t jti[ADM_JTI_LEN];        /* 16 fresh secret random bytes */
        uint32_t random;                 /* for the jitter of poll times */
};

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

/* An authentic pass (the gateway has checked signature and audience; an
 * `exp` in the past is no reason to skip the question). */
struct adm_shown {
        uint8_t jti[ADM_JTI_LEN];
        struct adm_tag tag; /* of its `sub` */
        uint32_t round;
        int64_t iat_ms;
        int64_t exp_ms;
        bool holder; /* `use: holder` */
};

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

struct adm_hold_end {
        uint32_t qty;        /* as begun */
        bool held;           /* the answer is a hold that stands */
        int64_t hold_end_ms; /* its expires_at, when held */
        bool has_stock;      /* Sluice-Available and Sluice-Version came */
        uint64_t timeline;
        uint64_t n;
        int64_t available;
};

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

struct adm_view {
        char id[ADM_ID_LEN];
        enum adm_sale_state state; /* as shown, all_held smoothed */
        bool away;                 /* no snapshot for ADM_AWAY_MS */
        bool known;                /* available is known in this epoch */
        uint32_t round;
        uint32_t epoch;           /* which life of the gate's counters */
        struct adm_stock stock;   /* as the gate knows it */
        int64_t gate_gap;         /* gate's available minus the last snapshot's */
        int64_t room_units;       /* may be negative */
        uint64_t passes_outstanding; /* units */
        uint64_t passes_active;      /* passes that take a slot */
        uint64_t passes_issued_total;
        uint64_t turns_missed_total;
        uint64_t joins_total;
        uint64_t line_full_total;
        uint64_t line_waiting; /* places not served and not left */
        uint64_t line_live;
        uint64_t line_invited;
        uint64_t last_number;
};

ADM_MUST int adm_store_view(struct adm_store *s, uint32_t sale, int64_t now_ms,
                            struct adm_view *out);

/* Flushes nothing that matters: what was answered is already in the map. */
void adm_store_close(struct adm_store **s);

/* ---- for those who implement one ---- */

struct adm_store_ops {
        int (*sale)(struct adm_store *, const struct adm_sale_update *, int64_t, uint32_t *);
        int (*find)(struct adm_store *, const char *, uint32_t *);
        void (*forget_sale)(struct adm_store *, uint32_t);
        void (*alive)(struct adm_store *, int64_t);
        void (*tick)(struct adm_store *, int64_t);
        int (*join)(struct adm_store *, uint32_t, const struct adm_join *, int64_t,
                    struct adm_place *);
        int (*poll)(struct adm_store *, uint32_t, const struct adm_ticket *, uint32_t, int64_t,
                    struct adm_place *);
        int (*look)(struct adm_store *, uint32_t, uint32_t, int64_t, struct adm_place *);
        void (*leave)(struct adm_store *, uint32_t, const struct adm_tag *, int64_t);
        int (*pass_show)(struct adm_store *, uint32_t, const struct adm_shown *, bool, int64_t,
                         struct adm_pass *);
        int (*hold_begin)(struct adm_store *, uint32_t, const struct adm_shown *, uint32_t,
                          int64_t);
        int (*hold_end)(struct adm_store *, uint32_t, const struct adm_shown *,
                        const struct adm_hold_end *, int64_t, struct adm_pass *);
        int (*hold_extended)(struct adm_store *, uint32_t, const struct adm_shown *, int64_t,
                             int64_t, struct adm_pass *);
        void (*pass_done)(struct adm_store *, uint32_t, const struct adm_shown *, int64_t);
        void (*revoke)(struct adm_store *, uint32_t, const struct adm_revoked *, int64_t);
        void (*stock)(struct adm_store *, uint32_t, const struct adm_stock *, int64_t);
        int (*view)(struct adm_store *, uint32_t, int64_t, struct adm_view *);
        void (*close)(struct adm_store *);
};

/* The head of every implementation's own struct. */
struct adm_store {
        const struct adm_store_ops *ops;
};

#endif
