#include <errno.h>
#include <stdlib.h>

#include "net/log.h"
#include "net/random.h"
#include "origin/broken.h"
#include "origin/pool_conn.h"

#define TRY_AGAIN_MS 10  /* times the tries, with jitter */
#define TICK_MS 20       /* how exact give-up times are */
#define AWAY_WAIT_MS 200 /* a lost connection may be back by then */

struct lane {
        struct org_job *first, **last;
        size_t waiting;
};

struct org_db {
        struct loop *loop;
        const struct conf_origin *conf;
        struct org_hosts hosts, standbys;
        struct org_conn_ways ways, standby_ways;
        struct org_conn *conns;
        size_t n_conns;
        struct lane lanes[ORG_LANE_COUNT];
        size_t waiting;          /* in all lanes */
        struct org_job *resting; /* between two tries */
        struct loop_defer dispatch;
        struct loop_timer tick;
        struct random_fast random;
        bool told_away, told_schema, was_ready, is_closing, is_leaving;
        struct org_db_counters counters;
};

/* The relay's and the standby's serve nobody else. */
static bool is_apart(enum org_lane lane) {
        return lane > ORG_LANE_SCAN;
}

/* Sales and scans have a connection each where there are enough. */
static bool serves(const struct org_db *db, size_t i, enum org_lane lane) {
        if (is_apart(lane) || is_apart(db->conns[i].lane))
                return db->conns[i].lane == lane;
        if (db->conf->database.connections == 1)
                return true;
        if (db->conf->database.connections == 2)
                return (i == 0) == (lane == ORG_LANE_STOCK);
        return db->conns[i].lane == lane;
}

static size_t count_conns(const struct conf_origin *conf) {
        return conf->database.connections + (conf->relay.redis ? 1 : 0) +
               (conf->database.read_url ? 2 : 0);
}

/* The ordinary ones first, then the relay's, then the standby's. */
static enum org_lane lane_of(const struct conf_origin *conf, size_t i) {
        size_t n = conf->database.connections;

        if (i == n && conf->relay.redis)
                return ORG_LANE_RELAY;
        if (i >= n)
                return i + 1 == count_conns(conf) ? ORG_LANE_READ_SCAN : ORG_LANE_READ;
        if (n >= 3)
                return i == 0 ? ORG_LANE_SALES : i == 1 ? ORG_LANE_SCAN : ORG_LANE_STOCK;
        return i == 0 ? ORG_LANE_STOCK : ORG_LANE_SALES;
}

static bool lane_is_up(const struct org_db *db, enum org_lane lane) {
        for (size_t i = 0; i < db->n_conns; i++)
                if (db->conns[i].state == CONN_READY && serves(db, i, lane))
                        return true;
        return false;
}

/* The i-th connection of a lane; their number in *n. */
static struct org_conn *lane_conn(struct org_db *db, enum org_lane lane, size_t i, size_t *n) {
        struct org_conn *found = NULL;

        *n = 0;
        for (size_t k = 0; k < db->n_conns; k++) {
                if (!serves(db, k, lane))
                        continue;
                if (*n == i)
                        found = &db->conns[k];
                (*n)++;
        }
        return found;
}

static struct org_conn *emptier(struct org_conn *a, struct org_conn *b) {
        if (!a || !org_conn_has_room(a))
                return b && org_conn_has_room(b) ? b : NULL;
        return b && org_conn_has_room(b) && b->count < a->count ? b : a;
}

/* Jobs about one item go over two connections and no more: while one commits,
 * the other's next is already under way up to the row's lock; a third would
 * only wait for it. Others take the emptiest. */
static struct org_conn *choose(struct org_db *db, const struct org_job *job) {
        enum org_lane lane = job->lane;
        struct org_conn *best = NULL;
        size_t n;

        (void)lane_conn(db, lane, 0, &n);
        if (job->near && n > 0) {
                struct org_conn *one = lane_conn(db, lane, job->near % n, &n);
                struct org_conn *two = lane_conn(db, lane, (job->near + 1) % n, &n);

                if (one->state == CONN_READY || two->state == CONN_READY)
                        return emptier(one, two);
        }
        for (size_t i = 0; i < n; i++)
                best = emptier(best, lane_conn(db, lane, i, &n));
        return best;
}

static void answer(struct org_job *job, const struct org_reply *reply) {
        org_job_done *done = job->done;
        void *user = job->user;

        done(user, reply);
        org_job_free(&job);
}

static void answer_bare(struct org_job *job, enum org_db_outcome outcome) {
        answer(job, &(struct org_reply){.outcome = outcome});
}

/* ---- waiting ---- */

/* Takes the job at `at` out of its lane's queue. */
static struct org_job *lane_take(struct org_db *db, struct lane *l, struct org_job **at) {
        struct org_job *job = *at;

