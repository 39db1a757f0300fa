#include "loadgen/race.h"

#include <stdio.h>
#include <stdlib.h>

#include "loadgen/cheat.h"
#include "loadgen/checkout.h"
#include "loadgen/crowd.h"
#include "loadgen/line.h"
#include "loadgen/plot.h"
#include "loadgen/setup.h"
#include "loadgen/watch.h"
#include "loadgen/wire.h"
#include "net/clock.h"
#include "net/random.h"

#define ORIGIN_LINKS 4
#define ARRIVALS_PER_TURN 200 /* so that answers are read while a herd arrives */
#define PREQUEUE_MORE_MS 3000 /* from the last planned join to the opening */
#define SETTLE_MS 5000        /* for holds to end after the last buyer has */
#define PATIENCE_MS 30000     /* for a last look at origin and gateways */

struct arrival {
        int64_t at_ms; /* after the start */
        struct lg_tab *tab;
};

struct race {
        const struct lg_options *options;
        const struct lg_addresses *addresses;
        struct loop *loop;
        struct tls_context *tls;
        struct lg_links *gateways, *admins, *origin;
        struct lg_sale sale;
        struct lg_crowd crowd;
        struct lg_watch watch;
        struct lg_stock before;
        struct arrival *arrivals; /* by at_ms */
        size_t n_arrivals, n_arrived;
        struct loop_timer arrive, deadline;
        int64_t started_us, opening_us;
        char line_path[128], holds_path[128];
        struct lg_report report;
};

static int say(const char *why) {
        fprintf(stderr, "sluice-load: %s\n", why);
        return 1;
}

/* ---- before ---- */

static void on_all_open(void *owner) {
        struct race *r = owner;
        loop_stop(r->loop);
}

static int open_links(struct race *r) {
        const struct lg_addresses *a = r->addresses;
        size_t n = (size_t)lg_options_connections(r->options);
        char why[160];
        struct tls_client_conf conf = {.ca_file = a->ca_file, .alpn = TLS_ALPN_H2};
        if (tls_client_new(&conf, &r->tls, why, sizeof(why)) != 0)
                return say(why);
        if (lg_links_new(r->loop, a->gateways, a->n_gateways, n, r->tls, &r->gateways) != 0 ||
            lg_links_new(r->loop, a->admins, a->n_admins, a->n_admins, r->tls, &r->admins) != 0 ||
            lg_links_new(r->loop, &a->origin, 1, ORIGIN_LINKS, NULL, &r->origin) != 0)
                return say("out of memory");
        int64_t until_ms = loop_clock_ms() + PATIENCE_MS;
        do {
                lg_links_open(r->gateways, on_all_open, r);
                loop_run(r->loop);
        } while (lg_links_ready(r->gateways) < n && loop_clock_ms() < until_ms);
        if (lg_links_ready(r->gateways) == 0) {
                fprintf(stderr, "sluice-load: no connection to %s\n", a->gateways[0].address);
                return 1;
        }
        return 0;
}

static int prepare_sale(struct race *r) {
        const struct lg_options *o = r->options;
        r->sale.loop = r->loop;
        r->sale.origin = lg_links_at(r->origin, 0);
        r->sale.token = r->addresses->service_token;
        bool prequeue = o->arrival == LG_ARRIVAL_PREQUEUE;
        int bad;
        if (o->sale) {
                snprintf(r->sale.id, sizeof(r->sale.id), "%s", o->sale);
                bad = lg_sale_find(&r->sale);
        } else {
                snprintf(r->sale.id, sizeof(r->sale.id), "race-%llu-%llx",
                         (unsigned long long)r->crowd.seed, (unsigned long long)clock_wall_ms());
                int64_t opens_in_ms = o->spread_s * 1000 + PREQUEUE_MORE_MS;
                bad = lg_sale_make(&r->sale, o, opens_in_ms);
        }
        if (bad == 0)
                bad = lg_sale_await(&r->sale, r->gateways, r->addresses->n_gateways,
                                    prequeue ? "prequeue" : "open",
                                    &r->report.answers[LG_ANSWER_FLAG]);
        if (bad != 0)
                return say(r->sale.why);
        if (lg_sale_stock(&r->sale, PATIENCE_MS, &r->before) != 0)
                return say("the stock at the origin could not be read");
        return 0;
}

static void on_all_ended(struct lg_crowd *c) {
        loop_stop(c->loop);
}

static int by_arrival(const void *a, const void *b) {
        const struct arrival *x = a, *y = b;
        if (x->at_ms != y->at_ms)
                return x->at_ms < y->at_ms ? -1 : 1;
        return (x->tab > y->tab) - (x->tab < y->tab);
}

