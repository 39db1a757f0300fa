#include "origin/pool_conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/log.h"

#define BACKOFF_FIRST_MS 50
#define BACKOFF_LAST_MS 1000

static const char *const lane_names[ORG_LANE_COUNT] = {"stock", "sales", "scan", "relay"};

/* Ours on every connection, whatever the server's defaults are. Small tables
 * look cheap to scan and plans outlive their size, hence enable_seqscan. */
#define SETTINGS                                                                                   \
        "/* sluice settings */ select set_config('default_transaction_isolation', "                \
        "'read committed', false), set_config('statement_timeout', $1, false), "                   \
        "set_config('lock_timeout', $2, false), set_config('enable_seqscan', $3, false), "         \
        "set_config('jit', 'off', false), set_config('timezone', 'UTC', false), "                  \
        "set_config('datestyle', 'ISO', false), set_config('sluice.prefix', $4, false), "          \
        "set_config('sluice.timeline', ('x' || substr(pg_walfile_name("                            \
        "pg_current_wal_lsn()), 1, 8))::bit(32)::int::text, false)"
#define SCHEMA                                                                                     \
        "/* sluice schema */ select 1 / coalesce((max(version) = $1::int)::int, 0) "               \
        "from sluice.schema_version"
#define SCAN_TIMEOUT_MS 60000

static void on_ready(struct loop_io *io, unsigned events);

int64_t org_conn_statement_ms(const struct org_conn *c) {
        return c->lane == ORG_LANE_SCAN ? SCAN_TIMEOUT_MS
                                        : (int64_t)c->conf->database.statement_timeout_ms;
}

static void unwatch(struct org_conn *c) {
        if (c->io_is_set)
                loop_io_want(&c->io, 0);
        c->io_is_set = false;
}

static void watch(struct org_conn *c, unsigned events) {
        int fd = c->pg ? PQsocket(c->pg) : -1;

        if (fd < 0)
                return;
        if (!c->io_is_set) {
                loop_io_init(c->loop, &c->io, fd, on_ready);
                c->io_is_set = true;
        }
        loop_io_want(&c->io, events);
}

static void close_socket(struct org_conn *c) {
        unwatch(c);
        PQclear(c->result);
        c->result = NULL;
        if (c->pg)
                PQfinish(c->pg);
        c->pg = NULL;
}

void org_conn_drop(struct org_conn *c, const char *why) {
        char text[256];

        /* The reason may lie in the connection that goes away now. */
        (void)snprintf(text, sizeof(text), "%s", why);
        text[strcspn(text, "\n")] = '\0';
        c->state = CONN_DOWN;
        close_socket(c);
        while (c->count > 0) {
                struct org_job *job = c->ring[c->head];

                c->head = (c->head + 1) % c->cap;
                c->count--;
                c->hooks->on_lost(c, job);
        }
        loop_timer_start(&c->timer, c->backoff_ms);
        c->backoff_ms = c->backoff_ms * 2 > BACKOFF_LAST_MS ? BACKOFF_LAST_MS : c->backoff_ms * 2;
        c->hooks->on_state(c, text);
}

static int send_settings(struct org_conn *c) {
        char statement[24], lock[24], version[16];
        const char *values[4] = {statement, lock, c->lane == ORG_LANE_SCAN ? "on" : "off",
                                 c->conf->group_prefix};
        const char *wanted[1] = {version};

        (void)snprintf(statement, sizeof(statement), "%lld", (long long)org_conn_statement_ms(c));
        (void)snprintf(lock, sizeof(lock), "%u", c->conf->database.lock_timeout_ms);
        (void)snprintf(version, sizeof(version), "%d", ORG_SCHEMA_VERSION);
        return PQsendQueryParams(c->pg, SETTINGS, 4, NULL, values, NULL, NULL, 0) &&
               PQpipelineSync(c->pg) &&
               PQsendQueryParams(c->pg, SCHEMA, 1, NULL, wanted, NULL, NULL, 0) &&
               PQpipelineSync(c->pg);
}

