/* The gate: units, room, stock by version, pace, pause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "adm_world.h"
#include "admission/gate.h"

static void test_room_in_units_and_keys(void **state) {
        (void)state;
        static const struct {
                int64_t available, outstanding, active, allowance;
                uint32_t overbook, per_account, max_active, rate;
                bool shut, item;
                int64_t units, keys;
                const char *why;
        } rows[] = {
                {100, 0, 0, 0, 1000, 1, 0, 0, false, true, 100, 100, "plain"},
                {100, 100, 0, 0, 1000, 1, 0, 0, false, true, 0, 0, "full"},
                {100, 120, 0, 0, 1000, 1, 0, 0, false, true, -20, 0, "lowered stock"},
                {99, 0, 0, 0, 1015, 1, 0, 0, false, true, 100, 100, "overbook is floored"},
                {10, 0, 0, 0, 1000, 4, 0, 0, false, true, 10, 3, "the last may overlap"},
                {10, 9, 0, 0, 1000, 4, 0, 0, false, true, 1, 1, "one unit is one pass"},
                {-5, 0, 0, 0, 1000, 1, 0, 0, false, true, 0, 0, "never below zero"},
                {100, 0, 7, 0, 1000, 1, 10, 0, false, true, 100, 3, "max_active"},
                {100, 0, 12, 0, 1000, 1, 10, 0, false, true, 100, 0, "max_active lowered"},
                {100, 0, 0, 4, 1000, 1, 0, 60, false, true, 100, 4, "allowance"},
                {100, 0, 0, 0, 1000, 1, 0, 0, true, true, 100, 0, "shut"},
                {0, 5, 2, 9, 1000, 1, 5, 60, false, false, ADM_GATE_UNLIMITED, 3, "no item"},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct adm_sale_facts f = {.has_item = rows[i].item,
                                           .overbook_milli = rows[i].overbook,
                                           .per_account = rows[i].per_account,
                                           .max_active = rows[i].max_active,
                                           .rate_per_minute = rows[i].rate,
                                           .stock = {.available = rows[i].available}};
                struct adm_gate_in in = {.facts = &f,
                                         .shut = rows[i].shut,
                                         .outstanding = rows[i].outstanding,
                                         .active = rows[i].active,
                                         .allowance_keys = rows[i].allowance};
                if (adm_gate_room_units(&in) != rows[i].units ||
                    adm_gate_room_keys(&in) != rows[i].keys)
                        fail_msg("%s: %lld, %lld", rows[i].why, (long long)adm_gate_room_units(&in),
                                 (long long)adm_gate_room_keys(&in));
        }
}

static void test_pass_weighs_units_until_the_first_hold(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 5);
        w.update.facts.per_account = 2;
        w.update.facts.version++;
        world_tell(&w);
        struct shopper a = world_admitted(&w, 1), b = world_admitted(&w, 2),
                       c = world_admitted(&w, 3);
        (void)c;
        assert_int_equal(world_outstanding(&w), 6); /* the third was issued at 4 < 5 */
        struct shopper d = world_waiting(&w, 4);
        assert_int_equal(world_use(&w, &a), 0);
        assert_int_equal(world_hold(&w, &a, 1, w.now_ms + 600000), 0);
        /* available 4, outstanding 4 */
        assert_int_equal(world_outstanding(&w), 4);
        assert_int_equal(world_join(&w, &d), 0);
        assert_int_equal(d.place.state, ADM_WAITING);
        assert_int_equal(world_use(&w, &b), 0);
        assert_int_equal(world_hold(&w, &b, 1, w.now_ms + 600000), 0);
        /* available 3, outstanding 2 */
        assert_int_equal(world_join(&w, &d), 0);
        assert_int_equal(d.place.state, ADM_ADMITTED);
        assert_int_equal(world_outstanding(&w), 4);
        world_close(&w);
}

