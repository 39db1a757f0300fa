#include "origin/watch.h"

#include <errno.h>
#include <stdlib.h>

enum column { COL_OPEN, COL_WAITING, COL_HOLDING, COL_HELD_US, COL_BODY };

struct org_watch {
        struct org_service *s;
        struct loop_timer timer;
        bool is_looking;
        struct org_watch_counters counters;
};

static void on_looked(void *user, const struct org_reply *r) {
        struct org_watch *w = user;
        struct org_watch_counters *n = &w->counters;

        w->is_looking = false;
        loop_timer_start(&w->timer, w->s->conf->watch.interval_ms);
        if (r->outcome != ORG_DB_DONE)
                return;
        metrics_add(&n->looks, span_eq(org_reply_text(r, 0, COL_OPEN), SPAN("t")));
        metrics_set(&n->waiting, (uint64_t)org_reply_int(r, 0, COL_WAITING, 0));
        metrics_set(&n->holding, (uint64_t)org_reply_int(r, 0, COL_HOLDING, 0));
        metrics_set(&n->held_us, (uint64_t)org_reply_int(r, 0, COL_HELD_US, 0));
}

static void on_timer(struct loop_timer *t) {
        struct org_watch *w = NET_CONTAINER_OF(t, struct org_watch, timer);
        struct org_job *j;

        if (org_db_state(w->s->db) != ORG_DB_READY) {
                loop_timer_start(t, w->s->conf->watch.interval_ms);
                return;
        }
        w->is_looking = true;
        j = org_job_new(ORG_Q_LOCKS);
        org_job_bool(j, false);
        org_db_run(w->s->db, j, on_looked, w);
}

static void on_got(void *user, const struct org_reply *r) {
        struct org_call *c = user;

        if (r->outcome == ORG_DB_DONE)
                org_call_json(c, 200, org_reply_text(r, 0, COL_BODY));
        else
                org_call_db_failed(c, r->outcome);
}

void org_watch_get(struct org_call *c) {
        struct org_job *j = org_job_new(ORG_Q_LOCKS);

        org_job_bool(j, true);
        org_db_run(c->s->db, j, on_got, c);
}

const struct org_watch_counters *org_watch_counters(const struct org_watch *w) {
        static const struct org_watch_counters none;

        return w ? &w->counters : &none;
}

int org_watch_new(struct org_service *s, struct org_watch **out) {
        struct org_watch *w = calloc(1, sizeof(*w));

        *out = w;
        if (!w)
                return -ENOMEM;
        w->s = s;
        loop_timer_init(s->loop, &w->timer, on_timer);
        loop_timer_start(&w->timer, s->conf->watch.interval_ms);
        return 0;
}

void org_watch_free(struct org_watch **w) {
        if (!*w)
                return;
        assert(!(*w)->is_looking); /* the database answers all before it closes */
        loop_timer_cancel(&(*w)->timer);
        free(*w);
        *w = NULL;
}
