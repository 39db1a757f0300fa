#include "gateway/hold.h"

#include <stdio.h>

#include "gateway/answer.h"
#include "gateway/origin_call.h"
#include "gateway/pass.h"
#include "gateway/steps.h"
#include "net/json.h"
#include "net/log.h"

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

static const struct http_exchange_events events = { .on_body = on_body, .on_gone = on_gone };

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
        bool is_before = r->sale->state == ADM_SALE_SCHEDULED ||
                         r->sale->state == ADM_SALE_PREQUEUE;
        if (is_before)
                return gw_answer_problem(r, PROBLEM_NOT_OPEN, "the sale has not opened");
        if (r->standing == GW_PASS_DEAD)
                return gw_answer_problem(r, PROBLEM_PASS_EXPIRED, "the pass is over");
        if (r->standing == GW_PASS_REVOKED)
                return gw_answer_problem(r, PROBLEM_PASS_REVOKED, NULL);
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

/* ---- what the origin said ---- */

struct answered {
        bool is_hold; /* the body is one */
        bool stands;  /* and still takes stock */
        int64_t end_ms;
};

static struct answered read_answer(const struct gw_origin_call *c) {
        struct answered a = { 0 };
        if (c->outcome != HTTP_CALL_OK || (c->status != 200 && c->status != 201))
                return a;
        json_t *root = json_loadb(c->body, c->len, JSON_REJECT_DUPLICATES, NULL);
        struct span state = json_get_str(root, "state");
        a.is_hold = json_get_str(root, "hold").p != NULL && state.p != NULL;
        a.end_ms = json_get_time(root, "expires_at", 0);
        a.stands = a.is_hold && (span_eq(state, SPAN("held")) || span_eq(state, SPAN("sold")) ||
                                 span_eq(state, SPAN("shipped")));
        json_decref(root);
        return a;
}

static void tell_stock(const struct gw_origin_call *c, int64_t now_ms) {
        struct adm_view v;
        if (!c->has_stock || !c->is_stored ||
            adm_store_view(c->w->shared->store, c->sale, now_ms, &v) != ADM_DONE)
                return;
        struct adm_stock k = v.stock;
        k.timeline = c->timeline;
        k.n = c->n;
        k.db_now_ms = 0;
        k.available = c->available;
        k.held = k.total - k.sold - k.available;
        if (k.held >= 0)
                adm_store_stock(c->w->shared->store, c->sale, &k, now_ms);
}

/* The store hears of every answer, also of none. */
static void tell_store(struct gw_origin_call *c, const struct answered *a) {
        struct adm_store *store = c->w->shared->store;
        int64_t now_ms = gw_worker_sale_time_ms(c->w);
        struct adm_pass pass = { 0 };
        int outcome = ADM_PASS_UNKNOWN;
        if (c->is_begun) {
                struct adm_hold_end e = {
                        .qty = c->qty, .held = a->stands, .hold_end_ms = a->end_ms,
                        .has_stock = c->has_stock, .timeline = c->timeline, .n = c->n,
                        .available = c->available,
                };
                gw_count_store(&c->w->counters, GW_STORE_CONVERT);
                outcome = adm_store_hold_end(store, c->sale, &c->shown, &e, now_ms, &pass);
        } else if (c->verb && a->stands && c->has_shown && strcmp(c->verb, "extend") == 0) {
                gw_count_store(&c->w->counters, GW_STORE_CONVERT);
                outcome = adm_store_hold_extended(store, c->sale, &c->shown, a->end_ms, now_ms,
                                                  &pass);
                tell_stock(c, now_ms);
        } else {
                tell_stock(c, now_ms);
        }
        if (c->r && outcome == ADM_DONE) {
                /* A pass that was renewed on the way here differs from the shown
                 * one as well, so the store's word for it is enough. */
                c->r->pass = pass;
                c->r->standing = GW_PASS_IN_FORCE;
        } else if (c->r && c->is_begun) {
                c->r->pass.renewed = false;
        }
}

