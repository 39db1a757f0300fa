#include "origin/sale.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/buf.h"
#include "origin/read.h"
#include "origin/sale_fields.h"
#include "origin/snapshot.h"

#define PATCH_TRIES 3
#define LIST_MAX ((size_t)16 << 20)

/* ---- telling ---- */

static void add_version(struct json_out *o, const void *context) {
        const int64_t *version = context;

        if (*version >= 0)
                json_out_int(o, "version", *version);
}

static void tell_refusal(struct org_call *c, const struct org_reply *r) {
        struct span code = org_reply_text(r, 0, ORG_SALE_CODE);
        int64_t version = org_reply_int(r, 0, ORG_SALE_VERSION, -1);
        char detail[160];

        if (span_eq(code, SPAN("not_found")) && c->item[0]) {
                (void)snprintf(detail, sizeof(detail), "There is no item %s of tenant %s.", c->item,
                               c->tenant);
                org_call_problem(c, PROBLEM_NOT_FOUND, detail, NULL, NULL);
        } else if (span_eq(code, SPAN("not_found"))) {
                org_call_problem(c, PROBLEM_NOT_FOUND, "There is no such sale.", NULL, NULL);
        } else if (span_eq(code, SPAN("is_closed"))) {
                org_call_problem(c, PROBLEM_CONFLICT,
                                 "The sale is closed; a later closes_at opens it again.",
                                 add_version, &version);
        } else if (span_eq(code, SPAN("has_holds"))) {
                org_call_problem(c, PROBLEM_CONFLICT,
                                 "Tenant and item stay: the sale has holds already.", add_version,
                                 &version);
        } else {
                org_call_problem(c, PROBLEM_CONFLICT, "The sale has another version.", add_version,
                                 &version);
        }
}

static void tell(struct org_call *c, const struct org_reply *r) {
        struct span body = org_reply_text(r, 0, ORG_SALE_BODY);
        int64_t version = org_reply_int(r, 0, ORG_SALE_VERSION, 0);
        bool created = span_eq(org_reply_text(r, 0, ORG_SALE_CODE), SPAN("created"));
        char etag[32];

        if (!body.p) {
                tell_refusal(c, r);
                return;
        }
        (void)snprintf(etag, sizeof(etag), "\"%" PRId64 "\"", version);
        org_call_header(c, "etag", span_of(etag));
        org_call_json(c, created ? 201 : 200, body);
}

static void on_written(void *user, const struct org_reply *r) {
        struct org_call *c = user;

        org_snapshot_touch(c->s->snapshot);
        if (r->outcome != ORG_DB_DONE || r->rows == 0)
                org_call_db_failed(c, r->outcome);
        else
                tell(c, r);
}

/* ---- writing ---- */

static void keep(char *out, size_t cap, struct span text) {
        (void)snprintf(out, cap, "%.*s", (int)text.len, text.p ? text.p : "");
}

static void write_window(struct org_call *c, const struct org_sale *sale, int64_t if_match,
                         bool is_patch, org_job_done *done) {
        char *text = malloc(ORG_SALE_TEXT_MAX);
        struct json_out o;
        struct org_job *j;

        if (!text) {
                org_call_problem(c, PROBLEM_PAUSED, NULL, NULL, NULL);
                return;
        }
        keep(c->tenant, sizeof(c->tenant), sale->tenant);
        keep(c->item, sizeof(c->item), sale->item);
        json_out_init(&o, text, ORG_SALE_TEXT_MAX);
        org_sale_write(sale, &o);
        if (o.overflow) {
                org_call_problem(c, PROBLEM_BODY_TOO_LARGE, NULL, NULL, NULL);
                free(text);
                return;
        }
        j = org_job_new(ORG_Q_SALE_PUT);
        org_job_text(j, span_of(c->sale));
        org_job_text(j, json_out_done(&o));
        if (if_match == ORG_NO_MATCH)
                org_job_null(j);
        else
                org_job_int(j, if_match);
        org_job_text(j, span_of(c->actor));
        org_job_bool(j, is_patch && sale->names_end);
        org_job_text(j, is_patch ? SPAN("patch") : SPAN("put"));
        free(text);
        org_db_run(c->s->db, j, done, c);
}

