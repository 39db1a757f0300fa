#include "gateway/walk.h"

#include "gateway/answer.h"
#include "gateway/forward.h"
#include "gateway/gated.h"
#include "gateway/hold.h"
#include "gateway/line.h"
#include "gateway/steps.h"

#define RETRY_AFTER_MS 1000

struct step {
        const char *name;
        enum gw_next (*run)(struct gw_request *r);
};

/* The contract's order of judgement, read downward. */
static const struct step steps[] = {
        {"route", gw_step_route},     {"read", gw_step_read},
        {"sale", gw_step_sale},       {"network limit", gw_step_network},
        {"pass", gw_step_pass},       {"ended", gw_step_ended},
        {"account", gw_step_account}, {"account limit", gw_step_limit},
        {"place", gw_step_place},     {"forward", gw_step_forward},
        {"answer", gw_step_answer},
};

void gw_walk_run(struct gw_request *r) {
        enum gw_next next = GW_GO_ON;
        while (next == GW_GO_ON) {
                assert(r->step < NET_COUNT_OF(steps)); /* the last one answers */
                next = steps[r->step++].run(r);
        }
}

void gw_walk_on_request(void *owner, struct http_exchange *x) {
        struct gw_worker *w = owner;
        struct gw_request r;
        memset(&r, 0, sizeof r);
        r.x = x;
        r.w = w;
        r.snap = w->snap;
        r.mono_ms = loop_now_ms(w->loop);
        r.now_ms = gw_worker_sale_time_ms(w);
        r.started_us = loop_clock_us();
        gw_walk_run(&r);
}

struct gw_request *gw_request_keep(struct gw_request *r) {
        if (r->is_kept)
                return r;
        struct gw_counters *c = &r->w->counters;
        if (metrics_read(&c->parked) >= r->w->conf->requests_waiting) {
                metrics_add(&c->not_parked, 1);
                r->retry_after_ms = RETRY_AFTER_MS;
                (void)gw_refuse(r, PROBLEM_UNAVAILABLE, "too many requests are waiting");
                return NULL;
        }
        struct gw_request *k = http_exchange_alloc(r->x, sizeof *k);
        if (!k) {
                (void)gw_answer_problem(r, PROBLEM_UNAVAILABLE, "out of memory");
                return NULL;
        }
        *k = *r;
        k->is_kept = true;
        gw_snapshot_take(k->snap);
        k->x->user = k;
        metrics_set(&c->parked, metrics_read(&c->parked) + 1);
        return k;
}

void gw_request_drop(struct gw_request *r) {
        if (!r->is_kept || !r->snap)
                return;
        gw_snapshot_free(&r->snap);
        metrics_set(&r->w->counters.parked, metrics_read(&r->w->counters.parked) - 1);
}

enum gw_next gw_refuse(struct gw_request *r, enum problem_code code, const char *detail) {
        bool tells_place = r->route.kind == GW_ROUTE_LINE && r->sale && !r->has_place;
        int64_t retry_after_ms = r->retry_after_ms;
        if (tells_place)
                gw_line_look(r);
        r->retry_after_ms = retry_after_ms;
        return gw_answer_problem(r, code, detail);
}

enum gw_next gw_refuse_away(struct gw_request *r) {
        r->retry_after_ms = 2000;
        if (r->route.kind == GW_ROUTE_LINE || r->route.kind == GW_ROUTE_GATED) {
                gw_line_look(r);
                r->place.state = ADM_PAUSED;
                r->place.poll_after_ms = r->retry_after_ms;
                r->place.eta_low_s = r->place.eta_high_s = -1;
        }
        return gw_answer_problem(r, PROBLEM_PAUSED, NULL);
}

enum gw_next gw_step_place(struct gw_request *r) {
        switch (r->route.kind) {
        case GW_ROUTE_LINE:
        case GW_ROUTE_EVENTS:
                return gw_line_place(r);
        case GW_ROUTE_GATED:
                return gw_gated_place(r);
        case GW_ROUTE_HOLDS:
        case GW_ROUTE_HOLD:
        case GW_ROUTE_EXTEND:
        case GW_ROUTE_RELEASE:
                return gw_hold_place(r);
        case GW_ROUTE_FLAG:
        case GW_ROUTE_LIST:
        case GW_ROUTE_JWKS:
        case GW_ROUTE_DRAW:
        case GW_ROUTE_NONE:
        case GW_ROUTES:
                break;
        }
        return gw_answer_problem(r, PROBLEM_NOT_FOUND, NULL);
}

enum gw_next gw_step_forward(struct gw_request *r) {
        if (r->route.kind == GW_ROUTE_LINE)
                return GW_GO_ON;
        if (r->route.kind == GW_ROUTE_GATED)
                return gw_gated_may_pass(r) ? gw_forward(r) : GW_GO_ON;
        return gw_hold_forward(r);
}

enum gw_next gw_step_answer(struct gw_request *r) {
        return gw_answer_place(r);
}