static enum problem_code refusal_of(const struct gw_origin_call *c) {
        if (c->status != 403 || !c->replay_only)
                return PROBLEM_CODE_COUNT;
        json_t *root = json_loadb(c->body, c->len, 0, NULL);
        bool is_unknown_key = span_eq(json_get_str(root, "code"), SPAN("pass_expired"));
        json_decref(root);
        if (!is_unknown_key)
                return PROBLEM_CODE_COUNT;
        if (c->r->standing == GW_PASS_REVOKED)
                return PROBLEM_PASS_REVOKED;
        if (!c->no_room)
                return PROBLEM_CODE_COUNT;
        /* A further hold, and no room for it. With one unit an account the hold
         * that the pass already has is the nearer reason. */
        return c->r->sale->facts.per_account == 1 ? PROBLEM_BUYER_LIMIT : PROBLEM_ALL_HELD;
}

static void answer_unanswered(struct gw_request *r, const struct gw_origin_call *c) {
        bool unsent = c->outcome == HTTP_CALL_UNSENT;
        log_event_limited(1, LOG_WARN, "hold", "no answer from the origin",
                          LOG_I("outcome", c->outcome), LOG_I("status", c->status));
        r->retry_after_ms = c->retry_after_s > 0 ? c->retry_after_s * 1000 : 1000;
        (void)gw_answer_problem(r, PROBLEM_PAUSED,
                                unsent ? "the origin was not reached; nothing was held"
                                       : "no answer yet; ask again with the same key");
}

static void answer_as_told(struct gw_request *r, const struct gw_origin_call *c) {
        struct gw_head h;
        gw_head_init(&h);
        (void)gw_head_personal(&h, r);
        if (c->is_replayed)
                gw_head_add(&h, SPAN("idempotent-replayed"), SPAN("true"));
        r->retry_after_ms = c->retry_after_s * 1000;
        (void)gw_answer_json(r, c->status, &h, (struct span){ c->body, c->len }, GW_ANSWER_HOLD);
}

static void on_answer(struct gw_origin_call *c) {
        struct answered a = read_answer(c);
        tell_store(c, &a);
        struct gw_request *r = c->r;
        if (!r)
                return;
        bool is_problem = c->outcome == HTTP_CALL_OK && c->status >= 400 && c->status < 500 &&
                          c->status != 401;
        enum problem_code refusal = is_problem ? refusal_of(c) : PROBLEM_CODE_COUNT;
        if (refusal != PROBLEM_CODE_COUNT) {
                r->retry_after_ms = refusal == PROBLEM_ALL_HELD ? 2000 : 0;
                (void)gw_answer_problem(r, refusal, NULL);
        } else if (a.is_hold || is_problem) {
                answer_as_told(r, c);
        } else {
                answer_unanswered(r, c);
        }
}

/* ---- asking ---- */

static void begin_hold(struct gw_request *r, struct gw_origin_call *c) {
        c->shown = r->shown;
        c->has_shown = true;
        c->qty = r->qty;
        c->replay_only = r->standing != GW_PASS_IN_FORCE;
        if (c->replay_only)
                return;
        gw_count_store(&r->w->counters, GW_STORE_USE);
        int outcome = adm_store_hold_begin(r->w->shared->store, c->sale, &r->shown, r->qty,
                                           r->now_ms);
        c->is_begun = outcome == ADM_DONE;
        c->no_room = outcome == ADM_NO_ROOM;
        c->replay_only = !c->is_begun;
}

static struct span render_hold(const struct gw_request *r, char *out, size_t cap) {
        char jti[GW_JTI_TEXT_LEN];
        struct json_out o;
        gw_pass_jti(r->shown.jti, jti);
        json_out_init(&o, out, cap);
        json_out_object(&o, NULL);
        json_out_str(&o, "buyer", gw_request_account(r));
        json_out_uint(&o, "qty", r->qty);
        json_out_text(&o, "sale", r->sale->facts.id);
        json_out_text(&o, "channel", "gateway");
        json_out_str(&o, "pass_jti", (struct span){ jti, sizeof jti });
        json_out_object_end(&o);
        return json_out_done(&o);
}

/* The pass as it is now: a renewed one is signed anew, for the shown token
 * may be past its end. */
static struct span pass_text(struct gw_request *r, char out[GW_PASS_TEXT_MAX]) {
        size_t n = 0;
        if (r->standing == GW_PASS_IN_FORCE && r->pass.renewed &&
            gw_pass_sign(r->snap->settings, r->sale, gw_request_account(r), &r->pass, out, &n) == 0)
                return (struct span){ out, n };
        return r->pass_text;
}

