/* origin/pool_conn.h - one connection to PostgreSQL, asynchronous and in
 * pipeline mode; only for the pool's own files.
 *
 *            connect                settings,            all
 *   DOWN ───────────> CONNECTING ─> prepares sent ─────> READY
 *    ^   back-off         │         PREPARING   done       │
 *    └────────────────────┴──────────────┴─────────────────┘
 *      lost, refused, too late, read only, or told to go away
 *
 * libpq blocks in none of these calls, save for looking a host name up.
 *
 * Units      milliseconds, microseconds where named.
 * Ownership  belongs to its pool. Jobs on the way belong to the connection
 *            until it hands them back through the pool's hooks.
 */
#ifndef ORIGIN_POOL_CONN_H
#define ORIGIN_POOL_CONN_H

#include <libpq-fe.h>

#include "origin/fault.h"
#include "origin/job.h"
#include "origin/pool_hosts.h"

enum conn_state { CONN_DOWN, CONN_CONNECTING, CONN_PREPARING, CONN_READY };

struct org_conn;

struct org_conn_hooks {
        /* The server answered the head of the pipeline. `result` is the caller's
         * until it returns. */
        void (*on_result)(struct org_conn *c, struct org_job *job, PGresult *result,
                          int64_t took_us);
        /* Sent and never to be answered; or the answer was the session's end, by
         * the table's word: AWAY where it surely did not run, else UNKNOWN. */
        void (*on_lost)(struct org_conn *c, struct org_job *job, enum org_db_outcome outcome);
        /* Takes jobs again, after a roll-back. */
        void (*on_room)(struct org_conn *c);
        /* READY, DOWN, or told that the schema is missing. */
        void (*on_state)(struct org_conn *c, const char *why);
};

/* What the connections of a pool share. */
struct org_conn_ways {
        struct org_db *db;
        struct loop *loop;
        const struct conf_origin *conf;
        struct org_hosts *hosts;
        const struct org_conn_hooks *hooks;
};

struct org_conn {
        struct org_db *db;
        struct loop *loop;
        const struct conf_origin *conf;
        struct org_hosts *hosts;
        const struct org_conn_hooks *hooks;
        enum org_lane lane;
        size_t host;  /* which of them we are at */
        size_t tried; /* in vain since the last back-off */
        enum conn_state state;
        PGconn *pg;
        struct loop_io io;
        bool io_is_set;
        struct loop_timer timer; /* connecting: give up; DOWN: try again */
        int64_t backoff_ms;
        bool round_over; /* of all hosts, in vain */
        bool schema_missing;
        bool is_left;          /* the server is no primary any more; while it is told */
        bool is_cleaning;      /* a transaction that failed is being rolled back */
        struct org_job **ring; /* sent, oldest first */
        size_t head, count, cap;
        PGresult *result;      /* the head's, until its sync */
        int64_t head_since_us; /* when the head had the server to itself */
};

/* `host`: the one to begin with. `ways` is kept. */
NET_MUST int org_conn_init(struct org_conn *c, const struct org_conn_ways *ways, enum org_lane lane,
                           size_t host);
void org_conn_fini(struct org_conn *c);
/* First call and each retry. */
void org_conn_start(struct org_conn *c);
static inline bool org_conn_has_room(const struct org_conn *c) {
        return c->state == CONN_READY && !c->is_cleaning && c->count < c->cap;
}
/* Sends; a failure shows as on_lost, later or inside. */
void org_conn_send(struct org_conn *c, struct org_job *job);
static inline bool org_conn_is_standby(const struct org_conn *c) {
        return c->lane == ORG_LANE_READ || c->lane == ORG_LANE_READ_SCAN;
}
/* How long an answer may take; by then the server has ended the statement itself. */
int64_t org_conn_late_ms(const struct org_conn *c);
/* Hands all jobs back and starts over, with the next host at once, or after the
 * back-off when all were tried. */
void org_conn_drop(struct org_conn *c, const char *why);
/* The same, for a server that is no primary any more: the next host comes first. */
void org_conn_leave(struct org_conn *c);
/* The table's row for a result that is an error. */
struct org_fault org_result_fault(const PGresult *r);
/* One that is not READY turns to the host where another has just succeeded. */
void org_conn_follow(struct org_conn *c);

#endif
