#include "origin/hold.h"

#include <stdio.h>

#include "net/clock.h"
#include "net/random.h"
#include "origin/answer.h"
#include "origin/pass.h"
#include "origin/snapshot.h"

#define QTY_MAX 1000000
#define KEY_MAX 128
#define ID_HEX 32 /* of an id, behind the group's prefix */
#define UUID_TEXT 37
#define REQUEST_TEXT 1024

/* ---- ids ---- */

static void new_id(char out[UUID_TEXT]) {
        unsigned char b[16];
        char *p = out;

        random_bytes(b, sizeof(b));
        for (size_t i = 0; i < sizeof(b); i++)
                p += snprintf(p, 3, "%02x", b[i]);
}

/* The hex part of a hold's id; false when it cannot be one of ours. */
static bool id_of(const struct org_call *c, struct span hold, char out[UUID_TEXT]) {
        struct span prefix = span_of(c->s->conf->group_prefix);

        if (hold.len != prefix.len + ID_HEX || !span_starts(hold, prefix))
                return false;
        memcpy(out, hold.p + prefix.len, ID_HEX);
        out[ID_HEX] = '\0';
        return strspn(out, "0123456789abcdef") == ID_HEX;
}

/* ---- reserve ---- */

struct ask {
        struct span buyer, sale, channel, order_ref, pass_jti, key;
        int64_t qty;
        int64_t round; /* of the pass; -1: none was shown */
        struct jwt_claims claims;
};

static bool read_ask(struct org_call *c, struct ask *a, struct json_body *b) {
        bool ok;

        (void)json_read_str(b, "buyer", JSON_REQUIRED, 1, JWT_SUB_MAX, &a->buyer);
        (void)json_read_int(b, "qty", JSON_REQUIRED, 1, QTY_MAX, &a->qty);
        (void)json_read_str(b, "sale", JSON_NULLABLE, 1, 63, &a->sale);
        (void)json_read_str(b, "channel", JSON_NULLABLE, 1, 64, &a->channel);
        (void)json_read_str(b, "order_ref", JSON_NULLABLE, 1, 128, &a->order_ref);
        (void)json_read_str(b, "pass_jti", JSON_NULLABLE, 1, JWT_JTI_MAX, &a->pass_jti);
        if (a->buyer.p && !jwt_sub_is_good(a->buyer))
                json_body_fault(b, "buyer", "expected 1..128 of 0x21-0x7E but , \" and \\");
        if (a->sale.p && !org_sale_name_is_good(a->sale))
                json_body_fault(b, "sale", ORG_SALE_NAME_EXPECTED);
        ok = json_body_finish(b) == 0;
        if (!ok)
                org_call_bad_body(c, b);
        return ok;
}

static bool key_is_good(struct span key) {
        if (key.len < 1 || key.len > KEY_MAX)
                return false;
        for (size_t i = 0; i < key.len; i++)
                if (key.p[i] < 0x20 || key.p[i] > 0x7e)
                        return false;
        return true;
}

static bool find_key(struct org_call *c, struct ask *a) {
        a->key = http_request_field(&c->x->request, HTTP_FIELD_IDEMPOTENCY_KEY);
        if (!a->key.p) {
                org_call_problem(c, PROBLEM_IDEMPOTENCY_KEY_REQUIRED, NULL, NULL, NULL);
                return false;
        }
        if (!key_is_good(a->key)) {
                org_call_bad_field(c, "Idempotency-Key", "expected 1..128 printable ASCII");
                return false;
        }
        return true;
}

/* Which sale the pass is for decides; without keys or pass there is nothing to
 * look at: who calls with the service token may sell without one. */
static bool check_pass(struct org_call *c, struct ask *a, bool is_replay) {
        struct span pass = http_request_field(&c->x->request, HTTP_FIELD_SLUICE_PASS);
        char sale[64];
        enum problem_code code;

        if (!c->s->pass_keys || !pass.p)
                return true;
        (void)snprintf(sale, sizeof(sale), "%.*s", (int)a->sale.len, a->sale.p ? a->sale.p : "");
        code = org_pass_check(c->s->pass_keys, pass, sale, a->buyer, is_replay,
                              org_service_now_ms(c->s), &a->claims);
        if (code == PROBLEM_CODE_COUNT && a->pass_jti.p &&
            !span_eq(a->pass_jti, span_of(a->claims.jti)))
                code = PROBLEM_PASS_REQUIRED;
        if (code != PROBLEM_CODE_COUNT) {
                metrics_add(&c->s->metrics.holds[ORG_OUTCOME_PASS], 1);
                org_call_problem(c, code, NULL, NULL, NULL);
                return false;
        }
        a->round = a->claims.rnd;
        if (!a->pass_jti.p)
                a->pass_jti = span_of(a->claims.jti);
        return true;
}

