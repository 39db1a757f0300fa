#include "origin/look.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/log.h"
#include "origin/read.h"
#include "origin/snapshot.h"

#define POLL_MS 5000       /* at most, between two questions whether it is time */
#define PATIENCE_MS 130000 /* more than a standby and then the primary give a scan */
#define SHARE 20           /* a look takes at most so small a part of the time */

struct org_look {
        struct org_service *s;
        struct loop_timer timer;
        int64_t began_ms; /* of the look under way */
        int64_t noted_ms; /* what `wrong` says is as old as this */
        unsigned under_way;
        bool told_unprotected;
        struct org_look_counters counters;
};

static void again(struct org_look *look) {
        uint32_t interval = look->s->conf->invariant.interval_ms;

        loop_timer_start(&look->timer, interval > 0 && interval < POLL_MS ? interval : POLL_MS);
}

int64_t org_look_note(struct org_look *look, struct span text) {
        json_t *tree = text.p ? json_loadb(text.p, text.len, 0, NULL) : NULL;
        json_t *all = json_object_get(tree, "violations");
        char *first;
        size_t wrong;

        if (!tree)
                return -1;
        wrong = json_array_size(all);
        metrics_set(&look->counters.wrong, wrong);
        look->noted_ms = loop_clock_ms();
        if (wrong > 0) {
                first = json_dumps(json_array_get(all, 0), JSON_COMPACT);
                log_event(LOG_ERROR, "stock", "the invariant does not hold",
                          LOG_U("violations", wrong), LOG_S("first", first ? first : ""));
                free(first);
        }
        json_decref(tree);
        return (int64_t)wrong;
}

/* ---- a look ---- */

static void on_done(void *user, const struct org_reply *r) {
        struct org_look *look = user;

        (void)r; /* unheard, the next look comes when the patience is over */
        look->under_way--;
        again(look);
}

static void on_invariant(void *user, const struct org_reply *r) {
        struct org_look *look = user;
        int64_t took_ms = loop_clock_ms() - look->began_ms;
        int64_t wait_ms = look->s->conf->invariant.interval_ms;
        int64_t wrong =
                r->outcome == ORG_DB_DONE ? org_look_note(look, org_reply_text(r, 0, 0)) : -1;
        struct org_job *j;

        /* It never ran, or all is being closed. */
        if (r->outcome == ORG_DB_AWAY) {
                look->under_way--;
                again(look);
                return;
        }
        j = org_job_new(ORG_Q_LOOK_DONE);
        if (wrong < 0) {
                metrics_add(&look->counters.failures, 1);
                log_event(LOG_WARN, "stock", "the invariant could not be looked at");
        }
        if (took_ms * SHARE > wait_ms)
                wait_ms = took_ms * SHARE;
        metrics_add(&look->counters.looks, 1);
        if (wrong >= 0) {
                org_job_int(j, wrong);
                org_job_int(j, took_ms);
        } else {
                org_job_null(j);
                org_job_null(j);
        }
        org_job_int(j, wait_ms);
        org_db_run(look->s->db, j, on_done, look);
}

static void tell_unprotected(struct org_look *look, bool is) {
        metrics_set(&look->counters.unprotected, is);
        if (is && !look->told_unprotected)
                log_event(LOG_WARN, "database",
                          "the role of database.url may change the journal: see database.init_url");
        look->told_unprotected = is;
}

static void on_turn(void *user, const struct org_reply *r) {
        struct org_look *look = user;
        struct org_look_counters *n = &look->counters;
        int64_t age_ms = org_reply_int(r, 0, 2, -1);

        if (r->outcome != ORG_DB_DONE) {
                look->under_way--;
                again(look);
                return;
        }
        /* What we have seen ourselves since then is newer. */
        if (age_ms >= 0 && loop_clock_ms() - age_ms > look->noted_ms)
                metrics_set(&n->wrong, (uint64_t)org_reply_int(r, 0, 1, 0));
        metrics_set(&n->age_ms, age_ms < 0 ? 0 : (uint64_t)age_ms);
        metrics_set(&n->took_ms, (uint64_t)org_reply_int(r, 0, 3, 0));
        metrics_set(&n->paused, (uint64_t)org_reply_int(r, 0, 4, 0));
        tell_unprotected(look, span_eq(org_reply_text(r, 0, 5), SPAN("t")));
        if (span_eq(org_reply_text(r, 0, 0), SPAN("t")) &&
            look->s->conf->invariant.interval_ms > 0) {
                look->began_ms = loop_clock_ms();
                org_read_run(look->s, ORG_Q_INVARIANT, NULL, on_invariant, look);
                return;
        }
        look->under_way--;
        again(look);
}

static void on_timer(struct loop_timer *t) {
        struct org_look *look = NET_CONTAINER_OF(t, struct org_look, timer);
        struct org_job *j;

        /* Away: no use in queueing. */
        if (org_db_state(look->s->db) != ORG_DB_READY) {
                again(look);
                return;
        }
        look->under_way++;
        j = org_job_new(ORG_Q_LOOK_TURN);
        org_job_int(j, PATIENCE_MS);
        org_job_bool(j, look->s->conf->invariant.interval_ms > 0);
        org_db_run(look->s->db, j, on_turn, look);
}

/* ---- a violated rule ---- */

static void on_paused(void *user, const struct org_reply *r) {
        struct org_look *look = user;

        look->under_way--;
        if (r->outcome != ORG_DB_DONE)
                log_event(LOG_ERROR, "stock", "the item whose rule was violated is not paused");
        org_snapshot_touch(look->s->snapshot);
        loop_timer_start(&look->timer, 0);
}

void org_look_violated(struct org_look *look, const struct org_reply *r,
                       const struct org_suspect *suspect) {
        struct org_job *j = org_job_new(ORG_Q_ITEM_PAUSE);
        bool is_named = r->broken_item.p != NULL;
        struct span tenant = is_named ? r->broken_tenant : span_of(suspect->tenant);
        struct span item = is_named ? r->broken_item : span_of(suspect->item);
        bool by_hold = !is_named && suspect->hold && suspect->hold[0];

        metrics_add(&look->counters.wrong, 1);
        look->noted_ms = loop_clock_ms();
        log_event(LOG_ERROR, "stock", "a violated rule pauses the item", LOG_SPAN("tenant", tenant),
                  LOG_SPAN("item", item), LOG_SPAN("rule", r->detail),
                  LOG_S("hold", by_hold ? suspect->hold : ""));
        org_job_text(j, tenant);
        org_job_text(j, item);
        org_job_text(j, by_hold ? span_of(suspect->hold) : (struct span){NULL, 0});
        org_job_text(j, r->detail.p ? r->detail : SPAN("check"));
        look->under_way++;
        org_db_run(look->s->db, j, on_paused, look);
}

/* ---- start and end ---- */

int org_look_new(struct org_service *s, struct org_look **out) {
        struct org_look *look = calloc(1, sizeof(*look));

        *out = look;
        if (!look)
                return -ENOMEM;
        look->s = s;
        loop_timer_init(s->loop, &look->timer, on_timer);
        again(look);
        return 0;
}

void org_look_free(struct org_look **look) {
        if (!*look)
                return;
        assert((*look)->under_way == 0); /* the database answers all before it closes */
        loop_timer_cancel(&(*look)->timer);
        free(*look);
        *look = NULL;
}

const struct org_look_counters *org_look_counters(const struct org_look *look) {
        return &look->counters;
}
