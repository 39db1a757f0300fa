/* The line: numbers, who is awake, who is next, what they are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "adm_world.h"

static void join_as(struct world *w, struct shopper *s, enum adm_place_state want,
                    int64_t position) {
        assert_int_equal(world_join(w, s), 0);
        assert_int_equal(s->place.state, want);
        assert_int_equal(s->place.position, position);
        assert_int_equal(s->place.ahead, position > 0 ? position - 1 : 0);
}

static void poll_as(struct world *w, struct shopper *s, enum adm_place_state want,
                    int64_t position) {
        assert_int_equal(world_poll(w, s), 0);
        assert_int_equal(s->place.state, want);
        assert_int_equal(s->place.position, position);
}

/* Shoppers a..b are joined in order; the first `admitted` get in. */
static void crowd(struct world *w, struct shopper *s, uint32_t n, uint32_t admitted) {
        for (uint32_t i = 0; i < n; i++) {
                s[i] = world_shopper(i, false);
                if (i < admitted)
                        join_as(w, &s[i], ADM_ADMITTED, 0);
                else
                        join_as(w, &s[i], ADM_WAITING, i - admitted + 1);
        }
}

static void test_first_come_first_served(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[8];
        world_open(&w, 3);
        crowd(&w, s, 8, 3);
        assert_true(s[0].place.issued && s[0].has_pass);
        world_pass(&w, 100);
        for (uint32_t i = 3; i < 8; i++)
                poll_as(&w, &s[i], ADM_WAITING, i - 2);
        assert_int_equal(world_view(&w).passes_outstanding, 3);
        assert_int_equal(world_view(&w).line_waiting, 5);
        assert_int_equal(world_view(&w).line_live, 5);
        world_close(&w);
}

static void test_claiming_again_is_the_same_pass(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 3);
        struct shopper a = world_shopper(1, false), tab = a;
        join_as(&w, &a, ADM_ADMITTED, 0);
        join_as(&w, &tab, ADM_ADMITTED, 0);
        assert_false(tab.place.issued);
        assert_memory_equal(a.pass.jti, tab.pass.jti, ADM_JTI_LEN);
        assert_int_equal(a.pass.exp_ms, tab.pass.exp_ms);
        poll_as(&w, &tab, ADM_ADMITTED, 0);
        assert_memory_equal(a.pass.jti, tab.pass.jti, ADM_JTI_LEN);
        assert_int_equal(world_view(&w).passes_issued_total, 1);
        world_close(&w);
}

static void test_second_tab_finds_the_place(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[4];
        world_open(&w, 1);
        crowd(&w, s, 4, 1);
        struct shopper tab = world_shopper(2, false);
        join_as(&w, &tab, ADM_WAITING, 2);
        assert_int_equal(tab.ticket.key, s[2].ticket.key);
        assert_int_equal(world_view(&w).last_number, 4);
        for (int i = 0; i < 50; i++) {
                struct shopper again = world_shopper(2, false);
                join_as(&w, &again, ADM_WAITING, 2);
        }
        assert_int_equal(world_view(&w).last_number, 4);
        world_close(&w);
}

static void test_silent_head_is_stepped_over(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[5];
        world_open(&w, 1);
        crowd(&w, s, 5, 1);
        assert_int_equal(world_use(&w, &s[0]), 0);
        world_pass(&w, 17000);
        /* 1 sleeps; the others came back. */
        for (int i = 2; i < 5; i++)
                assert_int_equal(world_poll(&w, &s[i]), 0);
        world_pass(&w, 3000);
        world_stock(&w, 2, 0, 0);
        world_pass(&w, 100);
        poll_as(&w, &s[2], ADM_READY, 0);
        poll_as(&w, &s[3], ADM_WAITING, 1);
        world_close(&w);
}

static void test_sleeper_back_within_ten_minutes_is_next(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[5];
        world_open(&w, 1);
        crowd(&w, s, 5, 1);
        assert_int_equal(world_use(&w, &s[0]), 0);
        for (int i = 0; i < 50; i++) {
                world_pass(&w, 5000);
                for (int k = 2; k < 5; k++)
                        assert_int_equal(world_poll(&w, &s[k]), 0);
        }
        poll_as(&w, &s[1], ADM_WAITING, 1);
        world_stock(&w, 2, 0, 0);
        poll_as(&w, &s[1], ADM_READY, 0);
        assert_int_equal(s[1].place.reason, ADM_REASON_NONE);
        poll_as(&w, &s[2], ADM_WAITING, 1);
        world_close(&w);
}

