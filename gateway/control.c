#include "gateway/control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admission/limiter.h"
#include "admission/store_memory.h"
#include "gateway/admin.h"
#include "gateway/disk.h"
#include "gateway/keeper.h"
#include "gateway/names.h"
#include "gateway/publish.h"
#include "gateway/pull.h"
#include "gateway/sale_clock.h"
#include "gateway/slots.h"
#include "net/clock.h"
#include "net/log.h"

#define SKEW_MS 2000 /* between our clock and the origin's, for passes */
#define HEADER_BYTES 32768
#define WINDOW_BYTES (1024 * 1024) /* a snapshot in one breath */
#define CALLS_MAX 128
#define STORE_SALES_MAX 1024
#define FRESH_STORE_MS 4200 /* a store begun anew lets nobody in for 4 s */

/* ---- sums ---- */

static uint64_t sum(const struct gw_control *c,
                    uint64_t (*of)(const struct gw_counters *, uint32_t, uint32_t), uint32_t i,
                    uint32_t k) {
        uint64_t n = of(&c->counters, i, k);
        for (size_t w = 0; w < c->n_workers; w++)
                n += of(&c->workers[w]->counters, i, k);
        return n;
}

static uint64_t requests_of(const struct gw_counters *c, uint32_t slot, uint32_t answer) {
        return slot < c->slots ? metrics_read(&c->sale[slot].requests[answer]) : 0;
}

static uint64_t origin_of(const struct gw_counters *c, uint32_t unused, uint32_t kind) {
        (void)unused;
        return metrics_read(&c->origin_requests[kind]);
}

static uint64_t store_of(const struct gw_counters *c, uint32_t unused, uint32_t op) {
        (void)unused;
        return metrics_read(&c->store_calls[op]);
}

uint64_t gw_control_requests(const struct gw_control *c, uint32_t slot, enum gw_answer a) {
        return sum(c, requests_of, slot, a);
}

uint64_t gw_control_origin_requests(const struct gw_control *c, enum gw_origin_kind k) {
        return sum(c, origin_of, 0, k);
}

uint64_t gw_control_store_calls(const struct gw_control *c, enum gw_store_op op) {
        return sum(c, store_of, 0, op);
}

size_t gw_control_slots(const struct gw_control *c) {
        return c->slots->count;
}

const char *gw_control_slot_name(const struct gw_control *c, uint32_t slot) {
        assert(slot < c->slots->count);
        return c->slots->at[slot].id;
}

void gw_control_pull_now(struct gw_control *c) {
        if (c->pull)
                gw_pull_hurry(c->pull);
}

bool gw_control_is_ready(const struct gw_control *c) {
        int64_t heard_ms = c->first_heard_at_ms;
        bool is_settled =
                !c->store_is_fresh || heard_ms == 0 || loop_clock_ms() - heard_ms >= FRESH_STORE_MS;
        return c->snapshot && c->snapshot->known && is_settled && !c->draining;
}

/* ---- signals ---- */

static void refuse_reload(struct gw_control *c, const char *why) {
        c->reloads_refused++;
        log_event(LOG_ERROR, "control", "reload refused, the old configuration stays",
                  LOG_S("file", c->conf_file), LOG_S("why", why));
}

static void reload(struct gw_control *c) {
        char why[256] = "out of memory";
        struct gw_settings *fresh = NULL, *before = c->settings;
        if (gw_settings_load(c->conf_file, c->settings, &fresh, stderr) != 0) {
                refuse_reload(c, "the file has faults");
                return;
        }
        size_t waiting = conf_gateway_restart_needed(before->conf, fresh->conf, stderr);
        c->settings = fresh;
        if (gw_admin_reload(c->admin, why, sizeof why) != 0 || gw_publish_again(c) < 0) {
                c->settings = before;
                gw_settings_free(&fresh);
                refuse_reload(c, why);
                return;
        }
        gw_settings_free(&before);
        int r = log_init(fresh->conf->log.level, fresh->conf->log.file);
        c->reloads++;
        log_event(LOG_INFO, "control", "reloaded", LOG_U("need_restart", waiting), LOG_E("log", r));
}

static void on_hup(struct loop_signal *s) {
        reload(NET_CONTAINER_OF(s, struct gw_control, on_hup));
}

static void start_drain(struct gw_control *c) {
        if (c->draining) {
                loop_stop(c->loop); /* the second signal does not wait */
                return;
        }
        c->draining = true;
        log_event(LOG_INFO, "control", "draining");
        for (size_t i = 0; i < c->n_workers; i++)
                gw_worker_drain(c->workers[i]);
        loop_timer_start(&c->drain_end, c->settings->conf->drain_ms);
}

static void on_term(struct loop_signal *s) {
        start_drain(NET_CONTAINER_OF(s, struct gw_control, on_term));
}

