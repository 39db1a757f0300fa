/* origin/service.h - the origin as one value: what every handler may use.
 *
 * Units      milliseconds.
 * Ownership  main owns it; everything in it lives as long.
 * Context    the loop's thread.
 */
#ifndef ORIGIN_SERVICE_H
#define ORIGIN_SERVICE_H

#include "conf/origin.h"
#include "conf/secret.h"
#include "net/http_server.h"
#include "net/jwt.h"
#include "net/memory_watch.h"
#include "net/metrics.h"
#include "origin/db.h"

struct org_batch;
struct org_snapshot;
struct org_expiry;
struct org_watch;
struct org_reader;
struct org_look;
struct org_relay;

/* What became of attempts to hold. */
#define ORG_OUTCOME_TABLE(X)                                                                       \
        X(HELD, "held")                                                                            \
        X(REPLAYED, "replayed")                                                                    \
        X(SOLD_OUT, "sold_out")                                                                    \
        X(ALL_HELD, "all_held")                                                                    \
        X(NOT_ENOUGH, "not_enough")                                                                \
        X(BUYER_LIMIT, "buyer_limit")                                                              \
        X(WINDOW, "window")                                                                        \
        X(PASS, "pass")                                                                            \
        X(PAUSED, "paused")                                                                        \
        X(UNKNOWN, "unknown")                                                                      \
        X(REFUSED, "refused")

enum org_outcome {
#define X(id, word) ORG_OUTCOME_##id,
        ORG_OUTCOME_TABLE(X)
#undef X
                ORG_OUTCOME_COUNT,
};

struct org_metrics {
        struct metrics_counter holds[ORG_OUTCOME_COUNT];
        struct metrics_counter expired; /* taken back, by whomever */
        struct metrics_histogram hold_to_confirm;
        struct metrics_histogram lock_wait;      /* for the item's row */
        struct metrics_histogram lock_held;      /* from then to the answer */
        struct metrics_counter snapshots;        /* read, */
        struct metrics_counter snapshots_same;   /* of these, with nothing new */
        struct metrics_counter snapshot_answers; /* given out */
        struct metrics_counter pages;            /* of the demo shop */
};

struct org_service {
        struct loop *loop;
        const struct conf_origin *conf;
        struct http_server *server;
        struct memory_watch memory;
        struct watchdog watchdog;
        struct org_db *db;
        struct org_batch *batch;
        struct jwt_keys *pass_keys; /* NULL: passes are not looked at */
        struct org_snapshot *snapshot;
        struct org_expiry *expiry;
        struct org_reader *reader;
        struct org_watch *watch; /* NULL: nobody looks */
        struct org_look *look;
        struct org_relay *relay; /* NULL: off */
        struct org_metrics metrics;
        char token[CONF_SECRET_MAX];
        size_t token_len;
        int64_t clock_offset_ms; /* the database's clock minus loop_clock_ms() */
        bool clock_is_known;
        bool is_draining;
};

/* The database's clock as far as we know it, else this machine's. */
int64_t org_service_now_ms(const struct org_service *s);
/* `now_ms` was read by the database at most a round trip ago. */
void org_service_set_clock(struct org_service *s, int64_t now_ms);

/* Everything but signals. 0, or 1 after a line on stderr. */
NET_MUST int org_service_open(struct org_service *s, struct loop *l,
                              const struct conf_origin *conf);
void org_service_close(struct org_service *s);
/* Reads the token again; a file that cannot be read leaves the old one. */
void org_service_reload(struct org_service *s);

#endif