static int prepare_crowd(struct race *r) {
        struct lg_crowd *c = &r->crowd;
        snprintf(r->line_path, sizeof(r->line_path), "/_sluice/v1/sales/%s/line", r->sale.id);
        snprintf(r->holds_path, sizeof(r->holds_path), "/_sluice/v1/sales/%s/holds", r->sale.id);
        snprintf(c->sale, sizeof(c->sale), "%s", r->sale.id);
        c->loop = r->loop;
        c->options = r->options;
        c->addresses = r->addresses;
        c->gateways = r->gateways;
        c->origin = r->origin;
        c->line_path = span_of(r->line_path);
        c->holds_path = span_of(r->holds_path);
        c->service_token = span_of(r->addresses->service_token);
        c->per_account = r->sale.per_account;
        c->hold_seconds = r->sale.hold_seconds;
        c->answers = r->report.answers;
        c->on_all_ended = on_all_ended;
        if (lg_crowd_init(c) != 0)
                return say("the buyers could not be made: out of memory, or no token");
        r->n_arrivals = (size_t)(r->options->buyers * r->options->tabs);
        r->arrivals = calloc(r->n_arrivals, sizeof(*r->arrivals));
        if (!r->arrivals)
                return say("out of memory");
        for (size_t i = 0; i < r->n_arrivals; i++)
                r->arrivals[i] = (struct arrival){c->tabs[i].arrives_ms, &c->tabs[i]};
        qsort(r->arrivals, r->n_arrivals, sizeof(*r->arrivals), by_arrival);
        return 0;
}

/* ---- the race ---- */

static void on_arrive(struct loop_timer *t) {
        struct race *r = NET_CONTAINER_OF(t, struct race, arrive);
        int64_t now_ms = (loop_clock_us() - r->started_us) / 1000;
        for (int n = 0; n < ARRIVALS_PER_TURN && r->n_arrived < r->n_arrivals; n++) {
                const struct arrival *next = &r->arrivals[r->n_arrived];
                if (next->at_ms > now_ms)
                        break;
                r->n_arrived++;
                lg_line_join(next->tab);
        }
        if (r->n_arrived == r->n_arrivals)
                return;
        int64_t next_ms = r->arrivals[r->n_arrived].at_ms - now_ms;
        loop_timer_start(&r->arrive, next_ms > 0 ? next_ms : 0);
}

static void on_deadline(struct loop_timer *t) {
        struct race *r = NET_CONTAINER_OF(t, struct race, deadline);
        loop_stop(r->loop);
}

static void hold_race(struct race *r) {
        int64_t now_us = loop_clock_us();
        int64_t opens_in_ms = r->sale.opens_at_ms - clock_wall_ms();
        r->started_us = now_us;
        r->opening_us = now_us + (opens_in_ms > 0 ? opens_in_ms * 1000 : 0);
        loop_timer_init(r->loop, &r->arrive, on_arrive);
        loop_timer_init(r->loop, &r->deadline, on_deadline);
        loop_timer_start(&r->arrive, 0);
        int64_t deadline_ms = lg_options_deadline_s(r->options) * 1000;
        loop_timer_start(&r->deadline, deadline_ms + (opens_in_ms > 0 ? opens_in_ms : 0));
        loop_run(r->loop);
        loop_timer_cancel(&r->arrive);
        loop_timer_cancel(&r->deadline);
        int64_t end_us =
                r->crowd.n_ended == r->options->buyers ? r->crowd.last_end_us : loop_clock_us();
        r->report.duration_s = (double)(end_us - r->opening_us) / 1e6;
}

/* ---- after ---- */

static void stop_buyers(struct lg_crowd *c) {
        for (int64_t i = 0; i < c->options->buyers; i++) {
                struct lg_buyer *b = &c->buyers[i];
                for (int64_t k = 0; k < c->options->tabs; k++)
                        lg_line_cancel(&b->tabs[k]);
                lg_checkout_cancel(b);
                lg_cheat_fini(b);
        }
}

static void read_stock(struct race *r, struct lg_facts *f) {
        struct lg_stock now;
        int64_t until_ms = loop_clock_ms() + SETTLE_MS;
        f->stock_known = lg_sale_stock(&r->sale, PATIENCE_MS, &now) == 0;
        while (f->stock_known && now.held > r->before.held && loop_clock_ms() < until_ms) {
                lg_wire_sleep(r->loop, 100);
                f->stock_known = lg_sale_stock(&r->sale, PATIENCE_MS, &now) == 0;
        }
        f->units = r->options->sale ? r->before.available : r->options->units;
        if (f->stock_known) {
                f->stock_sold = now.sold - r->before.sold;
                f->stock_held = now.held - r->before.held;
        }
        lg_sale_invariant(&r->sale, PATIENCE_MS, &f->invariant_known, &f->invariant_ok);
}

