#include "loadgen/strategies/through.h"

#include <stdio.h>
#include <stdlib.h>

#include "loadgen/setup.h"
#include "loadgen/wire.h"

#define LINKS 8
#define TICK_MS 1
#define ASK_MS 10000
#define TRIES 20        /* after 503, with the same key */
#define LATE_US 5000000 /* for answers after the end */
#define METRICS_BYTES ((uint32_t)256 << 10)
#define ANSWER_BYTES 4096

struct run;

/* One place for a buyer: what is asked lives here until it is answered. */
struct slot {
        struct lg_ask ask;
        struct run *run;
        uint32_t tries;
        int64_t due_us;
        char key[48], body[224];
};

struct run {
        const struct lg_through *what;
        struct loop *loop;
        struct lg_links *links;
        struct lg_sales *out;
        struct slot *slots;
        uint32_t n_slots, busy;
        uint64_t serial;
        int64_t begin_us, end_us, last_us;
        bool is_over; /* time, or stock */
        char path[128];
        struct loop_timer tick;
};

/* ---- the origin's own figures ---- */

struct figures {
        double held_s, locks;
};

struct scrape {
        struct lg_ask ask;
        struct loop *loop;
        struct figures *out;
};

static double figure(const char *text, const char *name) {
        const char *at = strstr(text, name);
        return at ? strtod(at + strlen(name), NULL) : 0;
}

static void on_metrics(struct lg_ask *a) {
        struct scrape *s = a->owner;
        char *text = a->len > 0 ? strndup(a->data, a->len) : NULL;
        if (text)
                *s->out = (struct figures){figure(text, "\nsluice_lock_held_seconds_sum "),
                                           figure(text, "\nsluice_lock_held_seconds_count ")};
        free(text);
        loop_stop(s->loop);
}

static struct figures look(struct run *r) {
        struct figures seen = {0, 0};
        struct scrape s = {.loop = r->loop, .out = &seen};
        s.ask = (struct lg_ask){.on_answer = on_metrics,
                                .owner = &s,
                                .method = SPAN("GET"),
                                .path = SPAN("/metrics"),
                                .deadline_ms = ASK_MS,
                                .answer_bytes = METRICS_BYTES};
        lg_link_ask(lg_links_at(r->links, 0), &s.ask);
        loop_run(r->loop);
        return seen;
}

/* ---- buyers ---- */

static void send(struct slot *s) {
        struct run *r = s->run;
        size_t i = (size_t)(s - r->slots);
        lg_link_ask(lg_links_at(r->links, i % LINKS), &s->ask);
}

static void come(struct slot *s, int64_t due_us) {
        struct run *r = s->run;
        unsigned long long serial = ++r->serial;
        s->tries = 0;
        s->due_us = due_us;
        (void)snprintf(s->key, sizeof(s->key), "k-%llu", serial);
        (void)snprintf(s->body, sizeof(s->body),
                       "{\"buyer\":\"%s-%llu\",\"qty\":1,\"sale\":\"%s\"}", r->what->item, serial,
                       r->what->item);
        s->ask.key = span_of(s->key);
        s->ask.body = span_of(s->body);
        r->busy++;
        send(s);
}

static void stop_if_done(struct run *r) {
        if (r->is_over && r->busy == 0)
                loop_stop(r->loop);
}

static void on_answer(struct lg_ask *a) {
        struct slot *s = a->owner;
        struct run *r = s->run;
        bool is_again = (a->lost || a->status == 503) && s->tries < TRIES && !r->is_over;
        if (is_again) {
                s->tries++;
                r->out->retries++;
                send(s);
                return;
        }
        r->busy--;
        if (a->status == 201 || a->status == 200) {
                r->out->sold++;
                r->last_us = a->ended_us;
                lg_histogram_add(&r->out->took, (uint64_t)(a->ended_us - s->due_us));
        } else if (a->status == 409) {
                r->is_over = true;
        } else {
                r->out->gave_up++;
        }
        if (loop_clock_us() >= r->end_us)
                r->is_over = true;
        if (!r->is_over && r->what->per_s == 0)
                come(s, loop_clock_us());
        stop_if_done(r);
}

/* At a rate: who is due comes where there is a place, and has waited meanwhile. */
static void bring_due(struct run *r, int64_t now_us) {
        int64_t gap_us = 1000000 / r->what->per_s;
        for (uint32_t i = 0; i < r->n_slots; i++) {
                int64_t due_us = r->begin_us + (int64_t)r->serial * gap_us;
                if (due_us > now_us)
                        return;
                if (lg_ask_is_idle(&r->slots[i].ask))
                        come(&r->slots[i], due_us);
        }
}

