#include "gateway/answer.h"
#include "gateway/account.h"
#include "gateway/cookie.h"
#include "gateway/hold.h"
#include "gateway/rule.h"
#include "gateway/steps.h"

/* 503 before there ever was a snapshot: also to those who ask for a sale that
 * may not exist. */
static enum gw_next refuse_unknown(struct gw_request *r) {
        r->retry_after_ms = 2000;
        return gw_answer_problem(r, PROBLEM_PAUSED, "there has been no snapshot of the sales yet");
}

static bool is_known(struct gw_request *r, struct span etag) {
        struct span shown = http_request_field(&r->x->request, HTTP_FIELD_IF_NONE_MATCH);
        return shown.p && http_etag_matches(shown, etag);
}

static enum gw_next answer_flag(struct gw_request *r) {
        if (!r->snap->known)
                return refuse_unknown(r);
        r->sale = gw_snapshot_sale(r->snap, r->route.sale);
        if (!r->sale)
                return gw_answer_problem(r, PROBLEM_NOT_FOUND, "there is no such sale");
        const struct gw_pages *p = &r->sale->pages;
        return gw_answer_page(r, is_known(r, span_of(p->etag)) ? p->flag_304 : p->flag,
                              GW_ANSWER_FLAG);
}

static enum gw_next answer_list(struct gw_request *r) {
        if (!r->snap->known)
                return refuse_unknown(r);
        bool same = is_known(r, span_of(r->snap->list_etag));
        return gw_answer_page(r, same ? r->snap->list_304 : r->snap->list, GW_ANSWER_FLAG);
}

static enum gw_next answer_keys(struct gw_request *r) {
        const struct gw_settings *s = r->snap->settings;
        bool same = is_known(r, span_of(s->jwks_etag));
        return gw_answer_page(r, same ? s->jwks_304 : s->jwks, GW_ANSWER_FLAG);
}

static bool method_is_served(const struct gw_request *r) {
        return gw_route_methods(r->route.kind) & (1U << r->x->request.method);
}

static enum gw_next judge_host(struct gw_request *r) {
        const struct http_request *q = &r->x->request;
        if (!span_eq(q->scheme, SPAN("https")))
                return gw_answer_problem(r, PROBLEM_BAD_REQUEST, "the scheme is not https");
        switch (gw_host_of(q, gw_request_conf(r), r->host, &r->host_len)) {
        case GW_HOST_MALFORMED:
                return gw_answer_problem(r, PROBLEM_BAD_REQUEST, "the authority is malformed");
        case GW_HOST_FOREIGN:
                return gw_answer_problem(r, PROBLEM_MISDIRECTED, "this host is not served here");
        default:
                return GW_GO_ON;
        }
}

static bool best_is_html(const struct http_request *q) {
        struct span accept = http_request_field(q, HTTP_FIELD_ACCEPT);
        return accept.p && http_accept_q(accept, SPAN("text/html")) >
                                   http_accept_q(accept, SPAN("application/json"));
}

/* A GET a person makes: not a prefetch, not a script's, not an image's. */
static bool is_navigation(const struct gw_request *r) {
        const struct http_request *q = &r->x->request;
        if (q->method != HTTP_GET || r->is_prefetch)
                return false;
        struct span mode = http_request_field(q, HTTP_FIELD_SEC_FETCH_MODE);
        return mode.p ? span_eq(mode, SPAN("navigate")) : r->wants_html;
}

enum gw_next gw_step_route(struct gw_request *r) {
        const struct http_request *q = &r->x->request;
        if (gw_route_of(q->path, &r->route) != GW_ROUTE_FOUND)
                return gw_answer_problem(r, PROBLEM_BAD_REQUEST, "the path is malformed");
        /* The flag is the same for everybody: nothing but its path counts. */
        if (r->route.kind == GW_ROUTE_FLAG && method_is_served(r))
                return answer_flag(r);
        r->wants_html = best_is_html(q);
        enum gw_next next = r->route.kind == GW_ROUTE_FLAG ? GW_GO_ON : judge_host(r);
        if (next != GW_GO_ON)
                return next;
        if (!method_is_served(r))
                return gw_answer_problem(r, PROBLEM_METHOD_NOT_ALLOWED, NULL);
        if (r->route.kind == GW_ROUTE_LIST)
                return answer_list(r);
        if (r->route.kind == GW_ROUTE_JWKS)
                return answer_keys(r);
        if (r->route.kind == GW_ROUTE_NONE)
                return gw_answer_problem(r, PROBLEM_NOT_FOUND, NULL);
        r->is_prefetch = q->at[HTTP_FIELD_SEC_PURPOSE] || q->at[HTTP_FIELD_PURPOSE];
        r->is_navigation = is_navigation(r);
        return GW_GO_ON;
}

