#include "loadgen/judge.h"

#include <stdarg.h>
#include <stdio.h>

void lg_verdict_add(struct lg_verdict *v, const char *format, ...) {
        v->ok = false;
        if (v->n_why == LG_WHY_MAX)
                return;
        va_list args;
        va_start(args, format);
        vsnprintf(v->why[v->n_why++], LG_WHY_BYTES, format, args);
        va_end(args);
}

static int64_t above_zero(int64_t n) {
        return n > 0 ? n : 0;
}

static int64_t smaller(int64_t a, int64_t b) {
        return a < b ? a : b;
}

#define NUMBER(n) ((long long)(n))

static void judge_stock(const struct lg_facts *f, struct lg_verdict *v) {
        if (!f->stock_known) {
                lg_verdict_add(v, "the stock at the origin could not be read");
                return;
        }
        int64_t due = smaller(f->units, f->demand);
        if (v->oversold > 0)
                lg_verdict_add(v, "oversold: %lld units above %lld", NUMBER(v->oversold),
                               NUMBER(f->units));
        if (f->stock_sold < due)
                lg_verdict_add(v, "sold %lld units where %lld were wanted and there",
                               NUMBER(f->stock_sold), NUMBER(due));
        if (f->stock_held != 0)
                lg_verdict_add(v, "%lld units still held at the end", NUMBER(f->stock_held));
        if (f->stock_sold != f->units_confirmed)
                lg_verdict_add(v, "the origin sold %lld units, payers were told %lld",
                               NUMBER(f->stock_sold), NUMBER(f->units_confirmed));
        if (!f->invariant_known)
                lg_verdict_add(v, "the invariant could not be read");
        else if (!f->invariant_ok)
                lg_verdict_add(v, "the invariant is violated");
}

static void judge_buyers(const struct lg_facts *f, struct lg_verdict *v) {
        if (f->unfinished > f->broken)
                lg_verdict_add(v, "%lld buyers had no end after %lld s",
                               NUMBER(f->unfinished - f->broken), NUMBER(f->deadline_s));
        if (f->broken > 0)
                lg_verdict_add(v, "%lld buyers got an answer that no shopper can go on from",
                               NUMBER(f->broken));
        int64_t ends = f->sold_to + f->refused + f->left + f->unfinished;
        if (ends != f->buyers)
                lg_verdict_add(v, "%lld ends of %lld buyers", NUMBER(ends), NUMBER(f->buyers));
        if (v->refused_while_free > 0)
                lg_verdict_add(v, "%lld buyers refused while a unit stayed free",
                               NUMBER(v->refused_while_free));
        if (f->max_units_per_account > f->per_account)
                lg_verdict_add(v, "an account got %lld units, the limit is %lld",
                               NUMBER(f->max_units_per_account), NUMBER(f->per_account));
        if (f->inversions < 0)
                lg_verdict_add(v, "the order of the line could not be checked: out of memory");
        else if (f->inversions > 0)
                lg_verdict_add(v, "%lld times somebody who came later was served first",
                               NUMBER(f->inversions));
        if (f->cheats_won > 0)
                lg_verdict_add(v, "%lld cheats got what was not theirs", NUMBER(f->cheats_won));
}

/* Units can be handed out again only if somebody gave them back, so passes
 * are bounded by the stock and what came back, with 5 % for those that an
 * outage let lapse. */
static void judge_passes(const struct lg_facts *f, struct lg_verdict *v) {
        int64_t fair = f->units + f->units_given_back + f->passes_unused;
        int64_t most = fair + fair / 20;
        if (f->metrics_known && f->passes_issued > most)
                lg_verdict_add(v, "%lld passes issued, at most %lld were needed",
                               NUMBER(f->passes_issued), NUMBER(most));
        if (f->passes_seen > most)
                lg_verdict_add(v, "buyers saw %lld passes, at most %lld were needed",
                               NUMBER(f->passes_seen), NUMBER(most));
}

void lg_judge(const struct lg_facts *f, struct lg_verdict *v) {
        *v = (struct lg_verdict){.ok = true};
        int64_t out = f->stock_sold > f->units_confirmed ? f->stock_sold : f->units_confirmed;
        v->oversold = above_zero(out - f->units);
        v->unsold = above_zero(f->units - f->stock_sold);
        if (f->stock_known && v->unsold > 0)
                v->refused_while_free = f->refused;
        v->origin_requests_for_refused = above_zero(f->asked_for_people - f->sent_with_pass);

        judge_stock(f, v);
        judge_buyers(f, v);
        judge_passes(f, v);
        if (!f->metrics_known)
                lg_verdict_add(v, "the gateways' metrics could not be read");
        if (v->origin_requests_for_refused > 0)
                lg_verdict_add(v, "the origin was asked %lld times for buyers without a pass",
                               NUMBER(v->origin_requests_for_refused));
}
