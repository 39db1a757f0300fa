/* loadgen/crowd.h - the buyers of one race, their tabs, and what all of them
 * share.
 *
 * A buyer is in the line with one or more tabs (line.h); the tab that gets
 * the pass takes the buyer to the checkout (checkout.h), which may send it
 * back. Each buyer ends exactly once.
 *
 *   absent --> in_line <--> at_checkout --> ended
 *                 |                           ^
 *                 +---------------------------+
 *
 * Units      microseconds of the monotonic clock for instants; units of stock.
 * Ownership  the crowd owns buyers and tabs; links are the race's.
 * Context    the loop's thread.
 */
#ifndef LOADGEN_CROWD_H
#define LOADGEN_CROWD_H

#include "loadgen/answers.h"
#include "loadgen/inversions.h"
#include "loadgen/link.h"
#include "loadgen/plan.h"
#include "loadgen/report.h"

#define LG_KEY_BYTES 80
#define LG_HOLD_BYTES 80
#define LG_ASK_MS 20000       /* deadline of a shopper's request */
#define LG_ANSWER_BYTES 16384 /* ceiling of what a shopper is told */

struct lg_crowd;
struct lg_buyer;

enum lg_buyer_state {
        LG_BUYER_ABSENT,      /* has not arrived */
        LG_BUYER_IN_LINE,     /* its tabs wait */
        LG_BUYER_AT_CHECKOUT, /* holds, pays, or lets a hold expire */
        LG_BUYER_ENDED,
};

enum lg_end {
        LG_END_NONE,
        LG_END_SOLD,    /* paid and was told so */
        LG_END_REFUSED, /* sold out or closed, never had a hold */
        LG_END_LEFT,    /* left, fell silent, or did not get paid what it held */
        LG_END_BROKEN,  /* an answer that no shopper can go on from */
        LG_END_COUNT
};

enum lg_tab_state {
        LG_TAB_CLOSED,  /* not yet opened, or closed */
        LG_TAB_ASKING,  /* a request is under way */
        LG_TAB_WAITING, /* its timer runs */
};

/* What a tab does at its next request. */
enum lg_tab_step {
        LG_STEP_JOIN,  /* POST: join or claim */
        LG_STEP_POLL,  /* GET */
        LG_STEP_LEAVE, /* DELETE */
};

struct lg_tab {
        struct lg_buyer *buyer;
        struct lg_link *link;
        struct lg_ask ask;
        struct loop_timer timer;
        enum lg_tab_state state;
        enum lg_tab_step step;
        char *ticket;    /* NULL: none yet */
        uint32_t tries;  /* failures in a row */
        int64_t answers; /* places told */
        int64_t arrives_ms;
        bool has_slept;
};

struct lg_buyer {
        struct lg_crowd *crowd;
        int64_t index;
        struct lg_plan plan;
        enum lg_buyer_state state;
        enum lg_end end;
        int64_t ended_us;
        char *token; /* its account token */
        struct lg_trace trace;
        bool is_served;      /* was admitted once: no longer evidence */
        int64_t promised_us; /* the line expects it until then; 0: no promise */

        char *pass; /* NULL: none */
        char jti[72];
        int64_t n_passes; /* different ones it was given */

        struct lg_tab *lead; /* with AT_CHECKOUT: the tab that got the pass */
        struct lg_ask ask;
        struct loop_timer timer;
        uint32_t tries;
        int64_t qty;    /* wanted now */
        int64_t key_no; /* raised with every new intention */
        char key[LG_KEY_BYTES];
        char body[128];
        char path[LG_HOLD_BYTES + 32];
        char hold[LG_HOLD_BYTES]; /* "" : none in hand */
        int64_t hold_qty;
        bool had_hold;
        int64_t units; /* sold to it or in its hands */

        struct lg_cheat_try *cheat; /* NULL unless it cheats */
        struct lg_tab *tabs;        /* crowd's array, options->tabs of them */
};

struct lg_crowd {
        struct loop *loop;
        const struct lg_options *options;
        const struct lg_addresses *addresses;
        uint64_t seed;
        struct lg_links *gateways, *origin;
        struct span line_path, holds_path, service_token;
        char sale[64];
        int64_t per_account, hold_seconds;

        struct lg_buyer *buyers;
        struct lg_tab *tabs;
        int64_t n_ended;
        int64_t last_end_us;
        int64_t ends[LG_END_COUNT];
        struct lg_histogram *answers; /* LG_ANSWER_COUNT of them */
        char broken_by[96];           /* the first answer that broke a buyer, "" none */

        int64_t units_confirmed, units_given_back, sent_with_pass, all_held_to_pass;
        struct lg_again again;
        int64_t passes_seen, cheats_won;
        char *loot_pass;   /* a pass of an honest buyer, for thieves */
        int64_t loot_of;   /* its index */
        char *loot_ticket; /* the first ticket given */
        int64_t loot_ticket_of;
        void (*on_all_ended)(struct lg_crowd *c);
};

/* Makes buyers, tabs and tokens; the fields above `buyers` are set already.
 * -ENOMEM, -EIO when a token could not be signed. */
NET_MUST int lg_crowd_init(struct lg_crowd *c);
void lg_crowd_fini(struct lg_crowd *c);

/* Ends the buyer and everything it has under way. */
void lg_buyer_end(struct lg_buyer *b, enum lg_end end);
/* The same for an answer out of contract, which is remembered. */
void lg_buyer_break(struct lg_buyer *b, const char *request, int status, struct span code);

/* Takes note of a pass: a new jti counts. False if it is no pass. */
bool lg_buyer_take_pass(struct lg_buyer *b, struct span pass);

/* Counts an answer's latency and whether it says to ask again, or its loss. */
void lg_crowd_count(struct lg_crowd *c, enum lg_answer kind, const struct lg_ask *a);

/* Adds the buyers' part of the facts. */
void lg_crowd_facts(const struct lg_crowd *c, struct lg_facts *f);

#endif
