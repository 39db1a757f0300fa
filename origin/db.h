/* origin/db.h - the database as the rest of the origin sees it: jobs go in,
 * replies come out, later.
 *
 * A few connections, each with several queries on the way (libpq's pipeline
 * mode, a sync behind every query, so that one's failure is its own). Each
 * query is one transaction. Connections come and go by themselves; while none
 * is there, jobs are answered ORG_DB_AWAY at once.
 *
 * What is not certain is said so: a query that was sent and whose answer never
 * came is ORG_DB_UNKNOWN, whether it wrote or not; its key tells, later.
 * Which error means what is one table, origin/fault.h; deadlocks and the like are
 * tried again, twice, here.
 *
 * Ownership  a job belongs to its maker until org_db_run, then to the
 *            database until `done` returns. A reply lives during `done`.
 * Context    the loop's thread. `done` never runs inside org_db_run.
 */
#ifndef ORIGIN_DB_H
#define ORIGIN_DB_H

#include "conf/origin.h"
#include "net/loop.h"
#include "net/metrics.h"
#include "origin/query.h"

struct org_db;
struct org_job;

enum org_db_outcome {
        ORG_DB_DONE,     /* rows are there */
        ORG_DB_REFUSED,  /* SQLSTATE SL001: code and detail are there, nothing was written */
        ORG_DB_BUSY,     /* a lock or the queue took too long, nothing was written */
        ORG_DB_AWAY,     /* no connection, or no schema: it never ran */
        ORG_DB_UNKNOWN,  /* sent, and no answer came */
        ORG_DB_VIOLATED, /* a CHECK of the schema said no, nothing was written */
        ORG_DB_FAILED,   /* any other error, nothing was written */
};

enum org_db_state {
        ORG_DB_DOWN,      /* no connection */
        ORG_DB_NO_SCHEMA, /* reached, but `--init` has not run for this version */
        ORG_DB_READY,
};

struct org_reply {
        enum org_db_outcome outcome;
        const void *result; /* for org_reply_text and its kin */
        size_t rows;
        struct span code;   /* of a refusal: the word */
        struct span detail; /* of a refusal: JSON; of a violation: the constraint */
        struct span broken_tenant, broken_item; /* of a violation: whose row; p NULL: not known */
        bool may_divide; /* BUSY by what it did at once: in parts it might do */
        bool elsewhere;  /* a standby answered */
        int64_t took_us; /* on the connection, the wait for earlier ones not counted */
};

/* p is NULL for SQL's null. */
struct span org_reply_text(const struct org_reply *r, size_t row, int column);
int64_t org_reply_int(const struct org_reply *r, size_t row, int column, int64_t fallback);

/* Jobs about one item share two connections: they would wait for each other's
 * row lock anyway, and so do not stand in the way of other items. */
void org_job_near(struct org_job *j, struct span tenant, struct span item);
/* The same for equal names; any value. */
uint32_t org_item_hash(struct span tenant, struct span item);

/* For a standby, when it has got to `lsn` of this timeline; `now_ms` is the
 * primary's clock. Else it is REFUSED with the reason as code. */
void org_job_elsewhere(struct org_job *j, struct span lsn, struct span timeline, int64_t now_ms);

typedef void org_job_done(void *user, const struct org_reply *reply);

/* NULL when out of memory; a fault in adding a parameter shows in org_db_run. */
struct org_job *org_job_new(enum org_query query);
/* Parameters in order, copied; a span with p NULL is SQL's null. */
void org_job_text(struct org_job *j, struct span value);
void org_job_int(struct org_job *j, int64_t value);
void org_job_bool(struct org_job *j, bool value);
void org_job_null(struct org_job *j);

/* `done` runs exactly once. Takes a NULL job, too: then out of memory is the
 * answer (ORG_DB_BUSY). */
void org_db_run(struct org_db *db, struct org_job *job, org_job_done *done, void *user);

struct org_db_counters {
        struct metrics_histogram held[ORG_QUERY_COUNT]; /* of a connection, by tag */
        struct metrics_counter retries, violations, unknown, refused_full;
        struct metrics_counter connects, drops;
        struct metrics_counter left; /* servers, since they took no writes any more */
};

NET_MUST int org_db_new(struct loop *l, const struct conf_origin *conf, struct org_db **out);
/* Jobs under way are answered first: AWAY or UNKNOWN. */
void org_db_free(struct org_db **db);
enum org_db_state org_db_state(const struct org_db *db);
const struct org_db_counters *org_db_counters(const struct org_db *db);
/* Of database.read_url. */
bool org_db_has_standby(const struct org_db *db);
/* What is asked now is not answered any more. */
bool org_db_is_closing(const struct org_db *db);
size_t org_db_waiting(const struct org_db *db);
size_t org_db_connected(const struct org_db *db);

/* Creates or migrates the schema with a connection of its own, waiting for the
 * answer. 0, or 1 after a line on stderr. For --init, before any loop. */
NET_MUST int org_db_init_schema(const struct conf_origin *conf);

/* The schema this program was built with. */
#define ORG_SCHEMA_VERSION 2

#endif
