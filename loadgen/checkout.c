/* loadgen/checkout.c
 *
 *   hold --201--> pay --200--> sold
 *    |  \          |
 *    |   \         +--409 lost--> line
 *    |    +--never pays: waits for the end of the hold --> left
 *    +--pass refused--> line      +--sold out--> refused
 */
#include "loadgen/checkout.h"

#include <stdio.h>
#include <stdlib.h>

#include "loadgen/cheat.h"
#include "loadgen/line.h"

#define TRIES_MAX 60        /* of an answer that should not last */
#define EXPIRY_SLACK_MS 200 /* behind the end of a hold, for the clocks */

static void hold_ask(struct lg_buyer *b);
static void pay_ask(struct lg_buyer *b);

static void again_hold(struct loop_timer *t) {
        hold_ask(NET_CONTAINER_OF(t, struct lg_buyer, timer));
}

static void again_pay(struct loop_timer *t) {
        pay_ask(NET_CONTAINER_OF(t, struct lg_buyer, timer));
}

static void end_unpaid(struct loop_timer *t) {
        struct lg_buyer *b = NET_CONTAINER_OF(t, struct lg_buyer, timer);
        b->units -= b->hold_qty;
        lg_buyer_end(b, LG_END_LEFT);
}

static void wait_then(struct lg_buyer *b, void (*what)(struct loop_timer *), int64_t after_ms) {
        b->timer.on_timer = what;
        loop_timer_start(&b->timer, after_ms);
}

/* The same request again, `after_ms` from now but not before the back-off. */
static void repeat(struct lg_buyer *b, void (*what)(struct loop_timer *), int64_t after_ms) {
        int64_t backoff_ms = lg_backoff_ms(b->tries, (uint64_t)b->index);
        b->tries++;
        wait_then(b, what, after_ms > backoff_ms ? after_ms : backoff_ms);
}

/* For answers that should not last: they break the buyer in the end. */
static void repeat_or_break(struct lg_buyer *b, void (*what)(struct loop_timer *),
                            const char *request, const struct lg_answer_read *r) {
        if (b->tries >= TRIES_MAX)
                lg_buyer_break(b, request, b->ask.status, r->code);
        else
                repeat(b, what, 0);
}

static void new_intention(struct lg_buyer *b) {
        b->key_no++;
        snprintf(b->key, sizeof(b->key), "race-%llu-%lld-%lld", (unsigned long long)b->crowd->seed,
                 (long long)b->index, (long long)b->key_no);
}

/* ---- pay ---- */

static void hold_lost(struct lg_buyer *b) {
        b->units -= b->hold_qty;
        b->crowd->units_given_back += b->hold_qty;
        b->hold[0] = '\0';
        b->hold_qty = 0;
        new_intention(b);
        lg_line_return(b, 0);
}

static void paid(struct lg_buyer *b, const struct lg_answer_read *r) {
        int64_t qty = r->qty > 0 ? r->qty : b->hold_qty;
        b->units += qty - b->hold_qty;
        b->crowd->units_confirmed += qty;
        lg_buyer_end(b, LG_END_SOLD);
}

static void on_pay_answer(struct lg_ask *a) {
        struct lg_buyer *b = a->owner;
        lg_crowd_count(b->crowd, LG_ANSWER_PAY, a);
        struct lg_answer_read r;
        lg_answer_read(&r, a->data, a->len);
        bool is_lost = span_eq(r.code, SPAN("hold_expired")) ||
                       span_eq(r.code, SPAN("hold_released")) ||
                       span_eq(r.code, SPAN("hold_cancelled"));
        if (a->lost)
                repeat(b, again_pay, 0);
        else if (a->status == 200 || a->status == 201)
                paid(b, &r);
        else if (a->status == 409 && is_lost)
                hold_lost(b);
        else if (a->status >= 500 || a->status == 429)
                repeat(b, again_pay, a->retry_after_s > 0 ? a->retry_after_s * 1000 : 0);
        else
                lg_buyer_break(b, "confirm", a->status, r.code);
        lg_answer_fini(&r);
}

static void pay_ask(struct lg_buyer *b) {
        struct lg_crowd *c = b->crowd;
        struct lg_ask *a = &b->ask;
        snprintf(b->path, sizeof(b->path), "/v1/holds/%s/confirm", b->hold);
        snprintf(b->body, sizeof(b->body), "{\"payment_ref\":\"pay-%s\",\"captured\":true}",
                 b->key);
        *a = (struct lg_ask){
                .on_answer = on_pay_answer,
                .owner = b,
                .method = SPAN("POST"),
                .path = span_of(b->path),
                .bearer = c->service_token,
                .body = span_of(b->body),
                .deadline_ms = LG_ASK_MS,
                .answer_bytes = LG_ANSWER_BYTES,
        };
        lg_link_ask(lg_links_at(c->origin, (size_t)b->index % lg_links_count(c->origin)), a);
}

void lg_checkout_pay(struct lg_buyer *b) {
        assert(b->state == LG_BUYER_AT_CHECKOUT && b->hold[0] != '\0');
        b->tries = 0;
        pay_ask(b);
}

/* ---- hold ---- */