static void test_further_hold_takes_room_or_is_refused(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 3);
        w.update.facts.per_account = 2;
        w.update.facts.version++;
        world_tell(&w);
        struct shopper a = world_admitted(&w, 1);
        assert_int_equal(world_use(&w, &a), 0);
        assert_int_equal(world_hold(&w, &a, 1, w.now_ms + 600000), 0);
        struct adm_shown p = world_shown(&a);
        assert_int_equal(adm_store_hold_begin(w.store, w.sale, &p, 1, w.now_ms), 0);
        assert_int_equal(world_outstanding(&w), 1);
        assert_int_equal(adm_store_hold_begin(w.store, w.sale, &p, 2, w.now_ms), ADM_NO_ROOM);
        /* The origin refuses it: the unit is free at once. */
        struct adm_hold_end no = {.qty = 1};
        assert_int_equal(adm_store_hold_end(w.store, w.sale, &p, &no, w.now_ms, &a.pass), 0);
        assert_int_equal(world_outstanding(&w), 0);
        /* Never answered: free after the forward timeout and the skew. */
        assert_int_equal(adm_store_hold_begin(w.store, w.sale, &p, 2, w.now_ms), 0);
        assert_int_equal(world_outstanding(&w), 2);
        world_pass(&w, 3100);
        assert_int_equal(world_outstanding(&w), 0);
        assert_int_equal(world_hold(&w, &a, 2, w.now_ms + 600000), 0);
        assert_int_equal(world_outstanding(&w), 0);
        assert_int_equal(adm_store_hold_begin(w.store, w.sale, &p, 1, w.now_ms), ADM_NO_ROOM);
        world_close(&w);
}

static void test_two_first_holds_in_parallel_share_the_slot(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 2);
        w.update.facts.per_account = 2;
        w.update.facts.version++;
        world_tell(&w);
        struct shopper a = world_admitted(&w, 1);
        struct shopper b = world_waiting(&w, 2);
        assert_int_equal(world_use(&w, &a), 0);
        struct adm_shown p = world_shown(&a);
        assert_int_equal(adm_store_hold_begin(w.store, w.sale, &p, 1, w.now_ms), 0);
        assert_int_equal(adm_store_hold_begin(w.store, w.sale, &p, 1, w.now_ms), 0);
        struct adm_hold_end e = {.qty = 1,
                                 .held = true,
                                 .hold_end_ms = w.now_ms + 60000,
                                 .has_stock = true,
                                 .timeline = 1,
                                 .n = 2,
                                 .available = 1};
        assert_int_equal(adm_store_hold_end(w.store, w.sale, &p, &e, w.now_ms, &a.pass), 0);
        /* One unit left, and it is on its way to the same pass. */
        assert_int_equal(world_outstanding(&w), 1);
        assert_int_equal(world_join(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_WAITING);
        e.n = 3;
        e.available = 0;
        assert_int_equal(adm_store_hold_end(w.store, w.sale, &p, &e, w.now_ms, &a.pass), 0);
        assert_int_equal(world_outstanding(&w), 0);
        world_close(&w);
}

static void test_never_issued_at_or_above_the_gate(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 10);
        w.update.facts.overbook_milli = 1250;
        w.update.facts.version++;
        world_tell(&w);
        for (uint32_t i = 0; i < 12; i++)
                (void)world_admitted(&w, i);
        (void)world_waiting(&w, 12);
        world_stock(&w, 5, 0, 5);
        assert_int_equal(world_view(&w).room_units, -6);
        (void)world_waiting(&w, 13);
        world_close(&w);
}

static void test_older_stock_is_never_taken(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 10);
        world_stock(&w, 4, 6, 0);
        struct adm_stock old = {
                .timeline = 1, .n = 1, .db_now_ms = w.now_ms + 9999, .available = 10, .total = 10};
        adm_store_stock(w.store, w.sale, &old, w.now_ms);
        assert_int_equal(world_view(&w).stock.available, 4);
        struct adm_stock later = w.update.facts.stock;
        later.db_now_ms += 1;
        later.available = 5; /* a hold fell due without a write */
        adm_store_stock(w.store, w.sale, &later, w.now_ms);
        assert_int_equal(world_view(&w).stock.available, 5);
        assert_int_equal(world_view(&w).gate_gap, 1);
        struct adm_stock line2 = {.timeline = 2, .n = 1, .available = 9, .total = 10};
        adm_store_stock(w.store, w.sale, &line2, w.now_ms);
        assert_int_equal(world_view(&w).stock.available, 9);
        world_tell(&w); /* timeline 1 again: ignored */
        assert_int_equal(world_view(&w).stock.available, 9);
        world_close(&w);
}

