#include "gateway/hold.h"

#include <stdio.h>

#include "gateway/answer.h"
#include "gateway/hold_call.h"
#include "gateway/limit.h"
#include "gateway/origin_call.h"
#include "gateway/steps.h"
#include "net/json.h"

#define BODY_MAX ((size_t)4096)
#define QTY_MAX 1000
#define KEY_MAX 128
#define HOLD_ID_MAX 64

/* ---- what was asked ---- */

static enum gw_next judge_body(struct gw_request *r) {
        struct json_body b;
        int64_t qty = 0;
        if (json_body_open(&b, r->x->body) == 0) {
                (void)json_read_int(&b, "qty", JSON_REQUIRED, 1, QTY_MAX, &qty);
                if (json_body_finish(&b) == 0) {
                        json_body_close(&b);
                        r->qty = (uint32_t)qty;
                        return GW_GO_ON;
                }
        }
        char detail[JSON_ERROR_MAX];
        (void)snprintf(detail, sizeof detail, "%s", b.error);
        json_body_close(&b);
        return gw_answer_problem(r, PROBLEM_BAD_REQUEST, detail);
}

static void on_body(struct http_exchange *x, int outcome) {
        struct gw_request *r = x->user;
        if (outcome == HTTP_BODY_TOO_LARGE)
                (void)gw_answer_problem(r, PROBLEM_BODY_TOO_LARGE, "the body is above 4 KiB");
        else if (outcome == HTTP_BODY_LATE)
                (void)gw_answer_problem(r, PROBLEM_REQUEST_TIMEOUT, NULL);
        else if (judge_body(r) == GW_GO_ON)
                gw_walk_run(r);
}

static void on_gone(struct http_exchange *x) {
        struct gw_request *r = x->user;
        if (r->call)
                gw_origin_call_orphan(r->call);
        gw_request_drop(r);
}

static const struct http_exchange_events events = {.on_body = on_body, .on_gone = on_gone};

static bool key_is_good(struct span key) {
        if (key.len < 1 || key.len > KEY_MAX)
                return false;
        for (size_t i = 0; i < key.len; i++)
                if (key.p[i] < 0x20 || key.p[i] > 0x7e)
                        return false;
        return true;
}

enum gw_next gw_hold_read(struct gw_request *r) {
        const struct http_request *q = &r->x->request;
        r->key = http_request_field(q, HTTP_FIELD_IDEMPOTENCY_KEY);
        if (http_request_has_two(q, HTTP_FIELD_IDEMPOTENCY_KEY))
                return gw_answer_problem(r, PROBLEM_BAD_REQUEST, "Idempotency-Key: send one");
        if (!r->key.p)
                return gw_answer_problem(r, PROBLEM_IDEMPOTENCY_KEY_REQUIRED,
                                         "send Idempotency-Key: 1 to 128 printable characters");
        if (!key_is_good(r->key))
                return gw_answer_problem(r, PROBLEM_BAD_REQUEST,
                                         "Idempotency-Key: expected 1 to 128 printable characters");
        if (q->content_length > (int64_t)BODY_MAX)
                return gw_answer_problem(r, PROBLEM_BODY_TOO_LARGE, "the body is above 4 KiB");
        if (!q->has_body)
                return judge_body(r);
        struct gw_request *k = gw_request_keep(r);
        if (!k)
                return GW_DONE;
        k->x->events = &events;
        http_exchange_read_body(k->x, BODY_MAX);
        return GW_PARKED;
}

/* ---- whether it may be asked ---- */

static bool hold_id_is_good(struct span id) {
        if (id.len < 1 || id.len > HOLD_ID_MAX)
                return false;
        for (size_t i = 0; i < id.len; i++) {
                char c = id.p[i];
                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_'))
                        return false;
        }
        return true;
}

static enum gw_next place_of_verb(struct gw_request *r) {
        bool is_verb = r->route.kind != GW_ROUTE_HOLD;
        if (!r->has_account || !hold_id_is_good(r->route.hold))
                return gw_answer_problem(r, PROBLEM_NOT_FOUND, "there is no such hold of yours");
        if (is_verb && (r->sale->facts.hard_pause || gw_origin_is_away(r->w->shared, r->mono_ms)))
                return gw_refuse_away(r);
        return GW_GO_ON;
}

static enum gw_next refuse_by_state(struct gw_request *r) {
        bool is_before =
                r->sale->state == ADM_SALE_SCHEDULED || r->sale->state == ADM_SALE_PREQUEUE;
        if (is_before)
                return gw_answer_problem(r, PROBLEM_NOT_OPEN, "the sale has not opened");
        if (r->standing == GW_PASS_DEAD)
                return gw_answer_problem(r, PROBLEM_PASS_EXPIRED, "the pass is over");
        if (r->standing == GW_PASS_REVOKED)
                return gw_answer_problem(r, PROBLEM_PASS_REVOKED, NULL);
        if (r->pass_bad && gw_limit_failure(r))
                return gw_refuse(r, PROBLEM_RATE_LIMITED, "too many bad credentials");
        return gw_answer_problem(r, PROBLEM_PASS_REQUIRED, "wait for your turn in the line");
}

enum gw_next gw_hold_place(struct gw_request *r) {
        if (r->route.kind != GW_ROUTE_HOLDS)
                return place_of_verb(r);
        bool goes_on = r->standing == GW_PASS_IN_FORCE || r->standing == GW_PASS_REPLAY ||
                       r->standing == GW_PASS_REVOKED;
        if (r->standing == GW_PASS_STOPPED || (goes_on && r->sale->facts.hard_pause) ||
            gw_origin_is_away(r->w->shared, r->mono_ms))
                return gw_refuse_away(r);
        if (!goes_on)
                return refuse_by_state(r);
        if (!r->sale->facts.has_item)
                return gw_answer_problem(r, PROBLEM_NOT_FOUND, "this sale has no item to hold");
        return GW_GO_ON;
}

enum gw_next gw_hold_forward(struct gw_request *r) {
        struct gw_request *k = gw_request_keep(r);
        if (!k)
                return GW_DONE;
        k->x->events = &events;
        if (k->route.kind == GW_ROUTE_HOLDS)
                gw_hold_call_reserve(k);
        else
                gw_hold_call_read(k);
        return GW_PARKED;
}