        *at = job->next;
        if (!job->next)
                l->last = at;
        job->next = NULL;
        l->waiting--;
        db->waiting--;
        return job;
}

static void lane_push(struct org_db *db, struct org_job *job) {
        struct lane *l = &db->lanes[job->lane];

        job->next = NULL;
        *l->last = job;
        l->last = &job->next;
        l->waiting++;
        db->waiting++;
}

/* Sends what can be sent, in order of arrival; a job whose connections are full
 * lets others pass. */
static void dispatch_lane(struct org_db *db, struct lane *l) {
        struct org_job **at = &l->first;

        while (*at) {
                struct org_job *job = *at;
                struct org_conn *c;

                if (job->broken || db->is_closing) {
                        job = lane_take(db, l, at);
                        answer_bare(job, db->is_closing ? ORG_DB_AWAY : ORG_DB_BUSY);
                } else if ((c = choose(db, job))) {
                        org_conn_send(c, lane_take(db, l, at));
                } else {
                        at = &job->next;
                }
        }
}

static void on_dispatch(struct loop_defer *d) {
        struct org_db *db = NET_CONTAINER_OF(d, struct org_db, dispatch);

        for (int i = 0; i < ORG_LANE_COUNT; i++)
                dispatch_lane(db, &db->lanes[i]);
        if (!loop_timer_is_started(&db->tick))
                loop_timer_start(&db->tick, TICK_MS);
}

static void dispatch_soon(struct org_db *db) {
        loop_defer(db->loop, &db->dispatch, on_dispatch);
}

static void give_up_waiting(struct org_db *db) {
        int64_t now = loop_clock_ms();

        for (int i = 0; i < ORG_LANE_COUNT; i++) {
                struct lane *l = &db->lanes[i];
                bool up = lane_is_up(db, (enum org_lane)i);

                /* In order of arrival, so the first is the first to be late. */
                while (l->first && now >= l->first->give_up_at_ms)
                        answer_bare(lane_take(db, l, &l->first), up ? ORG_DB_BUSY : ORG_DB_AWAY);
        }
}

static void drop_late_connections(struct org_db *db) {
        int64_t now_us = loop_clock_us();

        for (size_t i = 0; i < db->n_conns; i++) {
                struct org_conn *c = &db->conns[i];
                int64_t limit_ms = org_conn_late_ms(c);

                if (c->state == CONN_READY && (c->count > 0 || c->is_cleaning) &&
                    now_us - c->head_since_us > limit_ms * 1000)
                        org_conn_drop(c, "no answer in time");
        }
}

static void on_tick(struct loop_timer *t) {
        struct org_db *db = NET_CONTAINER_OF(t, struct org_db, tick);
        bool busy = db->waiting > 0;

        give_up_waiting(db);
        drop_late_connections(db);
        for (size_t i = 0; i < db->n_conns; i++)
                busy = busy || db->conns[i].count > 0 || db->conns[i].is_cleaning;
        if (busy)
                loop_timer_start(t, TICK_MS);
}

/* ---- answers ---- */

static void on_again(struct loop_timer *t) {
        struct org_job *job = NET_CONTAINER_OF(t, struct org_job, again);
        struct org_job **at = &job->db->resting;

        while (*at != job)
                at = &(*at)->next;
        *at = job->next;
        lane_push(job->db, job);
        dispatch_soon(job->db);
}

static bool tries_again(struct org_db *db, struct org_job *job, unsigned tries) {
        if (job->tries >= tries || db->is_closing)
                return false;
        job->tries++;
        metrics_add(&db->counters.retries, 1);
        job->next = db->resting;
        db->resting = job;
        loop_timer_init(db->loop, &job->again, on_again);
        loop_timer_start(&job->again,
                         (int64_t)random_fast_jitter(&db->random, TRY_AGAIN_MS * job->tries, 80));
        return true;
}

static void tell(struct org_db *db, const struct org_job *job, const PGresult *r,
                 enum org_db_outcome outcome) {
        const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
        const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
        const char *rule = PQresultErrorField(r, PG_DIAG_CONSTRAINT_NAME);
        const char *tag = org_queries[job->query].tag;

        if (outcome == ORG_DB_VIOLATED) {
                metrics_add(&db->counters.violations, 1);
                log_event(LOG_ERROR, "database", "a rule of the schema was violated",
                          LOG_S("query", tag), LOG_S("rule", rule ? rule : ""),
                          LOG_S("error", text ? text : ""));
        } else {
                log_event_limited(10, outcome == ORG_DB_FAILED ? LOG_ERROR : LOG_WARN, "database",
                                  "query failed", LOG_S("query", tag),
                                  LOG_S("sqlstate", state ? state : ""),
                                  LOG_S("error", text ? text : ""));
        }
}

