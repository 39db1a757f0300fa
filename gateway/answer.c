#include "gateway/answer.h"

#include <stdio.h>

#include "gateway/cookie.h"
#include "gateway/guest.h"
#include "gateway/pass.h"
#include "gateway/place.h"
#include "net/log.h"

#define BODY_MAX 4096

static const struct span type_json = SPAN("application/json");
static const struct span type_html = SPAN("text/html; charset=utf-8");
static const struct span type_problem = SPAN(PROBLEM_MEDIA_TYPE);

void gw_head_init(struct gw_head *h) {
        h->n = 0;
        h->used = 0;
}

void gw_head_add(struct gw_head *h, struct span name, struct span value) {
        assert(h->n < GW_HEAD_FIELDS);
        h->at[h->n++] = (struct http_header){.name = name, .value = value};
}

static char *head_room(struct gw_head *h, size_t n) {
        assert(n <= GW_HEAD_TEXT - h->used);
        return h->text + h->used;
}

void gw_head_copy(struct gw_head *h, struct span name, struct span value) {
        char *to = head_room(h, value.len);
        memcpy(to, value.p, value.len);
        h->used += value.len;
        gw_head_add(h, name, (struct span){to, value.len});
}

static void head_int(struct gw_head *h, struct span name, int64_t value) {
        char digits[24];
        int n = snprintf(digits, sizeof digits, "%lld", (long long)value);
        gw_head_copy(h, name, (struct span){digits, (size_t)n});
}

static void head_cookie(struct gw_head *h, struct gw_request *r, enum gw_cookie kind,
                        struct span value) {
        size_t cap = GW_COOKIE_NAME_MAX + GW_COOKIE_SET_MAX + value.len;
        char *to = head_room(h, cap);
        size_t n = gw_cookie_set(kind, gw_request_sale_id(r), value, to, cap);
        h->used += n;
        gw_head_add(h, SPAN("set-cookie"), (struct span){to, n});
}

/* Counts the answer that comes now and takes the request's reference to its
 * snapshot, to be dropped after sending: `r` itself may be gone by then. */
static struct gw_snapshot *ending(struct gw_request *r, enum gw_answer a) {
        struct gw_counters *c = &r->w->counters;
        struct gw_snapshot *snap = r->is_kept ? r->snap : NULL;
        gw_count_answer(c, r->sale ? r->sale->slot : 0, a);
        metrics_observe(&c->answer_seconds, (uint64_t)(loop_clock_us() - r->started_us));
        log_event(LOG_DEBUG, "access", "answered", LOG_S("route", gw_route_name(r->route.kind)),
                  LOG_SPAN("sale", gw_request_sale_id(r)), LOG_S("answer", gw_answer_name(a)));
        if (snap) {
                r->snap = NULL;
                metrics_set(&c->parked, metrics_read(&c->parked) - 1);
        }
        return snap;
}

void gw_answer_count(struct gw_request *r, enum gw_answer a) {
        struct gw_snapshot *snap = ending(r, a);
        gw_snapshot_free(&snap);
}

static enum gw_next send_head(struct gw_request *r, int status, const struct gw_head *h,
                              struct span body, enum gw_answer a) {
        struct http_exchange *x = r->x;
        struct gw_snapshot *snap = ending(r, a);
        http_answer(x, status, h->at, h->n, body);
        gw_snapshot_free(&snap);
        return GW_DONE;
}

/* ---- what is personal ---- */

/* What an answer tells of ticket and pass, made once for body and cookies. */
struct personal {
        struct span ticket, pass; /* p NULL: none */
        bool in_body;
        bool any;
};

static const struct adm_pass *pass_to_give(const struct gw_request *r) {
        if (r->standing == GW_PASS_IN_FORCE && r->pass.renewed)
                return &r->pass;
        return r->has_place && r->place.has_pass ? &r->place.pass : NULL;
}

static struct personal personal_of(struct gw_head *h, struct gw_request *r) {
        struct personal p = {.in_body = !r->has_cookies || r->by_header};
        const struct adm_pass *pass = pass_to_give(r);
        if (r->has_place && r->place.has_ticket) {
                char *to = head_room(h, ADM_TICKET_TEXT_LEN);
                adm_ticket_encode(r->snap->settings->ticket_keys, &r->place.ticket, to);
                h->used += ADM_TICKET_TEXT_LEN;
                p.ticket = (struct span){to, ADM_TICKET_TEXT_LEN};
        }
        if (pass && r->has_account) {
                size_t n = 0;
                char *to = head_room(h, GW_PASS_TEXT_MAX);
                if (gw_pass_sign(r->snap->settings, r->sale, gw_request_account(r), pass, to, &n) ==
                    0) {
                        h->used += n;
                        p.pass = (struct span){to, n};
                } else {
                        metrics_add(&r->w->counters.render_failed, 1);
                }
        }
        return p;
}

