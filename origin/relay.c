#include "origin/relay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/log.h"
#include "net/random.h"
#include "origin/relay_redis.h"

#define WATCH_MS 1000  /* between two looks at the backlog */
#define WATCH_SHARE 20 /* and so many times what a look took */
#define NO_INDEX_MS 5000
#define OWNER_BYTES 16
#define SEQ_TEXT 21 /* one number of the marks, and the comma */

struct org_relay {
        struct org_service *s;
        struct org_redis *redis;
        struct loop_timer turn, watch;
        struct random_fast random;
        char owner[2 * OWNER_BYTES + 1]; /* of this life of the process */
        int64_t epoch;                   /* of our duty; 0: not ours, as far as we know */
        int64_t backoff_ms;              /* 0: nothing failed */
        char *marks;                     /* "{1,2,3}": what Redis has and no row says */
        size_t marks_len, marks_cap;
        size_t n_sent; /* on the way to Redis, or in `marks` */
        bool is_full;  /* the last batch was: there may be more */
        bool is_asking, is_watching, told_index;
        struct org_relay_counters counters;
};

/* ---- when to go on ---- */

static void again_after(struct org_relay *relay, int64_t ms) {
        loop_timer_start(&relay->turn, ms);
}

static void back_off(struct org_relay *relay, const char *why) {
        const struct conf_origin *conf = relay->s->conf;
        uint64_t wait;

        if (relay->backoff_ms == 0)
                log_event(LOG_WARN, "relay", "cannot relay; trying again", LOG_S("why", why));
        relay->backoff_ms =
                relay->backoff_ms == 0 ? conf->relay.backoff_first_ms : relay->backoff_ms * 2;
        if (relay->backoff_ms > conf->relay.backoff_last_ms)
                relay->backoff_ms = conf->relay.backoff_last_ms;
        wait = random_fast_jitter(&relay->random, (uint64_t)relay->backoff_ms, 50);
        again_after(
                relay,
                (int64_t)(wait > conf->relay.backoff_last_ms ? conf->relay.backoff_last_ms : wait));
}

static void forget_marks(struct org_relay *relay) {
        relay->marks_len = 0;
        relay->n_sent = 0;
        metrics_set(&relay->counters.in_flight, 0);
}

/* ---- to Redis ---- */

static void add_mark(struct org_relay *relay, struct span seq) {
        char *p = relay->marks + relay->marks_len;
        int n = snprintf(p, relay->marks_cap - relay->marks_len, "%c%.*s",
                         relay->marks_len == 0 ? '{' : ',', (int)seq.len, seq.p);

        relay->marks_len += (size_t)n;
        assert(relay->marks_len + 2 <= relay->marks_cap);
}

/* Values that are null have no field. */
static void add_event(struct org_relay *relay, const struct org_reply *r, size_t row) {
        static const struct {
                const char *name;
                int column;
        } members[] = {
                {"hold", ORG_RELAY_HOLD},     {"order_ref", ORG_RELAY_ORDER_REF},
                {"tenant", ORG_RELAY_TENANT}, {"item", ORG_RELAY_ITEM},
                {"from", ORG_RELAY_FROM},     {"to", ORG_RELAY_TO},
                {"qty", ORG_RELAY_QTY},       {"reason", ORG_RELAY_REASON},
                {"actor", ORG_RELAY_ACTOR},   {"at", ORG_RELAY_AT},
        };
        struct span fields[ORG_REDIS_FIELDS];
        struct span seq = org_reply_text(r, row, ORG_RELAY_SEQ);
        char id[48];
        size_t n = 0;

        (void)snprintf(id, sizeof(id), "%s-%.*s", relay->s->conf->group_prefix, (int)seq.len,
                       seq.p);
        fields[n++] = SPAN("event");
        fields[n++] = span_of(id);
        for (size_t i = 0; i < NET_COUNT_OF(members); i++) {
                struct span value = org_reply_text(r, row, members[i].column);

                if (!value.p)
                        continue;
                fields[n++] = span_of(members[i].name);
                fields[n++] = value;
        }
        org_redis_add(relay->redis, fields, n);
        add_mark(relay, seq);
}

static void send_events(struct org_relay *relay, const struct org_reply *r) {
        forget_marks(relay);
        org_redis_begin(relay->redis, relay->epoch);
        for (size_t row = 1; row < r->rows; row++)
                add_event(relay, r, row);
        relay->marks[relay->marks_len++] = '}';
        relay->n_sent = r->rows - 1;
        relay->is_full = relay->n_sent >= relay->s->conf->relay.batch;
        metrics_set(&relay->counters.in_flight, relay->n_sent);
        org_redis_end(relay->redis);
}

static void on_redis(void *user, enum org_redis_outcome outcome, const char *why) {
        struct org_relay *relay = user;
        struct org_relay_counters *n = &relay->counters;

        switch (outcome) {
        case ORG_REDIS_DONE:
                if (relay->backoff_ms > 0)
                        log_event(LOG_INFO, "relay", "goes on");
                relay->backoff_ms = 0;
                metrics_add(&n->sent, relay->n_sent);
                again_after(relay, 0);
                return;
        case ORG_REDIS_FENCED:
                metrics_add(&n->fenced, 1);
                relay->epoch = 0;
                break;
        case ORG_REDIS_LATE:
                metrics_add(&n->late, 1);
                break;
        case ORG_REDIS_FAILED:
                metrics_add(&n->refused, 1);
                break;
        }
        forget_marks(relay);
        back_off(relay, why);
}

/* ---- from the database ---- */

