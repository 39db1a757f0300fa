#include "gateway/line.h"

#include "gateway/account.h"
#include "gateway/answer.h"
#include "gateway/names.h"
#include "gateway/steps.h"
#include "net/random.h"

static uint32_t jitter(struct gw_request *r) {
        return (uint32_t)random_fast_next(&r->w->random);
}

static bool is_away(const struct gw_request *r) {
        return !r->sale->is_stored || gw_origin_is_away(r->w->shared, r->mono_ms);
}

static enum adm_place_state state_of_sale(const struct gw_sale *s) {
        switch (s->state) {
        case ADM_SALE_SCHEDULED:
                return ADM_NOT_OPEN;
        case ADM_SALE_PREQUEUE:
        case ADM_SALE_OPEN:
                return ADM_WAITING;
        case ADM_SALE_PAUSED:
                return ADM_PAUSED;
        case ADM_SALE_ALL_HELD:
                return ADM_ALL_HELD;
        case ADM_SALE_SOLD_OUT:
                return ADM_SOLD_OUT;
        case ADM_SALE_CLOSED:
                return ADM_CLOSED;
        }
        return ADM_PAUSED;
}

void gw_line_look(struct gw_request *r) {
        r->has_place = true;
        if (!r->sale->is_stored || adm_store_look(r->w->shared->store, r->sale->handle, jitter(r),
                                                  r->now_ms, &r->place) != ADM_DONE)
                r->place = (struct adm_place){
                        .state = state_of_sale(r->sale),
                        .position = -1,
                        .ahead = -1,
                        .eta_low_s = -1,
                        .eta_high_s = -1,
                        .likely = -1,
                        .poll_after_ms = 5000,
                        .opens_at_ms = r->sale->facts.opens_at_ms,
                };
        r->place.has_ticket = false;
        r->place.has_pass = false;
}

/* Nobody is let in while the origin is silent, whatever the numbers say. */
static void tell_paused(struct gw_request *r) {
        struct adm_place *p = &r->place;
        if (p->state != ADM_WAITING && p->state != ADM_READY && p->state != ADM_ALL_HELD)
                return;
        p->state = ADM_PAUSED;
        p->eta_low_s = p->eta_high_s = -1;
}

/* Who holds the ticket is named only by what this process remembers, unless
 * the ticket is a guest's. */
static void name_by_ticket(struct gw_request *r) {
        char name[JWT_SUB_MAX];
        if (r->has_account || !r->place.has_pass)
                return;
        if (r->ticket.flags & ADM_TICKET_GUEST) {
                (void)gw_account_by_guest(r);
                return;
        }
        size_t n = gw_names_get(r->w->shared->names, &r->ticket.tag, name);
        if (n > 0)
                gw_account_set(r, (struct span){name, n});
}

/* A plain waiter's poll is answered from the ticket and published numbers; it
 * is no call of the store's. */
static int poll_by_ticket(struct gw_request *r) {
        int outcome = adm_store_poll(r->w->shared->store, r->sale->handle, &r->ticket, jitter(r),
                                     r->now_ms, &r->place);
        if (outcome == ADM_DONE) {
                r->has_place = true;
                name_by_ticket(r);
        }
        return outcome;
}

static void place_of_pass(struct gw_request *r) {
        r->has_place = true;
        r->place = (struct adm_place){
                .state = ADM_ADMITTED,
                .eta_low_s = 0,
                .eta_high_s = 0,
                .likely = 1,
                .opens_at_ms = r->sale->facts.opens_at_ms,
                .has_pass = true,
                .pass = r->pass,
        };
}

static enum gw_next get_place(struct gw_request *r) {
        enum adm_reason reason = r->ticket_bad ? ADM_TICKET_INVALID : ADM_REASON_NONE;
        if (r->standing == GW_PASS_IN_FORCE) {
                place_of_pass(r);
                return GW_GO_ON;
        }
        bool is_foreign = r->has_ticket && r->token.p && !adm_tag_equal(&r->ticket.tag, &r->tag);
        if (is_foreign) {
                reason = ADM_OTHER_ACCOUNT;
        } else if (r->has_ticket && r->sale->is_stored) {
                if (poll_by_ticket(r) == ADM_DONE) {
                        if (is_away(r))
                                tell_paused(r);
                        return GW_GO_ON;
                }
                reason = r->place.reason;
        }
        gw_line_look(r);
        r->place.reason = reason;
        return gw_answer_problem(r, PROBLEM_NOT_FOUND, "there is no place for this ticket");
}

static enum gw_next join_while_away(struct gw_request *r) {
        bool is_own = r->has_ticket && r->has_account && adm_tag_equal(&r->ticket.tag, &r->tag);
        if (!is_own || !r->sale->is_stored || poll_by_ticket(r) != ADM_DONE)
                return gw_refuse_away(r);
        tell_paused(r);
        return GW_GO_ON;
}

enum gw_next gw_line_join(struct gw_request *r) {
        struct gw_shared *shared = r->w->shared;
        if (is_away(r))
                return join_while_away(r);
        struct adm_join join = {
                .tag = r->tag,
                .guest = r->is_guest,
                .ticket_bad = r->ticket_bad,
                .ticket = r->has_ticket ? &r->ticket : NULL,
                .random = jitter(r),
        };
        random_bytes(join.jti, sizeof join.jti);
        gw_count_store(&r->w->counters, GW_STORE_JOIN);
        if (adm_store_join(shared->store, r->sale->handle, &join, r->now_ms, &r->place) != ADM_DONE)
                return gw_refuse_away(r);
        r->has_place = true;
        if (r->pass_is_foreign && r->place.reason == ADM_REASON_NONE)
                r->place.reason = ADM_OTHER_ACCOUNT;
        if (r->place.has_pass)
                gw_names_put(shared->names, &r->tag, gw_request_account(r));
        if (r->place.issued)
                metrics_add(&r->w->counters.sale[r->sale->slot].passes_issued, 1);
        return GW_GO_ON;
}

static enum gw_next leave(struct gw_request *r) {
        bool is_ours =
                r->has_ticket && r->sale->is_stored && r->ticket.round == r->sale->facts.round &&
                r->ticket.sale == adm_sale_hash(r->sale->facts.id, strlen(r->sale->facts.id));
        if (is_ours) {
                gw_count_store(&r->w->counters, GW_STORE_LEAVE);
                adm_store_leave(r->w->shared->store, r->sale->handle, &r->ticket.tag, r->now_ms);
        }
        return gw_answer_nothing(r, true, GW_ANSWER_WAITING);
}

/* Streams are for those near; whoever is answered 204 goes on polling. */
static enum gw_next events(struct gw_request *r) {
        if (!r->has_ticket || !r->sale->is_stored || poll_by_ticket(r) != ADM_DONE)
                return gw_answer_problem(r, PROBLEM_NOT_FOUND, "there is no place for this ticket");
        r->has_place = false;
        return gw_answer_nothing(r, false, GW_ANSWER_WAITING);
}

enum gw_next gw_line_place(struct gw_request *r) {
        enum http_method method = r->x->request.method;
        if (r->route.kind == GW_ROUTE_EVENTS)
                return events(r);
        if (method == HTTP_DELETE)
                return leave(r);
        if (method != HTTP_POST || r->is_prefetch)
                return get_place(r);
        if (r->standing == GW_PASS_IN_FORCE) {
                place_of_pass(r);
                return GW_GO_ON;
        }
        return gw_line_join(r);
}