static void test_hold_answer_never_says_sold_out_too_early(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        struct shopper a = world_admitted(&w, 1);
        assert_int_equal(world_use(&w, &a), 0);
        assert_int_equal(world_hold(&w, &a, 1, w.now_ms + 600000), 0);
        struct adm_view v = world_view(&w);
        assert_int_equal(v.stock.available, 0);
        assert_int_equal(v.stock.held, 1);
        assert_int_not_equal(v.state, ADM_SALE_SOLD_OUT);
        world_close(&w);
}

/* Two whose holds are on the way, and one at the front of the line behind them. */
struct overtaking {
        struct world w;
        struct shopper a, b, front, next;
        struct adm_shown of_a, of_b;
};

static void overtaking_open(struct overtaking *o) {
        struct world *w = &o->w;
        world_open(w, 3);
        world_stock(w, 0, 3, 0);
        o->a = world_waiting(w, 1);
        o->b = world_waiting(w, 2);
        o->front = world_waiting(w, 3);
        o->next = world_waiting(w, 4);
        world_stock(w, 3, 0, 0);
        struct shopper *both[] = {&o->a, &o->b};
        struct adm_shown *shown[] = {&o->of_a, &o->of_b};
        for (int i = 0; i < 2; i++) {
                assert_int_equal(world_join(w, both[i]), 0);
                assert_int_equal(world_use(w, both[i]), 0);
                *shown[i] = world_shown(both[i]);
                assert_int_equal(adm_store_hold_begin(w->store, w->sale, shown[i], 1, w->now_ms),
                                 0);
        }
}

/* The origin's answer about one unit; `n` counts from the stock of the opening. */
static void answer(struct overtaking *o, const struct adm_shown *p, bool held, uint64_t n,
                   int64_t available) {
        const struct adm_stock *k = &o->w.update.facts.stock;
        struct adm_hold_end e = {.qty = 1,
                                 .held = held,
                                 .hold_end_ms = o->w.now_ms + 60000,
                                 .has_stock = true,
                                 .timeline = k->timeline,
                                 .n = k->n + n,
                                 .available = available};
        struct adm_pass pass;
        assert_int_equal(adm_store_hold_end(o->w.store, o->w.sale, p, &e, o->w.now_ms, &pass), 0);
}

static void assert_turn_of_front(struct overtaking *o, bool is_it) {
        struct world *w = &o->w;
        assert_int_equal(world_view(w).room_units, is_it);
        assert_int_equal(world_poll(w, &o->front), 0);
        assert_int_equal(o->front.place.state, is_it ? ADM_READY : ADM_WAITING);
        assert_int_equal(world_poll(w, &o->next), 0);
        assert_int_equal(o->next.place.state, ADM_WAITING);
}

static void test_an_answer_that_overtook_another_takes_nobodys_turn(void **state) {
        (void)state;
        struct overtaking o = {0};
        overtaking_open(&o);
        assert_turn_of_front(&o, true);
        answer(&o, &o.of_b, true, 2, 1);
        assert_turn_of_front(&o, true);
        answer(&o, &o.of_a, true, 1, 2);
        assert_turn_of_front(&o, true);
        world_stock(&o.w, 1, 2, 0);
        assert_turn_of_front(&o, true);
        assert_int_equal(world_join(&o.w, &o.front), 0);
        assert_int_equal(o.front.place.state, ADM_ADMITTED);
        assert_int_equal(world_view(&o.w).room_units, 0);
        world_close(&o.w);
}

static void test_what_others_took_is_found_out_with_the_last_answer(void **state) {
        (void)state;
        struct overtaking o = {0};
        overtaking_open(&o);
        answer(&o, &o.of_b, true, 2, 1);
        answer(&o, &o.of_a, false, 2, 1); /* its unit went to another channel */
        assert_turn_of_front(&o, false);
        world_close(&o.w);
}

