#include "origin/expiry.h"

#include <errno.h>
#include <stdlib.h>

#include "origin/look.h"
#include "origin/snapshot.h"

#define AGAIN_MS 20 /* between two full batches, so that reserves come between */

struct org_expiry {
        struct org_service *s;
        struct loop_timer timer;
        bool is_running;
};

static void on_expired(void *user, const struct org_reply *r) {
        struct org_expiry *e = user;
        const struct conf_origin *conf = e->s->conf;
        int64_t expired = r->outcome == ORG_DB_DONE ? org_reply_int(r, 0, 0, 0) : 0;
        int64_t due_ms = r->outcome == ORG_DB_DONE ? org_reply_int(r, 0, 1, 0) : 0;
        int64_t now_ms = r->outcome == ORG_DB_DONE ? org_reply_int(r, 0, 2, 0) : 0;
        int64_t in_ms = conf->expiry.interval_ms;

        e->is_running = false;
        if (r->outcome == ORG_DB_VIOLATED)
                org_look_violated(e->s->look, r, &(struct org_suspect){NULL, NULL, NULL});
        if (now_ms > 0)
                org_service_set_clock(e->s, now_ms);
        if (expired > 0) {
                metrics_add(&e->s->metrics.expired, (uint64_t)expired);
                org_snapshot_touch(e->s->snapshot);
        }
        if (due_ms > 0 && due_ms - org_service_now_ms(e->s) < in_ms)
                in_ms = due_ms - org_service_now_ms(e->s);
        if (in_ms < AGAIN_MS)
                in_ms = AGAIN_MS;
        loop_timer_start(&e->timer, expired == conf->expiry.batch ? AGAIN_MS : in_ms);
}

static void on_timer(struct loop_timer *t) {
        struct org_expiry *e = NET_CONTAINER_OF(t, struct org_expiry, timer);
        struct org_job *j;

        /* Away: no use in queueing. */
        if (org_db_state(e->s->db) != ORG_DB_READY) {
                loop_timer_start(t, e->s->conf->expiry.interval_ms);
                return;
        }
        e->is_running = true;
        j = org_job_new(ORG_Q_EXPIRE);
        org_job_int(j, e->s->conf->expiry.batch);
        org_db_run(e->s->db, j, on_expired, e);
}

int org_expiry_new(struct org_service *s, struct org_expiry **out) {
        struct org_expiry *e = calloc(1, sizeof(*e));

        *out = e;
        if (!e)
                return -ENOMEM;
        e->s = s;
        loop_timer_init(s->loop, &e->timer, on_timer);
        loop_timer_start(&e->timer, AGAIN_MS);
        return 0;
}

void org_expiry_free(struct org_expiry **e) {
        if (!*e)
                return;
        assert(!(*e)->is_running); /* the database answers all before it closes */
        loop_timer_cancel(&(*e)->timer);
        free(*e);
        *e = NULL;
}
