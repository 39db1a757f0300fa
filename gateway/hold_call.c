#include "gateway/hold_call.h"

#include <stdio.h>

#include "gateway/answer.h"
#include "gateway/origin_call.h"
#include "gateway/pass.h"
#include "gateway/steps.h"
#include "net/json.h"
#include "net/log.h"

#define HOLD_TEXT_MAX 2048

/* ---- what the origin said ---- */

struct answered {
        bool is_hold; /* the body is one */
        bool stands;  /* and still takes stock */
        bool is_ours; /* of this buyer and sale */
        int64_t end_ms;
        size_t len;
        char text[HOLD_TEXT_MAX]; /* as shoppers see it */
};

/* The contract's members, in its order. */
static void render_for_shopper(const json_t *hold, struct answered *a) {
        static const char *const names[] = {"hold",       "sale",     "qty",        "state",
                                            "expires_at", "extended", "created_at", "replaces"};
        struct json_out o;
        json_out_init(&o, a->text, sizeof a->text);
        json_out_object(&o, NULL);
        for (size_t i = 0; i < NET_COUNT_OF(names); i++) {
                const json_t *value = json_object_get(hold, names[i]);
                if (value)
                        json_out_tree(&o, names[i], value);
                else
                        json_out_null(&o, names[i]);
        }
        json_out_object_end(&o);
        a->len = json_out_done(&o).len;
        a->is_hold = a->len > 0;
}

