#include "origin/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PROBLEM_BYTES 2048
#define RETRY_S 1

static void on_gone(struct http_exchange *x) {
        struct org_call *c = x->user;

        c->x = NULL;
        /* Nobody works for it yet: the body was still to come. */
        if (c->on_body) {
                free(c->kept);
                free(c);
        }
}

static void on_body(struct http_exchange *x, int outcome) {
        struct org_call *c = x->user;
        void (*next)(struct org_call *) = c->on_body;

        c->on_body = NULL;
        switch ((enum http_body_outcome)outcome) {
        case HTTP_BODY_DONE:
                next(c);
                break;
        case HTTP_BODY_TOO_LARGE:
                org_call_problem(c, PROBLEM_BODY_TOO_LARGE, NULL, NULL, NULL);
                break;
        case HTTP_BODY_LATE:
                org_call_problem(c, PROBLEM_REQUEST_TIMEOUT, NULL, NULL, NULL);
                break;
        }
}

static const struct http_exchange_events events = {.on_body = on_body, .on_gone = on_gone};

struct org_call *org_call_new(struct org_service *s, struct http_exchange *x,
                              const struct org_route *route) {
        struct org_call *c = calloc(1, sizeof(*c));

        if (!c) {
                http_answer(x, 503, NULL, 0, SPAN(""));
                return NULL;
        }
        c->s = s;
        c->x = x;
        c->route = *route;
        c->if_match = ORG_NO_MATCH;
        x->user = c;
        x->events = &events;
        return c;
}

void org_call_read_body(struct org_call *c, void (*next)(struct org_call *c)) {
        org_call_read_large_body(c, 0, next);
}

void org_call_read_large_body(struct org_call *c, size_t room, void (*next)(struct org_call *c)) {
        size_t usual = c->s->conf->limits.body_bytes;

        c->on_body = next;
        http_exchange_read_body(c->x, room > usual ? room : usual);
}

void org_call_header(struct org_call *c, const char *name, struct span value) {
        if (c->n_headers == ORG_CALL_HEADERS || c->header_len + value.len > sizeof(c->header_text))
                return;
        memcpy(c->header_text + c->header_len, value.p, value.len);
        c->headers[c->n_headers++] = (struct http_header){
                .name = span_of(name), .value = {c->header_text + c->header_len, value.len}};
        c->header_len += value.len;
}

void org_call_header_int(struct org_call *c, const char *name, int64_t value) {
        char text[24];
        int n = snprintf(text, sizeof(text), "%" PRId64, value);

        org_call_header(c, name, (struct span){text, (size_t)n});
}

void org_call_answer(struct org_call *c, int status, const char *media_type, struct span body) {
        struct http_header headers[ORG_CALL_HEADERS + 2];
        size_t n = 0;

        if (c->x) {
                headers[n++] = (struct http_header){.name = SPAN("content-type"),
                                                    .value = span_of(media_type)};
                headers[n++] = (struct http_header){.name = SPAN("cache-control"),
                                                    .value = SPAN("private, no-store")};
                memcpy(headers + n, c->headers, c->n_headers * sizeof(headers[0]));
                c->x->user = NULL;
                http_answer(c->x, status, headers, n + c->n_headers, body);
        }
        free(c->kept);
        free(c);
}

void org_call_json(struct org_call *c, int status, struct span body) {
        org_call_answer(c, status, "application/json", body);
}

static bool wants_retry_after(enum problem_code code) {
        int status = problem_of(code)->status;

        return code == PROBLEM_ALL_HELD || status == 503 || status == 429;
}

void org_call_problem(struct org_call *c, enum problem_code code, const char *detail,
                      problem_members *members, const void *context) {
        char text[PROBLEM_BYTES];
        struct json_out o;

        if (wants_retry_after(code))
                org_call_header_int(c, "retry-after", RETRY_S);
        json_out_init(&o, text, sizeof(text));
        problem_render(&o, code, detail, members, context);
        if (o.overflow) {
                json_out_init(&o, text, sizeof(text));
                problem_render(&o, code, NULL, NULL, NULL);
        }
        org_call_answer(c, problem_of(code)->status, PROBLEM_MEDIA_TYPE, json_out_done(&o));
}

