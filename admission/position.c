#include "admission/position.h"

#include "admission/poll.h"
#include "admission/sale.h"

static struct adm_poll_in poll_in(const struct adm_notice *n, const struct adm_asker *a,
                                  int64_t ahead) {
        return (struct adm_poll_in){
                .ahead = ahead,
                .obtainable = n->obtainable,
                .live = (int64_t)n->live,
                .rate_per_minute = (uint32_t)n->rate_per_minute,
                .polls_per_s = (uint32_t)n->polls_per_s,
                .random = a->random,
        };
}

static enum adm_place_state place_state(const struct adm_notice *n, bool away) {
        switch ((enum adm_sale_state)n->state) {
        case ADM_SALE_SCHEDULED:
                return ADM_NOT_OPEN;
        case ADM_SALE_SOLD_OUT:
                return ADM_SOLD_OUT;
        case ADM_SALE_CLOSED:
                return ADM_CLOSED;
        case ADM_SALE_PAUSED:
                return ADM_PAUSED;
        case ADM_SALE_ALL_HELD:
                return away ? ADM_PAUSED : ADM_ALL_HELD;
        case ADM_SALE_PREQUEUE:
        case ADM_SALE_OPEN:
                return away ? ADM_PAUSED : ADM_WAITING;
        }
        return ADM_PAUSED;
}

static void blank(const struct adm_notice *n, struct adm_place *out) {
        *out = (struct adm_place){
                .position = -1,
                .ahead = -1,
                .eta_low_s = -1,
                .eta_high_s = -1,
                .likely = -1,
                .opens_at_ms = n->opens_at_ms,
        };
}

/* Before the prequeue: at its begin, a minute at most. */
static int64_t until_doors_ms(const struct adm_notice *n, const struct adm_poll_in *in,
                              int64_t now_ms) {
        int64_t doors = n->prequeue_at_ms ? n->prequeue_at_ms : n->opens_at_ms;
        int64_t left = doors - now_ms;
        if (left > ADM_POLL_SCHEDULED_MS)
                return adm_poll_jitter_ms(ADM_POLL_SCHEDULED_MS * 5 / 6, in->random);
        int64_t after = adm_poll_before_opening_ms(in, left, now_ms, doors);
        return after < ADM_POLL_SCHEDULED_MS ? after : ADM_POLL_SCHEDULED_MS;
}

void adm_position_none(const struct adm_notice *n, const struct adm_asker *a,
                       struct adm_place *out) {
        struct adm_poll_in in = poll_in(n, a, (int64_t)n->live);
        blank(n, out);
        out->state = place_state(n, a->away);
        if (n->state == ADM_SALE_SCHEDULED)
                out->poll_after_ms = until_doors_ms(n, &in, a->now_ms);
        else
                out->poll_after_ms = adm_poll_after_ms(&in);
}

static void tell_eta(const struct adm_notice *n, struct adm_place *out) {
        if (n->speed_milli <= 0 || out->state != ADM_WAITING)
                return;
        out->eta_low_s = out->ahead * 800 / n->speed_milli;
        out->eta_high_s = out->ahead * 1500 / n->speed_milli + 5;
}

void adm_position_waiting(const struct adm_notice *n, const struct adm_asker *a,
                          struct adm_place *out) {
        uint32_t ahead = a->ahead < a->last_told ? a->ahead : a->last_told;
        struct adm_poll_in in = poll_in(n, a, ahead);
        blank(n, out);
        out->state = place_state(n, a->away);
        if (out->state == ADM_SOLD_OUT || out->state == ADM_CLOSED) {
                out->poll_after_ms = adm_poll_after_ms(&in);
                return;
        }
        out->ahead = ahead;
        out->position = out->ahead + 1;
        if (n->state != ADM_SALE_PREQUEUE) {
                tell_eta(n, out);
                if (n->doomed_from >= 0)
                        out->likely = out->ahead < n->doomed_from;
        }
        int64_t after = a->first_contact ? ADM_POLL_GUEST_MS : adm_poll_after_ms(&in);
        out->poll_after_ms = adm_poll_before_opening_ms(&in, after, a->now_ms, n->opens_at_ms);
}

void adm_position_front(const struct adm_notice *n, const struct adm_asker *a,
                        const struct adm_pass *pass, struct adm_place *out) {
        blank(n, out);
        out->state = pass ? ADM_ADMITTED : ADM_READY;
        out->position = 0;
        out->ahead = 0;
        out->eta_low_s = 0;
        out->eta_high_s = 0;
        out->likely = 1;
        out->poll_after_ms = adm_poll_jitter_ms(ADM_POLL_NEAR_MS, a->random);
        if (pass) {
                out->has_pass = true;
                out->pass = *pass;
        }
}