static void on_int(struct loop_signal *s) {
        start_drain(NET_CONTAINER_OF(s, struct gw_control, on_int));
}

static void on_drain_end(struct loop_timer *t) {
        struct gw_control *c = NET_CONTAINER_OF(t, struct gw_control, drain_end);
        log_event(LOG_WARN, "control", "not all requests ended in time");
        loop_stop(c->loop);
}

static void on_worker_ended(struct loop_wake *w) {
        struct gw_control *c = NET_CONTAINER_OF(w, struct gw_control, on_worker_ended);
        for (size_t i = 0; i < c->n_workers; i++)
                if (!atomic_load_explicit(&c->workers[i]->ended, memory_order_acquire))
                        return;
        loop_stop(c->loop);
}

static void on_strain(struct memory_watch *w) {
        struct gw_control *c = NET_CONTAINER_OF(w, struct gw_control, memory);
        for (size_t i = 0; i < c->n_workers; i++)
                gw_worker_relieve(c->workers[i]);
}

/* ---- start ---- */

static void judge_store(struct gw_control *c) {
        const char *fault;
        enum adm_found found = adm_store_found(c->shared.store, &fault);
        c->store_is_fresh = found != ADM_FOUND_MAP;
        c->stores_broken = found == ADM_FOUND_BROKEN;
        if (found == ADM_FOUND_BROKEN)
                log_event(LOG_ERROR, "store",
                          "the map is broken; it is kept as admission.map.broken, and a new one "
                          "begun",
                          LOG_S("what", fault));
        if (found == ADM_FOUND_RESHAPED)
                log_event(LOG_WARN, "store",
                          "the map is of other sizes; it is kept as admission.map.old, and a new "
                          "one begun");
}

static int open_state(struct gw_control *c, char *why, size_t why_cap) {
        const struct conf_gateway *conf = c->settings->conf;
        uint32_t sales = conf->store.max_sales;
        struct adm_store_conf store = {
                .dir = conf->state_directory,
                .max_sales = sales < STORE_SALES_MAX ? sales : STORE_SALES_MAX,
                .max_numbers = conf->store.max_numbers,
                .max_accounts = conf->store.max_accounts,
                .forward_timeout_ms = conf->origin.request_timeout_ms,
                .skew_ms = SKEW_MS,
                .polls_per_s = conf->poll_budget_per_s,
        };
        if (mkdir(conf->state_directory, 0700) < 0 && errno != EEXIST) {
                int err = errno;
                (void)snprintf(why, why_cap, "state_directory: cannot make %s: %s",
                               conf->state_directory, strerror(err));
                return -err;
        }
        int r = adm_store_open(&store, clock_wall_ms(), &c->shared.store);
        if (r == ADM_MAP_FOREIGN)
                (void)snprintf(why, why_cap, "%s/admission.map is not ours, or of another version",
                               conf->state_directory);
        else if (r == ADM_MAP_SHAPE)
                (void)snprintf(why, why_cap,
                               "%s/admission.map is in use by a process with other store sizes",
                               conf->state_directory);
        else if (r != 0)
                (void)snprintf(why, why_cap, "state_directory: %s: %s", conf->state_directory,
                               r < 0 ? strerror(-r) : "unusable");
        else
                judge_store(c);
        return r;
}

static int open_shared(struct gw_control *c) {
        const struct conf_gateway *conf = c->settings->conf;
        random_bytes(&c->shared.hash_seed, sizeof c->shared.hash_seed);
        c->shared.memory = &c->memory.told;
        c->shared.away_after_ms = conf->snapshot.away_after_ms;
        gw_sale_clock_init(&c->shared, clock_wall_ms(), loop_clock_ms());
        size_t slots = (size_t)conf->store.max_sales * 4 + 1;
        int r = adm_limiter_new(conf->limiter.entries, &c->shared.limiter);
        if (r == 0)
                r = gw_names_new(conf->limiter.entries, &c->shared.names);
        if (r == 0)
                r = gw_slots_new(slots, &c->slots);
        return r == 0 ? gw_counters_init(&c->counters, slots) : r;
}

static int open_pool(struct gw_control *c) {
        const struct conf_gateway *conf = c->settings->conf;
        struct http_pool_conf pool = {
                .address = conf->origin.address.text,
                .connections = 2,
                .in_flight = CALLS_MAX,
                .waiting = CALLS_MAX,
                .header_bytes = HEADER_BYTES,
                .window_bytes = WINDOW_BYTES,
                .breaker_failures = 3,
                .connect_ms = conf->origin.connect_timeout_ms,
                .breaker_ms = 1000,
        };
        return http_pool_new(c->loop, &pool, &c->origin);
}

