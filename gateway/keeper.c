#include "gateway/keeper.h"

#include <errno.h>
#include <stdlib.h>

#include "admission/store.h"
#include "gateway/disk.h"
#include "gateway/publish.h"
#include "net/log.h"

#define TICK_MS 100
#define SAVE_EVERY_MS 1000 /* at most */

struct gw_keeper {
        struct gw_control *c;
        struct loop_timer tick;
        bool is_dirty;
        bool is_away;
        int64_t saved_at_ms;
        int64_t rotated_at_ms;
        int64_t began_at_ms;
};

static void save(struct gw_keeper *k) {
        k->is_dirty = false;
        k->saved_at_ms = loop_clock_ms();
        int r = gw_disk_save(k->c);
        if (r < 0)
                log_event_limited(1, LOG_WARN, "snapshot", "cannot be rendered", LOG_E("error", r));
}

static void say_away(struct gw_keeper *k, bool is_away) {
        bool has_begun = loop_clock_ms() - k->began_at_ms > k->c->shared.away_after_ms;
        if (is_away && !has_begun)
                return; /* it has not had the time to be heard */
        if (is_away != k->is_away)
                log_event(is_away ? LOG_WARN : LOG_INFO, "snapshot",
                          is_away ? "origin away" : "origin back");
        k->is_away = is_away;
}

static void on_tick(struct loop_timer *t) {
        struct gw_keeper *k = NET_CONTAINER_OF(t, struct gw_keeper, tick);
        struct gw_control *c = k->c;
        int64_t mono_ms = loop_clock_ms();
        loop_timer_start(t, TICK_MS);
        gw_count_store(&c->counters, GW_STORE_TICK);
        adm_store_tick(c->shared.store, gw_sale_time_ms(&c->shared, mono_ms));
        say_away(k, gw_origin_is_away(&c->shared, mono_ms));
        if (mono_ms - k->rotated_at_ms >= c->settings->conf->tls.ticket_rotation_ms) {
                k->rotated_at_ms = mono_ms;
                tls_tickets_rotate(c->settings->tls_tickets);
        }
        if (gw_publish_is_due(c)) {
                k->is_dirty = true;
                if (gw_publish_again(c) < 0)
                        log_event_limited(1, LOG_ERROR, "snapshot", "out of memory");
        }
        if (k->is_dirty && mono_ms - k->saved_at_ms >= SAVE_EVERY_MS)
                save(k);
}

int gw_keeper_new(struct gw_control *c, struct gw_keeper **out) {
        struct gw_keeper *k = calloc(1, sizeof *k);
        *out = k;
        if (!k)
                return -ENOMEM;
        k->c = c;
        k->saved_at_ms = loop_clock_ms() - SAVE_EVERY_MS;
        k->rotated_at_ms = loop_clock_ms();
        k->began_at_ms = loop_clock_ms();
        loop_timer_init(c->loop, &k->tick, on_tick);
        loop_timer_start(&k->tick, TICK_MS);
        return 0;
}

void gw_keeper_changed(struct gw_keeper *k) {
        k->is_dirty = true;
}

void gw_keeper_free(struct gw_keeper **kp) {
        struct gw_keeper *k = *kp;
        *kp = NULL;
        if (!k)
                return;
        loop_timer_cancel(&k->tick);
        if (k->is_dirty)
                save(k);
        free(k);
}