static int send_prepares(struct org_conn *c) {
        for (int i = 0; i < ORG_QUERY_COUNT; i++)
                if (!PQsendPrepare(c->pg, org_queries[i].tag, org_queries[i].text, 0, NULL))
                        return 0;
        return PQpipelineSync(c->pg);
}

static void flush(struct org_conn *c) {
        int r = PQflush(c->pg);

        if (r < 0)
                org_conn_drop(c, PQerrorMessage(c->pg));
        else
                watch(c, r > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

static void set_up(struct org_conn *c) {
        c->state = CONN_PREPARING;
        c->setup_left = 3;
        if (PQsetnonblocking(c->pg, 1) != 0 || !PQenterPipelineMode(c->pg) || !send_settings(c) ||
            !send_prepares(c))
                org_conn_drop(c, PQerrorMessage(c->pg));
        else
                flush(c);
}

static void go_on_connecting(struct org_conn *c) {
        /* It may go on to the next host, with another socket of the same number. */
        unwatch(c);
        switch (PQconnectPoll(c->pg)) {
        case PGRES_POLLING_READING:
                watch(c, LOOP_READ);
                break;
        case PGRES_POLLING_WRITING:
                watch(c, LOOP_WRITE);
                break;
        case PGRES_POLLING_OK:
                set_up(c);
                break;
        case PGRES_POLLING_FAILED:
        case PGRES_POLLING_ACTIVE:
                org_conn_drop(c, PQerrorMessage(c->pg));
                break;
        }
}

void org_conn_start(struct org_conn *c) {
        char name[48];
        const char *keywords[] = {"dbname", "application_name", "target_session_attrs",
                                  "client_encoding", NULL};
        const char *values[] = {c->conf->database.url, name, "read-write", "UTF8", NULL};

        (void)snprintf(name, sizeof(name), "sluice-origin %s", lane_names[c->lane]);
        c->schema_missing = false;
        c->state = CONN_CONNECTING;
        c->pg = PQconnectStartParams(keywords, values, 1);
        loop_timer_start(&c->timer, (int64_t)c->conf->database.connect_timeout_ms);
        if (!c->pg)
                org_conn_drop(c, "out of memory");
        else if (PQstatus(c->pg) == CONNECTION_BAD)
                org_conn_drop(c, PQerrorMessage(c->pg));
        else
                watch(c, LOOP_WRITE);
}

static void on_timer(struct loop_timer *t) {
        struct org_conn *c = NET_CONTAINER_OF(t, struct org_conn, timer);

        if (c->state == CONN_DOWN)
                org_conn_start(c);
        else if (c->state != CONN_READY)
                org_conn_drop(c, "the connection took too long");
}

/* One result of the setup. False after a drop. */
static bool take_setup(struct org_conn *c, PGresult *r) {
        const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
        char why[256];

        switch ((int)PQresultStatus(r)) {
        case PGRES_PIPELINE_SYNC:
                if (--c->setup_left > 0)
                        return true;
                loop_timer_cancel(&c->timer);
                c->backoff_ms = BACKOFF_FIRST_MS;
                c->state = CONN_READY;
                c->hooks->on_state(c, NULL);
                return c->state == CONN_READY;
        case PGRES_COMMAND_OK:
        case PGRES_TUPLES_OK:
                return true;
        default:
                /* No such table, schema or function; or another version: 1/0. */
                c->schema_missing =
                        state && (strcmp(state, "42P01") == 0 || strcmp(state, "3F000") == 0 ||
                                  strcmp(state, "42883") == 0 || strcmp(state, "22012") == 0);
                (void)snprintf(why, sizeof(why), "%s",
                               c->schema_missing ? "the schema is missing or of another version"
                                                 : PQresultErrorMessage(r));
                org_conn_drop(c, why);
                return false;
        }
}

/* After these the server, or this session, is of no more use. */
static bool ends_session(const PGresult *r) {
        const char *s = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;

        return s && (strncmp(s, "57P0", 4) == 0 || strncmp(s, "08", 2) == 0 ||
                     strcmp(s, "25006") == 0 || strcmp(s, "26000") == 0);
}

static bool take_answer(struct org_conn *c, PGresult *r) {
        struct org_job *job;
        PGresult *result;
        int64_t now_us, took_us;
        bool ends;

        if (PQresultStatus(r) != PGRES_PIPELINE_SYNC) {
                /* The first one counts: an error, or the rows. */
                if (c->result)
                        PQclear(r);
                else
                        c->result = r;
                return true;
        }
        PQclear(r);
        if (c->count == 0)
                return true;
        job = c->ring[c->head];
        result = c->result;
        c->result = NULL;
        c->head = (c->head + 1) % c->cap;
        c->count--;
        now_us = loop_clock_us();
        took_us = now_us - c->head_since_us;
        c->head_since_us = now_us;
        ends = ends_session(result);
        c->hooks->on_result(c, job, result, took_us);
        PQclear(result);
        if (ends)
                org_conn_drop(c, "the server ends the session");
        return c->state == CONN_READY;
}

static void take_results(struct org_conn *c) {
        unsigned empty = 0;

        /* libpq says NULL once behind each query; twice means nothing more. */
        while (c->pg && empty < 2 && (c->count > 0 || c->state == CONN_PREPARING) &&
               !PQisBusy(c->pg)) {
                PGresult *r = PQgetResult(c->pg);

                if (!r) {
                        empty++;
                } else if (c->state == CONN_PREPARING) {
                        bool goes_on = take_setup(c, r);

                        empty = 0;
                        PQclear(r);
                        if (!goes_on)
                                return;
                } else {
                        empty = 0;
                        if (!take_answer(c, r))
                                return;
                }
        }
}

static void on_ready(struct loop_io *io, unsigned events) {
        struct org_conn *c = NET_CONTAINER_OF(io, struct org_conn, io);

        if (c->state == CONN_CONNECTING) {
                go_on_connecting(c);
                return;
        }
        if (events & LOOP_READ) {
                if (!PQconsumeInput(c->pg)) {
                        /* What the server said before it went may still be there. */
                        take_results(c);
                        if (c->pg)
                                org_conn_drop(c, PQerrorMessage(c->pg));
                        return;
                }
                take_results(c);
        }
        if (c->pg && c->state != CONN_CONNECTING)
                flush(c);
}

void org_conn_send(struct org_conn *c, struct org_job *job) {
        const char *values[ORG_PARAMS_MAX];
        int sent;

        assert(org_conn_has_room(c));
        org_job_params(job, values);
        if (c->count == 0)
                c->head_since_us = loop_clock_us();
        c->ring[(c->head + c->count) % c->cap] = job;
        c->count++;
        sent = PQsendQueryPrepared(c->pg, org_queries[job->query].tag, job->n_params, values, NULL,
                                   NULL, 0) &&
               PQpipelineSync(c->pg);
        if (!sent)
                org_conn_drop(c, PQerrorMessage(c->pg));
        else
                flush(c);
}

int org_conn_init(struct org_conn *c, struct org_db *db, struct loop *l,
                  const struct conf_origin *conf, enum org_lane lane,
                  const struct org_conn_hooks *hooks) {
        *c = (struct org_conn){
                .db = db,
                .loop = l,
                .conf = conf,
                .hooks = hooks,
                .lane = lane,
                .backoff_ms = BACKOFF_FIRST_MS,
                .cap = conf->database.pipeline_depth,
        };
        c->ring = calloc(c->cap, sizeof(struct org_job *));
        loop_timer_init(l, &c->timer, on_timer);
        return c->ring ? 0 : -ENOMEM;
}

void org_conn_fini(struct org_conn *c) {
        loop_timer_cancel(&c->timer);
        close_socket(c);
        free(c->ring);
        c->ring = NULL;
}