static void test_long_absence_is_forgotten_with_the_reason(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[4];
        world_open(&w, 1);
        crowd(&w, s, 4, 1);
        uint64_t key = s[1].ticket.key;
        world_pass(&w, 604000);
        assert_int_equal(world_poll(&w, &s[1]), ADM_NO_PLACE);
        assert_int_equal(s[1].place.reason, ADM_FORGOTTEN);
        assert_int_equal(s[1].place.position, -1);
        join_as(&w, &s[2], ADM_ADMITTED, 0);
        assert_int_equal(s[2].place.reason, ADM_FORGOTTEN);
        assert_int_equal(world_join(&w, &s[1]), 0);
        assert_int_equal(s[1].place.reason, ADM_FORGOTTEN);
        assert_true(s[1].ticket.key > key);
        world_close(&w);
}

static void test_later_ticket_saves_from_being_forgotten(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[3];
        world_open(&w, 1);
        crowd(&w, s, 3, 1);
        assert_int_equal(world_use(&w, &s[0]), 0);
        assert_int_equal(world_hold(&w, &s[0], 1, w.now_ms + 1500000), 0);
        world_pass(&w, 500000);
        poll_as(&w, &s[1], ADM_ALL_HELD, 1);
        struct shopper no_ticket = world_shopper(1, false);
        world_pass(&w, 500000);
        /* The mark alone is enough. */
        assert_int_equal(world_join(&w, &no_ticket), 0);
        assert_int_equal(no_ticket.place.reason, ADM_REASON_NONE);
        assert_int_equal(no_ticket.ticket.key, s[1].ticket.key);
        world_close(&w);
}

static void test_guest_counts_from_the_second_contact(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 5);
        struct shopper g = world_shopper(1, true);
        assert_int_equal(world_join(&w, &g), 0);
        assert_int_equal(g.place.state, ADM_WAITING);
        assert_int_equal(g.place.poll_after_ms, 1000);
        world_pass(&w, 100);
        assert_int_equal(world_view(&w).line_live, 0);
        world_pass(&w, 900);
        poll_as(&w, &g, ADM_READY, 0);
        join_as(&w, &g, ADM_ADMITTED, 0);
        world_close(&w);
}

static void test_fresh_guest_is_not_overtaken_and_a_flood_delays_two_seconds(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 5);
        struct shopper honest = world_shopper(1, true), after = world_shopper(2, false);
        for (uint32_t i = 0; i < 2000; i++) {
                struct shopper flood = world_shopper(100 + i, true);
                assert_int_equal(world_join(&w, &flood), 0);
        }
        assert_int_equal(world_join(&w, &honest), 0);
        assert_int_equal(world_join(&w, &after), 0);
        assert_int_equal(after.place.state, ADM_WAITING);
        world_pass(&w, 1000);
        poll_as(&w, &honest, ADM_WAITING, 1);
        world_pass(&w, 900);
        poll_as(&w, &after, ADM_WAITING, 1);
        world_pass(&w, 200);
        poll_as(&w, &honest, ADM_READY, 0);
        poll_as(&w, &after, ADM_READY, 0);
        world_close(&w);
}

static void test_told_ahead_never_rises_and_falls_when_others_leave(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[5];
        world_open(&w, 1);
        crowd(&w, s, 5, 1);
        adm_store_leave(w.store, w.sale, &s[2].tag, w.now_ms);
        world_pass(&w, 100);
        poll_as(&w, &s[3], ADM_WAITING, 2);
        poll_as(&w, &s[4], ADM_WAITING, 3);
        assert_int_equal(world_poll(&w, &s[2]), ADM_NO_PLACE);
        assert_int_equal(s[2].place.reason, ADM_REASON_NONE);
        /* 1 falls asleep: 3 is told 1; then 1 is back: still told 1. */
        world_pass(&w, 17000);
        assert_int_equal(world_poll(&w, &s[3]), 0);
        world_pass(&w, 3000);
        poll_as(&w, &s[3], ADM_WAITING, 1);
        poll_as(&w, &s[1], ADM_WAITING, 1);
        world_pass(&w, 100);
        poll_as(&w, &s[3], ADM_WAITING, 1);
        assert_int_equal(s[3].ticket.ahead, 0);
        world_close(&w);
}