static void personal_fields(struct gw_head *h, struct gw_request *r, struct personal *p,
                            bool pass_as_field) {
        p->any = p->ticket.p || p->pass.p;
        if (r->by_header) {
                if (p->pass.p && pass_as_field)
                        gw_head_add(h, SPAN("sluice-pass"), p->pass);
                if (p->ticket.p && pass_as_field)
                        gw_head_add(h, SPAN("sluice-ticket"), p->ticket);
                return;
        }
        if (p->ticket.p)
                head_cookie(h, r, GW_COOKIE_TICKET, p->ticket);
        if (p->pass.p)
                head_cookie(h, r, GW_COOKIE_PASS, p->pass);
        if (r->is_new_guest && p->any) {
                char text[GW_GUEST_TEXT_LEN];
                gw_guest_encode(r->snap->settings->guest_key, &r->tag, text);
                head_cookie(h, r, GW_COOKIE_GUEST, (struct span){text, sizeof text});
        }
}

bool gw_head_personal(struct gw_head *h, struct gw_request *r) {
        struct personal p = personal_of(h, r);
        personal_fields(h, r, &p, true);
        return p.any;
}

static void head_private(struct gw_head *h, struct gw_request *r) {
        gw_head_add(h, SPAN("cache-control"), SPAN("private, no-store"));
        if (r->retry_after_ms > 0)
                head_int(h, SPAN("retry-after"), (r->retry_after_ms + 999) / 1000);
}

/* What tells a place tells twice when to come back: both say the same. */
static void settle_retry(struct gw_request *r) {
        if (!r->has_place || r->place.state == ADM_ADMITTED)
                return;
        if (r->retry_after_ms < r->place.poll_after_ms)
                r->retry_after_ms = r->place.poll_after_ms;
        r->place.poll_after_ms = r->retry_after_ms;
}

/* ---- the answers ---- */

enum gw_next gw_answer_page(struct gw_request *r, struct http_page *page, enum gw_answer a) {
        struct http_exchange *x = r->x;
        struct gw_snapshot *snap = ending(r, a);
        http_answer_page(x, page);
        gw_snapshot_free(&snap);
        return GW_DONE;
}

enum gw_next gw_answer_json(struct gw_request *r, int status, struct gw_head *h, struct span body,
                            enum gw_answer a) {
        gw_head_add(h, SPAN("content-type"), status >= 400 ? type_problem : type_json);
        head_private(h, r);
        return send_head(r, status, h, body, a);
}

enum gw_next gw_answer_nothing(struct gw_request *r, bool forget, enum gw_answer a) {
        struct gw_head h;
        gw_head_init(&h);
        head_private(&h, r);
        if (forget && !r->by_header && r->ticket_text.p)
                head_cookie(&h, r, GW_COOKIE_TICKET, (struct span){NULL, 0});
        if (forget && !r->by_header && r->pass_text.p)
                head_cookie(&h, r, GW_COOKIE_PASS, (struct span){NULL, 0});
        return send_head(r, 204, &h, (struct span){NULL, 0}, a);
}

static enum gw_answer word_of_problem(enum problem_code code) {
        if (code == PROBLEM_SOLD_OUT || code == PROBLEM_SOLD_OUT_HOLD)
                return GW_ANSWER_SOLD_OUT;
        if (code == PROBLEM_CLOSED)
                return GW_ANSWER_CLOSED;
        return code == PROBLEM_RATE_LIMITED ? GW_ANSWER_LIMITED : GW_ANSWER_REFUSED;
}

static enum gw_answer word_of_place(const struct gw_request *r) {
        bool is_new = r->place.has_ticket && !r->has_ticket;
        if (r->wants_html)
                return GW_ANSWER_PAGE;
        if (r->place.state == ADM_ADMITTED)
                return GW_ANSWER_ADMITTED;
        if (r->place.state == ADM_READY)
                return GW_ANSWER_READY;
        return is_new ? GW_ANSWER_JOIN : GW_ANSWER_WAITING;
}

