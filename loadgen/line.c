/* loadgen/line.c
 *
 * Evidence of order. A trace keeps the instants that inversions.h compares.
 * A shopper who kept no promise may be stepped over by right, so a request
 * later than its promise + 15 s, and a place given anew, start the evidence
 * afresh: the ticket counts from then on.
 */
#include "loadgen/line.h"

#include <stdlib.h>

#include "loadgen/cheat.h"
#include "loadgen/checkout.h"

#define TRIES_MAX 60 /* of an answer that should not last, a minute in all */

static void tab_ask(struct lg_tab *tab);

static void on_timer(struct loop_timer *t) {
        struct lg_tab *tab = NET_CONTAINER_OF(t, struct lg_tab, timer);
        tab_ask(tab);
}

static void tab_wait(struct lg_tab *tab, enum lg_tab_step step, int64_t after_ms) {
        tab->step = step;
        tab->state = LG_TAB_WAITING;
        loop_timer_start(&tab->timer, after_ms > 0 ? after_ms : 0);
}

static void tab_retry(struct lg_tab *tab, int64_t after_ms) {
        struct lg_buyer *b = tab->buyer;
        uint64_t salt = (uint64_t)b->index;
        int64_t backoff_ms = lg_backoff_ms(tab->tries, salt);
        tab->tries++;
        tab_wait(tab, tab->step, after_ms > backoff_ms ? after_ms : backoff_ms);
}

/* ---- evidence ---- */

static void evidence_afresh(struct lg_buyer *b) {
        b->trace.ticket_us = LG_NEVER;
        b->trace.last_waiting_us = LG_NEVER;
}

static void evidence_of_send(struct lg_buyer *b, int64_t now_us) {
        if (b->trace.joined_us == LG_NEVER)
                b->trace.joined_us = now_us;
        if (b->promised_us > 0 && now_us > b->promised_us + LG_LINE_SKIP_US && !b->is_served)
                evidence_afresh(b);
}

static void evidence_of_place(const struct lg_tab *tab, const struct lg_ask *a,
                              const struct lg_answer_read *r) {
        struct lg_buyer *b = tab->buyer;
        if (b->is_served || !tab->ticket)
                return;
        if (r->has_reason)
                evidence_afresh(b);
        if (b->trace.ticket_us == LG_NEVER)
                b->trace.ticket_us = a->ended_us;
        else if (r->state == LG_PLACE_WAITING)
                b->trace.last_waiting_us = a->sent_us;
        int64_t wait_ms = r->poll_after_ms > 0 ? r->poll_after_ms : 0;
        int64_t promised_us = a->ended_us + wait_ms * 1000;
        if (promised_us > b->promised_us)
                b->promised_us = promised_us;
}

/* ---- answers ---- */

static void take_ticket(struct lg_tab *tab, struct span ticket) {
        struct lg_crowd *c = tab->buyer->crowd;
        if (!ticket.p || ticket.len == 0)
                return;
        char *copy = strndup(ticket.p, ticket.len);
        if (!copy)
                return;
        free(tab->ticket);
        tab->ticket = copy;
        if (!c->loot_ticket) {
                c->loot_ticket = strdup(copy);
                c->loot_ticket_of = tab->buyer->index;
        }
}

static bool is_time_to_go(const struct lg_tab *tab, enum lg_place_state state) {
        const struct lg_buyer *b = tab->buyer;
        bool at_turn = state == LG_PLACE_READY || state == LG_PLACE_ADMITTED;
        return tab->answers >= b->plan.after_answers || at_turn;
}

/* Leavers and sleepers do as planned. True if the answer is used up by it. */
static bool tab_departs(struct lg_tab *tab, enum lg_place_state state) {
        struct lg_buyer *b = tab->buyer;
        if (!is_time_to_go(tab, state))
                return false;
        switch (b->plan.role) {
        case LG_ROLE_LEAVES:
                tab->step = LG_STEP_LEAVE;
                tab_ask(tab);
                return true;
        case LG_ROLE_IS_GONE:
                lg_buyer_end(b, LG_END_LEFT);
                return true;
        case LG_ROLE_SLEEPS:
                if (tab->has_slept)
                        return false;
                tab->has_slept = true;
                tab_wait(tab, tab->ticket ? LG_STEP_POLL : LG_STEP_JOIN, b->plan.sleeps_ms);
                return true;
        case LG_ROLE_PAYS:
        case LG_ROLE_UNPAID:
        case LG_ROLE_CHEATS:
        case LG_ROLE_COUNT:
                return false;
        }
        return false;
}