static void test_a_snapshot_that_overtook_answers_takes_nobodys_turn(void **state) {
        (void)state;
        struct overtaking o = {0};
        overtaking_open(&o);
        struct adm_converted c = {.hold_end_ms = o.w.now_ms + 60000};
        memcpy(c.jti, o.a.pass.jti, sizeof(c.jti));
        o.w.update.converted = &c;
        o.w.update.n_converted = 1;
        for (int twice = 0; twice < 2; twice++) {
                world_stock(&o.w, 2, 1, 0);
                assert_turn_of_front(&o, true);
        }
        answer(&o, &o.of_a, true, 0, 2);
        assert_turn_of_front(&o, true);
        /* What the snapshot does not name, another channel took. */
        world_stock(&o.w, 1, 1, 1);
        assert_turn_of_front(&o, false);
        world_close(&o.w);
}

static void test_converted_by_the_shop_itself(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 2);
        struct shopper a = world_admitted(&w, 1), b = world_admitted(&w, 2);
        struct shopper c = world_waiting(&w, 3);
        (void)b;
        struct adm_converted done = {.qty = 1, .hold_end_ms = w.now_ms + 60000};
        memcpy(done.jti, a.pass.jti, sizeof(done.jti));
        w.update.converted = &done;
        w.update.n_converted = 1;
        world_stock(&w, 1, 1, 0);
        assert_int_equal(world_outstanding(&w), 1);
        world_tell(&w);
        world_tell(&w);
        assert_int_equal(world_outstanding(&w), 1);
        assert_int_equal(world_look(&w, &a), 0);
        assert_int_equal(a.pass.life, ADM_PASS_HOLDER);
        assert_int_equal(world_join(&w, &c), 0);
        assert_int_equal(c.place.state, ADM_WAITING);
        done.jti[9] ^= 1; /* nobody's */
        world_tell(&w);
        assert_int_equal(world_outstanding(&w), 1);
        world_close(&w);
}

static void test_hold_answered_after_the_pass_ended(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        w.update.facts.pass_seconds = 5;
        w.update.facts.version++;
        world_tell(&w);
        struct shopper a = world_admitted(&w, 1);
        assert_int_equal(world_use(&w, &a), 0);
        struct adm_shown p = world_shown(&a);
        world_pass(&w, 4900);
        assert_int_equal(adm_store_hold_begin(w.store, w.sale, &p, 1, w.now_ms), 0);
        world_pass(&w, 900);
        assert_int_equal(world_outstanding(&w), 1); /* lingers */
        struct adm_hold_end e = {.qty = 1,
                                 .held = true,
                                 .hold_end_ms = w.now_ms + 60000,
                                 .has_stock = true,
                                 .timeline = 1,
                                 .n = 9,
                                 .available = 0};
        assert_int_equal(adm_store_hold_end(w.store, w.sale, &p, &e, w.now_ms, &a.pass), 0);
        assert_int_equal(a.pass.life, ADM_PASS_HOLDER);
        assert_int_equal(world_outstanding(&w), 0);
        assert_int_equal(world_look(&w, &a), 0);
        world_close(&w);
}

static void test_refused_hold_leaves_the_pass_good(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        struct shopper a = world_admitted(&w, 1);
        assert_int_equal(world_use(&w, &a), 0);
        struct adm_shown p = world_shown(&a);
        assert_int_equal(adm_store_hold_begin(w.store, w.sale, &p, 1, w.now_ms), 0);
        struct adm_hold_end no = {.qty = 1};
        assert_int_equal(adm_store_hold_end(w.store, w.sale, &p, &no, w.now_ms, &a.pass), 0);
        assert_int_equal(a.pass.life, ADM_PASS_USED);
        assert_int_equal(world_outstanding(&w), 1);
        world_close(&w);
}

static void test_pause_voids_invitations_and_keeps_passes(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        struct shopper a = world_admitted(&w, 1), b = world_waiting(&w, 2);
        assert_int_equal(world_use(&w, &a), 0);
        world_stock(&w, 2, 0, 0);
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_READY);
        w.update.facts.paused = true;
        w.update.facts.version++;
        world_tell(&w);
        assert_int_equal(world_view(&w).line_invited, 0);
        assert_int_equal(world_join(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_PAUSED);
        assert_int_equal(b.place.position, 1);
        assert_int_equal(world_look(&w, &a), 0);
        for (int i = 0; i < 6; i++) {
                world_pass(&w, 5000);
                assert_int_equal(world_poll(&w, &b), 0);
        }
        w.update.facts.paused = false;
        w.update.facts.version++;
        world_tell(&w);
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_READY);
        assert_int_equal(world_view(&w).turns_missed_total, 0);
        world_close(&w);
}