static void read_answer(const struct gw_origin_call *c, struct answered *a) {
        memset(a, 0, offsetof(struct answered, text));
        if (c->outcome != HTTP_CALL_OK || (c->status != 200 && c->status != 201))
                return;
        json_t *root = json_loadb(c->body, c->len, JSON_REJECT_DUPLICATES, NULL);
        struct span state = json_get_str(root, "state");
        if (json_get_str(root, "hold").p && state.p) {
                render_for_shopper(root, a);
                a->end_ms = json_get_time(root, "expires_at", 0);
                a->stands = span_eq(state, SPAN("held")) || span_eq(state, SPAN("sold")) ||
                            span_eq(state, SPAN("shipped"));
                a->is_ours = c->r &&
                             span_eq(json_get_str(root, "buyer"), gw_request_account(c->r)) &&
                             span_eq(json_get_str(root, "sale"), gw_request_sale_id(c->r));
        }
        json_decref(root);
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
        struct adm_pass pass = {0};
        int outcome = ADM_PASS_UNKNOWN;
        if (c->is_begun) {
                struct adm_hold_end e = {
                        .qty = c->qty,
                        .held = a->stands,
                        .hold_end_ms = a->end_ms,
                        .has_stock = c->has_stock,
                        .timeline = c->timeline,
                        .n = c->n,
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

/* A further hold, and no room for it. With one unit an account the hold that
 * the pass already has is the nearer reason; "all held" is for units that may
 * come back. */
static enum problem_code refusal_without_room(const struct gw_origin_call *c) {
        const struct gw_sale *sale = c->r->sale;
        if (sale->facts.per_account == 1 || c->qty > sale->facts.per_account)
                return PROBLEM_BUYER_LIMIT;
        if (sale->state == ADM_SALE_CLOSED)
                return PROBLEM_CLOSED;
        return sale->state == ADM_SALE_SOLD_OUT ? PROBLEM_SOLD_OUT_HOLD : PROBLEM_ALL_HELD;
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
        return refusal_without_room(c);
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

static void answer_as_told(struct gw_request *r, const struct gw_origin_call *c, struct span body) {
        struct gw_head h;
        gw_head_init(&h);
        (void)gw_head_personal(&h, r);
        if (c->is_replayed)
                gw_head_add(&h, SPAN("idempotent-replayed"), SPAN("true"));
        r->retry_after_ms = c->retry_after_s * 1000;
        (void)gw_answer_json(r, c->status, &h, body, GW_ANSWER_HOLD);
}

/* What is refused for a reason of the shopper's; the rest is our own trouble. */
static bool is_refusal(const struct gw_origin_call *c) {
        return c->outcome == HTTP_CALL_OK && c->status >= 400 && c->status < 500 &&
               c->status != 401;
}

static void on_reserved(struct gw_origin_call *c) {
        struct answered a;
        read_answer(c, &a);
        tell_store(c, &a);
        struct gw_request *r = c->r;
        if (!r)
                return;
        enum problem_code refusal = is_refusal(c) ? refusal_of(c) : PROBLEM_CODE_COUNT;
        if (refusal != PROBLEM_CODE_COUNT) {
                r->retry_after_ms = refusal == PROBLEM_ALL_HELD ? 2000 : 0;
                (void)gw_answer_problem(r, refusal, NULL);
        } else if (a.is_hold) {
                answer_as_told(r, c, (struct span){a.text, a.len});
        } else if (is_refusal(c)) {
                answer_as_told(r, c, (struct span){c->body, c->len});
        } else {
                answer_unanswered(r, c);
        }
}

static void ask_verb(struct gw_request *r, const char *verb);

static const char *verb_of(const struct gw_request *r) {
        if (r->route.kind == GW_ROUTE_EXTEND)
                return "extend";
        return r->route.kind == GW_ROUTE_RELEASE ? "release" : NULL;
}

static void on_read(struct gw_origin_call *c) {
        struct answered a;
        struct gw_request *r = c->r;
        read_answer(c, &a);
        if (!r)
                return;
        bool is_missing = c->outcome == HTTP_CALL_OK && c->status == 404;
        if (is_missing || (a.is_hold && !a.is_ours))
                (void)gw_answer_problem(r, PROBLEM_NOT_FOUND, "there is no such hold of yours");
        else if (!a.is_hold)
                answer_unanswered(r, c);
        else if (verb_of(r))
                ask_verb(r, verb_of(r));
        else
                answer_as_told(r, c, (struct span){a.text, a.len});
}

static void on_changed(struct gw_origin_call *c) {
        struct answered a;
        read_answer(c, &a);
        tell_store(c, &a);
        struct gw_request *r = c->r;
        if (!r)
                return;
        if (a.is_hold)
                answer_as_told(r, c, (struct span){a.text, a.len});
        else if (is_refusal(c))
                answer_as_told(r, c, (struct span){c->body, c->len});
        else
                answer_unanswered(r, c);
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
        int outcome =
                adm_store_hold_begin(r->w->shared->store, c->sale, &r->shown, r->qty, r->now_ms);
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
        json_out_str(&o, "pass_jti", (struct span){jti, sizeof jti});
        json_out_object_end(&o);
        return json_out_done(&o);
}

/* The pass as it is now: a renewed one is signed anew, for the shown token
 * may be past its end. */
static struct span pass_text(struct gw_request *r, char out[GW_PASS_TEXT_MAX]) {
        size_t n = 0;
        if (r->standing == GW_PASS_IN_FORCE && r->pass.renewed &&
            gw_pass_sign(r->snap->settings, r->sale, gw_request_account(r), &r->pass, out, &n) == 0)
                return (struct span){out, n};
        return r->pass_text;
}

static void ask(struct gw_request *r, struct gw_origin_call *c, struct http_call_request *q,
                enum gw_origin_kind kind) {
        const struct conf_gateway *conf = gw_request_conf(r);
        struct answered none = {0};
        q->scheme = SPAN("http");
        q->authority = span_of(conf->origin.address.text);
        q->deadline_ms = conf->origin.request_timeout_ms;
        if (gw_origin_call_start(c, q, kind) == 0)
                return;
        c->outcome = HTTP_CALL_UNSENT;
        tell_store(c, &none);
        gw_origin_call_free(&c);
        (void)gw_refuse_away(r);
}

static struct gw_origin_call *new_call(struct gw_request *r,
                                       void (*on_answer)(struct gw_origin_call *)) {
        struct gw_origin_call *c = gw_origin_call_new(r, on_answer);
        if (!c)
                (void)gw_answer_problem(r, PROBLEM_UNAVAILABLE, "out of memory");
        return c;
}

static size_t common_headers(const struct gw_request *r, struct http_header *out) {
        const struct gw_settings *s = r->snap->settings;
        out[0] = (struct http_header){.name = SPAN("authorization"),
                                      .value = {s->bearer, s->bearer_len}};
        return 1;
}

void gw_hold_call_reserve(struct gw_request *r) {
        char path[192], body[512], pass[GW_PASS_TEXT_MAX];
        struct http_header headers[8];
        struct gw_origin_call *c = new_call(r, on_reserved);
        if (!c)
                return;
        size_t n = common_headers(r, headers);
        int len = snprintf(path, sizeof path, "/v1/tenants/%s/items/%s/holds",
                           r->sale->facts.tenant, r->sale->facts.item);
        begin_hold(r, c);
        struct http_call_request q = {
                .method = SPAN("POST"),
                .path = {path, (size_t)len},
                .headers = headers,
                .body = render_hold(r, body, sizeof body),
        };
        headers[n++] = (struct http_header){.name = SPAN("content-type"),
                                            .value = SPAN("application/json")};
        headers[n++] = (struct http_header){.name = SPAN("idempotency-key"), .value = r->key};
        headers[n++] =
                (struct http_header){.name = SPAN("sluice-pass"), .value = pass_text(r, pass)};
        if (c->replay_only)
                headers[n++] = (struct http_header){.name = SPAN("sluice-replay-only"),
                                                    .value = SPAN("1")};
        q.n_headers = n;
        ask(r, c, &q, GW_ORIGIN_HOLD);
}

static void ask_by_id(struct gw_request *r, struct gw_origin_call *c, const char *verb) {
        char path[GW_PATH_MAX];
        struct http_header headers[4];
        int len = snprintf(path, sizeof path, "/v1/holds/%.*s%s%s", (int)r->route.hold.len,
                           r->route.hold.p, verb ? "/" : "", verb ? verb : "");
        struct http_call_request q = {
                .method = verb ? SPAN("POST") : SPAN("GET"),
                .path = {path, (size_t)len},
                .headers = headers,
                .n_headers = common_headers(r, headers),
        };
        ask(r, c, &q, GW_ORIGIN_HOLD_READ);
}

static void ask_verb(struct gw_request *r, const char *verb) {
        struct gw_origin_call *c = new_call(r, on_changed);
        if (!c)
                return;
        c->verb = verb;
        c->has_shown = r->standing == GW_PASS_IN_FORCE;
        c->shown = r->shown;
        ask_by_id(r, c, verb);
}

void gw_hold_call_read(struct gw_request *r) {
        struct gw_origin_call *c = new_call(r, on_read);
        if (c)
                ask_by_id(r, c, NULL);
}
