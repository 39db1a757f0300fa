#include "loadgen/watch.h"

#include "loadgen/wire.h"

#define LOOK_MS 250
#define LOOK_DEADLINE_MS 5000
#define METRICS_BYTES 4194304

static void look(struct lg_watched *g);

static void on_timer(struct loop_timer *t) {
        look(NET_CONTAINER_OF(t, struct lg_watched, timer));
}

static void on_answer(struct lg_ask *a) {
        struct lg_watched *g = a->owner;
        if (!a->lost && a->status == 200) {
                uint64_t now[LG_COUNTER_COUNT];
                struct span text = {a->data ? a->data : "", a->len};
                lg_scrape_read(text, g->watch->sale, now);
                lg_scrape_add(&g->scrape, now);
                g->seen_at_ms = a->sent_us / 1000;
        }
        loop_timer_start(&g->timer, LOOK_MS);
}

static void look(struct lg_watched *g) {
        if (!lg_ask_is_idle(&g->ask))
                return;
        g->ask = (struct lg_ask){
                .on_answer = on_answer,
                .owner = g,
                .method = SPAN("GET"),
                .path = SPAN("/metrics"),
                .deadline_ms = LOOK_DEADLINE_MS,
                .answer_bytes = METRICS_BYTES,
        };
        lg_link_ask(g->link, &g->ask);
}

void lg_watch_init(struct lg_watch *w, struct loop *l, struct lg_links *admins, size_t n,
                   struct span sale) {
        *w = (struct lg_watch){.loop = l, .sale = sale, .n = n};
        for (size_t i = 0; i < n; i++) {
                struct lg_watched *g = &w->gateway[i];
                g->watch = w;
                g->link = lg_links_at(admins, i);
                loop_timer_init(l, &g->timer, on_timer);
                look(g);
        }
}

void lg_watch_cancel(struct lg_watch *w) {
        for (size_t i = 0; i < w->n; i++) {
                loop_timer_cancel(&w->gateway[i].timer);
                lg_ask_cancel(&w->gateway[i].ask);
        }
}

int lg_watch_all(struct lg_watch *w, int64_t patience_ms) {
        int64_t since_ms = loop_clock_ms(), until_ms = since_ms + patience_ms;
        for (size_t i = 0; i < w->n;) {
                if (w->gateway[i].seen_at_ms > since_ms) {
                        i++;
                        continue;
                }
                if (loop_clock_ms() >= until_ms)
                        return 1;
                lg_wire_sleep(w->loop, 20);
        }
        return 0;
}

uint64_t lg_watch_grown(const struct lg_watch *w, enum lg_counter counter) {
        uint64_t sum = 0;
        for (size_t i = 0; i < w->n; i++)
                sum += w->gateway[i].scrape.grown[counter];
        return sum;
}
