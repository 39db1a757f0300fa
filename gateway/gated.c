#include "gateway/gated.h"

#include "gateway/answer.h"
#include "gateway/line.h"
#include "gateway/steps.h"

bool gw_gated_may_pass(const struct gw_request *r) {
        return r->is_bypassed || r->standing == GW_PASS_IN_FORCE;
}

/* The claim and the first use in one: the visitor is here already. */
static void use_new_pass(struct gw_request *r) {
        const struct adm_pass *p = &r->place.pass;
        r->shown = (struct adm_shown){
                .tag = r->tag,
                .round = p->round,
                .iat_ms = p->iat_ms,
                .exp_ms = p->exp_ms,
                .holder = p->life == ADM_PASS_HOLDER,
        };
        memcpy(r->shown.jti, p->jti, sizeof r->shown.jti);
        gw_count_store(&r->w->counters, GW_STORE_USE);
        if (adm_store_pass_use(r->w->shared->store, r->sale->handle, &r->shown, r->now_ms,
                               &r->pass) != ADM_DONE)
                return;
        r->standing = GW_PASS_IN_FORCE;
        r->pass.renewed = true; /* the visitor has none yet */
}

static enum gw_next look_only(struct gw_request *r) {
        bool is_away = gw_origin_is_away(r->w->shared, r->mono_ms);
        if (is_away)
                return gw_refuse_away(r);
        gw_line_look(r);
        return GW_GO_ON;
}

enum gw_next gw_gated_place(struct gw_request *r) {
        if (gw_gated_may_pass(r))
                return GW_GO_ON;
        if (r->standing == GW_PASS_STOPPED) {
                r->retry_after_ms = 5000;
                return gw_answer_problem(r, PROBLEM_PAUSED, "the sale is paused, also for passes");
        }
        if (!r->is_navigation)
                return look_only(r);
        enum gw_next next = gw_line_join(r);
        if (next == GW_GO_ON && r->place.state == ADM_ADMITTED && r->place.has_pass)
                use_new_pass(r);
        return next;
}
