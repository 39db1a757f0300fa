/* admission/ask.h - the questions of store.h and what goes with them.
 *
 * Units      instants are ms since the epoch by the origin's clock.
 * Ownership  plain values; pointers are borrowed for the call.
 * Context    any thread.
 */
#ifndef ADMISSION_ASK_H
#define ADMISSION_ASK_H

#include "admission/place.h"
#include "admission/sale.h"

#define ADM_MUST __attribute__((warn_unused_result))

/* A snapshot older than this makes the sales `paused`. */
#define ADM_AWAY_MS 3000

enum adm_outcome {
        ADM_DONE = 0,
        ADM_NO_SALE,      /* the handle names no sale (any more) */
        ADM_NO_PLACE,     /* the ticket names no place: 404, out->reason */
        ADM_SALES_FULL,   /* no room for another sale */
        ADM_BAD_SALE,     /* adm_sale_check refuses the facts */
        ADM_STALE,        /* facts older than known: nothing changed */
        ADM_PASS_UNKNOWN, /* no such pass: 403 pass_required */
        ADM_PASS_EXPIRED, /* life is over: 403 pass_expired, or replay */
        ADM_PASS_REVOKED, /* by operator, Sluice-Done or leaving */
        ADM_PASS_OTHER,   /* another account's: counts as no pass */
        ADM_PASS_OLD_ROUND,
        ADM_PASS_STOPPED, /* good, but the sale is paused hard: 503 */
        ADM_NO_ROOM,      /* a further hold finds no room: 409 all_held */
        ADM_MAP_FOREIGN,  /* open: not ours, or another format */
        ADM_MAP_SHAPE,    /* open: made with other sizes, still in use */
};

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

struct adm_join {
        struct adm_tag tag;
        bool guest;
        bool ticket_bad;                 /* one was shown that did not decode */
        const struct adm_ticket *ticket; /* decoded, or NULL */
        uint8_t jti[ADM_JTI_LEN];        /* 16 fresh secret random bytes */
        uint32_t random;                 /* for the jitter of poll times */
};

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

struct adm_hold_end {
        uint32_t qty;        /* as begun */
        bool held;           /* the answer is a hold that stands */
        int64_t hold_end_ms; /* its expires_at, when held */
        bool has_stock;      /* Sluice-Available and Sluice-Version came */
        uint64_t timeline;
        uint64_t n;
        int64_t available;
};

/* The flag of a sale as it was last shown. */
struct adm_told {
        uint64_t version; /* 0: none was */
        int64_t as_of_ms;
        int64_t left; /* in the asker's own words */
        int64_t opens_at_ms;
        int64_t closes_at_ms;
        uint64_t state; /* enum adm_sale_state */
};

struct adm_view {
        char id[ADM_ID_LEN];
        enum adm_sale_state state; /* as shown, all_held smoothed */
        bool away;                 /* no snapshot for ADM_AWAY_MS */
        bool known;                /* available is known in this epoch */
        uint32_t round;
        uint32_t epoch;              /* which life of the gate's counters */
        struct adm_stock stock;      /* as the gate knows it */
        int64_t gate_gap;            /* gate's available minus the last snapshot's */
        int64_t room_units;          /* may be negative */
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
        struct adm_sale_facts facts; /* the newest that were told; .stock as above */
        struct adm_told told;
};

#endif
