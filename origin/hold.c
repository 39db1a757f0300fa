#include "origin/hold.h"

#include <stdio.h>

#include "origin/answer.h"
#include "origin/batch.h"
#include "origin/read.h"
#include "origin/look.h"
#include "origin/snapshot.h"

/* As many lines as an order may have, each with a long name. */
#define ORDER_BODY ((size_t)1024 + ORG_LINES_MAX * (size_t)128)

/* ---- reserve ---- */

static void finish(struct org_call *c, const struct org_reply *r) {
        struct org_answer a;

        if (r->outcome == ORG_DB_VIOLATED)
                org_look_violated(c->s->look, r,
                                  &(struct org_suspect){c->tenant, c->item, c->hold});
        if (!org_answer_read(&a, r, 0)) {
                org_call_db_failed(c, r->outcome);
                return;
        }
        org_answer_count(c->s, &a, r->took_us);
        if (a.before_us >= 0 || span_eq(a.code, SPAN("created")))
                org_snapshot_touch(c->s->snapshot);
        org_answer_tell(c, &a);
        org_answer_fini(&a);
}

void org_hold_reserved(struct org_call *c, const struct org_reply *r) {
        struct org_metrics *m = &c->s->metrics;
        enum org_outcome outcome = ORG_OUTCOME_UNKNOWN;
        struct org_answer a;

        if (org_answer_read(&a, r, 0)) {
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

void org_hold_answered(struct org_call *c, const struct org_answer *a) {
        metrics_add(&c->s->metrics.holds[org_answer_outcome(a)], 1);
        if (span_eq(a->code, SPAN("created")))
                org_snapshot_touch(c->s->snapshot);
        org_answer_tell(c, a);
}

static void on_ordered(void *user, const struct org_reply *r) {
        org_hold_reserved(user, r);
}

/* {"a","b"}: names and numbers that need no quoting beyond that. */
static void add_array(struct org_job *j, const struct span *values, size_t n) {
        char text[ORG_LINES_MAX * 70 + 8];
        size_t len = 0;

        text[len++] = '{';
        for (size_t i = 0; i < n; i++)
                len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\"%.*s\"",
                                        i > 0 ? "," : "", (int)values[i].len, values[i].p);
        text[len++] = '}';
        org_job_text(j, (struct span){text, len});
}

static void run_order(struct org_call *c, const struct org_ask *a) {
        char ids[ORG_LINES_MAX][ORG_UUID_HEX], qtys[ORG_LINES_MAX][24];
        struct span id[ORG_LINES_MAX], item[ORG_LINES_MAX], qty[ORG_LINES_MAX];
        char text[ORG_ASK_TEXT_MAX];
        struct org_job *j = org_job_new(ORG_Q_RESERVE_ORDER);

        for (size_t i = 0; i < a->n_lines; i++) {
                org_new_id(ids[i]);
                (void)snprintf(qtys[i], sizeof(qtys[i]), "%lld", (long long)a->lines[i].qty);
                id[i] = span_of(ids[i]);
                item[i] = a->lines[i].item;
                qty[i] = span_of(qtys[i]);
        }
        org_job_text(j, c->route.tenant);
        add_array(j, id, a->n_lines);
        org_job_text(j, a->buyer);
        add_array(j, item, a->n_lines);
        add_array(j, qty, a->n_lines);
        org_job_text(j, a->sale);
        org_job_text(j, a->key);
        org_job_text(j, org_ask_text(a, text, sizeof(text)));
        org_job_text(j, a->pass_jti);
        if (a->round < 0)
                org_job_null(j);
        else
                org_job_int(j, a->round);
        org_job_text(j, a->channel);
        org_job_text(j, a->order_ref);
        org_job_int(j, c->s->conf->max_hold_seconds);
        org_db_run(c->s->db, j, on_ordered, c);
}

static void on_reserve_body(struct org_call *c) {
        bool is_order = c->route.resource == ORG_ORDERS;
        struct org_ask a;
        struct json_body b;

        if (org_ask_read(c, &a, &b, c->route.item)) {
                keep_names(c);
                if (is_order)
                        run_order(c, &a);
                else
                        org_batch_reserve(c->s->batch, c, &a);
        }
        json_body_close(&b);
}

void org_hold_reserve(struct org_call *c) {
        bool is_order = c->route.resource == ORG_ORDERS;

        org_call_read_large_body(c, is_order ? ORDER_BODY : 0, on_reserve_body);
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

void org_hold_get(struct org_call *c) {
        char id[ORG_UUID_HEX];
        struct org_job *j;

        if (!org_id_of(c, c->route.hold, id)) {
                org_call_problem(c, PROBLEM_NOT_FOUND, NULL, NULL, NULL);
                return;
        }
        j = org_job_new(ORG_Q_HOLD_GET);
        org_job_text(j, span_of(id));
        org_db_run(c->s->db, j, on_read, c);
}

void org_hold_events(struct org_call *c) {
        char id[ORG_UUID_HEX];
        struct span param;

        if (!org_id_of(c, c->route.hold, id)) {
                org_call_problem(c, PROBLEM_NOT_FOUND, NULL, NULL, NULL);
                return;
        }
        param = span_of(id);
        org_read_run(c->s, ORG_Q_HOLD_EVENTS, &param, on_read, c);
}

/* ---- steps ---- */

/* How long the buyer took to pay, where this confirm sold the hold. */
static void count_payment(struct org_service *s, const struct org_reply *r) {
        struct org_answer a;
        json_t *hold = NULL;
        int64_t created;

        if (!org_answer_read(&a, r, 0))
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
        char anew[ORG_UUID_HEX];
        struct org_job *j;

        (void)json_read_str(b, "payment_ref", JSON_REQUIRED, 1, 128, &ref);
        (void)json_read_bool(b, "captured", JSON_NULLABLE, &c->captured);
        if (json_body_finish(b) != 0)
                return NULL;
        c->wants_payment = true;
        org_new_id(anew);
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
        char id[ORG_UUID_HEX];
        struct json_body b;
        struct org_job *j = NULL;
        bool known = org_id_of(c, c->route.hold, id);

        (void)snprintf(c->hold, sizeof(c->hold), "%s", known ? id : "");
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
