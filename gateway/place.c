#include "gateway/place.h"

static void int_or_null(struct json_out *o, const char *name, int64_t value) {
        if (value < 0)
                json_out_null(o, name);
        else
                json_out_int(o, name, value);
}

static void eta(struct json_out *o, const struct adm_place *p) {
        if (p->eta_low_s < 0) {
                json_out_null(o, "eta_seconds");
                return;
        }
        json_out_object(o, "eta_seconds");
        json_out_int(o, "low", p->eta_low_s);
        json_out_int(o, "high", p->eta_high_s);
        json_out_object_end(o);
}

void gw_place_members(struct json_out *o, const struct gw_place_text *t) {
        const struct adm_place *p = t->place;
        json_out_str(o, "sale", t->sale);
        json_out_text(o, "state", adm_place_state_name(p->state));
        json_out_text(o, "reason", adm_reason_name(p->reason));
        int_or_null(o, "position", p->position);
        int_or_null(o, "ahead", p->ahead);
        eta(o, p);
        if (p->likely < 0)
                json_out_null(o, "likely");
        else
                json_out_bool(o, "likely", p->likely > 0);
        json_out_int(o, "poll_after_ms", p->poll_after_ms);
        json_out_time(o, "opens_at", p->opens_at_ms);
        if (t->in_body) {
                json_out_str(o, "ticket", t->ticket);
                json_out_str(o, "pass", t->pass);
        }
        json_out_time(o, "pass_expires_at", p->has_pass ? p->pass.exp_ms : JSON_NO_TIME);
}

int gw_place_status(const struct adm_place *p) {
        enum problem_code code = gw_place_problem(p);
        if (code != PROBLEM_CODE_COUNT)
                return problem_of(code)->status;
        return p->state == ADM_ADMITTED ? 200 : 202;
}

enum problem_code gw_place_problem(const struct adm_place *p) {
        switch (p->state) {
        case ADM_SOLD_OUT:
                return PROBLEM_SOLD_OUT;
        case ADM_CLOSED:
                return PROBLEM_CLOSED;
        case ADM_LINE_FULL:
                return PROBLEM_LINE_FULL;
        case ADM_NOT_OPEN:
        case ADM_WAITING:
        case ADM_READY:
        case ADM_ADMITTED:
        case ADM_ALL_HELD:
        case ADM_PAUSED:
                break;
        }
        return PROBLEM_CODE_COUNT;
}

static enum gw_page_face face_of(enum adm_place_state state, bool in_prequeue) {
        switch (state) {
        case ADM_NOT_OPEN:
                return GW_PAGE_NOT_OPEN;
        case ADM_WAITING:
                return in_prequeue ? GW_PAGE_PREQUEUE : GW_PAGE_WAITING;
        case ADM_READY:
        case ADM_ADMITTED:
                return GW_PAGE_READY;
        case ADM_ALL_HELD:
                return GW_PAGE_ALL_HELD;
        case ADM_PAUSED:
                return GW_PAGE_PAUSED;
        case ADM_SOLD_OUT:
                return GW_PAGE_SOLD_OUT;
        case ADM_CLOSED:
                return GW_PAGE_CLOSED;
        case ADM_LINE_FULL:
                return GW_PAGE_LINE_FULL;
        }
        return GW_PAGE_WAITING;
}

static enum gw_page_reason reason_of(enum adm_reason reason) {
        switch (reason) {
        case ADM_REASON_NONE:
                return GW_PAGE_NO_REASON;
        case ADM_FORGOTTEN:
                return GW_PAGE_FORGOTTEN;
        case ADM_TURN_MISSED:
                return GW_PAGE_TURN_MISSED;
        case ADM_TICKET_INVALID:
                return GW_PAGE_TICKET_INVALID;
        case ADM_OTHER_ACCOUNT:
                return GW_PAGE_OTHER_ACCOUNT;
        case ADM_ROUND_OVER:
                return GW_PAGE_ROUND_OVER;
        }
        return GW_PAGE_NO_REASON;
}

struct gw_page_facts gw_place_page(const struct adm_place *p, struct span sale, bool in_prequeue) {
        return (struct gw_page_facts){
                .face = face_of(p->state, in_prequeue),
                .reason = reason_of(p->reason),
                .sale = sale,
                .position = p->position,
                .ahead = p->ahead,
                .eta_low_s = p->eta_low_s,
                .eta_high_s = p->eta_high_s,
                .likely = p->likely,
                .poll_after_ms = p->poll_after_ms,
                .opens_at_ms = p->opens_at_ms,
        };
}