struct fault {
        struct span field, expected;
};

static void add_fault(struct json_out *o, const void *context) {
        const struct fault *f = context;

        json_out_str(o, "field", f->field);
        json_out_str(o, "expected", f->expected);
}

static void answer_fault(struct org_call *c, struct span field, struct span expected) {
        struct fault f = {field, expected};
        char detail[JSON_ERROR_MAX + 64];

        (void)snprintf(detail, sizeof(detail), "field `%.*s`: %.*s", (int)field.len, field.p,
                       (int)expected.len, expected.p);
        org_call_problem(c, PROBLEM_BAD_REQUEST, detail, add_fault, &f);
}

void org_call_bad_field(struct org_call *c, const char *field, const char *expected) {
        answer_fault(c, span_of(field), span_of(expected));
}

/* "field `qty`: expected an integer" is taken apart for the members. */
void org_call_bad_body(struct org_call *c, const struct json_body *body) {
        const char *start = strchr(body->error, '`');
        const char *end = start ? strchr(start + 1, '`') : NULL;
        const char *rest = end ? end + 1 : NULL;

        if (!rest) {
                org_call_problem(c, PROBLEM_BAD_REQUEST, body->error, NULL, NULL);
                return;
        }
        rest += strspn(rest, ": ");
        answer_fault(c, (struct span){start + 1, (size_t)(end - start - 1)}, span_of(rest));
}

void org_call_db_failed(struct org_call *c, enum org_db_outcome outcome) {
        switch (outcome) {
        case ORG_DB_UNKNOWN:
                org_call_problem(c, PROBLEM_PAUSED,
                                 "The outcome is not known. Repeat the same request.", NULL, NULL);
                break;
        case ORG_DB_BUSY:
                org_call_problem(c, PROBLEM_PAUSED, "Too much at once. Repeat the same request.",
                                 NULL, NULL);
                break;
        case ORG_DB_AWAY:
                org_call_problem(c, PROBLEM_PAUSED, "The database cannot be reached.", NULL, NULL);
                break;
        case ORG_DB_VIOLATED:
                org_call_problem(c, PROBLEM_PAUSED, "The item is paused: its numbers broke a rule.",
                                 NULL, NULL);
                break;
        case ORG_DB_DONE:
        case ORG_DB_REFUSED:
        case ORG_DB_FAILED:
                org_call_problem(c, PROBLEM_INTERNAL, NULL, NULL, NULL);
                break;
        }
}

void org_call_find_actor(struct org_call *c) {
        const struct http_request *r = &c->x->request;
        struct span actor = SPAN("service");

        for (size_t i = 0; i < r->n_headers; i++)
                if (span_eq(r->headers[i].name, SPAN("sluice-actor")) &&
                    jwt_sub_is_good(r->headers[i].value) &&
                    r->headers[i].value.len < sizeof(c->actor))
                        actor = r->headers[i].value;
        memcpy(c->actor, actor.p, actor.len);
        c->actor[actor.len] = '\0';
}

static bool parse_tag(struct span tag, int64_t *version) {
        int64_t v = 0;

        if (tag.len < 3 || tag.len > 20 || tag.p[0] != '"' || tag.p[tag.len - 1] != '"')
                return false;
        for (size_t i = 1; i + 1 < tag.len; i++) {
                if (tag.p[i] < '0' || tag.p[i] > '9')
                        return false;
                v = v * 10 + (tag.p[i] - '0');
        }
        *version = v;
        return true;
}

bool org_call_find_match(struct org_call *c) {
        struct span match = http_request_field(&c->x->request, HTTP_FIELD_IF_MATCH);
        struct span none = http_request_field(&c->x->request, HTTP_FIELD_IF_NONE_MATCH);

        if (none.p && span_eq(none, SPAN("*")))
                c->if_match = 0;
        if (!match.p || span_eq(match, SPAN("*")))
                return true;
        if (span_starts(match, SPAN("W/\"")))
                c->if_match = INT64_MAX;
        else if (!parse_tag(match, &c->if_match)) {
                org_call_bad_field(c, "If-Match", "expected a version in quotes, as \"3\"");
                return false;
        }
        return true;
}