static void tab_refused(struct lg_tab *tab) {
        struct lg_buyer *b = tab->buyer;
        lg_buyer_end(b, b->had_hold ? LG_END_LEFT : LG_END_REFUSED);
}

static void tab_admitted(struct lg_tab *tab, const struct lg_ask *a,
                         const struct lg_answer_read *r) {
        struct lg_buyer *b = tab->buyer;
        bool has_pass = r->pass.p && lg_buyer_take_pass(b, r->pass);
        if (!has_pass && !b->pass) {
                if (tab->tries >= TRIES_MAX) {
                        lg_buyer_break(b, "line", a->status, SPAN("without a pass"));
                        return;
                }
                tab->step = LG_STEP_JOIN;
                tab_retry(tab, 0);
                return;
        }
        if (b->trace.admitted_us == LG_NEVER)
                b->trace.admitted_us = a->ended_us;
        b->is_served = true;
        if (tab_departs(tab, LG_PLACE_ADMITTED))
                return;
        lg_cheat_on_admitted(b, tab->link);
        if (b->state == LG_BUYER_IN_LINE)
                lg_checkout_start(b, tab);
}

static void tab_placed(struct lg_tab *tab, const struct lg_ask *a, const struct lg_answer_read *r) {
        struct lg_buyer *b = tab->buyer;
        evidence_of_place(tab, a, r);
        if (r->state == LG_PLACE_ADMITTED) {
                tab_admitted(tab, a, r);
                return;
        }
        if (tab_departs(tab, r->state))
                return;
        if (r->state == LG_PLACE_READY) {
                tab->step = LG_STEP_JOIN;
                tab_ask(tab);
                return;
        }
        lg_cheat_on_waiting(b, tab->link);
        int64_t wait_ms = r->poll_after_ms >= 0 ? r->poll_after_ms : 1000;
        bool polls = tab->ticket && r->state != LG_PLACE_NOT_OPEN;
        tab_wait(tab, polls ? LG_STEP_POLL : LG_STEP_JOIN, wait_ms);
}

static const char *step_name(enum lg_tab_step step) {
        switch (step) {
        case LG_STEP_JOIN:
                return "POST line";
        case LG_STEP_POLL:
                return "GET line";
        case LG_STEP_LEAVE:
                return "DELETE line";
        }
        return "line";
}

/* Statuses that call for the same request again, at most TRIES_MAX times
 * where they should not last. */
static void tab_put_off(struct lg_tab *tab, const struct lg_ask *a,
                        const struct lg_answer_read *r) {
        bool lasts = a->status == 503 || a->status == 429;
        if (!lasts && tab->tries >= TRIES_MAX) {
                lg_buyer_break(tab->buyer, step_name(tab->step), a->status, r->code);
                return;
        }
        int64_t wait_ms = r->poll_after_ms;
        if (wait_ms < 0 && a->retry_after_s > 0)
                wait_ms = a->retry_after_s * 1000;
        tab_retry(tab, wait_ms);
}

static void tab_read(struct lg_tab *tab, struct lg_ask *a, const struct lg_answer_read *r) {
        take_ticket(tab, r->ticket);
        if (a->status == 200 || a->status == 202) {
                tab->answers++;
                tab->tries = 0;
                tab_placed(tab, a, r);
        } else if (a->status == 410) {
                tab_refused(tab);
        } else if (a->status == 404 && tab->step == LG_STEP_POLL) {
                free(tab->ticket);
                tab->ticket = NULL;
                tab->step = LG_STEP_JOIN;
                tab_put_off(tab, a, r);
        } else if (a->status >= 500 || a->status == 429 || a->status == 404) {
                tab_put_off(tab, a, r);
        } else {
                lg_buyer_break(tab->buyer, step_name(tab->step), a->status, r->code);
        }
}

static void tab_left(struct lg_tab *tab, const struct lg_ask *a) {
        struct lg_buyer *b = tab->buyer;
        if (a->status == 204 || tab->tries >= TRIES_MAX)
                lg_buyer_end(b, LG_END_LEFT);
        else
                tab_retry(tab, 0);
}

