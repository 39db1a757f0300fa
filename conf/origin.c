#include "conf/origin.h"

#include <errno.h>
#include <stdlib.h>

#include "conf/faults.h"
#include "conf/print.h"
#include "conf/read.h"
#include "conf/redis.h"

#define AT(field) .offset = offsetof(struct conf_origin, field)

static const char *check_prefix(const char *text) {
        size_t len = strlen(text);

        return len >= 1 && len <= 8 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == len
                       ? NULL
                       : "expected 1..8 small letters and digits";
}

static const char *check_redis(const char *text) {
        struct conf_redis redis;
        const char *why = conf_redis_parse(text, &redis);

        explicit_bzero(&redis, sizeof(redis));
        return why;
}

static const char *check_stream(const char *text) {
        size_t len = strlen(text);

        return len >= 1 && len <= 256 ? NULL : "expected 1..256 bytes";
}

static const struct conf_option first_rows[] = {
        {"listen", "127.0.0.1:8080", CONF_ADDRESSES, 0, AT(listen),
         .sentence = "Where gateways, payers and operators connect (HTTP/2 by prior knowledge "
                     "and HTTP/1.1, plain: the service network); port 0: any free one."},
        {"token_file", NULL, CONF_FILE, CONF_REQUIRED, AT(token_file), 1, 4096,
         .sentence = "The bearer token that every request must show."},
        {"pass_jwks", NULL, CONF_FILE, 0, AT(pass_jwks), 1, 65536,
         .sentence = "Public keys of passes, a JWK Set; none: passes are not checked here."},
        {"group_prefix", "a", CONF_TEXT, 0, AT(group_prefix), .check = check_prefix,
         .sentence = "Begins the id of every hold made here."},
        {"max_hold_seconds", "1800", CONF_COUNT, 0, AT(max_hold_seconds), 1, 1800,
         .sentence = "The longest `hold_seconds` that a sale may ask for."},
        {"drain", "25s", CONF_DURATION, 0, AT(drain_ms), 0, 3600000,
         .sentence = "How long SIGTERM waits for open requests."},
        {"demo_page", "false", CONF_BOOL, 0, AT(demo_page),
         .sentence = "Serves a small product page, the quickstart's upstream."},
        {"database.url", NULL, CONF_TEXT, CONF_REQUIRED | CONF_MASKED, AT(database.url),
         .sentence = "PostgreSQL: postgresql://USER@HOST:PORT/NAME, or libpq's words."},
        {"database.read_url", NULL, CONF_TEXT, CONF_MASKED, AT(database.read_url),
         .sentence = "A standby that answers snapshots, the invariant, journal and audit with two "
                     "connections of its own, where it is no older than the primary; none: the "
                     "primary does."},
        {"database.init_url", NULL, CONF_TEXT, CONF_MASKED, AT(database.init_url),
         .sentence =
                 "The same database by the role that owns the tables. `--init` connects with it, "
                 "makes the role of `database.url` if there is none, and gives it what serving "
                 "takes: the journal it can then read and add to, nothing else. Best in a file "
                 "of its own that only `--init` is given. None: one role does both."},
        {"database.connections", "8", CONF_COUNT, 0, AT(database.connections), 1, 64,
         .sentence = "Connections to the database."},
        {"database.pipeline_depth", "16", CONF_COUNT, 0, AT(database.pipeline_depth), 1, 256,
         .sentence = "Queries under way on one connection."},
        {"database.max_waiting", "4096", CONF_COUNT, 0, AT(database.max_waiting), 1, 1000000,
         .sentence = "Requests waiting for a connection; above it 503."},
        {"database.connect_timeout", "2s", CONF_DURATION, 0, AT(database.connect_timeout_ms), 100,
         60000, .sentence = "For a new connection."},
        {"database.statement_timeout", "2s", CONF_DURATION, 0, AT(database.statement_timeout_ms),
         10, 600000, .sentence = "For one statement."},
        {"database.lock_timeout", "1s", CONF_DURATION, 0, AT(database.lock_timeout_ms), 10, 600000,
         .sentence = "For one lock; on the hot row the answer is then 503."},
        {"database.pooler", "false", CONF_BOOL, 0, AT(database.pooler),
         .sentence =
                 "The url leads to PgBouncer (or its like) in transaction mode: nothing is then "
                 "kept in a session, and a connection has one query under way."},
        {"reserve.batch_max", "100", CONF_COUNT, 0, AT(reserve.batch_max), 1, 1000,
         .sentence = "Holds of one item that one transaction may decide, when that many ask "
                     "while another is under way; 1: each has its own."},
        {"reserve.gather_item_max", "4096", CONF_COUNT, 0, AT(reserve.gather_item_max), 1, 1000000,
         .sentence = "Requests that wait for the turn of one item; above it 503."},
        {"reserve.gather_max", "16384", CONF_COUNT, 0, AT(reserve.gather_max), 1, 1000000,
         .sentence = "The same for all items together."},
        {"reserve.items_max", "1024", CONF_COUNT, 0, AT(reserve.items_max), 1, 1000000,
         .sentence = "Items whose requests are decided together at one time; those of more items "
                     "are decided one by one."},
        {"expiry.enabled", "true", CONF_BOOL, 0, AT(expiry.enabled),
         .sentence = "Tidies holds that fell due; units come back without it, too."},
        {"expiry.batch", "100", CONF_COUNT, 0, AT(expiry.batch), 1, 10000,
         .sentence = "Holds in one transaction."},
        {"expiry.interval", "1s", CONF_DURATION, 0, AT(expiry.interval_ms), 10, 3600000,
         .sentence = "Between two looks when nothing was due."},
        {"watch.interval", "1s", CONF_DURATION, 0, AT(watch.interval_ms), 0, 3600000,
         .sentence =
                 "Between two looks at who waits for whose lock, while a sale is open; 0: none."},
        {"snapshot.max_age", "100ms", CONF_DURATION, 0, AT(snapshot.max_age_ms), 1, 10000,
         .sentence = "A snapshot younger than this is given to everybody who asks."},
        {"snapshot.max_wait", "30s", CONF_DURATION, 0, AT(snapshot.max_wait_ms), 0, 300000,
         .sentence = "The longest a snapshot request may wait for news."},
        {"invariant.interval", "1m", CONF_DURATION, 0, AT(invariant.interval_ms), 0, 86400000,
         .sentence = "Between two looks at the invariant, by one origin for all; at least twenty "
                     "times what a look takes, since it reads all holds and all of the journal. "
                     "0: only when asked."},
        {"relay.redis", NULL, CONF_TEXT, CONF_MASKED, AT(relay.redis), .check = check_redis,
         .sentence =
                 "Redis 7 that gets each event of the journal, "
                 "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]; none: no relay. Run `--init` "
                 "once more when it is given for the first time."},
        {"relay.stream", "sluice:journal", CONF_TEXT, 0, AT(relay.stream), .check = check_stream,
         .sentence = "The stream's key."},
        {"relay.stream_max", "0", CONF_COUNT, 0, AT(relay.stream_max), 0, 1000000000,
         .sentence = "Entries kept in the stream, about: older ones are lost to whoever has not "
                     "read them. 0: all."},
        {"relay.batch", "200", CONF_COUNT, 0, AT(relay.batch), 1, 1000,
         .sentence = "Events on the way to Redis at once; the next ones wait for their marks."},
        {"relay.interval", "200ms", CONF_DURATION, 0, AT(relay.interval_ms), 10, 60000,
         .sentence = "Between two looks when nothing was to be relayed."},
        {"relay.deadline", "2s", CONF_DURATION, 0, AT(relay.deadline_ms), 10, 60000,
         .sentence = "For connecting to Redis, and for its answer."},
        {"relay.backoff_first", "100ms", CONF_DURATION, 0, AT(relay.backoff_first_ms), 1, 60000,
         .sentence = "The wait after a failure; it doubles with each further one, with jitter."},
        {"relay.backoff_last", "10s", CONF_DURATION, 0, AT(relay.backoff_last_ms), 1, 3600000,
         .sentence = "The longest such wait."},
        {"relay.lease", "5s", CONF_DURATION, 0, AT(relay.lease_ms), 1000, 600000,
         .sentence = "How long the duty to relay stays with an origin that is silent, before "
                     "another takes it."},
};