/* What must be the same again under the same key. The pass is left out: it is
 * the gateway's matter, and may have been renewed. */
static struct span request_text(const struct org_call *c, const struct ask *a, char *out,
                                size_t cap) {
        struct json_out o;

        json_out_init(&o, out, cap);
        json_out_object(&o, NULL);
        json_out_str(&o, "item", c->route.item);
        json_out_int(&o, "qty", a->qty);
        json_out_str(&o, "sale", a->sale);
        json_out_str(&o, "channel", a->channel);
        json_out_str(&o, "order_ref", a->order_ref);
        json_out_object_end(&o);
        return json_out_done(&o);
}

static void on_item_paused(void *user, const struct org_reply *r) {
        struct org_service *s = user;

        (void)r;
        org_snapshot_touch(s->snapshot);
}

/* A CHECK said no: whatever the reason, this item sells nothing more until a
 * person has looked. */
static void pause_item(struct org_service *s, const char *tenant, const char *item,
                       struct span why) {
        struct org_job *j;

        if (!tenant[0])
                return;
        j = org_job_new(ORG_Q_ITEM_PAUSE);
        org_job_text(j, span_of(tenant));
        org_job_text(j, span_of(item));
        org_job_text(j, why.p ? why : SPAN("check"));
        org_db_run(s->db, j, on_item_paused, s);
}

static void count_lock(struct org_service *s, const struct org_answer *a, int64_t took_us) {
        int64_t held_us = took_us - a->before_us - a->wait_us;

        if (a->before_us < 0)
                return;
        metrics_observe(&s->metrics.lock_wait, a->wait_us > 0 ? (uint64_t)a->wait_us : 0);
        metrics_observe(&s->metrics.lock_held, held_us > 0 ? (uint64_t)held_us : 0);
}

static void finish(struct org_call *c, const struct org_reply *r) {
        struct org_answer a;

        if (r->outcome == ORG_DB_VIOLATED)
                pause_item(c->s, c->tenant, c->item, r->detail);
        if (!org_answer_read(&a, r)) {
                org_call_db_failed(c, r->outcome);
                return;
        }
        count_lock(c->s, &a, r->took_us);
        if (a.before_us >= 0)
                org_snapshot_touch(c->s->snapshot);
        org_answer_tell(c, &a);
        org_answer_fini(&a);
}

static void on_reserved(void *user, const struct org_reply *r) {
        struct org_call *c = user;
        struct org_metrics *m = &c->s->metrics;
        enum org_outcome outcome = ORG_OUTCOME_UNKNOWN;
        struct org_answer a;

        if (org_answer_read(&a, r)) {
                outcome = org_answer_outcome(&a);
                org_answer_fini(&a);
        }
        metrics_add(&m->holds[outcome], 1);
        finish(c, r);
}

static void keep_names(struct org_call *c) {
        (void)snprintf(c->tenant, sizeof(c->tenant), "%.*s", (int)c->route.tenant.len,
                       c->route.tenant.p);
        (void)snprintf(c->item, sizeof(c->item), "%.*s", (int)c->route.item.len, c->route.item.p);
}

static void run_reserve(struct org_call *c, const struct ask *a, bool is_replay) {
        char id[UUID_TEXT], text[REQUEST_TEXT];
        struct org_job *j = org_job_new(ORG_Q_RESERVE);

        new_id(id);
        keep_names(c);
        org_job_text(j, c->route.tenant);
        org_job_text(j, c->route.item);
        org_job_text(j, span_of(id));
        org_job_text(j, a->buyer);
        org_job_int(j, a->qty);
        org_job_text(j, a->sale);
        org_job_text(j, a->key);
        org_job_text(j, request_text(c, a, text, sizeof(text)));
        org_job_text(j, a->pass_jti);
        if (a->round < 0)
                org_job_null(j);
        else
                org_job_int(j, a->round);
        org_job_text(j, a->channel);
        org_job_text(j, a->order_ref);
        org_job_bool(j, is_replay);
        org_job_int(j, c->s->conf->max_hold_seconds);
        org_db_run(c->s->db, j, on_reserved, c);
}

static void on_reserve_body(struct org_call *c) {
        struct span only = http_request_field(&c->x->request, HTTP_FIELD_SLUICE_REPLAY_ONLY);
        bool is_replay = only.p && span_eq(only, SPAN("1"));
        struct ask a = {.round = -1};
        struct json_body b;

        if (json_body_open(&b, c->x->body) != 0)
                org_call_bad_body(c, &b);
        else if (find_key(c, &a) && read_ask(c, &a, &b) && check_pass(c, &a, is_replay))
                run_reserve(c, &a, is_replay);
        json_body_close(&b);
}

