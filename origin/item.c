#include "origin/item.h"

#include "origin/answer.h"
#include "origin/read.h"
#include "origin/look.h"
#include "origin/snapshot.h"

#define TOTAL_MAX 1000000000000

static void add_available(struct json_out *o, const void *context) {
        const struct org_answer *a = context;

        if (a->available >= 0)
                json_out_int(o, "available", a->available);
}

static void on_put(void *user, const struct org_reply *r) {
        struct org_call *c = user;
        struct org_answer a;

        org_snapshot_touch(c->s->snapshot);
        if (r->outcome == ORG_DB_VIOLATED)
                org_look_violated(c->s->look, r, &(struct org_suspect){NULL, NULL, NULL});
        if (!org_answer_read(&a, r, 0)) {
                org_call_db_failed(c, r->outcome);
                return;
        }
        if (a.body.p)
                org_call_json(c, span_eq(a.code, SPAN("created")) ? 201 : 200, a.body);
        else
                org_call_problem(c, PROBLEM_CONFLICT, "The total is below what is held and sold.",
                                 add_available, &a);
        org_answer_fini(&a);
}

static void on_put_body(struct org_call *c) {
        struct json_body b;
        struct span batch = {NULL, 0};
        int64_t total = 0;
        struct org_job *j;

        org_call_find_actor(c);
        if (json_body_open(&b, c->x->body) == 0) {
                (void)json_read_int(&b, "total", JSON_REQUIRED, 0, TOTAL_MAX, &total);
                (void)json_read_str(&b, "batch", JSON_NULLABLE, 2, 3, &batch);
                if (batch.p && !span_eq(batch, SPAN("on")) && !span_eq(batch, SPAN("off")))
                        json_body_fault(&b, "batch", "expected on or off");
                (void)!json_body_finish(&b);
        }
        if (b.error[0]) {
                org_call_bad_body(c, &b);
        } else {
                j = org_job_new(ORG_Q_ITEM_PUT);
                org_job_text(j, c->route.tenant);
                org_job_text(j, c->route.item);
                org_job_int(j, total);
                org_job_text(j, span_of(c->actor));
                if (batch.p)
                        org_job_bool(j, span_eq(batch, SPAN("on")));
                else
                        org_job_null(j);
                org_db_run(c->s->db, j, on_put, c);
        }
        json_body_close(&b);
}

void org_item_put(struct org_call *c) {
        org_call_read_body(c, on_put_body);
}

static void on_get(void *user, const struct org_reply *r) {
        struct org_call *c = user;
        struct span text = org_reply_text(r, 0, 0);

        if (r->outcome != ORG_DB_DONE)
                org_call_db_failed(c, r->outcome);
        else if (!text.p)
                org_call_problem(c, PROBLEM_NOT_FOUND, "There is no such item.", NULL, NULL);
        else
                org_call_json(c, 200, text);
}

void org_item_get(struct org_call *c) {
        struct org_job *j = org_job_new(ORG_Q_ITEM_GET);

        org_job_text(j, c->route.tenant);
        org_job_text(j, c->route.item);
        org_db_run(c->s->db, j, on_get, c);
}

static void on_invariant(void *user, const struct org_reply *r) {
        struct org_call *c = user;
        struct span text = org_reply_text(r, 0, 0);

        if (org_look_note(c->s->look, text) < 0) {
                org_call_db_failed(c, r->outcome);
                return;
        }
        org_call_json(c, 200, text);
}

void org_invariant(struct org_call *c) {
        org_read_run(c->s, ORG_Q_INVARIANT, NULL, on_invariant, c);
}