static enum gw_next ask(struct gw_request *r, struct gw_origin_call *c, struct http_call_request *q,
                        enum gw_origin_kind kind) {
        const struct conf_gateway *conf = gw_request_conf(r);
        q->scheme = SPAN("http");
        q->authority = span_of(conf->origin.address.text);
        q->deadline_ms = conf->origin.request_timeout_ms;
        r->x->events = &events;
        if (gw_origin_call_start(c, q, kind) == 0)
                return GW_PARKED;
        struct answered none = { 0 };
        c->outcome = HTTP_CALL_UNSENT;
        tell_store(c, &none);
        gw_origin_call_free(&c);
        return gw_refuse_away(r);
}

static size_t common_headers(const struct gw_request *r, struct http_header *out) {
        const struct gw_settings *s = r->snap->settings;
        size_t n = 0;
        out[n++] = (struct http_header){ .name = SPAN("authorization"),
                                         .value = { s->bearer, s->bearer_len } };
        out[n++] = (struct http_header){ .name = SPAN("sluice-account"),
                                         .value = gw_request_account(r) };
        out[n++] = (struct http_header){ .name = SPAN("sluice-sale"),
                                         .value = span_of(r->sale->facts.id) };
        return n;
}

static enum gw_next ask_hold(struct gw_request *r, struct gw_origin_call *c) {
        char path[192], body[512], pass[GW_PASS_TEXT_MAX], length[24];
        struct http_header headers[8];
        size_t n = common_headers(r, headers);
        int len = snprintf(path, sizeof path, "/v1/tenants/%s/items/%s/holds",
                           r->sale->facts.tenant, r->sale->facts.item);
        begin_hold(r, c);
        struct http_call_request q = {
                .method = SPAN("POST"), .path = { path, (size_t)len }, .headers = headers,
                .body = render_hold(r, body, sizeof body),
        };
        int digits = snprintf(length, sizeof length, "%zu", q.body.len);
        headers[n++] = (struct http_header){ .name = SPAN("content-type"),
                                             .value = SPAN("application/json") };
        headers[n++] = (struct http_header){ .name = SPAN("content-length"),
                                             .value = { length, (size_t)digits } };
        headers[n++] = (struct http_header){ .name = SPAN("idempotency-key"), .value = r->key };
        headers[n++] = (struct http_header){ .name = SPAN("sluice-pass"),
                                             .value = pass_text(r, pass) };
        if (c->replay_only)
                headers[n++] = (struct http_header){ .name = SPAN("sluice-replay-only"),
                                                     .value = SPAN("1") };
        q.n_headers = n;
        return ask(r, c, &q, GW_ORIGIN_HOLD);
}

static enum gw_next ask_verb(struct gw_request *r, struct gw_origin_call *c) {
        char path[GW_PATH_MAX];
        struct http_header headers[8];
        bool is_read = r->route.kind == GW_ROUTE_HOLD;
        c->verb = r->route.kind == GW_ROUTE_EXTEND    ? "extend"
                  : r->route.kind == GW_ROUTE_RELEASE ? "release"
                                                      : NULL;
        c->has_shown = r->standing == GW_PASS_IN_FORCE;
        c->shown = r->shown;
        int len = snprintf(path, sizeof path, "/v1/holds/%.*s%s%s", (int)r->route.hold.len,
                           r->route.hold.p, c->verb ? "/" : "", c->verb ? c->verb : "");
        struct http_call_request q = {
                .method = is_read ? SPAN("GET") : SPAN("POST"),
                .path = { path, (size_t)len }, .headers = headers,
                .n_headers = common_headers(r, headers),
        };
        if (!is_read)
                headers[q.n_headers++] = (struct http_header){ .name = SPAN("content-length"),
                                                               .value = SPAN("0") };
        return ask(r, c, &q, GW_ORIGIN_HOLD_READ);
}

enum gw_next gw_hold_forward(struct gw_request *r) {
        struct gw_request *k = gw_request_keep(r);
        if (!k)
                return GW_DONE;
        struct gw_origin_call *c = gw_origin_call_new(k, on_answer);
        if (!c) {
                (void)gw_answer_problem(k, PROBLEM_UNAVAILABLE, "out of memory");
                return GW_DONE;
        }
        (void)(k->route.kind == GW_ROUTE_HOLDS ? ask_hold(k, c) : ask_verb(k, c));
        return GW_PARKED;
}