static bool begin_write(struct org_call *c) {
        keep(c->sale, sizeof(c->sale), c->route.sale);
        org_call_find_actor(c);
        return org_call_find_match(c);
}

static void on_put_body(struct org_call *c) {
        struct json_body b;
        struct org_sale sale;

        if (!begin_write(c))
                return;
        if (span_starts(c->route.sale, SPAN("pass-"))) {
                org_call_bad_field(c, "sale",
                                   "expected an id that does not begin with `pass-`: the ticket's "
                                   "cookie of sale pass-x would be the pass's of sale x");
                return;
        }
        org_sale_init(&sale);
        if (json_body_open(&b, c->x->body) == 0)
                org_sale_read(&sale, &b, false, c->s->conf->max_hold_seconds);
        if (!b.error[0])
                org_sale_check(&sale, &b);
        if (b.error[0])
                org_call_bad_body(c, &b);
        else
                write_window(c, &sale, c->if_match, false, on_written);
        json_body_close(&b);
}

void org_sale_put(struct org_call *c) {
        org_call_read_body(c, on_put_body);
}

static void read_for_patch(struct org_call *c);

/* Somebody wrote between our reading and our writing: once more, unless the
 * caller wanted one version and no other. */
static void on_patched(void *user, const struct org_reply *r) {
        struct org_call *c = user;
        bool stale = r->outcome == ORG_DB_DONE &&
                     span_eq(org_reply_text(r, 0, ORG_SALE_CODE), SPAN("conflict"));

        if (stale && c->if_match == ORG_NO_MATCH && ++c->tries < PATCH_TRIES)
                read_for_patch(c);
        else
                on_written(c, r);
}

static void lay_over(struct org_call *c, struct span kept, int64_t version) {
        struct json_body base, b = {0};
        struct org_sale sale;

        org_sale_init(&sale);
        if (json_body_open(&base, kept) == 0)
                org_sale_read(&sale, &base, false, INT64_MAX);
        if (base.error[0]) {
                org_call_problem(c, PROBLEM_INTERNAL, NULL, NULL, NULL);
                json_body_close(&base);
                return;
        }
        if (json_body_open(&b, (struct span){c->kept, c->kept_len}) == 0)
                org_sale_read(&sale, &b, true, c->s->conf->max_hold_seconds);
        if (!b.error[0])
                org_sale_check(&sale, &b);
        if (b.error[0])
                org_call_bad_body(c, &b);
        else
                write_window(c, &sale, version, true, on_patched);
        json_body_close(&b);
        json_body_close(&base);
}

static void on_read_for_patch(void *user, const struct org_reply *r) {
        struct org_call *c = user;
        struct span kept = org_reply_text(r, 0, 0);
        int64_t version = org_reply_int(r, 0, 1, 0);

        if (r->outcome != ORG_DB_DONE)
                org_call_db_failed(c, r->outcome);
        else if (!kept.p)
                org_call_problem(c, PROBLEM_NOT_FOUND, "There is no such sale.", NULL, NULL);
        else if (c->if_match != ORG_NO_MATCH && c->if_match != version)
                org_call_problem(c, PROBLEM_CONFLICT, "The sale has another version.", add_version,
                                 &version);
        else
                lay_over(c, kept, version);
}

static void read_for_patch(struct org_call *c) {
        struct org_job *j = org_job_new(ORG_Q_SALE_SPEC);

        org_job_text(j, span_of(c->sale));
        org_db_run(c->s->db, j, on_read_for_patch, c);
}

static void on_patch_body(struct org_call *c) {
        if (!begin_write(c))
                return;
        c->kept = malloc(c->x->body.len + 1);
        if (!c->kept) {
                org_call_problem(c, PROBLEM_PAUSED, NULL, NULL, NULL);
                return;
        }
        c->kept_len = c->x->body.len;
        if (c->kept_len > 0)
                memcpy(c->kept, c->x->body.p, c->kept_len);
        read_for_patch(c);
}