static int open_workers(struct gw_control *c, char *why, size_t why_cap) {
        uint32_t n = c->settings->conf->workers;
        c->workers = calloc(n, sizeof(struct gw_worker *));
        if (!c->workers)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                const struct gw_worker *like = i > 0 ? c->workers[0] : NULL;
                int r = gw_worker_new(&c->shared, c->snapshot, like, &c->workers[i]);
                if (c->workers[i])
                        c->n_workers++;
                if (r == 0)
                        r = gw_worker_listen(c->workers[i], like, why, why_cap);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int start_workers(struct gw_control *c) {
        for (size_t i = 0; i < c->n_workers; i++) {
                int r = gw_worker_start(c->workers[i], &c->on_worker_ended);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void watch(struct gw_control *c) {
        loop_timer_init(c->loop, &c->drain_end, on_drain_end);
        loop_signal_start(c->loop, &c->on_term, SIGTERM, on_term);
        loop_signal_start(c->loop, &c->on_int, SIGINT, on_int);
        loop_signal_start(c->loop, &c->on_hup, SIGHUP, on_hup);
}

static int open_all(struct gw_control *c, char *why, size_t why_cap) {
        int r = open_shared(c);
        if (r == 0)
                r = open_state(c, why, why_cap);
        if (r == 0)
                r = open_pool(c);
        if (r != 0)
                return r;
        c->snapshot = gw_snapshot_new(c->settings, 0);
        if (!c->snapshot)
                return -ENOMEM;
        if (gw_disk_load(c) == 0)
                log_event(LOG_INFO, "snapshot", "taken from disk until the origin is heard",
                          LOG_U("sales", c->snapshot->n_sales));
        r = gw_disk_new(c->settings->conf->state_directory, &c->disk);
        if (r == 0)
                r = open_workers(c, why, why_cap);
        if (r == 0)
                r = gw_admin_new(c, &c->admin, why, why_cap);
        if (r == 0)
                r = gw_keeper_new(c, &c->keeper);
        if (r == 0)
                r = gw_pull_new(c, &c->pull);
        if (r == 0)
                r = start_workers(c);
        if (r == 0)
                memory_watch_start(&c->memory, c->loop, c->settings->conf->limits.memory_bytes,
                                   on_strain);
        return r;
}

int gw_control_new(const char *conf_file, struct gw_settings *settings, struct gw_control **out,
                   char *why, size_t why_cap) {
        struct gw_control *c = calloc(1, sizeof *c);
        *out = NULL;
        why[0] = '\0';
        if (!c)
                return -ENOMEM;
        c->conf_file = conf_file;
        c->settings = settings;
        gw_settings_take(settings);
        c->loop = loop_new();
        if (!c->loop) {
                gw_settings_free(&c->settings);
                free(c);
                return -EMFILE;
        }
        loop_wake_init(c->loop, &c->on_worker_ended, on_worker_ended);
        watch(c);
        int r = open_all(c, why, why_cap);
        if (r != 0) {
                if (!why[0])
                        (void)snprintf(why, why_cap, "cannot start: %s",
                                       r < 0 ? strerror(-r) : "unusable");
                gw_control_free(&c);
                return r;
        }
        *out = c;
        return 0;
}

void gw_control_run(struct gw_control *c) {
        log_event(LOG_INFO, "control", "serving", LOG_U("workers", c->n_workers),
                  LOG_U("port", gw_worker_port(c->workers[0], 0)),
                  LOG_U("admin_port", gw_admin_port(c->admin, 0)),
                  LOG_S("version", SLUICE_VERSION));
        watchdog_start(&c->watchdog, c->loop, "control", &c->settings->conf->watchdog);
        loop_run(c->loop);
        watchdog_stop(&c->watchdog);
        log_event(LOG_INFO, "control", "ended");
}

void gw_control_free(struct gw_control **cp) {
        struct gw_control *c = *cp;
        *cp = NULL;
        for (size_t i = 0; i < c->n_workers; i++)
                gw_worker_free(&c->workers[i]);
        free(c->workers);
        memory_watch_stop(&c->memory);
        gw_pull_free(&c->pull);
        gw_keeper_free(&c->keeper);
        gw_disk_free(&c->disk);
        http_pool_free(&c->origin);
        gw_admin_free(&c->admin);
        gw_snapshot_free(&c->snapshot);
        json_decref(c->document);
        loop_timer_cancel(&c->drain_end);
        loop_signal_cancel(&c->on_term);
        loop_signal_cancel(&c->on_int);
        loop_signal_cancel(&c->on_hup);
        loop_wake_fini(&c->on_worker_ended);
        adm_store_close(&c->shared.store);
        adm_limiter_free(&c->shared.limiter);
        gw_names_free(&c->shared.names);
        gw_slots_free(&c->slots);
        gw_counters_fini(&c->counters);
        gw_settings_free(&c->settings);
        loop_free(&c->loop);
        free(c);
}