static void test_rate_admits_evenly_through_the_store(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1000);
        w.update.facts.rate_per_minute = 600;
        w.update.facts.version++;
        world_tell(&w);
        static struct shopper s[300];
        uint32_t in = 0;
        for (uint32_t i = 0; i < 300; i++) {
                s[i] = world_shopper(i, false);
                assert_int_equal(world_join(&w, &s[i]), 0);
                in += s[i].place.state == ADM_ADMITTED;
        }
        assert_in_range(in, 0, 10);
        for (int t = 0; t < 100; t++) {
                world_pass(&w, 100);
                for (uint32_t i = 0; i < 300; i++) {
                        if (s[i].has_pass)
                                continue;
                        assert_int_equal(world_poll(&w, &s[i]), 0);
                        if (s[i].place.state == ADM_READY)
                                assert_int_equal(world_join(&w, &s[i]), 0);
                        in += s[i].place.issued;
                }
        }
        assert_in_range(in, 95, 115);
        for (uint32_t i = 0; i < in; i++)
                assert_true(s[i].has_pass);
        world_close(&w);
}

static void test_max_active_counts_slots(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 100);
        w.update.facts.max_active = 2;
        w.update.facts.version++;
        world_tell(&w);
        struct shopper a = world_admitted(&w, 1), b = world_admitted(&w, 2),
                       c = world_waiting(&w, 3);
        (void)b;
        assert_int_equal(world_use(&w, &a), 0);
        assert_int_equal(world_hold(&w, &a, 1, w.now_ms + 60000), 0);
        assert_int_equal(world_join(&w, &c), 0);
        assert_int_equal(c.place.state, ADM_ADMITTED);
        world_close(&w);
}

static void test_sale_without_item_is_paced_alone(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 0);
        w.update.facts.has_item = false;
        w.update.facts.max_active = 1;
        w.update.facts.version++;
        world_tell(&w);
        struct shopper a = world_admitted(&w, 1), b = world_waiting(&w, 2);
        (void)a;
        assert_int_equal(b.place.likely, -1);
        assert_int_equal(world_view(&w).state, ADM_SALE_OPEN);
        world_close(&w);
}

static void test_nobody_enters_after_closing(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        struct shopper a = world_admitted(&w, 1), b = world_waiting(&w, 2);
        w.update.facts.closes_at_ms = w.now_ms + 5000;
        w.update.facts.version++;
        world_tell(&w);
        world_pass(&w, 5000);
        world_stock(&w, 9, 0, 0);
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_CLOSED);
        assert_int_equal(world_join(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_CLOSED);
        assert_int_equal(world_look(&w, &a), 0);
        assert_int_equal(world_poll(&w, &a), 0);
        assert_int_equal(a.place.state, ADM_ADMITTED);
        world_close(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_room_in_units_and_keys),
                cmocka_unit_test(test_pass_weighs_units_until_the_first_hold),
                cmocka_unit_test(test_further_hold_takes_room_or_is_refused),
                cmocka_unit_test(test_two_first_holds_in_parallel_share_the_slot),
                cmocka_unit_test(test_never_issued_at_or_above_the_gate),
                cmocka_unit_test(test_older_stock_is_never_taken),
                cmocka_unit_test(test_hold_answer_never_says_sold_out_too_early),
                cmocka_unit_test(test_an_answer_that_overtook_another_takes_nobodys_turn),
                cmocka_unit_test(test_what_others_took_is_found_out_with_the_last_answer),
                cmocka_unit_test(test_a_snapshot_that_overtook_answers_takes_nobodys_turn),
                cmocka_unit_test(test_converted_by_the_shop_itself),
                cmocka_unit_test(test_hold_answered_after_the_pass_ended),
                cmocka_unit_test(test_refused_hold_leaves_the_pass_good),
                cmocka_unit_test(test_pause_voids_invitations_and_keeps_passes),
                cmocka_unit_test(test_rate_admits_evenly_through_the_store),
                cmocka_unit_test(test_max_active_counts_slots),
                cmocka_unit_test(test_sale_without_item_is_paced_alone),
                cmocka_unit_test(test_nobody_enters_after_closing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
