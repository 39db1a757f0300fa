/* admission/sale.h - what admission knows of a sale, and its state.
 *
 * The facts come from the origin's snapshot and are replaced as a whole.
 * The state is a function of facts and time, with one memory: all_held is
 * shown once it has lasted 2 s. Its end is shown at once.
 *
 *   scheduled -> prequeue -> open <-> paused -> sold_out | closed
 *                            open <-> all_held
 *
 * Units      instants are ms since the epoch by the origin's clock.
 * Ownership  plain values.
 * Context    any thread.
 */
#ifndef ADMISSION_SALE_H
#define ADMISSION_SALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADM_ID_LEN 64

enum adm_queue {
        ADM_QUEUE_FIFO = 0,
        ADM_QUEUE_DRAW,        /* refused by adm_sale_check */
        ADM_QUEUE_RANDOM,      /* refused by adm_sale_check */
        ADM_QUEUE_PASSTHROUGH, /* no line: the gate alone */
        ADM_QUEUE_REJECT,      /* nobody */
};

enum adm_sale_state {
        ADM_SALE_SCHEDULED = 0,
        ADM_SALE_PREQUEUE,
        ADM_SALE_OPEN,
        ADM_SALE_PAUSED,
        ADM_SALE_ALL_HELD,
        ADM_SALE_SOLD_OUT,
        ADM_SALE_CLOSED,
};

enum adm_identity {
        ADM_IDENTITY_ACCOUNT = 0,
        ADM_IDENTITY_GUEST,
};

/* Stock as of one version. A higher timeline wins, then the higher n, then
 * the later database time: nothing older than what is known is taken. */
struct adm_stock {
        uint64_t timeline;
        uint64_t n;
        int64_t db_now_ms;
        int64_t available; /* holds past their end counted as free */
        int64_t held;
        int64_t sold;
        int64_t total;
};

struct adm_sale_facts {
        char id[ADM_ID_LEN];     /* NUL-terminated */
        char tenant[ADM_ID_LEN]; /* NUL-terminated */
        char item[ADM_ID_LEN];   /* NUL-terminated; "" without has_item */
        bool has_item;           /* false: only rate and max_active limit */
        uint32_t round;
        uint64_t version; /* of the sale, raised by operators */
        int64_t opens_at_ms;
        int64_t prequeue_at_ms; /* 0 none */
        int64_t closes_at_ms;   /* 0 none */
        enum adm_queue queue;
        enum adm_identity identity;
        uint32_t overbook_milli;    /* 1000..2000 */
        uint32_t rate_per_minute;   /* 0 none */
        uint32_t max_active;        /* 0 none */
        uint32_t per_account;       /* 1..1,000,000 units a pass weighs */
        uint32_t hold_seconds;      /* 1..86,400 */
        uint32_t extend_seconds;    /* 0..86,400 */
        uint32_t first_use_seconds; /* 1..86,400 */
        uint32_t pass_seconds;      /* 1..86,400 */
        uint32_t skip_seconds;      /* 1..86,400; above an hour is an hour */
        uint32_t forget_seconds;    /* 1..86,400; at least skip_seconds */
        bool paused;
        bool hard_pause;        /* implies paused */
        bool closed;            /* by an operator's verb */
        struct adm_stock stock; /* meaningless without has_item */
};

/* What was shown last; all zero before the first call. */
struct adm_sale_shown {
        uint8_t raw_all_held;   /* what the numbers say */
        uint8_t shown_all_held; /* what is told */
        int64_t raw_since_ms;   /* when raw last changed */
};

enum adm_sale_fault {
        ADM_SALE_GOOD = 0,
        ADM_SALE_BAD_ID,
        ADM_SALE_BAD_WINDOW, /* an instant before 1970 */
        ADM_SALE_BAD_QUEUE,  /* draw and random are not held here */
        ADM_SALE_BAD_NUMBER, /* a field outside the range written above */
};

/* The contract's defaults; id, tenant, item, opens_at and stock are zero. */
void adm_sale_defaults(struct adm_sale_facts *f);

/* The first fault, or ADM_SALE_GOOD. Instants may stand in any order: who
 * opens a sale early leaves its prequeue behind, and that is no fault. */
int adm_sale_check(const struct adm_sale_facts *f);
const char *adm_sale_fault_name(int fault);

/* The state to show. `shown` may be NULL: then all_held is not smoothed. */
enum adm_sale_state adm_sale_state(const struct adm_sale_facts *f, struct adm_sale_shown *shown,
                                   int64_t now_ms);
const char *adm_sale_state_name(enum adm_sale_state s);

/* <0, 0, >0 as `a` is older than, equal to, newer than `b`. */
int adm_stock_compare(const struct adm_stock *a, const struct adm_stock *b);

#endif