static void on_tick(struct loop_timer *t) {
        struct run *r = NET_CONTAINER_OF(t, struct run, tick);
        int64_t now_us = loop_clock_us();
        r->is_over = r->is_over || now_us >= r->end_us;
        if (!r->is_over && r->what->per_s > 0)
                bring_due(r, now_us);
        stop_if_done(r);
        if (now_us >= r->end_us + LATE_US)
                loop_stop(r->loop);
        else
                loop_timer_start(t, TICK_MS);
}

static void sell(struct run *r) {
        r->begin_us = loop_clock_us();
        r->end_us = r->begin_us + r->what->seconds * 1000000;
        loop_timer_init(r->loop, &r->tick, on_tick);
        loop_timer_start(&r->tick, TICK_MS);
        for (uint32_t i = 0; i < r->n_slots && r->what->per_s == 0; i++)
                come(&r->slots[i], r->begin_us);
        loop_run(r->loop);
        loop_timer_cancel(&r->tick);
        for (uint32_t i = 0; i < r->n_slots; i++)
                lg_ask_cancel(&r->slots[i].ask);
        r->out->gave_up += r->busy;
        r->out->seconds = r->last_us > r->begin_us ? (double)(r->last_us - r->begin_us) / 1e6 : 0;
}

/* ---- around it ---- */

/* The item and its sale; an item of a new sale is decided together. */
static int make_sale(struct run *r) {
        const struct lg_through *what = r->what;
        struct lg_options options = {.units = what->units, .qty_high = 1};
        struct lg_sale sale = {
                .loop = r->loop, .origin = lg_links_at(r->links, 0), .token = what->token};
        char path[128], body[96];
        struct lg_wire_answer answer;
        (void)snprintf(sale.id, sizeof(sale.id), "%s", what->item);
        if (lg_sale_make(&sale, &options, 0) != 0) {
                fprintf(stderr, "sluice-load: %s\n", sale.why);
                return 1;
        }
        (void)snprintf(path, sizeof(path), "/v1/tenants/shop/items/%s", what->item);
        (void)snprintf(body, sizeof(body), "{\"total\":%lld,\"batch\":\"%s\"}",
                       (long long)what->units, what->is_together ? "on" : "off");
        struct lg_wire_request put = {.link = sale.origin,
                                      .method = "PUT",
                                      .path = path,
                                      .token = what->token,
                                      .body = body,
                                      .patience_ms = ASK_MS};
        int bad = lg_wire_call(r->loop, &put, &answer) != 0 || answer.status != 200;
        if (bad)
                fprintf(stderr, "sluice-load: PUT %s was answered %d\n", path, answer.status);
        lg_wire_answer_fini(&answer);
        return bad;
}

static int begin(struct run *r) {
        const struct lg_through *what = r->what;
        r->loop = loop_new();
        r->n_slots = what->buyers;
        r->slots = calloc(r->n_slots, sizeof(*r->slots));
        (void)snprintf(r->path, sizeof(r->path), "/v1/tenants/shop/items/%s/holds", what->item);
        if (!r->loop || !r->slots ||
            lg_links_new(r->loop, what->origin, 1, LINKS, NULL, &r->links) != 0) {
                fprintf(stderr, "sluice-load: out of memory\n");
                return 1;
        }
        for (uint32_t i = 0; i < r->n_slots; i++) {
                r->slots[i].run = r;
                r->slots[i].ask = (struct lg_ask){.on_answer = on_answer,
                                                  .owner = &r->slots[i],
                                                  .method = SPAN("POST"),
                                                  .path = span_of(r->path),
                                                  .bearer = span_of(what->token),
                                                  .deadline_ms = ASK_MS,
                                                  .answer_bytes = ANSWER_BYTES};
        }
        return make_sale(r);
}

int lg_through_run(const struct lg_through *what, struct lg_sales *out) {
        struct run r = {.what = what, .out = out};
        *out = (struct lg_sales){.sold = 0};
        int bad = begin(&r);
        if (!bad) {
                struct figures before = look(&r);
                sell(&r);
                struct figures after = look(&r);
                out->locks = (uint64_t)(after.locks - before.locks + 0.5);
                out->held_us = (uint64_t)((after.held_s - before.held_s) * 1e6);
        }
        if (!bad && out->sold == 0) {
                fprintf(stderr, "sluice-load: the origin sold nothing of %s\n", what->item);
                bad = 1;
        }
        lg_links_free(&r.links);
        if (r.loop)
                loop_free(&r.loop);
        free(r.slots);
        return bad;
}
