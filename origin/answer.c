#include "origin/answer.h"

bool org_answer_read(struct org_answer *a, const struct org_reply *r, size_t row) {
        *a = (struct org_answer){.available = -1, .before_us = -1, .wait_us = -1};
        if (r->outcome == ORG_DB_REFUSED) {
                a->code = r->code;
                a->tree = r->detail.p ? json_loadb(r->detail.p, r->detail.len, 0, NULL) : NULL;
                if (a->tree) {
                        a->available = json_get_int(a->tree, "available", -1);
                        a->version = json_get_str(a->tree, "version");
                        a->state = json_get_str(a->tree, "state");
                        a->hold = json_get_str(a->tree, "hold");
                }
                return true;
        }
        if (r->outcome != ORG_DB_DONE || row >= r->rows)
                return false;
        a->code = org_reply_text(r, row, ORG_ANSWER_CODE);
        a->body = org_reply_text(r, row, ORG_ANSWER_BODY);
        a->available = org_reply_int(r, row, ORG_ANSWER_AVAILABLE, -1);
        a->version = org_reply_text(r, row, ORG_ANSWER_VERSION);
        a->state = org_reply_text(r, row, ORG_ANSWER_STATE);
        a->hold = org_reply_text(r, row, ORG_ANSWER_HOLD);
        a->before_us = org_reply_int(r, row, ORG_ANSWER_BEFORE_US, -1);
        a->wait_us = org_reply_int(r, row, ORG_ANSWER_WAIT_US, -1);
        a->expired = org_reply_int(r, row, ORG_ANSWER_EXPIRED, 0);
        return a->code.p != NULL;
}

void org_answer_fini(struct org_answer *a) {
        json_decref(a->tree);
        a->tree = NULL;
}

static enum problem_code code_of(struct span word) {
        enum problem_code code;

        if (span_eq(word, SPAN("sold_out")))
                return PROBLEM_SOLD_OUT_HOLD;
        code = problem_find(word, 0);
        return code == PROBLEM_CODE_COUNT ? PROBLEM_INTERNAL : code;
}

struct telling {
        const struct org_answer *a;
        const char *payment;
};

static void add_members(struct json_out *o, const void *context) {
        const struct telling *t = context;

        if (t->a->available >= 0)
                json_out_int(o, "available", t->a->available);
        if (t->a->state.p)
                json_out_str(o, "state", t->a->state);
        if (t->a->hold.p)
                json_out_str(o, "hold", t->a->hold);
        if (t->payment)
                json_out_text(o, "payment", t->payment);
}

/* A payer asks about money; that its units are gone is one answer to it, in
 * whatever way they are gone. */
static enum problem_code payers_code(enum problem_code code) {
        if (code == PROBLEM_SOLD_OUT_HOLD || code == PROBLEM_ALL_HELD || code == PROBLEM_NOT_ENOUGH)
                return PROBLEM_HOLD_EXPIRED;
        return code;
}

static const char *detail_of(enum problem_code code) {
        if (code == PROBLEM_BUYER_LIMIT)
                return "This buyer has all that one buyer may have of this sale.";
        if (code == PROBLEM_ALL_HELD)
                return "Every unit is in somebody's hands; some may come back.";
        if (code == PROBLEM_HOLD_EXPIRED)
                return "The hold is over.";
        return NULL;
}

void org_answer_tell(struct org_call *c, const struct org_answer *a) {
        struct telling t = {.a = a};
        enum problem_code code;

        if (a->available >= 0 && a->version.p) {
                org_call_header_int(c, "sluice-available", a->available);
                org_call_header(c, "sluice-version", a->version);
        }
        if (a->body.p) {
                if (span_eq(a->code, SPAN("replayed")))
                        org_call_header(c, "idempotent-replayed", SPAN("true"));
                org_call_json(c, span_eq(a->code, SPAN("created")) ? 201 : 200, a->body);
                return;
        }
        if (span_eq(a->code, SPAN("sale_differs"))) {
                org_call_bad_field(c, "sale", "expected a sale of this tenant and item");
                return;
        }
        code = code_of(a->code);
        if (c->wants_payment) {
                code = payers_code(code);
                if (problem_of(code)->status == 409)
                        t.payment = c->captured ? "refund" : "void";
        }
        org_call_problem(c, code, detail_of(code), add_members, &t);
}

void org_answer_count(struct org_service *s, const struct org_answer *a, int64_t took_us) {
        int64_t held_us = took_us - a->before_us - a->wait_us;

        metrics_add(&s->metrics.expired, (uint64_t)a->expired);
        if (a->before_us < 0)
                return;
        metrics_observe(&s->metrics.lock_wait, a->wait_us > 0 ? (uint64_t)a->wait_us : 0);
        metrics_observe(&s->metrics.lock_held, held_us > 0 ? (uint64_t)held_us : 0);
}

enum org_outcome org_answer_outcome(const struct org_answer *a) {
        static const struct {
                const char *word;
                enum org_outcome outcome;
        } table[] = {
                {"created", ORG_OUTCOME_HELD},          {"replayed", ORG_OUTCOME_REPLAYED},
                {"sold_out", ORG_OUTCOME_SOLD_OUT},     {"all_held", ORG_OUTCOME_ALL_HELD},
                {"not_enough", ORG_OUTCOME_NOT_ENOUGH}, {"buyer_limit", ORG_OUTCOME_BUYER_LIMIT},
                {"closed", ORG_OUTCOME_WINDOW},         {"not_open", ORG_OUTCOME_WINDOW},
                {"pass_expired", ORG_OUTCOME_PASS},     {"pass_revoked", ORG_OUTCOME_PASS},
                {"paused", ORG_OUTCOME_PAUSED},
        };

        for (size_t i = 0; i < NET_COUNT_OF(table); i++)
                if (span_eq(a->code, span_of(table[i].word)))
                        return table[i].outcome;
        return ORG_OUTCOME_REFUSED;
}
