/* origin/query.h - every question the origin asks its database.
 *
 * One row each: id, tag (in the SQL comment, the log and the metric), lane,
 * number of parameters, text. All are prepared on each connection; the
 * functions they call are in stock.sql and sales.sql.
 *
 * Lanes keep slow questions out of the way of quick ones: a lane has its own
 * connections, so nothing waits behind a scan of the journal.
 */
#ifndef ORIGIN_QUERY_H
#define ORIGIN_QUERY_H

#include "net/base.h"

enum org_lane {
        ORG_LANE_STOCK,     /* holds and items: short, wait for row locks */
        ORG_LANE_SALES,     /* windows and the snapshot: short, wait for nobody */
        ORG_LANE_SCAN,      /* may read whole tables */
        ORG_LANE_RELAY,     /* the journal's outbox: one connection beside the others, if at all */
        ORG_LANE_READ,      /* a standby's: one connection for what is short, */
        ORG_LANE_READ_SCAN, /* and one for what may read whole tables */
        ORG_LANE_COUNT,
};

#define ORG_QUERY_TABLE(X)                                                                         \
        X(RESERVE, "reserve", STOCK, 14,                                                           \
          "select * from sluice_api.reserve($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14)")      \
        X(RESERVE_BATCH, "batch", STOCK, 14,                                                       \
          "select * from sluice_api.reserve_batch($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,"     \
          "$14)")                                                                                  \
        X(RESERVE_ORDER, "order", STOCK, 13,                                                       \
          "select * from sluice_api.reserve_order($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13)")    \
        X(CONFIRM, "confirm", STOCK, 3, "select * from sluice_api.confirm($1,$2,$3)")              \
        X(STEP, "step", STOCK, 3, "select * from sluice_api.step($1,$2,$3)")                       \
        X(EXTEND, "extend", STOCK, 2, "select * from sluice_api.extend($1,$2)")                    \
        X(EXPIRE, "expire", STOCK, 1, "select * from sluice_api.expire($1)")                       \
        X(HOLD_GET, "hold_get", STOCK, 1, "select sluice_api.hold_get($1)")                        \
        X(HOLD_EVENTS, "hold_events", STOCK, 1, "select sluice_api.hold_events($1)")               \
        X(ITEM_PUT, "item_put", STOCK, 5, "select * from sluice_api.item_put($1,$2,$3,$4,$5)")     \
        X(ITEM_GET, "item_get", STOCK, 2, "select sluice_api.item_json($1,$2)")                    \
        X(ITEM_PAUSE, "item_pause", STOCK, 4, "select sluice_api.item_pause($1,$2,$3,$4)")         \
        X(SALE_PUT, "sale_put", SALES, 6, "select * from sluice_api.sale_put($1,$2,$3,$4,$5,$6)")  \
        X(SALE_SPEC, "sale_spec", SALES, 1, "select * from sluice_api.sale_spec($1)")              \
        X(SALE_GET, "sale_get", SALES, 1, "select * from sluice_api.sale_get($1)")                 \
        X(SALE_LIST, "sale_list", SALES, 0, "select sluice_api.sale_list()")                       \
        X(SALE_VERB, "sale_verb", SALES, 6,                                                        \
          "select * from sluice_api.sale_verb($1,$2,$3,$4,$5,$6)")                                 \
        X(SNAPSHOT, "snapshot", SALES, 3, "select * from sluice_api.snapshot($1,$2,$3)")           \
        X(AUDIT, "audit", SCAN, 1, "select sluice_api.audit_list($1)")                             \
        X(INVARIANT, "invariant", SCAN, 0, "select sluice_api.invariant()")                        \
        X(POSITION, "position", SALES, 0,                                                          \
          "select sluice_api.log_end(), current_setting('sluice.timeline'), "                      \
          "(extract(epoch from clock_timestamp()) * 1000)::bigint")                                \
        X(LOCKS, "locks", SCAN, 1, "select * from sluice_api.locks($1)")                           \
        X(LOOK_TURN, "look_turn", STOCK, 2, "select * from sluice_api.look_turn($1,$2)")           \
        X(LOOK_DONE, "look_done", STOCK, 3, "select sluice_api.look_done($1,$2,$3)")               \
        X(LEARN, "learn", SCAN, 0, "select sluice_api.learn()")                                    \
        X(RELAY_TURN, "relay", RELAY, 5, "select * from sluice_api.relay_turn($1,$2,$3,$4,$5)")    \
        X(RELAY_WATCH, "relay_watch", RELAY, 1, "select * from sluice_api.relay_watch($1)")

enum org_query {
#define X(id, tag, lane, n, text) ORG_Q_##id,
        ORG_QUERY_TABLE(X)
#undef X
                ORG_QUERY_COUNT,
};

/* Those of relay_turn. */
enum org_relay_column {
        ORG_RELAY_EPOCH,
        ORG_RELAY_SEQ,
        ORG_RELAY_TENANT,
        ORG_RELAY_ITEM,
        ORG_RELAY_HOLD,
        ORG_RELAY_ORDER_REF,
        ORG_RELAY_FROM,
        ORG_RELAY_TO,
        ORG_RELAY_QTY,
        ORG_RELAY_REASON,
        ORG_RELAY_ACTOR,
        ORG_RELAY_AT,
        ORG_RELAY_COLUMNS,
};

#define ORG_PARAMS_MAX 14

struct org_query_row {
        const char *tag;
        enum org_lane lane;
        int n_params;
        const char *text; /* begins with the tag as a comment */
};

extern const struct org_query_row org_queries[ORG_QUERY_COUNT];

/* The columns of sluice_api.answer, in order. */
enum org_answer_column {
        ORG_ANSWER_CODE,
        ORG_ANSWER_BODY,
        ORG_ANSWER_AVAILABLE,
        ORG_ANSWER_VERSION,
        ORG_ANSWER_STATE,
        ORG_ANSWER_HOLD,
        ORG_ANSWER_BEFORE_US,
        ORG_ANSWER_WAIT_US,
        ORG_ANSWER_EXPIRED,
        ORG_ANSWER_BATCH,
        ORG_ANSWER_COLUMNS,
};

/* Those of sluice_api.sale_answer. */
enum org_sale_column {
        ORG_SALE_CODE,
        ORG_SALE_BODY,
        ORG_SALE_VERSION,
        ORG_SALE_CHANGED,
};

#endif
