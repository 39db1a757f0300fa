/* loadgen/judge.h - whether a sale held, decided from what was seen outside.
 *
 * Two errors count the same: a unit sold twice, and a buyer refused while a
 * unit was free. The judgement is pure: facts in, reasons out; every rule
 * that failed is named.
 *
 * Units      units of stock, shoppers, requests.
 * Ownership  plain values.
 * Context    after the race.
 */
#ifndef LOADGEN_JUDGE_H
#define LOADGEN_JUDGE_H

#include "net/base.h"

#define LG_WHY_MAX 24
#define LG_WHY_BYTES 200

/* What was counted. */
struct lg_facts {
        int64_t buyers;
        int64_t units;       /* stock at the opening */
        int64_t demand;      /* units wanted by those who pay */
        int64_t per_account; /* the sale's limit */
        int64_t deadline_s;

        /* the buyers' ends; with `unfinished` they add up to `buyers` */
        int64_t sold_to, refused, left, unfinished;
        int64_t broken; /* of `unfinished`: ended by an answer out of contract */
        int64_t admitted;
        int64_t units_confirmed;  /* acknowledged to the payer */
        int64_t units_given_back; /* held and never paid, or paid too late */
        int64_t passes_unused;    /* got by buyers who walked away with them */
        int64_t passes_seen;      /* different passes that buyers were given */
        int64_t max_units_per_account;
        int64_t inversions; /* < 0: could not be counted */
        int64_t cheats_won;
        int64_t sent_with_pass;

        /* the origin's stock, growth since the opening */
        bool stock_known;
        int64_t stock_sold;
        int64_t stock_held;
        bool invariant_known;
        bool invariant_ok;

        /* the gateways' counters, growth since the opening */
        bool metrics_known;
        int64_t passes_issued;
        int64_t asked_origin;     /* all kinds */
        int64_t asked_for_people; /* kinds hold, hold_read, forward */
        int64_t store_calls;
};

struct lg_verdict {
        int64_t unsold, oversold, refused_while_free, origin_requests_for_refused;
        bool ok;
        size_t n_why;
        char why[LG_WHY_MAX][LG_WHY_BYTES];
};

void lg_judge(const struct lg_facts *f, struct lg_verdict *v);

/* One more reason; ok becomes false. Above LG_WHY_MAX it is not kept. */
void lg_verdict_add(struct lg_verdict *v, const char *format, ...) NET_PRINTF(2, 3);

#endif
