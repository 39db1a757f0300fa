/* gateway/counters.h - what the gateway counts, one set a thread.
 *
 * Each worker and the control thread write their own set; the scrape sums
 * them. Counts that belong to a sale stand in a table by the sale's slot, a
 * small number that the control thread gives a sale when it first sees it and
 * that stays the sale's until the process ends. Slot 0 is "no sale".
 *
 * Units      counts; the histogram takes microseconds.
 * Ownership  gw_counters_init .. gw_counters_fini; the owner thread adds.
 * Context    adding: the owner thread. Reading: any thread.
 */
#ifndef GATEWAY_COUNTERS_H
#define GATEWAY_COUNTERS_H

#include "net/http_client.h"
#include "net/metrics.h"

/* The word under which an answer is counted (requests_total{answer}). */
#define GW_ANSWER_TABLE(X)                                                                         \
        X(FLAG, "flag")       /* flags, the list of sales, draws, keys */                          \
        X(JOIN, "join")       /* a new place in line was given */                                  \
        X(WAITING, "waiting") /* a place that was there before */                                  \
        X(READY, "ready")                                                                          \
        X(ADMITTED, "admitted")                                                                    \
        X(HOLD, "hold") /* an answer of the holds API from the origin */                           \
        X(SOLD_OUT, "sold_out")                                                                    \
        X(CLOSED, "closed")                                                                        \
        X(PAGE, "page") /* a page in place of a gated path */                                      \
        X(FORWARDED, "forwarded")                                                                  \
        X(LIMITED, "limited") /* 429 */                                                            \
        X(REFUSED, "refused") /* every other problem */

enum gw_answer {
#define X(id, word) GW_ANSWER_##id,
        GW_ANSWER_TABLE(X)
#undef X
                GW_ANSWERS,
};

/* origin_requests_total{kind}. */
#define GW_ORIGIN_TABLE(X)                                                                         \
        X(SNAPSHOT, "snapshot")                                                                    \
        X(HEALTH, "health")                                                                        \
        X(HOLD, "hold")                                                                            \
        X(HOLD_READ, "hold_read") /* holds/H and its verbs */                                      \
        X(FORWARD, "forward")     /* to an upstream, gated or bypassed */

enum gw_origin_kind {
#define X(id, word) GW_ORIGIN_##id,
        GW_ORIGIN_TABLE(X)
#undef X
                GW_ORIGIN_KINDS,
};

/* store_calls_total{op}. */
#define GW_STORE_TABLE(X)                                                                          \
        X(JOIN, "join") /* join, find again, claim */                                              \
        X(LOOK, "look") /* a poll that had to look */                                              \
        X(LEAVE, "leave")                                                                          \
        X(USE, "use")         /* first use of a pass */                                            \
        X(CONVERT, "convert") /* a hold was made, a pass is done */                                \
        X(TICK, "tick")

enum gw_store_op {
#define X(id, word) GW_STORE_##id,
        GW_STORE_TABLE(X)
#undef X
                GW_STORE_OPS,
};

struct gw_sale_counters {
        struct metrics_counter requests[GW_ANSWERS];
        struct metrics_counter passes_issued;
};

struct gw_counters {
        struct gw_sale_counters *sale; /* by slot */
        size_t slots;
        struct metrics_counter origin_requests[GW_ORIGIN_KINDS];
        struct metrics_counter store_calls[GW_STORE_OPS];
        struct metrics_counter limited_network;
        struct metrics_counter limited_account;
        struct metrics_counter parked; /* gauge: requests that wait; see limits.requests_waiting */
        struct metrics_counter not_parked;     /* refused because as many waited as may */
        struct metrics_counter forward_failed; /* upstream lost, late or malformed */
        struct metrics_counter forward_cut;    /* unread when others waited */
        struct http_client_counters calls;     /* cancelled ones, to origin and upstreams */
        struct metrics_counter render_failed;  /* an answer did not fit: 500 */
        struct metrics_histogram answer_seconds;
};

const char *gw_answer_name(enum gw_answer a);
const char *gw_origin_kind_name(enum gw_origin_kind k);
const char *gw_store_op_name(enum gw_store_op op);

/* `slots` >= 1. 0 or -ENOMEM. */
NET_MUST int gw_counters_init(struct gw_counters *c, size_t slots);
void gw_counters_fini(struct gw_counters *c);

static inline void gw_count_answer(struct gw_counters *c, uint32_t slot, enum gw_answer a) {
        metrics_add(&c->sale[slot < c->slots ? slot : 0].requests[a], 1);
}

static inline void gw_count_store(struct gw_counters *c, enum gw_store_op op) {
        metrics_add(&c->store_calls[op], 1);
}

static inline void gw_count_origin(struct gw_counters *c, enum gw_origin_kind k) {
        metrics_add(&c->origin_requests[k], 1);
}

#endif