static void held(struct lg_buyer *b, const struct lg_ask *a, const struct lg_answer_read *r) {
        struct lg_crowd *c = b->crowd;
        bool in_force = span_eq(r->hold_state, SPAN("held"));
        bool was_sold = span_eq(r->hold_state, SPAN("sold"));
        if (!r->hold.p || r->hold.len == 0 || r->hold.len >= sizeof(b->hold)) {
                lg_buyer_break(b, "POST holds", a->status, SPAN("without a hold"));
                return;
        }
        b->had_hold = true;
        if (!in_force && !was_sold) {
                /* The answer came so late that the hold it replays is over. */
                b->crowd->units_given_back += r->qty;
                new_intention(b);
                lg_line_return(b, 0);
                return;
        }
        snprintf(b->hold, sizeof(b->hold), "%.*s", (int)r->hold.len, r->hold.p);
        b->hold_qty = r->qty > 0 ? r->qty : b->qty;
        b->units += b->hold_qty;
        if (a->renewed)
                (void)lg_buyer_take_pass(b, span_of(a->renewed));
        if (b->plan.role == LG_ROLE_UNPAID) {
                c->units_given_back += b->hold_qty;
                wait_then(b, end_unpaid, c->hold_seconds * 1000 + EXPIRY_SLACK_MS);
        } else if (!lg_cheat_on_held(b)) {
                lg_checkout_pay(b);
        }
}

static void hold_conflict(struct lg_buyer *b, const struct lg_ask *a,
                          const struct lg_answer_read *r) {
        int64_t wait_ms = a->retry_after_s > 0 ? a->retry_after_s * 1000 : 1000;
        if (span_eq(r->code, SPAN("sold_out"))) {
                lg_buyer_end(b, b->had_hold ? LG_END_LEFT : LG_END_REFUSED);
        } else if (span_eq(r->code, SPAN("all_held"))) {
                b->crowd->all_held_to_pass++;
                wait_then(b, again_hold, wait_ms);
        } else if (span_eq(r->code, SPAN("not_enough"))) {
                if (r->available >= 1 && r->available < b->qty) {
                        b->qty = r->available;
                        new_intention(b);
                        wait_ms = 0;
                }
                wait_then(b, again_hold, wait_ms);
        } else if (span_eq(r->code, SPAN("not_open")) || span_eq(r->code, SPAN("conflict"))) {
                repeat_or_break(b, again_hold, "POST holds", r);
        } else {
                lg_buyer_break(b, "POST holds", a->status, r->code);
        }
}

/* The pass is no longer good: the line gives another, or the same again. */
static void pass_refused(struct lg_buyer *b, const struct lg_ask *a,
                         const struct lg_answer_read *r) {
        bool of_pass = span_eq(r->code, SPAN("pass_expired")) ||
                       span_eq(r->code, SPAN("pass_required")) ||
                       span_eq(r->code, SPAN("pass_revoked"));
        if (!of_pass || b->tries >= TRIES_MAX) {
                lg_buyer_break(b, "POST holds", a->status, r->code);
                return;
        }
        lg_line_return(b, lg_backoff_ms(b->tries++, (uint64_t)b->index));
}

static void on_hold_answer(struct lg_ask *a) {
        struct lg_buyer *b = a->owner;
        lg_crowd_count(b->crowd, LG_ANSWER_HOLD, a);
        if (a->sent_us > 0)
                b->crowd->sent_with_pass++;
        struct lg_answer_read r;
        lg_answer_read(&r, a->data, a->len);
        int64_t wait_ms = a->retry_after_s > 0 ? a->retry_after_s * 1000 : 0;
        if (a->lost)
                repeat(b, again_hold, 0);
        else if (a->status == 201 || a->status == 200)
                held(b, a, &r);
        else if (a->status == 409)
                hold_conflict(b, a, &r);
        else if (a->status == 410)
                lg_buyer_end(b, b->had_hold ? LG_END_LEFT : LG_END_REFUSED);
        else if (a->status == 403)
                pass_refused(b, a, &r);
        else if (a->status >= 500 || a->status == 429)
                repeat(b, again_hold, wait_ms);
        else if (a->status == 404)
                repeat_or_break(b, again_hold, "POST holds", &r);
        else
                lg_buyer_break(b, "POST holds", a->status, r.code);
        lg_answer_fini(&r);
}

static void hold_ask(struct lg_buyer *b) {
        struct lg_crowd *c = b->crowd;
        struct lg_ask *a = &b->ask;
        snprintf(b->body, sizeof(b->body), "{\"qty\":%lld}", (long long)b->qty);
        *a = (struct lg_ask){
                .on_answer = on_hold_answer,
                .owner = b,
                .method = SPAN("POST"),
                .path = c->holds_path,
                .bearer = span_of(b->token),
                .pass = span_of(b->pass),
                .key = span_of(b->key),
                .body = span_of(b->body),
                .deadline_ms = LG_ASK_MS,
                .answer_bytes = LG_ANSWER_BYTES,
        };
        lg_link_ask(b->lead->link, a);
}

void lg_checkout_init(struct lg_buyer *b) {
        loop_timer_init(b->crowd->loop, &b->timer, again_hold);
        new_intention(b);
}

void lg_checkout_start(struct lg_buyer *b, struct lg_tab *tab) {
        assert(b->state == LG_BUYER_IN_LINE && b->pass);
        b->state = LG_BUYER_AT_CHECKOUT;
        b->lead = tab;
        lg_line_rest(b);
        hold_ask(b);
}

void lg_checkout_cancel(struct lg_buyer *b) {
        loop_timer_cancel(&b->timer);
        lg_ask_cancel(&b->ask);
}