static void test_invitation_lapses_once_then_twice(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[3];
        world_open(&w, 1);
        crowd(&w, s, 3, 1);
        world_stock(&w, 2, 0, 0);
        uint64_t key = s[1].ticket.key;
        poll_as(&w, &s[1], ADM_READY, 0);
        assert_int_equal(world_view(&w).line_invited, 1);
        for (int i = 0; i < 7; i++) {
                world_pass(&w, 2500);
                poll_as(&w, &s[1], ADM_READY, 0);
                assert_int_equal(world_use(&w, &s[0]), 0);
        }
        world_pass(&w, 2600); /* 20.1 s after the first `ready` */
        assert_int_equal(world_view(&w).turns_missed_total, 1);
        poll_as(&w, &s[1], ADM_READY, 0);
        assert_int_equal(s[1].place.reason, ADM_TURN_MISSED);
        assert_true(s[1].ticket.flags & ADM_TICKET_MISSED);
        world_pass(&w, 20100);
        assert_int_equal(world_view(&w).turns_missed_total, 2);
        assert_int_equal(world_poll(&w, &s[1]), ADM_NO_PLACE);
        assert_int_equal(s[1].place.reason, ADM_TURN_MISSED);
        assert_int_equal(world_join(&w, &s[1]), 0);
        assert_int_equal(s[1].place.reason, ADM_TURN_MISSED);
        assert_true(s[1].ticket.key > key);
        world_close(&w);
}

static void test_missed_turn_goes_to_the_next_at_once(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[3];
        world_open(&w, 1);
        crowd(&w, s, 3, 1);
        assert_int_equal(world_use(&w, &s[0]), 0);
        world_stock(&w, 2, 0, 0);
        poll_as(&w, &s[1], ADM_READY, 0);
        world_pass(&w, 15000);
        assert_int_equal(world_poll(&w, &s[2]), 0);
        world_pass(&w, 5100);
        poll_as(&w, &s[2], ADM_READY, 0);
        world_close(&w);
}

static void test_prequeue_waits_with_position_and_opens_on_time(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 2);
        struct adm_sale_facts *f = &w.update.facts;
        f->opens_at_ms = w.now_ms + 10000;
        f->prequeue_at_ms = w.now_ms + 2000;
        f->version++;
        world_tell(&w);
        struct shopper a = world_shopper(1, false), b = world_shopper(2, false);
        struct shopper c = world_shopper(3, false);
        assert_int_equal(world_join(&w, &a), 0);
        assert_int_equal(a.place.state, ADM_NOT_OPEN);
        assert_false(a.place.has_ticket);
        assert_in_range(a.place.poll_after_ms, 2000, 4000);
        world_pass(&w, 2000);
        join_as(&w, &a, ADM_WAITING, 1);
        join_as(&w, &b, ADM_WAITING, 2);
        join_as(&w, &c, ADM_WAITING, 3);
        assert_int_equal(a.place.likely, -1);
        assert_int_equal(a.place.eta_low_s, -1);
        world_pass(&w, 7900);
        for (int i = 0; i < 20; i++) {
                assert_int_equal(world_poll(&w, &b), 0);
                assert_int_equal(b.place.state, ADM_WAITING);
                assert_true(b.place.poll_after_ms >= 100 && b.place.poll_after_ms <= 2100);
        }
        world_pass(&w, 100);
        join_as(&w, &c, ADM_WAITING, 1);
        join_as(&w, &a, ADM_ADMITTED, 0);
        join_as(&w, &b, ADM_ADMITTED, 0);
        world_close(&w);
}

static void test_scheduled_far_off_comes_back_within_a_minute(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 2);
        w.update.facts.opens_at_ms = w.now_ms + 86400000;
        w.update.facts.version++;
        world_tell(&w);
        struct adm_place p;
        for (uint32_t r = 0; r < 10; r++) {
                assert_int_equal(adm_store_look(w.store, w.sale, r << 28, w.now_ms, &p), 0);
                assert_int_equal(p.state, ADM_NOT_OPEN);
                assert_in_range(p.poll_after_ms, 30000, 60000);
        }
        world_close(&w);
}

static void test_tickets_of_others_are_not_taken(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[3];
        world_open(&w, 1);
        crowd(&w, s, 3, 1);
        struct shopper thief = world_shopper(9, false);
        thief.has_ticket = true;
        thief.ticket = s[1].ticket;
        join_as(&w, &thief, ADM_WAITING, 3);
        assert_int_equal(thief.place.reason, ADM_OTHER_ACCOUNT);
        struct shopper lost = world_shopper(10, false);
        lost.has_ticket = true;
        lost.ticket = s[1].ticket;
        lost.ticket.tag = lost.tag;
        lost.ticket.sale = 5;
        join_as(&w, &lost, ADM_WAITING, 4);
        assert_int_equal(lost.place.reason, ADM_TICKET_INVALID);
        lost.ticket.sale = 5;
        assert_int_equal(world_poll(&w, &lost), ADM_NO_PLACE);
        struct adm_ticket odd = s[1].ticket;
        odd.key = 7; /* no arrival key: found by account all the same */
        struct adm_place p;
        assert_int_equal(adm_store_poll(w.store, w.sale, &odd, 0, w.now_ms, &p), 0);
        odd.tag = world_shopper(99, false).tag;
        assert_int_equal(adm_store_poll(w.store, w.sale, &odd, 0, w.now_ms, &p), ADM_NO_PLACE);
        world_close(&w);
}