void org_sale_patch(struct org_call *c) {
        org_call_read_body(c, on_patch_body);
}

/* ---- reading ---- */

static void on_read(void *user, const struct org_reply *r) {
        struct org_call *c = user;

        if (r->outcome != ORG_DB_DONE)
                org_call_db_failed(c, r->outcome);
        else if (!org_reply_text(r, 0, ORG_SALE_CODE).p)
                org_call_problem(c, PROBLEM_NOT_FOUND, "There is no such sale.", NULL, NULL);
        else
                tell(c, r);
}

void org_sale_get(struct org_call *c) {
        struct org_job *j = org_job_new(ORG_Q_SALE_GET);

        org_job_text(j, c->route.sale);
        org_db_run(c->s->db, j, on_read, c);
}

static void on_list(void *user, const struct org_reply *r) {
        struct org_call *c = user;
        struct span text = org_reply_text(r, 0, 0);
        struct buf body;

        if (r->outcome != ORG_DB_DONE || !text.p) {
                org_call_db_failed(c, r->outcome);
                return;
        }
        buf_init(&body, LIST_MAX);
        if (buf_append(&body, "{\"sales\":", 9) == 0 && buf_append(&body, text.p, text.len) == 0 &&
            buf_append(&body, "}", 1) == 0)
                org_call_json(c, 200, buf_span(&body));
        else
                org_call_problem(c, PROBLEM_INTERNAL, NULL, NULL, NULL);
        buf_fini(&body);
}

void org_sale_list(struct org_call *c) {
        org_db_run(c->s->db, org_job_new(ORG_Q_SALE_LIST), on_list, c);
}

static void on_audit(void *user, const struct org_reply *r) {
        struct org_call *c = user;
        struct span text = org_reply_text(r, 0, 0);

        if (r->outcome != ORG_DB_DONE)
                org_call_db_failed(c, r->outcome);
        else if (!text.p)
                org_call_problem(c, PROBLEM_NOT_FOUND, "There is no such sale.", NULL, NULL);
        else
                org_call_json(c, 200, text);
}

/* Of one sale, or of all: then the route names none. */
void org_sale_audit(struct org_call *c) {
        org_read_run(c->s, ORG_Q_AUDIT, &c->route.sale, on_audit, c);
}

/* ---- verbs ---- */

static void run_verb(struct org_call *c, struct json_body *b) {
        bool revokes = span_eq(c->route.verb, SPAN("revoke"));
        struct span account = {NULL, 0};
        bool hard = false;
        struct org_job *j;

        if (span_eq(c->route.verb, SPAN("pause")))
                (void)json_read_bool(b, "hard", JSON_NULLABLE, &hard);
        if (revokes && json_read_str(b, "account", JSON_REQUIRED, 1, JWT_SUB_MAX, &account) &&
            !jwt_sub_is_good(account))
                json_body_fault(b, "account", "expected 1..128 of 0x21-0x7E but , \" and \\");
        if (json_body_finish(b) != 0) {
                org_call_bad_body(c, b);
                return;
        }
        j = org_job_new(ORG_Q_SALE_VERB);
        org_job_text(j, span_of(c->sale));
        org_job_text(j, c->route.verb);
        org_job_bool(j, hard);
        org_job_text(j, account);
        if (c->if_match == ORG_NO_MATCH)
                org_job_null(j);
        else
                org_job_int(j, c->if_match);
        org_job_text(j, span_of(c->actor));
        org_db_run(c->s->db, j, on_written, c);
}

static void on_verb_body(struct org_call *c) {
        struct json_body b;

        if (!begin_write(c))
                return;
        if (c->if_match == ORG_NO_MATCH && span_eq(c->route.verb, SPAN("reset"))) {
                org_call_bad_field(c, "If-Match", "expected the version that is to be reset");
                return;
        }
        if (json_body_open(&b, c->x->body) != 0)
                org_call_bad_body(c, &b);
        else
                run_verb(c, &b);
        json_body_close(&b);
}

void org_sale_verb(struct org_call *c) {
        org_call_read_body(c, on_verb_body);
}