static int64_t grown(const struct race *r, enum lg_counter counter) {
        return (int64_t)lg_watch_grown(&r->watch, counter);
}

static void read_counters(struct race *r, struct lg_facts *f, struct lg_extras *x) {
        f->metrics_known = lg_watch_all(&r->watch, PATIENCE_MS) == 0;
        x->asked_snapshot = grown(r, LG_COUNTER_ASKED_SNAPSHOT);
        x->asked_health = grown(r, LG_COUNTER_ASKED_HEALTH);
        x->asked_hold = grown(r, LG_COUNTER_ASKED_HOLD);
        x->asked_hold_read = grown(r, LG_COUNTER_ASKED_HOLD_READ);
        x->asked_forward = grown(r, LG_COUNTER_ASKED_FORWARD);
        f->asked_for_people = x->asked_hold + x->asked_hold_read + x->asked_forward;
        f->asked_origin = f->asked_for_people + x->asked_snapshot + x->asked_health +
                          grown(r, LG_COUNTER_ASKED_OTHER);
        f->store_calls = grown(r, LG_COUNTER_STORE_CALLS);
        f->passes_issued = grown(r, LG_COUNTER_PASSES_ISSUED);
}

static int64_t count_inversions(const struct lg_crowd *c) {
        size_t n = (size_t)c->options->buyers;
        struct lg_trace *traces = calloc(n, sizeof(*traces));
        if (!traces)
                return -1;
        for (size_t i = 0; i < n; i++)
                traces[i] = c->buyers[i].trace;
        int64_t pairs = lg_inversions_count(traces, n);
        free(traces);
        return pairs;
}

static void judge(struct race *r) {
        struct lg_report *report = &r->report;
        struct lg_crowd *c = &r->crowd;
        report->facts.deadline_s = lg_options_deadline_s(r->options);
        lg_crowd_facts(c, &report->facts);
        report->facts.inversions = count_inversions(c);
        report->extras.seed = (int64_t)c->seed;
        report->extras.connections = lg_options_connections(r->options);
        report->extras.again = c->again;
        report->extras.all_held_to_pass = c->all_held_to_pass;
        snprintf(report->extras.sale, sizeof(report->extras.sale), "%s", c->sale);
        lg_judge(&report->facts, &report->verdict);
        if (c->broken_by[0] != '\0')
                lg_verdict_add(&report->verdict, "first of these: %s", c->broken_by);
}

static int finish(struct race *r) {
        const struct lg_options *o = r->options;
        stop_buyers(&r->crowd);
        read_stock(r, &r->report.facts);
        read_counters(r, &r->report.facts, &r->report.extras);
        lg_watch_cancel(&r->watch);
        judge(r);
        if (o->plot && lg_plot_write(o->plot, &r->crowd, r->started_us) != 0)
                lg_verdict_add(&r->report.verdict, "--plot %s: could not be written", o->plot);
        int failed =
                o->json ? lg_report_json(&r->report, stdout) : lg_report_table(&r->report, stdout);
        return failed != 0 || !r->report.verdict.ok;
}

static int race_all(struct race *r) {
        if (open_links(r) != 0 || prepare_sale(r) != 0 || prepare_crowd(r) != 0)
                return 1;
        lg_watch_init(&r->watch, r->loop, r->admins, r->addresses->n_admins, span_of(r->sale.id));
        if (lg_watch_all(&r->watch, PATIENCE_MS) != 0) {
                lg_watch_cancel(&r->watch);
                return say("the gateways' metrics could not be read");
        }
        fprintf(stderr, "sluice-load: racing for %lld units of %s: %lld buyers, %zu connections\n",
                (long long)(r->options->sale ? r->before.available : r->options->units), r->sale.id,
                (long long)r->options->buyers, lg_links_ready(r->gateways));
        hold_race(r);
        return finish(r);
}

static uint64_t any_seed(void) {
        uint64_t seed;
        random_bytes(&seed, sizeof(seed));
        return seed % 1000000000;
}

int lg_race_run(const struct lg_options *o, const struct lg_addresses *a) {
        struct race *r = calloc(1, sizeof(*r));
        if (!r || !(r->loop = loop_new())) {
                free(r);
                return say("out of memory or of files");
        }
        r->options = o;
        r->addresses = a;
        r->crowd.seed = o->seed >= 0 ? (uint64_t)o->seed : any_seed();
        int code = race_all(r);
        lg_links_free(&r->gateways);
        lg_links_free(&r->admins);
        lg_links_free(&r->origin);
        lg_crowd_fini(&r->crowd);
        free(r->arrivals);
        tls_context_free(&r->tls);
        loop_free(&r->loop);
        free(r);
        return code;
}