/* What an error says, beyond its kind. */
static void read_error(struct org_reply *reply, const PGresult *r) {
        const char *detail = PQresultErrorField(r, PG_DIAG_MESSAGE_DETAIL);
        const char *table = PQresultErrorField(r, PG_DIAG_TABLE_NAME);

        reply->code = span_of(PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY));
        reply->detail = span_of(detail);
        if (reply->outcome != ORG_DB_VIOLATED)
                return;
        reply->detail = span_of(PQresultErrorField(r, PG_DIAG_CONSTRAINT_NAME));
        if (!org_broken_row(span_of(table), span_of(detail), &reply->broken_tenant,
                            &reply->broken_item))
                reply->broken_tenant = reply->broken_item = (struct span){NULL, 0};
}

static void on_result(struct org_conn *c, struct org_job *job, PGresult *result, int64_t took_us) {
        struct org_db *db = c->db;
        struct org_reply reply = {
                .took_us = took_us, .result = result, .elsewhere = org_conn_is_standby(c)};
        struct org_fault fault;

        metrics_observe(&db->counters.held[job->query], (uint64_t)took_us);
        dispatch_soon(db);
        if (PQresultStatus(result) == PGRES_TUPLES_OK) {
                reply.rows = (size_t)PQntuples(result);
                answer(job, &reply);
                return;
        }
        fault = org_result_fault(result);
        if (tries_again(db, job, fault.tries))
                return;
        reply.outcome = fault.outcome;
        reply.may_divide = fault.may_divide;
        if (reply.outcome != ORG_DB_REFUSED)
                tell(db, job, result, reply.outcome);
        read_error(&reply, result);
        answer(job, &reply);
}

static void on_lost(struct org_conn *c, struct org_job *job, enum org_db_outcome outcome) {
        if (outcome == ORG_DB_UNKNOWN)
                metrics_add(&c->db->counters.unknown, 1);
        answer_bare(job, outcome);
}

/* A server that takes no writes is left with all connections, also those that
 * had nothing to write and would go on reading from yesterday. */
static void leave_server(struct org_db *db, const struct org_hosts *hosts) {
        if (db->is_leaving)
                return;
        db->is_leaving = true;
        metrics_add(&db->counters.left, 1);
        log_event(LOG_WARN, "database", "the server takes no writes any more; leaving it");
        for (size_t i = 0; i < db->n_conns; i++)
                if (db->conns[i].state == CONN_READY && db->conns[i].hosts == hosts)
                        org_conn_leave(&db->conns[i]);
        db->is_leaving = false;
}

/* The first that is back shows the others the way. */
static void show_the_way(struct org_db *db, const struct org_hosts *hosts) {
        size_t ready = 0;

        for (size_t i = 0; i < db->n_conns; i++)
                ready += db->conns[i].hosts == hosts && db->conns[i].state == CONN_READY;
        for (size_t i = 0; i < db->n_conns && ready == 1; i++)
                if (db->conns[i].hosts == hosts)
                        org_conn_follow(&db->conns[i]);
}

static void on_state(struct org_conn *c, const char *why) {
        struct org_db *db = c->db;
        enum org_db_state state = org_db_state(db);

        if (!why) {
                metrics_add(&db->counters.connects, 1);
                dispatch_soon(db);
                show_the_way(db, c->hosts);
                if (state == ORG_DB_READY && !db->was_ready)
                        log_event(LOG_INFO, "database", "connected");
                if (state == ORG_DB_READY)
                        db->was_ready = true;
                if (state == ORG_DB_READY)
                        db->told_away = db->told_schema = false;
                return;
        }
        metrics_add(&db->counters.drops, 1);
        if (c->is_left && !db->is_closing)
                leave_server(db, c->hosts);
        if (db->is_closing || state == ORG_DB_READY || org_conn_is_standby(c))
                return;
        db->was_ready = false;
        if (c->schema_missing && !db->told_schema) {
                db->told_schema = true;
                log_event(LOG_ERROR, "database",
                          "no schema of this version: run "
                          "`sluice-origin -c FILE --init`; trying again until it is there");
        } else if (!c->schema_missing && !db->told_away && c->round_over) {
                db->told_away = true;
                log_event(LOG_ERROR, "database", "cannot be reached; trying again until it can",
                          LOG_S("error", why));
        }
}

static void on_room(struct org_conn *c) {
        dispatch_soon(c->db);
}

static const struct org_conn_hooks hooks = {on_result, on_lost, on_room, on_state};

/* ---- the interface ---- */