static void keep_duty(struct org_relay *relay, int64_t epoch) {
        if (epoch > 0 && epoch != relay->epoch) {
                metrics_add(&relay->counters.takings, 1);
                log_event(LOG_INFO, "relay", "the journal is relayed from here",
                          LOG_I("epoch", epoch));
        }
        relay->epoch = epoch > 0 ? epoch : 0;
        metrics_set(&relay->counters.has_duty, epoch > 0);
}

static void tell_index(struct org_relay *relay) {
        if (!relay->told_index)
                log_event(LOG_ERROR, "relay",
                          "no index of what is to be relayed: run "
                          "`sluice-origin -c FILE --init`; trying again until it is there");
        relay->told_index = true;
}

static void on_turn(void *user, const struct org_reply *r) {
        struct org_relay *relay = user;
        int64_t epoch = r->outcome == ORG_DB_DONE ? org_reply_int(r, 0, ORG_RELAY_EPOCH, 0) : 0;

        relay->is_asking = false;
        /* No connection yet, or none now: it never ran. */
        if (r->outcome == ORG_DB_AWAY) {
                again_after(relay, relay->s->conf->relay.interval_ms);
                return;
        }
        if (r->outcome != ORG_DB_DONE) {
                /* The marks are kept: said twice is said once. */
                metrics_add(&relay->counters.database, 1);
                back_off(relay, "the database did not answer");
                return;
        }
        keep_duty(relay, epoch);
        forget_marks(relay);
        if (epoch < 0) {
                tell_index(relay);
                again_after(relay, NO_INDEX_MS);
        } else if (r->rows > 1) {
                relay->told_index = false;
                send_events(relay, r);
        } else {
                again_after(relay, relay->s->conf->relay.interval_ms);
        }
}

static void on_turn_due(struct loop_timer *t) {
        struct org_relay *relay = NET_CONTAINER_OF(t, struct org_relay, turn);
        const struct conf_origin *conf = relay->s->conf;
        struct span marks = {relay->marks_len > 0 ? relay->marks : NULL, relay->marks_len};
        struct org_job *j;

        /* Away: no use in queueing. */
        if (org_db_state(relay->s->db) != ORG_DB_READY) {
                again_after(relay, conf->relay.interval_ms);
                return;
        }
        relay->is_asking = true;
        j = org_job_new(ORG_Q_RELAY_TURN);
        org_job_text(j, span_of(relay->owner));
        org_job_int(j, relay->epoch);
        org_job_int(j, conf->relay.lease_ms);
        org_job_text(j, marks);
        org_job_int(j, conf->relay.batch);
        org_db_run(relay->s->db, j, on_turn, relay);
}

/* ---- the backlog ---- */

static void on_watched(void *user, const struct org_reply *r) {
        struct org_relay *relay = user;
        int64_t wait = WATCH_MS;

        relay->is_watching = false;
        if (r->outcome == ORG_DB_DONE) {
                metrics_set(&relay->counters.backlog, (uint64_t)org_reply_int(r, 0, 0, 0));
                metrics_set(&relay->counters.oldest_ms, (uint64_t)org_reply_int(r, 0, 1, 0));
                if (r->took_us / 1000 * WATCH_SHARE > wait)
                        wait = r->took_us / 1000 * WATCH_SHARE;
        }
        loop_timer_start(&relay->watch, wait);
}

static void on_watch_due(struct loop_timer *t) {
        struct org_relay *relay = NET_CONTAINER_OF(t, struct org_relay, watch);
        struct org_job *j;

        if (org_db_state(relay->s->db) != ORG_DB_READY) {
                loop_timer_start(t, WATCH_MS);
                return;
        }
        relay->is_watching = true;
        j = org_job_new(ORG_Q_RELAY_WATCH);
        org_job_int(j, ORG_RELAY_COUNTED_MAX);
        org_db_run(relay->s->db, j, on_watched, relay);
}

/* ---- start and end ---- */

static void name_owner(struct org_relay *relay) {
        unsigned char bytes[OWNER_BYTES];

        random_bytes(bytes, sizeof(bytes));
        for (size_t i = 0; i < sizeof(bytes); i++)
                (void)snprintf(relay->owner + 2 * i, 3, "%02x", bytes[i]);
}

int org_relay_new(struct org_service *s, struct org_relay **out) {
        struct org_relay *relay = calloc(1, sizeof(*relay));

        *out = relay;
        if (!relay)
                return -ENOMEM;
        relay->s = s;
        name_owner(relay);
        random_fast_init_any(&relay->random);
        loop_timer_init(s->loop, &relay->turn, on_turn_due);
        loop_timer_init(s->loop, &relay->watch, on_watch_due);
        relay->marks_cap = s->conf->relay.batch * (size_t)SEQ_TEXT + 8;
        relay->marks = malloc(relay->marks_cap);
        if (!relay->marks)
                return -ENOMEM;
        again_after(relay, s->conf->relay.interval_ms);
        loop_timer_start(&relay->watch, WATCH_MS);
        return org_redis_new(s->loop, s->conf, on_redis, relay, &relay->redis);
}

void org_relay_free(struct org_relay **relay) {
        struct org_relay *r = *relay;

        if (!r)
                return;
        assert(!r->is_asking && !r->is_watching); /* the database answers all before it closes */
        org_redis_free(&r->redis);
        loop_timer_cancel(&r->turn);
        loop_timer_cancel(&r->watch);
        free(r->marks);
        free(r);
        *relay = NULL;
}

const struct org_relay_counters *org_relay_counters(const struct org_relay *relay) {
        static const struct org_relay_counters none;

        return relay ? &relay->counters : &none;
}