void org_hold_reserve(struct org_call *c) {
        org_call_read_body(c, on_reserve_body);
}

/* ---- reading ---- */

static void on_read(void *user, const struct org_reply *r) {
        struct org_call *c = user;
        struct span text = org_reply_text(r, 0, 0);

        if (r->outcome != ORG_DB_DONE)
                org_call_db_failed(c, r->outcome);
        else if (!text.p)
                org_call_problem(c, PROBLEM_NOT_FOUND, NULL, NULL, NULL);
        else
                org_call_json(c, 200, text);
}

static void read_hold(struct org_call *c, enum org_query query) {
        char id[UUID_TEXT];
        struct org_job *j;

        if (!id_of(c, c->route.hold, id)) {
                org_call_problem(c, PROBLEM_NOT_FOUND, NULL, NULL, NULL);
                return;
        }
        j = org_job_new(query);
        org_job_text(j, span_of(id));
        org_db_run(c->s->db, j, on_read, c);
}

void org_hold_get(struct org_call *c) {
        read_hold(c, ORG_Q_HOLD_GET);
}

void org_hold_events(struct org_call *c) {
        read_hold(c, ORG_Q_HOLD_EVENTS);
}

/* ---- steps ---- */

/* How long the buyer took to pay, where this confirm sold the hold. */
static void count_payment(struct org_service *s, const struct org_reply *r) {
        struct org_answer a;
        json_t *hold = NULL;
        int64_t created;

        if (!org_answer_read(&a, r))
                return;
        if (a.before_us >= 0 && a.body.p)
                hold = json_loadb(a.body.p, a.body.len, 0, NULL);
        created = hold ? json_get_time(hold, "created_at", 0) : 0;
        if (created > 0 && s->clock_is_known) {
                int64_t ms = org_service_now_ms(s) - created;

                metrics_observe(&s->metrics.hold_to_confirm, ms > 0 ? (uint64_t)ms * 1000 : 0);
        }
        json_decref(hold);
        org_answer_fini(&a);
}

static void on_stepped(void *user, const struct org_reply *r) {
        struct org_call *c = user;

        if (c->wants_payment)
                count_payment(c->s, r);
        org_snapshot_touch(c->s->snapshot);
        finish(c, r);
}

static struct org_job *confirm_job(struct org_call *c, struct json_body *b, const char *id) {
        struct span ref = {NULL, 0};
        char anew[UUID_TEXT];
        struct org_job *j;

        (void)json_read_str(b, "payment_ref", JSON_REQUIRED, 1, 128, &ref);
        (void)json_read_bool(b, "captured", JSON_NULLABLE, &c->captured);
        if (json_body_finish(b) != 0)
                return NULL;
        c->wants_payment = true;
        new_id(anew);
        j = org_job_new(ORG_Q_CONFIRM);
        org_job_text(j, span_of(id));
        org_job_text(j, ref);
        org_job_text(j, span_of(anew));
        return j;
}

static struct org_job *step_job(const struct org_call *c, struct json_body *b, const char *id) {
        bool extends = span_eq(c->route.verb, SPAN("extend"));
        bool releases = span_eq(c->route.verb, SPAN("release"));
        struct org_job *j;

        if (json_body_finish(b) != 0)
                return NULL;
        j = org_job_new(extends ? ORG_Q_EXTEND : ORG_Q_STEP);
        org_job_text(j, span_of(id));
        if (!extends)
                org_job_text(j, c->route.verb);
        org_job_text(j, extends || releases ? SPAN("buyer") : span_of(c->actor));
        return j;
}

static void on_step_body(struct org_call *c) {
        char id[UUID_TEXT];
        struct json_body b;
        struct org_job *j = NULL;
        bool known = id_of(c, c->route.hold, id);

        org_call_find_actor(c);
        if (json_body_open(&b, c->x->body) == 0 && known)
                j = span_eq(c->route.verb, SPAN("confirm")) ? confirm_job(c, &b, id)
                                                            : step_job(c, &b, id);
        if (b.error[0])
                org_call_bad_body(c, &b);
        else if (!known)
                org_call_problem(c, PROBLEM_NOT_FOUND, NULL, NULL, NULL);
        else
                org_db_run(c->s->db, j, on_stepped, c);
        json_body_close(&b);
}

void org_hold_step(struct org_call *c) {
        org_call_read_body(c, on_step_body);
}
