#include "origin/pool_conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define BACKOFF_FIRST_MS 50 /* between two rounds of all hosts */
#define BACKOFF_LAST_MS 1000

static const char *const lane_names[ORG_LANE_COUNT] = {"stock", "sales", "scan",
                                                       "relay", "read",  "read scan"};

/* Ours on every connection, whatever the server's defaults are; behind a pooler, in
 * every transaction. Small tables look cheap to scan and plans outlive their size,
 * hence enable_seqscan. */
#define SETTINGS(local)                                                                            \
        "/* sluice settings */ select set_config('statement_timeout', $1, " local "), "            \
        "set_config('lock_timeout', $2, " local "), set_config('enable_seqscan', $3, " local       \
        "), set_config('jit', 'off', " local "), set_config('timezone', 'UTC', " local             \
        "), set_config('datestyle', 'ISO', " local "), set_config('sluice.prefix', $4, " local     \
        "), set_config('sluice.timeline', case when pg_is_in_recovery() then '' else ('x' || "     \
        "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int::text end, " local     \
        "), set_config('default_transaction_isolation', 'read committed', " local ")"
/* In the order of their way. The level has to be told before the first query, and
 * only a transaction of its own takes it. */
#define BEGIN "begin isolation level read committed"
#define COMMIT "commit"
#define ROLLBACK "rollback"
#define SCHEMA                                                                                     \
        "/* sluice schema */ select 1 / coalesce((max(version) = $1::int)::int, 0) "               \
        "from sluice.schema_version"
#define SCAN_TIMEOUT_MS 60000
/* A standby has the primary to stand in for it, which gateways should not wait for. */
#define READ_TIMEOUT_MS 400
#define LATE_MS 500
#define LATE_READ_MS 100
#define GUARD "select sluice_api.reach($1::pg_lsn, $2::int, $3::bigint)"

static void on_ready(struct loop_io *io, unsigned events);

static bool is_for_scans(const struct org_conn *c) {
        return c->lane == ORG_LANE_SCAN || c->lane == ORG_LANE_READ_SCAN;
}

static int64_t statement_ms(const struct org_conn *c) {
        return is_for_scans(c)            ? SCAN_TIMEOUT_MS
               : c->lane == ORG_LANE_READ ? READ_TIMEOUT_MS
                                          : (int64_t)c->conf->database.statement_timeout_ms;
}

