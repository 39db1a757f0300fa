#include "net/memory_watch.h"

#include <malloc.h>

#include "net/log.h"

/* With room a rare look is enough; without, memory is gone within moments. */
#define RARE_MS 250
#define OFTEN_MS 25
#define TRIM_MS 20
#define TIDY_MS 10000
#define TIDY_EACH_MS 500
/* Between two trims, so many times what the first took. */
static const int64_t trim_rests[MEMORY_STAGES] = {20, 20, 20, 3};

#define GAP 3 /* hundredths */
static const uint64_t enters[MEMORY_STAGES] = {0, 85, 92, 95};

static const char *const names[MEMORY_STAGES] = {"easy", "shut", "leave", "cut"};

const char *memory_stage_name(enum memory_stage stage) {
        return names[stage];
}

enum memory_stage memory_stage_next(enum memory_stage now, uint64_t used_bytes,
                                    uint64_t limit_bytes) {
        uint64_t hundredth = limit_bytes / 100 + 1;
        for (int s = MEMORY_CUT; s > MEMORY_EASY; s--) {
                uint64_t share = s <= (int)now ? enters[s] - GAP : enters[s];
                if (used_bytes >= share * hundredth)
                        return (enum memory_stage)s;
        }
        return MEMORY_EASY;
}

/* What was freed may still be with the C library: that goes back before a stage is
 * judged, and before more is cut on top of what was. Others wait for the library's
 * locks meanwhile, so it takes a small share of the time, unless it is urgent. */
static bool trim(struct memory_watch *w, enum memory_stage stage) {
        int64_t now_ms = loop_clock_ms(), began_us = loop_worked_us();
        if (now_ms < w->trim_at_ms)
                return false;
        (void)malloc_trim(0);
        int64_t took_us = loop_worked_us() - began_us;
        w->trim_at_ms = now_ms + TRIM_MS + took_us * trim_rests[stage] / 1000;
        return true;
}

static void say(const struct memory_watch *w, enum memory_stage before, enum memory_stage now,
                uint64_t used) {
        log_event(now > before ? LOG_WARN : LOG_INFO, "memory", "another stage",
                  LOG_S("stage", memory_stage_name(now)),
                  LOG_S("before", memory_stage_name(before)), LOG_U("used_bytes", used),
                  LOG_U("limit_bytes", w->meter.limit_bytes));
}

static void tell(struct memory_watch *w, enum memory_stage stage, uint64_t ahead) {
        uint64_t aim = (enters[MEMORY_CUT] - GAP) * (w->meter.limit_bytes / 100);
        atomic_store_explicit(&w->told.excess_bytes, ahead > aim ? ahead - aim : 0,
                              memory_order_relaxed);
        atomic_store_explicit(&w->told.stage, stage, memory_order_relaxed);
}

static void act(struct memory_watch *w) {
        atomic_fetch_add_explicit(&w->told.round, 1, memory_order_release);
        if (w->on_strain)
                w->on_strain(w);
}

/* Before anything is free, as much again may come as came since the last look, and
 * once more: the faster it comes, the sooner a stage is entered. */
static uint64_t look_ahead(const struct memory_watch *w, uint64_t used) {
        uint64_t before = metrics_read(&w->used_bytes);
        return before > 0 && used > before ? used + 2 * (used - before) : used;
}

/* After a strain, what it leaves behind goes back as well. */
static void tidy(struct memory_watch *w, enum memory_stage now) {
        int64_t now_ms = loop_clock_ms();
        if (now > MEMORY_EASY)
                w->tidy_until_ms = now_ms + TIDY_MS;
        else if (now_ms < w->tidy_until_ms && now_ms >= w->trim_at_ms + TIDY_EACH_MS)
                (void)trim(w, now);
}

static void look(struct memory_watch *w) {
        enum memory_stage before = memory_told_stage(&w->told);
        uint64_t used = memory_meter_read(&w->meter), limit = w->meter.limit_bytes;
        enum memory_stage now = memory_stage_next(before, look_ahead(w, used), limit);
        bool is_exact = now > MEMORY_EASY && trim(w, now);
        if (is_exact) {
                used = memory_meter_read(&w->meter);
                now = memory_stage_next(before, look_ahead(w, used), limit);
        }
        if (now != before) {
                metrics_add(&w->entered[now], 1);
                say(w, before, now, used);
        }
        tell(w, now, look_ahead(w, used));
        metrics_set(&w->used_bytes, used);
        if (is_exact && now > MEMORY_EASY)
                act(w);
        tidy(w, now);
        loop_timer_start(&w->timer, used > limit / 2 ? OFTEN_MS : RARE_MS);
}

static void on_timer(struct loop_timer *t) {
        look(NET_CONTAINER_OF(t, struct memory_watch, timer));
}

void memory_watch_start(struct memory_watch *w, struct loop *l, uint64_t limit_bytes,
                        void (*on_strain)(struct memory_watch *w)) {
        w->on_strain = on_strain;
        memory_meter_open(&w->meter, limit_bytes, NULL);
        loop_timer_init(l, &w->timer, on_timer);
        log_event(LOG_INFO, "memory", "limit", LOG_U("limit_bytes", w->meter.limit_bytes),
                  LOG_S("by", w->meter.limit_by));
        look(w);
}

void memory_watch_stop(struct memory_watch *w) {
        if (!w->timer.loop)
                return;
        loop_timer_cancel(&w->timer);
        memory_meter_close(&w->meter);
}

void memory_watch_render(const struct memory_watch *w, struct metrics_out *o) {
        metrics_family(o, "sluice_memory_used_bytes", METRICS_GAUGE,
                       "Memory in use, without cached files.");
        metrics_sample(o, "sluice_memory_used_bytes", NULL, 0, metrics_read(&w->used_bytes));
        metrics_family(o, "sluice_memory_limit_bytes", METRICS_GAUGE, "What may be in use.");
        metrics_sample(o, "sluice_memory_limit_bytes", NULL, 0, w->meter.limit_bytes);
        metrics_family(o, "sluice_memory_stage", METRICS_GAUGE,
                       "0 easy, 1 nobody is accepted, 2 idle connections leave, 3 dear ones are "
                       "cut.");
        metrics_sample(o, "sluice_memory_stage", NULL, 0, memory_told_stage(&w->told));
        metrics_family(o, "sluice_memory_stages_total", METRICS_COUNTER,
                       "Times a stage was entered.");
        for (int s = MEMORY_EASY; s < MEMORY_STAGES; s++)
                metrics_sample(o, "sluice_memory_stages_total",
                               &(struct metrics_label){"stage", span_of(names[s])}, 1,
                               metrics_read(&w->entered[s]));
}