/* Field and cookie of one kind; false when they differ. */
static bool read_credential(struct gw_request *r, enum http_field field, enum gw_cookie kind,
                            struct span sale, struct span *out) {
        const struct http_request *q = &r->x->request;
        struct span shown = http_request_field(q, field), kept = {NULL, 0};
        if (r->has_cookies)
                kept = gw_cookie_get(http_request_field(q, HTTP_FIELD_COOKIE), kind, sale);
        *out = shown.p ? shown : kept;
        r->by_header |= shown.p != NULL;
        return !shown.p || !kept.p || span_eq(shown, kept);
}

/* On the line a refusal tells the place members, where there is such a sale. */
static enum gw_next refuse_two(struct gw_request *r, const char *detail) {
        if (!r->sale && r->snap->known)
                r->sale = gw_snapshot_sale(r->snap, r->route.sale);
        return gw_refuse(r, PROBLEM_BAD_REQUEST, detail);
}

static enum gw_next read_credentials(struct gw_request *r, struct span sale) {
        const struct http_request *q = &r->x->request;
        struct span cookies = http_request_field(q, HTTP_FIELD_COOKIE);
        r->has_cookies = cookies.p != NULL;
        if (r->has_cookies)
                r->guest_text = gw_cookie_get(cookies, GW_COOKIE_GUEST, sale);
        r->token = gw_account_token(q, gw_request_conf(r));
        if (!read_credential(r, HTTP_FIELD_SLUICE_TICKET, GW_COOKIE_TICKET, sale, &r->ticket_text))
                return refuse_two(r, "cookie and Sluice-Ticket differ");
        if (!read_credential(r, HTTP_FIELD_SLUICE_PASS, GW_COOKIE_PASS, sale, &r->pass_text))
                return refuse_two(r, "cookie and Sluice-Pass differ");
        return GW_GO_ON;
}

enum gw_next gw_step_read(struct gw_request *r) {
        if (r->route.kind == GW_ROUTE_GATED)
                return GW_GO_ON; /* whose cookies count is known with the sale */
        enum gw_next next = read_credentials(r, r->route.sale);
        if (next != GW_GO_ON || r->route.kind != GW_ROUTE_HOLDS)
                return next;
        return gw_hold_read(r);
}

static enum gw_next find_by_rule(struct gw_request *r) {
        struct span host = {r->host, r->host_len};
        switch (gw_rules_find(r->snap, host, r->route.path, &r->sale)) {
        case GW_RULE_NONE:
                return gw_answer_problem(r, PROBLEM_NOT_FOUND, NULL);
        case GW_RULE_BYPASSED:
                r->is_bypassed = true;
                return GW_GO_ON;
        case GW_RULE_GATED:
                break;
        }
        return read_credentials(r, span_of(r->sale->facts.id));
}

/* A ticket counts when it is authentic and of this sale's present line. */
static void read_ticket(struct gw_request *r) {
        if (!r->ticket_text.p)
                return;
        int outcome = adm_ticket_decode(r->snap->settings->ticket_keys, r->ticket_text.p,
                                        r->ticket_text.len, &r->ticket);
        r->has_ticket = outcome == ADM_TICKET_GOOD;
        r->ticket_bad = !r->has_ticket;
}

enum gw_next gw_step_sale(struct gw_request *r) {
        if (!r->snap->known)
                return refuse_unknown(r);
        if (r->route.kind == GW_ROUTE_GATED) {
                enum gw_next next = find_by_rule(r);
                if (next != GW_GO_ON)
                        return next;
        } else {
                r->sale = gw_snapshot_sale(r->snap, r->route.sale);
                if (!r->sale)
                        return gw_answer_problem(r, PROBLEM_NOT_FOUND, "there is no such sale");
        }
        if (r->route.kind == GW_ROUTE_DRAW)
                return gw_answer_problem(r, PROBLEM_NOT_FOUND, "this sale has no draw");
        read_ticket(r);
        return GW_GO_ON;
}

enum gw_next gw_step_network(struct gw_request *r) {
        r->address = gw_address_of_client(r->x->peer, &r->x->request,
                                          &gw_request_conf(r)->trusted_proxies);
        return GW_GO_ON;
}