int64_t org_conn_late_ms(const struct org_conn *c) {
        return statement_ms(c) + (c->lane == ORG_LANE_READ ? LATE_READ_MS : LATE_MS);
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

/* A host that was good is asked again first: often only the session ended. */
static int64_t next_try_ms(struct org_conn *c, bool was_ready) {
        int64_t in_ms = 0;

        c->round_over = false;
        if (was_ready && !c->is_left) {
                c->tried = 0;
                return c->backoff_ms;
        }
        c->host = (c->host + 1) % c->hosts->n;
        c->round_over = ++c->tried >= c->hosts->n;
        if (c->round_over) {
                c->tried = 0;
                in_ms = c->backoff_ms;
                c->backoff_ms *= 2;
        }
        if (c->backoff_ms > BACKOFF_LAST_MS)
                c->backoff_ms = BACKOFF_LAST_MS;
        return in_ms;
}

void org_conn_drop(struct org_conn *c, const char *why) {
        bool was_ready = c->state == CONN_READY;
        char text[256];

        /* The reason may lie in the connection that goes away now. */
        (void)snprintf(text, sizeof(text), "%s", why);
        text[strcspn(text, "\n")] = '\0';
        c->state = CONN_DOWN;
        c->is_cleaning = false;
        close_socket(c);
        while (c->count > 0) {
                struct org_job *job = c->ring[c->head];

                c->head = (c->head + 1) % c->cap;
                c->count--;
                c->hooks->on_lost(c, job, ORG_DB_UNKNOWN);
        }
        loop_timer_start(&c->timer, next_try_ms(c, was_ready));
        c->hooks->on_state(c, text);
        c->is_left = false;
}

void org_conn_leave(struct org_conn *c) {
        c->is_left = true;
        org_conn_drop(c, "the server takes no writes any more");
}

void org_conn_follow(struct org_conn *c) {
        if (c->state == CONN_READY || (c->state != CONN_DOWN && c->host == c->hosts->good))
                return;
        c->host = c->hosts->good;
        c->tried = 0;
        close_socket(c);
        c->state = CONN_DOWN;
        loop_timer_start(&c->timer, 0);
}

static int send_text(const struct org_conn *c, const char *text) {
        return PQsendQueryParams(c->pg, text, 0, NULL, NULL, NULL, NULL, 0);
}

static int send_settings(const struct org_conn *c) {
        char statement[24], lock[24];
        const char *values[4] = {statement, lock, is_for_scans(c) ? "on" : "off",
                                 c->conf->group_prefix};

        (void)snprintf(statement, sizeof(statement), "%lld", (long long)statement_ms(c));
        (void)snprintf(lock, sizeof(lock), "%u", c->conf->database.lock_timeout_ms);
        return PQsendQueryParams(c->pg,
                                 c->conf->database.pooler ? SETTINGS("true") : SETTINGS("false"), 4,
                                 NULL, values, NULL, NULL, 0);
}

static int send_schema(const struct org_conn *c) {
        char version[16];
        const char *wanted[1] = {version};

        (void)snprintf(version, sizeof(version), "%d", ORG_SCHEMA_VERSION);
        return PQsendQueryParams(c->pg, SCHEMA, 1, NULL, wanted, NULL, NULL, 0);
}

/* All with one sync: the first that fails leaves out the rest. */
static int send_setup(const struct org_conn *c) {
        if (!c->conf->database.pooler && !send_settings(c))
                return 0;
        if (!send_schema(c))
                return 0;
        for (int i = 0; i < ORG_QUERY_COUNT && !c->conf->database.pooler; i++)
                if (!PQsendPrepare(c->pg, org_queries[i].tag, org_queries[i].text, 0, NULL))
                        return 0;
        return PQpipelineSync(c->pg);
}

/* What a standby has to fulfil first; with one sync, its no leaves out the rest. */
static int send_guard(const struct org_conn *c, const struct org_job *job) {
        const char *values[3] = {job->guard[0], job->guard[1], job->guard[2]};

        return !job->guard[0][0] || PQsendQueryParams(c->pg, GUARD, 3, NULL, values, NULL, NULL, 0);
}

/* One query with what it needs around it, up to its sync: prepared and bare on a
 * session of our own, else in a transaction that brings its settings along. */
static int send_job(const struct org_conn *c, const struct org_job *job) {
        const struct org_query_row *q = &org_queries[job->query];
        const char *values[ORG_PARAMS_MAX];

        org_job_params(job, values);
        if (!c->conf->database.pooler)
                return send_guard(c, job) &&
                       PQsendQueryPrepared(c->pg, q->tag, job->n_params, values, NULL, NULL, 0) &&
                       PQpipelineSync(c->pg);
        return send_text(c, BEGIN) && send_settings(c) && send_guard(c, job) &&
               PQsendQueryParams(c->pg, q->text, job->n_params, NULL, values, NULL, NULL, 0) &&
               send_text(c, COMMIT) && PQpipelineSync(c->pg);
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
        if (PQsetnonblocking(c->pg, 1) != 0 || !PQenterPipelineMode(c->pg) || !send_setup(c))
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

        (void)snprintf(name, sizeof(name), "sluice-origin %s", lane_names[c->lane]);
        c->schema_missing = false;
        c->state = CONN_CONNECTING;
        c->pg = org_hosts_connect(c->hosts, c->host, name,
                                  org_conn_is_standby(c) ? "any" : "read-write");
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
                loop_timer_cancel(&c->timer);
                c->backoff_ms = BACKOFF_FIRST_MS;
                c->tried = 0;
                c->hosts->good = c->host;
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

/* A server says of itself, before it is asked, when it takes no writes any more
 * (from version 14 on; PgBouncer keeps it to itself). */
static bool is_read_only(const struct org_conn *c) {
        const char *standby = PQparameterStatus(c->pg, "in_hot_standby");
        const char *off = PQparameterStatus(c->pg, "default_transaction_read_only");

        return (standby && strcmp(standby, "on") == 0) || (off && strcmp(off, "on") == 0);
}

static enum org_session session_after(const struct org_conn *c, const struct org_fault *f) {
        if (!org_conn_is_standby(c) && is_read_only(c))
                return ORG_SESSION_LEFT;
        return f ? f->session : ORG_SESSION_KEPT;
}

struct org_fault org_result_fault(const PGresult *r) {
        const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);

        return org_fault_of(PQresultErrorField(r, PG_DIAG_SQLSTATE),
                            severity && strcmp(severity, "ERROR") != 0);
}

static bool is_error(const PGresult *r) {
        return PQresultStatus(r) != PGRES_TUPLES_OK && PQresultStatus(r) != PGRES_COMMAND_OK;
}

/* The transaction around a query that failed is still open. */
static void clean_up(struct org_conn *c) {
        c->is_cleaning = true;
        if (!send_text(c, ROLLBACK) || !PQpipelineSync(c->pg))
                org_conn_drop(c, PQerrorMessage(c->pg));
}

static void cleaned_up(struct org_conn *c) {
        bool failed = !c->result || is_error(c->result);

        PQclear(c->result);
        c->result = NULL;
        c->is_cleaning = false;
        if (failed)
                org_conn_drop(c, "a transaction could not be rolled back");
        else
                c->hooks->on_room(c);
}

/* Hands the head of the pipeline back with its result, or without where that is
 * no answer. */
static void finish_head(struct org_conn *c) {
        struct org_job *job = c->ring[c->head];
        PGresult *result = c->result;
        struct org_fault fault, *f = NULL;
        int64_t now_us = loop_clock_us(), took_us = now_us - c->head_since_us;
        enum org_session session;

        c->result = NULL;
        c->head = (c->head + 1) % c->cap;
        c->count--;
        c->head_since_us = now_us;
        if (PQresultStatus(result) != PGRES_TUPLES_OK) {
                fault = org_result_fault(result);
                f = &fault;
        }
        session = session_after(c, f);
        if (f && f->session != ORG_SESSION_KEPT)
                c->hooks->on_lost(c, job, f->outcome);
        else
                c->hooks->on_result(c, job, result, took_us);
        if (session == ORG_SESSION_LEFT)
                org_conn_leave(c);
        else if (session == ORG_SESSION_DROPPED)
                org_conn_drop(c, "the server ends the session");
        else if (c->state == CONN_READY && PQtransactionStatus(c->pg) == PQTRANS_INERROR)
                clean_up(c);
        PQclear(result);
}

static bool take_answer(struct org_conn *c, PGresult *r) {
        if (PQresultStatus(r) == PGRES_PIPELINE_SYNC) {
                PQclear(r);
                if (c->is_cleaning)
                        cleaned_up(c);
                else if (c->count > 0)
                        finish_head(c);
                return c->state == CONN_READY;
        }
        /* The first error counts, rows or not: a commit may fail behind them. Else
         * the last rows do: those before are of the settings. */
        if (c->result &&
            (is_error(c->result) || (!is_error(r) && PQresultStatus(r) != PGRES_TUPLES_OK))) {
                PQclear(r);
                return true;
        }
        PQclear(c->result);
        c->result = r;
        return true;
}

static void take_results(struct org_conn *c) {
        unsigned empty = 0;

        /* libpq says NULL once behind each query; twice means nothing more. */
        while (c->pg && empty < 2 &&
               (c->count > 0 || c->is_cleaning || c->state == CONN_PREPARING) && !PQisBusy(c->pg)) {
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
        assert(org_conn_has_room(c));
        if (c->count == 0)
                c->head_since_us = loop_clock_us();
        c->ring[(c->head + c->count) % c->cap] = job;
        c->count++;
        if (!send_job(c, job))
                org_conn_drop(c, PQerrorMessage(c->pg));
        else
                flush(c);
}

int org_conn_init(struct org_conn *c, const struct org_conn_ways *ways, enum org_lane lane,
                  size_t host) {
        *c = (struct org_conn){
                .db = ways->db,
                .loop = ways->loop,
                .conf = ways->conf,
                .hosts = ways->hosts,
                .hooks = ways->hooks,
                .lane = lane,
                .host = host % ways->hosts->n,
                .backoff_ms = BACKOFF_FIRST_MS,
                .cap = ways->conf->database.pooler ? 1 : ways->conf->database.pipeline_depth,
        };
        c->ring = calloc(c->cap, sizeof(struct org_job *));
        loop_timer_init(c->loop, &c->timer, on_timer);
        return c->ring ? 0 : -ENOMEM;
}

void org_conn_fini(struct org_conn *c) {
        loop_timer_cancel(&c->timer);
        close_socket(c);
        free(c->ring);
        c->ring = NULL;
}