static void test_reset_begins_a_new_line(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[4];
        world_open(&w, 1);
        crowd(&w, s, 4, 1);
        struct adm_shown old = world_shown(&s[0]);
        w.update.facts.round = 2;
        w.update.facts.version++;
        world_tell(&w);
        assert_int_equal(world_poll(&w, &s[2]), ADM_NO_PLACE);
        assert_int_equal(s[2].place.reason, ADM_ROUND_OVER);
        struct adm_pass p;
        assert_int_equal(adm_store_pass_use(w.store, w.sale, &old, w.now_ms, &p),
                         ADM_PASS_OLD_ROUND);
        assert_int_equal(world_join(&w, &s[3]), 0);
        assert_int_equal(s[3].place.reason, ADM_ROUND_OVER);
        assert_int_equal(s[3].place.state, ADM_WAITING); /* the old slot lingers */
        assert_int_equal(s[3].place.position, 1);
        world_pass(&w, 1100);
        join_as(&w, &s[3], ADM_ADMITTED, 0);
        assert_int_equal(world_view(&w).last_number, 1);
        world_close(&w);
}

static void test_line_full_is_an_answer(void **state) {
        (void)state;
        struct world w = {.conf = {.max_numbers = 1024, .max_accounts = 2000}};
        world_open(&w, 1);
        struct shopper s = world_shopper(0, false);
        for (uint32_t i = 0; i < 1024; i++) {
                s = world_shopper(i, false);
                assert_int_equal(world_join(&w, &s), 0);
                assert_int_not_equal(s.place.state, ADM_LINE_FULL);
        }
        struct shopper last = s, over = world_shopper(5000, false);
        assert_int_equal(world_join(&w, &over), 0);
        assert_int_equal(over.place.state, ADM_LINE_FULL);
        assert_false(over.place.has_ticket);
        assert_true(over.place.poll_after_ms > 0);
        assert_int_equal(world_view(&w).line_full_total, 1);
        poll_as(&w, &last, ADM_WAITING, 1023);
        world_close(&w);
        /* Accounts are a ceiling of their own. */
        w = (struct world){.conf = {.max_numbers = 2048, .max_accounts = 10}};
        world_open(&w, 1);
        for (uint32_t i = 0; i < 10; i++) {
                s = world_shopper(i, false);
                assert_int_equal(world_join(&w, &s), 0);
        }
        over = world_shopper(10, false);
        assert_int_equal(world_join(&w, &over), 0);
        assert_int_equal(over.place.state, ADM_LINE_FULL);
        world_close(&w);
}

static void test_passthrough_has_no_line_and_reject_nobody(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 2);
        w.update.facts.queue = ADM_QUEUE_PASSTHROUGH;
        w.update.facts.version++;
        world_tell(&w);
        struct shopper a = world_shopper(1, false), b = world_shopper(2, false);
        struct shopper c = world_shopper(3, false);
        join_as(&w, &a, ADM_ADMITTED, 0);
        join_as(&w, &b, ADM_ADMITTED, 0);
        join_as(&w, &c, ADM_WAITING, 1);
        poll_as(&w, &c, ADM_WAITING, 1);
        world_stock(&w, 3, 0, 0);
        poll_as(&w, &c, ADM_READY, 0);
        join_as(&w, &c, ADM_ADMITTED, 0);
        w.update.facts.queue = ADM_QUEUE_REJECT;
        w.update.facts.version++;
        world_tell(&w);
        struct shopper d = world_shopper(4, false);
        assert_int_equal(world_join(&w, &d), 0);
        assert_int_equal(d.place.state, ADM_CLOSED);
        join_as(&w, &a, ADM_ADMITTED, 0); /* a pass in force comes first */
        world_close(&w);
}

