#include "gateway/account.h"
#include "gateway/answer.h"
#include "gateway/limit.h"
#include "gateway/pass.h"
#include "gateway/steps.h"

static bool sale_needs_account(const struct gw_request *r) {
        return r->sale->facts.identity == ADM_IDENTITY_ACCOUNT;
}

static bool is_get(const struct gw_request *r) {
        return r->x->request.method == HTTP_GET || r->x->request.method == HTTP_HEAD;
}

static enum gw_next refuse_token(struct gw_request *r) {
        if (gw_limit_failure(r))
                return gw_refuse(r, PROBLEM_RATE_LIMITED, "too many bad credentials");
        return gw_refuse(r, PROBLEM_ACCOUNT_REQUIRED, "the account token is not valid");
}

/* ---- pass ---- */

static bool route_looks_at_pass(const struct gw_request *r) {
        switch (r->route.kind) {
        case GW_ROUTE_LINE:
                return r->x->request.method != HTTP_DELETE;
        case GW_ROUTE_HOLDS:
        case GW_ROUTE_HOLD:
        case GW_ROUTE_EXTEND:
        case GW_ROUTE_RELEASE:
                return true;
        case GW_ROUTE_GATED:
                return !r->is_bypassed;
        case GW_ROUTE_FLAG:
        case GW_ROUTE_LIST:
        case GW_ROUTE_JWKS:
        case GW_ROUTE_DRAW:
        case GW_ROUTE_EVENTS:
        case GW_ROUTE_NONE:
        case GW_ROUTES:
                break;
        }
        return false;
}

static bool route_is_holds(const struct gw_request *r) {
        return r->route.kind == GW_ROUTE_HOLDS || r->route.kind == GW_ROUTE_HOLD ||
               r->route.kind == GW_ROUTE_EXTEND || r->route.kind == GW_ROUTE_RELEASE;
}

/* To ask the line is no use of a pass; whatever goes on to origin or
 * upstream is. */
static int ask_store(struct gw_request *r) {
        struct adm_store *store = r->w->shared->store;
        bool is_use = r->route.kind == GW_ROUTE_GATED || r->route.kind == GW_ROUTE_HOLDS;
        gw_count_store(&r->w->counters, is_use ? GW_STORE_USE : GW_STORE_LOOK);
        return is_use ? adm_store_pass_use(store, r->sale->handle, &r->shown, r->now_ms, &r->pass)
                      : adm_store_pass_look(store, r->sale->handle, &r->shown, r->now_ms, &r->pass);
}

/* What an authentic pass is worth now. One that the store has forgotten may
 * still repeat a hold: the origin remembers the key. */
static enum gw_standing standing_of(struct gw_request *r) {
        bool is_fresh = r->now_ms - r->shown.exp_ms <= GW_REPLAY_MS;
        if (!r->sale->is_stored)
                return is_fresh ? GW_PASS_REPLAY : GW_PASS_DEAD;
        switch (ask_store(r)) {
        case ADM_DONE:
                return GW_PASS_IN_FORCE;
        case ADM_PASS_STOPPED:
                return GW_PASS_STOPPED;
        case ADM_PASS_REVOKED:
        case ADM_PASS_OLD_ROUND:
                return is_fresh ? GW_PASS_REVOKED : GW_PASS_DEAD;
        case ADM_PASS_OTHER:
                return GW_PASS_NONE;
        default:
                return is_fresh ? GW_PASS_REPLAY : GW_PASS_DEAD;
        }
}

enum gw_next gw_step_pass(struct gw_request *r) {
        struct jwt_claims claims;
        if (!r->pass_text.p || !route_looks_at_pass(r))
                return GW_GO_ON;
        int outcome = gw_pass_read(r, &claims);
        if (outcome != 0 && outcome != JWT_EXPIRED) {
                r->pass_bad = true;
                return GW_GO_ON;
        }
        if (r->token.p) {
                if (!gw_account_by_token(r))
                        return refuse_token(r);
                if (!adm_tag_equal(&r->tag, &r->shown.tag)) {
                        r->pass_is_foreign = true;
                        return GW_GO_ON;
                }
        } else if (sale_needs_account(r) && route_is_holds(r)) {
                return gw_refuse(r, PROBLEM_ACCOUNT_REQUIRED, "a pass does not name you here");
        }
        r->standing = standing_of(r);
        bool is_good = r->standing == GW_PASS_IN_FORCE || r->standing == GW_PASS_STOPPED;
        if (!r->has_account && (is_good || !sale_needs_account(r)))
                gw_account_set(r, span_of(claims.sub));
        return GW_GO_ON;
}

/* ---- sold out, closed ---- */