/* The page of a place, or of "sign in" and "paused" where there is none. */
static struct span page_of(struct gw_request *r, enum problem_code code) {
        static _Thread_local char body[GW_PAGE_MAX_BYTES];
        struct span id = gw_request_sale_id(r);
        struct gw_page_facts f = {.face = GW_PAGE_PAUSED,
                                  .sale = id,
                                  .position = -1,
                                  .ahead = -1,
                                  .eta_low_s = -1,
                                  .eta_high_s = -1,
                                  .likely = -1,
                                  .poll_after_ms = r->retry_after_ms};
        if (r->has_place)
                f = gw_place_page(&r->place, id, r->sale->state == ADM_SALE_PREQUEUE);
        if (code == PROBLEM_ACCOUNT_REQUIRED) {
                f.face = GW_PAGE_SIGN_IN;
                f.poll_after_ms = 0;
                f.login_url = span_of(r->sale->login_url);
        }
        size_t n = gw_page_render(&f, body, sizeof body);
        if (n == 0)
                metrics_add(&r->w->counters.render_failed, 1);
        return (struct span){body, n};
}

static enum gw_next answer_html(struct gw_request *r, int status, enum problem_code code,
                                enum gw_answer a) {
        struct gw_head h;
        gw_head_init(&h);
        (void)gw_head_personal(&h, r);
        gw_head_add(&h, SPAN("content-type"), type_html);
        gw_head_add(&h, SPAN("content-security-policy"), gw_page_csp());
        gw_head_add(&h, SPAN("x-content-type-options"), SPAN("nosniff"));
        gw_head_add(&h, SPAN("vary"), SPAN("Accept, Accept-Language"));
        if (code == PROBLEM_ACCOUNT_REQUIRED)
                gw_head_add(&h, SPAN("www-authenticate"), SPAN("Bearer"));
        head_private(&h, r);
        return send_head(r, status, &h, page_of(r, code), a);
}

/* Refusals that a person can do something about have a page of their own. */
static bool problem_has_page(const struct gw_request *r, enum problem_code code) {
        if (!r->wants_html || !r->sale)
                return false;
        return code == PROBLEM_ACCOUNT_REQUIRED || code == PROBLEM_PAUSED ||
               code == PROBLEM_LINE_FULL || code == PROBLEM_SOLD_OUT || code == PROBLEM_CLOSED;
}

static enum gw_next answer_document(struct gw_request *r, int status, enum problem_code code,
                                    const char *detail, enum gw_answer a) {
        char body[BODY_MAX + GW_PASS_TEXT_MAX];
        struct gw_head h;
        struct json_out o;
        bool is_problem = code != PROBLEM_CODE_COUNT;
        gw_head_init(&h);
        json_out_init(&o, body, sizeof body);
        struct personal p = personal_of(&h, r);
        personal_fields(&h, r, &p, false);
        if (is_problem)
                problem_begin(&o, code, detail);
        else
                json_out_object(&o, NULL);
        if (r->has_place) {
                struct gw_place_text text = {.sale = gw_request_sale_id(r),
                                             .place = &r->place,
                                             .in_body = p.in_body,
                                             .ticket = p.ticket,
                                             .pass = p.pass};
                gw_place_members(&o, &text);
        }
        if (is_problem)
                problem_end(&o);
        else
                json_out_object_end(&o);
        gw_head_add(&h, SPAN("content-type"), is_problem ? type_problem : type_json);
        if (code == PROBLEM_ACCOUNT_REQUIRED)
                gw_head_add(&h, SPAN("www-authenticate"), SPAN("Bearer"));
        if (code == PROBLEM_METHOD_NOT_ALLOWED)
                gw_head_add(&h, SPAN("allow"), gw_route_allow(r->route.kind));
        head_private(&h, r);
        return send_head(r, status, &h, json_out_done(&o), a);
}

enum gw_next gw_answer_problem(struct gw_request *r, enum problem_code code, const char *detail) {
        int status = problem_of(code)->status;
        enum gw_answer a = word_of_problem(code);
        settle_retry(r);
        if (problem_has_page(r, code))
                return answer_html(r, status, code, a);
        return answer_document(r, status, code, detail, a);
}

enum gw_next gw_answer_place(struct gw_request *r) {
        assert(r->has_place);
        enum problem_code code = gw_place_problem(&r->place);
        r->retry_after_ms = r->place.state == ADM_ADMITTED ? 0 : r->place.poll_after_ms;
        if (code != PROBLEM_CODE_COUNT)
                return gw_answer_problem(r, code, NULL);
        int status = gw_place_status(&r->place);
        if (r->wants_html)
                return answer_html(r, status, PROBLEM_CODE_COUNT, word_of_place(r));
        return answer_document(r, status, PROBLEM_CODE_COUNT, NULL, word_of_place(r));
}