static enum lg_answer kind_of(const struct lg_tab *tab) {
        switch (tab->step) {
        case LG_STEP_JOIN:
                return tab->answers == 0 ? LG_ANSWER_JOIN : LG_ANSWER_CLAIM;
        case LG_STEP_POLL:
                return LG_ANSWER_POLL;
        case LG_STEP_LEAVE:
                return LG_ANSWER_LEAVE;
        }
        return LG_ANSWER_POLL;
}

static void on_answer(struct lg_ask *a) {
        struct lg_tab *tab = a->owner;
        struct lg_buyer *b = tab->buyer;
        tab->state = LG_TAB_CLOSED;
        lg_crowd_count(b->crowd, kind_of(tab), a);
        if (tab->step == LG_STEP_LEAVE) {
                tab_left(tab, a);
                return;
        }
        if (a->lost) {
                if (b->state == LG_BUYER_IN_LINE)
                        tab_retry(tab, 0);
                return;
        }
        struct lg_answer_read r;
        lg_answer_read(&r, a->data, a->len);
        if (b->state == LG_BUYER_IN_LINE) {
                tab_read(tab, a, &r);
        } else if (a->status == 200 && r.pass.p) {
                /* Another tab got here first: a second pass would show. */
                (void)lg_buyer_take_pass(b, r.pass);
        }
        lg_answer_fini(&r);
}

static struct span method_of(enum lg_tab_step step) {
        switch (step) {
        case LG_STEP_JOIN:
                return SPAN("POST");
        case LG_STEP_POLL:
                return SPAN("GET");
        case LG_STEP_LEAVE:
                return SPAN("DELETE");
        }
        return SPAN("GET");
}

static void tab_ask(struct lg_tab *tab) {
        struct lg_buyer *b = tab->buyer;
        struct lg_crowd *c = b->crowd;
        struct lg_ask *a = &tab->ask;
        assert(tab->state != LG_TAB_ASKING && b->state != LG_BUYER_ENDED);
        if (tab->step == LG_STEP_POLL && !tab->ticket)
                tab->step = LG_STEP_JOIN;
        loop_timer_cancel(&tab->timer);
        tab->state = LG_TAB_ASKING;
        a->on_answer = on_answer;
        a->owner = tab;
        a->method = method_of(tab->step);
        a->path = c->line_path;
        a->bearer = tab->step == LG_STEP_JOIN ? span_of(b->token) : (struct span){NULL, 0};
        a->ticket = span_of(tab->ticket);
        a->pass = (struct span){NULL, 0};
        a->deadline_ms = LG_ASK_MS;
        a->answer_bytes = LG_ANSWER_BYTES;
        evidence_of_send(b, loop_clock_us());
        lg_link_ask(tab->link, a);
}

void lg_line_init(struct lg_tab *tab) {
        loop_timer_init(tab->buyer->crowd->loop, &tab->timer, on_timer);
}

void lg_line_join(struct lg_tab *tab) {
        struct lg_buyer *b = tab->buyer;
        if (b->state == LG_BUYER_ABSENT)
                b->state = LG_BUYER_IN_LINE;
        if (b->state != LG_BUYER_IN_LINE)
                return;
        tab->step = LG_STEP_JOIN;
        tab_ask(tab);
}

void lg_line_return(struct lg_buyer *b, int64_t after_ms) {
        struct lg_tab *tab = b->lead;
        assert(b->state == LG_BUYER_AT_CHECKOUT && tab->state == LG_TAB_CLOSED);
        b->state = LG_BUYER_IN_LINE;
        tab_wait(tab, LG_STEP_JOIN, after_ms);
}

void lg_line_rest(struct lg_buyer *b) {
        for (int64_t i = 0; i < b->crowd->options->tabs; i++) {
                struct lg_tab *tab = &b->tabs[i];
                if (tab->state != LG_TAB_WAITING)
                        continue;
                loop_timer_cancel(&tab->timer);
                tab->state = LG_TAB_CLOSED;
        }
}

void lg_line_cancel(struct lg_tab *tab) {
        loop_timer_cancel(&tab->timer);
        lg_ask_cancel(&tab->ask);
        tab->state = LG_TAB_CLOSED;
}