static bool pass_goes_first(const struct gw_request *r) {
        if (r->standing == GW_PASS_IN_FORCE || r->standing == GW_PASS_STOPPED)
                return true;
        return r->route.kind == GW_ROUTE_HOLDS &&
               (r->standing == GW_PASS_REPLAY || r->standing == GW_PASS_REVOKED);
}

static bool is_ended(const struct gw_sale *s) {
        return s->state == ADM_SALE_CLOSED || s->state == ADM_SALE_SOLD_OUT ||
               s->facts.queue == ADM_QUEUE_REJECT;
}

static enum gw_next answer_ended(struct gw_request *r) {
        const struct gw_pages *p = &r->sale->pages;
        enum gw_form form = r->wants_html ? GW_FORM_HTML : GW_FORM_JSON;
        bool sold_out =
                r->sale->state == ADM_SALE_SOLD_OUT && r->sale->facts.queue != ADM_QUEUE_REJECT;
        enum gw_answer a = sold_out ? GW_ANSWER_SOLD_OUT : GW_ANSWER_CLOSED;
        if (r->route.kind == GW_ROUTE_HOLDS)
                return gw_answer_page(r, p->end_hold, a);
        if (r->route.kind == GW_ROUTE_LINE)
                return gw_answer_page(r, p->end_line[form], a);
        return gw_answer_page(r, p->end_gated[form], a);
}

enum gw_next gw_step_ended(struct gw_request *r) {
        enum http_method method = r->x->request.method;
        if (r->is_bypassed || pass_goes_first(r))
                return GW_GO_ON;
        if (r->route.kind == GW_ROUTE_GATED && method == HTTP_OPTIONS)
                return gw_answer_nothing(r, false, GW_ANSWER_PAGE);
        if (r->route.kind == GW_ROUTE_GATED && !is_get(r))
                return gw_answer_problem(r, PROBLEM_PASS_REQUIRED, "this path needs a pass");
        if (!is_ended(r->sale))
                return GW_GO_ON;
        bool asks_line = r->route.kind == GW_ROUTE_LINE && method != HTTP_DELETE;
        if (asks_line || r->route.kind == GW_ROUTE_GATED || r->route.kind == GW_ROUTE_HOLDS)
                return answer_ended(r);
        return GW_GO_ON;
}

/* ---- account ---- */

static bool route_needs_account(const struct gw_request *r) {
        if (r->is_bypassed || r->route.kind == GW_ROUTE_EVENTS)
                return false;
        if (r->route.kind == GW_ROUTE_LINE)
                return r->x->request.method == HTTP_POST && !r->is_prefetch;
        return true;
}

/* A poll needs no account, but a token that is shown is judged. */
static bool route_judges_token(const struct gw_request *r) {
        return r->token.p && r->route.kind == GW_ROUTE_LINE && r->x->request.method != HTTP_DELETE;
}

enum gw_next gw_step_account(struct gw_request *r) {
        if (!route_needs_account(r)) {
                if (route_judges_token(r) && !r->has_account && !gw_account_by_token(r))
                        return refuse_token(r);
                return GW_GO_ON;
        }
        if (r->token.p) {
                if (!r->has_account && !gw_account_by_token(r))
                        return refuse_token(r);
                return GW_GO_ON;
        }
        if (r->has_account)
                return GW_GO_ON;
        if (sale_needs_account(r))
                return gw_refuse(r, PROBLEM_ACCOUNT_REQUIRED, "sign in first");
        if (gw_account_by_guest(r))
                return GW_GO_ON;
        bool joins = r->route.kind == GW_ROUTE_LINE ||
                     (r->route.kind == GW_ROUTE_GATED && r->is_navigation);
        if (joins)
                gw_account_new_guest(r);
        return GW_GO_ON;
}

enum gw_next gw_step_limit(struct gw_request *r) {
        if (r->ticket_bad && !r->has_account && gw_limit_failure(r)) {
                if (!is_get(r))
                        return gw_refuse(r, PROBLEM_RATE_LIMITED, "too many bad credentials");
                r->retry_after_ms = 0;
        }
        if (r->is_new_guest && !gw_origin_is_away(r->w->shared, r->mono_ms) && gw_limit_guest(r))
                return gw_refuse(r, PROBLEM_RATE_LIMITED, "too many new guests");
        bool forwards = r->route.kind == GW_ROUTE_GATED && r->standing == GW_PASS_IN_FORCE;
        if (r->has_account && !r->is_new_guest && !r->is_bypassed && !forwards &&
            route_needs_account(r) && gw_limit_account(r))
                return gw_refuse(r, PROBLEM_RATE_LIMITED, "too many requests of one account");
        return GW_GO_ON;
}
