/* gateway/request.h - one request on its way through the walk.
 *
 * It starts on the stack of the walk; a step that must wait for something
 * moves it into the exchange's memory first (gw_request_keep) and from then on
 * it holds its own reference to the snapshot it was judged by.
 *
 * Units      milliseconds; `now_ms` is sale time, `mono_ms` the loop's.
 * Ownership  the walk's; spans point into the exchange.
 * Context    the worker's thread.
 */
#ifndef GATEWAY_REQUEST_H
#define GATEWAY_REQUEST_H

#include "admission/store.h"
#include "gateway/address.h"
#include "gateway/host.h"
#include "gateway/route.h"
#include "gateway/worker.h"
#include "net/http_server.h"
#include "net/problem.h"

#define GW_PASS_TEXT_MAX 2048
#define GW_REPLAY_MS 600000 /* how long a dead pass may repeat a hold */

/* A step's word: go to the next one, answered, or waiting. */
enum gw_next { GW_GO_ON, GW_DONE, GW_PARKED };

/* What is known of the pass that came with a request. */
enum gw_standing {
        GW_PASS_NONE,     /* none, not authentic, or another account's */
        GW_PASS_IN_FORCE, /* `pass` is filled */
        GW_PASS_STOPPED,  /* good, but the sale is paused hard */
        GW_PASS_REPLAY,   /* dead, but fresh enough to repeat a hold */
        GW_PASS_DEAD,     /* authentic, expired long ago */
        GW_PASS_REVOKED,
};

struct gw_forward;
struct gw_origin_call;

struct gw_request {
        struct http_exchange *x;
        struct gw_worker *w;
        struct gw_snapshot *snap; /* borrowed; an own reference once kept */
        const struct gw_sale *sale;
        size_t step; /* the next to run */
        bool is_kept;
        int64_t mono_ms, now_ms;
        int64_t started_us;

        struct gw_route route;
        bool is_bypassed;
        bool is_prefetch;   /* made ahead of the person: never joins or claims */
        bool is_navigation; /* a GET that may join and claim on a gated path */
        bool wants_html;
        size_t host_len;
        char host[GW_HOST_TEXT_MAX];
        struct gw_address address;

        /* what came along */
        struct span ticket_text, pass_text, guest_text, token; /* p NULL: none */
        bool by_header; /* Sluice-Ticket or Sluice-Pass was sent: no cookies then */
        bool has_cookies;

        /* who it is */
        bool has_account;
        bool is_guest;
        bool is_new_guest;
        uint8_t account_len;
        char account[JWT_SUB_MAX + 1];
        struct adm_tag tag;

        /* what it holds */
        bool has_ticket;      /* `ticket` is authentic and of this sale */
        bool ticket_bad;      /* one came, but it is not */
        bool pass_is_foreign; /* one came, of another account */
        bool pass_bad;        /* one came that nobody here has signed */
        enum gw_standing standing;
        struct adm_ticket ticket;
        struct adm_shown shown;
        struct adm_pass pass;

        /* what it is told */
        bool has_place;
        struct adm_place place;
        int64_t retry_after_ms; /* 0: no Retry-After */

        /* a hold asked for */
        struct span key; /* Idempotency-Key */
        uint32_t qty;

        struct gw_forward *forward;  /* while parked on an upstream */
        struct gw_origin_call *call; /* while parked on the origin */
};

/* Moves `r` from the stack into the exchange; the walk continues with what is
 * returned. NULL (and answered) when the exchange's memory is full, or as many
 * requests wait as may. */
struct gw_request *gw_request_keep(struct gw_request *r);

/* Its client has gone: gives back what a kept request holds. Nothing is
 * answered or counted. */
void gw_request_drop(struct gw_request *r);

/* Runs the steps from r->step on. */
void gw_walk_run(struct gw_request *r);

static inline struct span gw_request_account(const struct gw_request *r) {
        return (struct span){r->account, r->account_len};
}

static inline const struct conf_gateway *gw_request_conf(const struct gw_request *r) {
        return r->w->conf;
}

static inline struct span gw_request_sale_id(const struct gw_request *r) {
        return r->sale ? span_of(r->sale->facts.id) : r->route.sale;
}

#endif