static void test_sold_out_and_back(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[4];
        world_open(&w, 1);
        crowd(&w, s, 4, 1);
        world_stock(&w, 0, 0, 1);
        world_pass(&w, 100);
        assert_int_equal(world_poll(&w, &s[2]), 0);
        assert_int_equal(s[2].place.state, ADM_SOLD_OUT);
        assert_int_equal(s[2].place.position, -1);
        struct shopper d = world_shopper(9, false);
        assert_int_equal(world_join(&w, &d), 0);
        assert_int_equal(d.place.state, ADM_SOLD_OUT);
        assert_false(d.place.has_ticket);
        world_stock(&w, 2, 0, 0);
        world_pass(&w, 100);
        poll_as(&w, &s[1], ADM_READY, 0);
        poll_as(&w, &s[2], ADM_WAITING, 1);
        world_close(&w);
}

static void test_likely_and_eta_are_honest(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[8];
        world_open(&w, 2);
        crowd(&w, s, 8, 2);
        world_pass(&w, 100);
        assert_int_equal(world_poll(&w, &s[4]), 0);
        assert_int_equal(s[4].place.likely, 1);
        assert_int_equal(world_poll(&w, &s[7]), 0); /* 5 ahead; 2 + 2 in play */
        assert_int_equal(s[7].place.likely, 0);
        assert_int_equal(s[7].place.eta_low_s, -1);
        world_pass(&w, 2000);
        assert_int_equal(world_poll(&w, &s[7]), 0); /* 2 passes in 3 seconds */
        assert_in_range(s[7].place.eta_low_s, 5, 7);
        assert_true(s[7].place.eta_high_s > s[7].place.eta_low_s);
        w.update.facts.paused = true;
        w.update.facts.version++;
        world_tell(&w);
        world_pass(&w, 100);
        poll_as(&w, &s[7], ADM_PAUSED, 6);
        assert_int_equal(s[7].place.eta_low_s, -1);
        world_close(&w);
}

static void test_origin_away_is_paused_with_the_place_kept(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[3];
        world_open(&w, 1);
        crowd(&w, s, 3, 1);
        world_pass(&w, 100);
        w.now_ms += 3100; /* no snapshot meanwhile */
        adm_store_tick(w.store, w.now_ms);
        poll_as(&w, &s[1], ADM_PAUSED, 1);
        struct shopper d = world_shopper(9, false);
        join_as(&w, &d, ADM_PAUSED, 3);
        assert_true(world_view(&w).away);
        world_stock(&w, 2, 0, 0);
        poll_as(&w, &s[1], ADM_READY, 0);
        world_close(&w);
}

static void test_all_held_is_told_to_waiters(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[3];
        world_open(&w, 1);
        crowd(&w, s, 3, 1);
        assert_int_equal(world_use(&w, &s[0]), 0);
        assert_int_equal(world_hold(&w, &s[0], 1, w.now_ms + 600000), 0);
        world_pass(&w, 1000);
        poll_as(&w, &s[1], ADM_WAITING, 1);
        world_pass(&w, 2000);
        poll_as(&w, &s[1], ADM_ALL_HELD, 1);
        world_stock(&w, 1, 0, 0);
        poll_as(&w, &s[1], ADM_READY, 0);
        world_close(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_first_come_first_served),
                cmocka_unit_test(test_claiming_again_is_the_same_pass),
                cmocka_unit_test(test_second_tab_finds_the_place),
                cmocka_unit_test(test_silent_head_is_stepped_over),
                cmocka_unit_test(test_sleeper_back_within_ten_minutes_is_next),
                cmocka_unit_test(test_long_absence_is_forgotten_with_the_reason),
                cmocka_unit_test(test_later_ticket_saves_from_being_forgotten),
                cmocka_unit_test(test_guest_counts_from_the_second_contact),
                cmocka_unit_test(test_fresh_guest_is_not_overtaken_and_a_flood_delays_two_seconds),
                cmocka_unit_test(test_told_ahead_never_rises_and_falls_when_others_leave),
                cmocka_unit_test(test_invitation_lapses_once_then_twice),
                cmocka_unit_test(test_missed_turn_goes_to_the_next_at_once),
                cmocka_unit_test(test_prequeue_waits_with_position_and_opens_on_time),
                cmocka_unit_test(test_scheduled_far_off_comes_back_within_a_minute),
                cmocka_unit_test(test_tickets_of_others_are_not_taken),
                cmocka_unit_test(test_reset_begins_a_new_line),
                cmocka_unit_test(test_line_full_is_an_answer),
                cmocka_unit_test(test_passthrough_has_no_line_and_reject_nobody),
                cmocka_unit_test(test_sold_out_and_back),
                cmocka_unit_test(test_likely_and_eta_are_honest),
                cmocka_unit_test(test_origin_away_is_paused_with_the_place_kept),
                cmocka_unit_test(test_all_held_is_told_to_waiters),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
