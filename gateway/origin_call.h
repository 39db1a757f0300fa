/* gateway/origin_call.h - one call of a worker to the origin's API, with its
 * whole answer in memory.
 *
 * A call outlives its client: what the origin decided must reach the store
 * even when nobody is left to be told.
 *
 * Ownership  heap, from start until on_answer has returned; at most as many
 *            as the pool lets wait and fly.
 * Context    the worker's thread.
 */
#ifndef GATEWAY_ORIGIN_CALL_H
#define GATEWAY_ORIGIN_CALL_H

#include "gateway/request.h"

#define GW_ORIGIN_ANSWER_MAX 8192

struct gw_origin_call {
        struct http_call call;
        struct gw_worker *w;
        struct gw_request *r; /* NULL once the client has gone */
        void (*on_answer)(struct gw_origin_call *c);

        /* what the store is told afterwards */
        const char *verb; /* "extend", "release", NULL: POST holds or a read */
        uint32_t sale;
        bool is_stored, is_begun, has_shown, is_hold;
        bool replay_only, no_room;
        uint32_t qty;
        struct adm_shown shown;

        /* the answer; fields are meaningless unless outcome is HTTP_CALL_OK */
        enum http_call_outcome outcome;
        int status;
        bool is_replayed, has_stock;
        int64_t retry_after_s;
        int64_t available;
        uint64_t timeline, n;
        bool too_long;
        size_t len;
        char body[GW_ORIGIN_ANSWER_MAX];
};

/* NULL when memory ran out. */
struct gw_origin_call *gw_origin_call_new(struct gw_request *r,
                                          void (*on_answer)(struct gw_origin_call *));

/* Sends it; on_answer follows, then the call is freed. < 0: -errno of
 * http_pool_start, and the call is still the caller's. */
NET_MUST int gw_origin_call_start(struct gw_origin_call *c, const struct http_call_request *q,
                                  enum gw_origin_kind kind);

/* For one that was never sent. */
void gw_origin_call_free(struct gw_origin_call **c);

/* The client has gone; the call goes on without it. */
void gw_origin_call_orphan(struct gw_origin_call *c);

/* "T.N" */
bool gw_version_parse(struct span text, uint64_t *timeline, uint64_t *n);
/* Decimal digits alone, up to 18 of them. */
bool gw_digits_parse(struct span text, int64_t *out);

#endif