static const struct conf_part parts[] = {
        {first_rows, NET_COUNT_OF(first_rows), 0},
        {conf_limit_rows, CONF_LIMIT_ROWS, offsetof(struct conf_origin, limits)},
        {conf_inner_reset_rows, CONF_RESET_ROWS, offsetof(struct conf_origin, limits)},
        {conf_watchdog_rows, CONF_WATCHDOG_ROWS, offsetof(struct conf_origin, watchdog)},
        {conf_log_rows, CONF_LOG_ROWS, offsetof(struct conf_origin, log)},
};
static const struct conf_table table = {"sluice-origin", parts, NET_COUNT_OF(parts)};

struct whole {
        struct conf_arena arena;
        struct conf_origin conf;
};

static void finish(struct conf_reader *r, void *conf) {
        struct conf_origin *o = conf;

        if (o->database.lock_timeout_ms > o->database.statement_timeout_ms)
                conf_reader_fault(r, "database.lock_timeout",
                                  "expected at most database.statement_timeout");
        if (o->relay.backoff_first_ms > o->relay.backoff_last_ms)
                conf_reader_fault(r, "relay.backoff_first", "expected at most relay.backoff_last");
        conf_watchdog_finish(r, &o->watchdog);
}

int conf_load_origin(const char *path, struct conf_origin **conf, struct conf_faults *faults) {
        struct whole *w = calloc(1, sizeof(*w));
        int r;

        *conf = NULL;
        conf_faults_init(faults, path);
        if (!w)
                return -ENOMEM;
        *conf = &w->conf;
        r = conf_read(&table, &w->conf, &w->arena, faults, finish);
        if (r != 0)
                conf_origin_free(conf);
        return r;
}

void conf_origin_free(struct conf_origin **conf) {
        if (*conf) {
                struct whole *w = NET_CONTAINER_OF(*conf, struct whole, conf);

                conf_arena_fini(&w->arena);
                free(w);
        }
        *conf = NULL;
}

void conf_print_origin(const struct conf_origin *conf, FILE *to) {
        conf_print(&table, conf, to);
}

size_t conf_origin_restart_needed(const struct conf_origin *before, const struct conf_origin *after,
                                  FILE *to) {
        return conf_restart_needed(&table, before, after, to);
}

void conf_manual_origin(FILE *to) {
        conf_manual(&table, to);
}
