#include "loadgen/report.h"

#include <errno.h>
#include <stdlib.h>

#include "net/json.h"

#define REPORT_BYTES 32768

static const char *const names[] = {
        [LG_ANSWER_JOIN] = "join", [LG_ANSWER_POLL] = "poll",   [LG_ANSWER_CLAIM] = "claim",
        [LG_ANSWER_HOLD] = "hold", [LG_ANSWER_PAY] = "pay",     [LG_ANSWER_LEAVE] = "leave",
        [LG_ANSWER_FLAG] = "flag", [LG_ANSWER_CHEAT] = "cheat",
};

static void write_counts(struct json_out *o, const struct lg_report *r) {
        const struct lg_facts *f = &r->facts;
        const struct lg_verdict *v = &r->verdict;
        json_out_int(o, "buyers", f->buyers);
        json_out_int(o, "units", f->units);
        json_out_int(o, "sold", f->stock_sold);
        json_out_int(o, "held", f->stock_held);
        json_out_int(o, "unsold", v->unsold);
        json_out_int(o, "oversold", v->oversold);
        json_out_int(o, "refused", f->refused);
        json_out_int(o, "refused_while_free", v->refused_while_free);
        json_out_int(o, "left", f->left);
        json_out_int(o, "admitted", f->admitted);
        json_out_int(o, "passes_issued", f->passes_issued);
        json_out_int(o, "origin_requests", f->asked_origin);
        json_out_int(o, "origin_requests_for_refused", v->origin_requests_for_refused);
        json_out_int(o, "store_calls", f->store_calls);
        json_out_real(o, "duration_s", r->duration_s, 3);
}

static void write_answers(struct json_out *o, const struct lg_report *r) {
        json_out_object(o, "answers");
        for (size_t i = 0; i < LG_ANSWER_COUNT; i++) {
                const struct lg_histogram *h = &r->answers[i];
                if (h->count == 0)
                        continue;
                json_out_object(o, names[i]);
                json_out_uint(o, "count", h->count);
                json_out_uint(o, "p50_us", lg_histogram_at(h, 500));
                json_out_uint(o, "p99_us", lg_histogram_at(h, 990));
                json_out_uint(o, "p999_us", lg_histogram_at(h, 999));
                json_out_object_end(o);
        }
        json_out_object_end(o);
}

static void write_extras(struct json_out *o, const struct lg_report *r) {
        const struct lg_extras *x = &r->extras;
        json_out_int(o, "sold_to", r->facts.sold_to);
        json_out_int(o, "unfinished", r->facts.unfinished);
        json_out_int(o, "cheats_won", r->facts.cheats_won);
        json_out_int(o, "passes_seen", r->facts.passes_seen);
        json_out_object(o, "asked_again");
        json_out_int(o, "lost", x->again.lost);
        json_out_int(o, "429", x->again.limited);
        json_out_int(o, "503", x->again.paused);
        json_out_int(o, "5xx", x->again.failed);
        json_out_object_end(o);
        json_out_int(o, "all_held_to_pass", x->all_held_to_pass);
        json_out_int(o, "sent_with_pass", r->facts.sent_with_pass);
        json_out_object(o, "origin_requests_by_kind");
        json_out_int(o, "snapshot", x->asked_snapshot);
        json_out_int(o, "health", x->asked_health);
        json_out_int(o, "hold", x->asked_hold);
        json_out_int(o, "hold_read", x->asked_hold_read);
        json_out_int(o, "forward", x->asked_forward);
        json_out_object_end(o);
        json_out_text(o, "sale", x->sale);
        json_out_int(o, "seed", x->seed);
        json_out_int(o, "connections", x->connections);
}

int lg_report_json(const struct lg_report *r, FILE *out) {
        char *text = malloc(REPORT_BYTES);
        if (!text)
                return -ENOMEM;
        struct json_out o;
        json_out_init(&o, text, REPORT_BYTES);
        json_out_object(&o, NULL);
        write_counts(&o, r);
        write_answers(&o, r);
        json_out_int(&o, "fifo_inversions", r->facts.inversions);
        json_out_int(&o, "max_units_per_account", r->facts.max_units_per_account);
        /* No queue of this version draws, so there is no draw to verify. */
        json_out_null(&o, "draw_verified");
        json_out_bool(&o, "invariant_ok", r->facts.invariant_ok);
        json_out_bool(&o, "ok", r->verdict.ok);
        json_out_array(&o, "why");
        for (size_t i = 0; i < r->verdict.n_why; i++)
                json_out_text(&o, NULL, r->verdict.why[i]);
        json_out_array_end(&o);
        write_extras(&o, r);
        json_out_object_end(&o);
        struct span done = json_out_done(&o);
        assert(done.p);
        bool written = fwrite(done.p, 1, done.len, out) == done.len && fputc('\n', out) != EOF &&
                       fflush(out) == 0;
        free(text);
        return written ? 0 : -EIO;
}

#define N(n) ((long long)(n))

static void print_answers(const struct lg_report *r, FILE *out) {
        fprintf(out, "\n  %-8s %10s %10s %10s %10s\n", "answers", "count", "p50 ms", "p99 ms",
                "p99.9 ms");
        for (size_t i = 0; i < LG_ANSWER_COUNT; i++) {
                const struct lg_histogram *h = &r->answers[i];
                if (h->count == 0)
                        continue;
                fprintf(out, "  %-8s %10lld %10.1f %10.1f %10.1f\n", names[i], N(h->count),
                        (double)lg_histogram_at(h, 500) / 1000,
                        (double)lg_histogram_at(h, 990) / 1000,
                        (double)lg_histogram_at(h, 999) / 1000);
        }
}

int lg_report_table(const struct lg_report *r, FILE *out) {
        const struct lg_facts *f = &r->facts;
        const struct lg_verdict *v = &r->verdict;
        fprintf(out, "sale %s, seed %lld: %lld buyers, %lld units, %lld connections, %.1f s\n\n",
                r->extras.sale, N(r->extras.seed), N(f->buyers), N(f->units),
                N(r->extras.connections), r->duration_s);
        fprintf(out, "  %-28s %10lld   oversold %lld, unsold %lld, still held %lld\n", "units sold",
                N(f->stock_sold), N(v->oversold), N(v->unsold), N(f->stock_held));
        fprintf(out, "  %-28s %10lld\n", "buyers sold to", N(f->sold_to));
        fprintf(out, "  %-28s %10lld   while a unit stayed free %lld\n", "buyers refused",
                N(f->refused), N(v->refused_while_free));
        fprintf(out, "  %-28s %10lld\n", "buyers who left", N(f->left));
        fprintf(out, "  %-28s %10lld   admitted %lld\n", "passes issued", N(f->passes_issued),
                N(f->admitted));
        fprintf(out, "  %-28s %10lld   for those refused %lld\n", "requests to the origin",
                N(f->asked_origin), N(v->origin_requests_for_refused));
        fprintf(out, "  %-28s %10lld\n", "calls of the store", N(f->store_calls));
        fprintf(out, "  %-28s %10lld\n", "inversions of the line", N(f->inversions));
        fprintf(out, "  %-28s %10lld   limit %lld\n", "most units of an account",
                N(f->max_units_per_account), N(f->per_account));
        fprintf(out, "  %-28s %10s\n", "invariant",
                !f->invariant_known ? "unknown"
                : f->invariant_ok   ? "ok"
                                    : "VIOLATED");
        print_answers(r, out);
        fprintf(out, "\n%s\n", v->ok ? "ok" : "NOT OK");
        for (size_t i = 0; i < v->n_why; i++)
                fprintf(out, "  %s\n", v->why[i]);
        return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