void org_db_run(struct org_db *db, struct org_job *job, org_job_done *done, void *user) {
        static const struct org_job none = {.broken = true};
        enum org_lane lane;
        int64_t patience;

        if (!job) {
                job = malloc(sizeof(*job));
                if (!job) { /* the one case that cannot wait for the turn's end */
                        done(user, &(struct org_reply){.outcome = ORG_DB_BUSY});
                        return;
                }
                *job = none;
        }
        assert(job->broken || job->n_params == org_queries[job->query].n_params);
        job->done = done;
        job->user = user;
        job->db = db;
        if (db->waiting >= db->conf->database.max_waiting) {
                job->broken = true;
                metrics_add(&db->counters.refused_full, 1);
        }
        lane = job->lane;
        patience = lane_is_up(db, lane) ? (int64_t)db->conf->database.statement_timeout_ms
                                        : AWAY_WAIT_MS;
        job->give_up_at_ms = loop_clock_ms() + patience;
        lane_push(db, job);
        dispatch_soon(db);
}

int org_db_new(struct loop *l, const struct conf_origin *conf, struct org_db **out) {
        struct org_db *db = calloc(1, sizeof(*db));
        size_t n;
        int r;

        *out = NULL;
        if (!db)
                return -ENOMEM;
        db->loop = l;
        db->conf = conf;
        org_hosts_init(&db->hosts, conf->database.url);
        db->ways = (struct org_conn_ways){db, l, conf, &db->hosts, &hooks};
        if (conf->database.read_url)
                org_hosts_init(&db->standbys, conf->database.read_url);
        db->standby_ways = (struct org_conn_ways){db, l, conf, &db->standbys, &hooks};
        n = count_conns(conf);
        db->conns = calloc(n, sizeof(*db->conns));
        for (int i = 0; i < ORG_LANE_COUNT; i++)
                db->lanes[i].last = &db->lanes[i].first;
        random_fast_init_any(&db->random);
        loop_timer_init(l, &db->tick, on_tick);
        *out = db;
        if (!db->conns)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                enum org_lane lane = lane_of(conf, i);
                bool reads = lane == ORG_LANE_READ || lane == ORG_LANE_READ_SCAN;

                r = org_conn_init(&db->conns[i], reads ? &db->standby_ways : &db->ways, lane, i);
                if (r < 0)
                        return r;
                db->n_conns++;
        }
        for (size_t i = 0; i < db->n_conns; i++)
                org_conn_start(&db->conns[i]);
        return 0;
}

void org_db_free(struct org_db **db) {
        struct org_db *d = *db;

        if (!d)
                return;
        d->is_closing = true;
        for (size_t i = 0; i < d->n_conns; i++)
                org_conn_drop(&d->conns[i], "closing");
        while (d->resting) {
                struct org_job *job = d->resting;

                d->resting = job->next;
                loop_timer_cancel(&job->again);
                answer_bare(job, ORG_DB_BUSY);
        }
        on_dispatch(&d->dispatch);
        for (size_t i = 0; i < d->n_conns; i++)
                org_conn_fini(&d->conns[i]);
        loop_defer_cancel(d->loop, &d->dispatch);
        loop_timer_cancel(&d->tick);
        free(d->conns);
        org_hosts_fini(&d->hosts);
        org_hosts_fini(&d->standbys);
        free(d);
        *db = NULL;
}

enum org_db_state org_db_state(const struct org_db *db) {
        if (lane_is_up(db, ORG_LANE_STOCK) && lane_is_up(db, ORG_LANE_SALES))
                return ORG_DB_READY;
        for (size_t i = 0; i < db->n_conns; i++)
                if (db->conns[i].schema_missing)
                        return ORG_DB_NO_SCHEMA;
        return ORG_DB_DOWN;
}

const struct org_db_counters *org_db_counters(const struct org_db *db) {
        return &db->counters;
}

bool org_db_has_standby(const struct org_db *db) {
        return lane_is_up(db, ORG_LANE_READ) && lane_is_up(db, ORG_LANE_READ_SCAN);
}

bool org_db_is_closing(const struct org_db *db) {
        return db->is_closing;
}

size_t org_db_waiting(const struct org_db *db) {
        return db->waiting;
}

size_t org_db_connected(const struct org_db *db) {
        size_t n = 0;

        for (size_t i = 0; i < db->n_conns; i++)
                n += db->conns[i].state == CONN_READY;
        return n;
}

struct span org_reply_text(const struct org_reply *r, size_t row, int column) {
        if (row >= r->rows || PQgetisnull(r->result, (int)row, column))
                return (struct span){NULL, 0};
        return (struct span){PQgetvalue(r->result, (int)row, column),
                             (size_t)PQgetlength(r->result, (int)row, column)};
}

int64_t org_reply_int(const struct org_reply *r, size_t row, int column, int64_t fallback) {
        struct span s = org_reply_text(r, row, column);
        char *end;
        long long v;

        if (!s.p || s.len == 0)
                return fallback;
        v = strtoll(s.p, &end, 10);
        return *end ? fallback : (int64_t)v;
}
