#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/unit/lg_stage.h"

static struct stage stage;

#define PLAY(end, ...)                                                                             \
        do {                                                                                       \
                static const struct stage_row rows[] = {__VA_ARGS__};                              \
                stage_open(&stage, rows, NET_COUNT_OF(rows));                                      \
                stage_run(&stage, (end));                                                          \
        } while (0)

static struct lg_facts facts_of(void) {
        struct lg_facts f = {.buyers = 0};
        lg_crowd_facts(&stage.crowd, &f);
        return f;
}

static void test_waits_claims_holds_and_pays(void **state) {
        (void)state;
        PLAY(LG_END_SOLD, {"POST line", 202, STAGE_WAITING("t1"), NULL},
             {"GET line", 202, STAGE_WAITING("t2"), NULL}, {"GET line", 202, STAGE_READY, NULL},
             {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
             {"POST holds", 201, STAGE_HOLD("held"), NULL},
             {"POST confirm", 200, STAGE_HOLD("sold"), NULL});
        const struct stage_seen *seen = stage.seen;
        assert_true(seen[0].bearer);
        assert_string_equal(seen[0].ticket, "");
        assert_false(seen[1].bearer);
        assert_string_equal(seen[1].ticket, "t1");
        assert_string_equal(seen[2].ticket, "t2");
        assert_string_equal(seen[3].ticket, "t9");
        assert_true(seen[3].bearer);
        assert_string_equal(seen[4].pass, STAGE_PASS_1);
        assert_string_not_equal(seen[4].key, "");
        struct lg_facts f = facts_of();
        assert_int_equal(f.sold_to, 1);
        assert_int_equal(f.units_confirmed, 1);
        assert_int_equal(f.max_units_per_account, 1);
        assert_int_equal(f.passes_seen, 1);
        assert_int_equal(f.sent_with_pass, 1);
        assert_int_equal(f.demand, 1);
        const struct lg_trace *t = &stage.crowd.buyers[0].trace;
        assert_true(t->joined_us < t->ticket_us && t->ticket_us < t->last_waiting_us &&
                    t->last_waiting_us < t->admitted_us);
        stage_close(&stage);
}

static void test_one_key_until_there_is_an_answer(void **state) {
        (void)state;
        PLAY(LG_END_SOLD, {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
             {"POST holds", 503, STAGE_CODE("paused"), NULL}, {"POST holds", 0, NULL, NULL},
             {"POST holds", 409, STAGE_CODE("all_held"), "1"},
             {"POST holds", 200, STAGE_HOLD("held"), NULL}, {"POST confirm", 0, NULL, NULL},
             {"POST confirm", 503, STAGE_CODE("unavailable"), NULL},
             {"POST confirm", 200, STAGE_HOLD("sold"), NULL});
        for (size_t i = 2; i <= 4; i++)
                assert_string_equal(stage.seen[i].key, stage.seen[1].key);
        assert_int_equal(stage.crowd.all_held_to_pass, 1);
        assert_int_equal(stage.crowd.again.paused, 2);
        assert_int_equal(stage.crowd.again.lost, 2);
        stage_close(&stage);
}

static void test_fewer_units_are_another_intention(void **state) {
        (void)state;
        static const struct stage_row rows[] = {
                {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
                {"POST holds", 409, "{\"code\":\"not_enough\",\"available\":1}", NULL},
                {"POST holds", 201, STAGE_HOLD("held"), NULL},
                {"POST confirm", 200, STAGE_HOLD("sold"), NULL},
        };
        stage_open(&stage, rows, NET_COUNT_OF(rows));
        stage.options.qty_low = stage.options.qty_high = 3;
        stage_run(&stage, LG_END_SOLD);
        assert_string_not_equal(stage.seen[1].key, stage.seen[2].key);
        assert_int_equal(facts_of().max_units_per_account, 1);
        stage_close(&stage);
}

static void test_sold_out_and_closed_refuse(void **state) {
        (void)state;
        PLAY(LG_END_REFUSED, {"POST line", 410, STAGE_CODE("sold_out"), NULL});
        stage_close(&stage);
        PLAY(LG_END_REFUSED, {"POST line", 202, STAGE_WAITING("t1"), NULL},
             {"GET line", 410, STAGE_CODE("closed"), NULL});
        stage_close(&stage);
        PLAY(LG_END_REFUSED, {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
             {"POST holds", 409, STAGE_CODE("sold_out"), NULL});
        stage_close(&stage);
}

static void test_a_ticket_nobody_knows_is_dropped(void **state) {
        (void)state;
        PLAY(LG_END_REFUSED, {"POST line", 202, STAGE_WAITING("t1"), NULL},
             {"GET line", 404, STAGE_CODE("not_found"), NULL},
             {"POST line", 410, STAGE_CODE("sold_out"), NULL});
        assert_string_equal(stage.seen[1].ticket, "t1");
        assert_string_equal(stage.seen[2].ticket, "");
        stage_close(&stage);
}

static void test_before_the_opening_it_joins_again(void **state) {
        (void)state;
        PLAY(LG_END_REFUSED,
             {"POST line", 202, "{\"state\":\"not_open\",\"poll_after_ms\":1}", NULL},
             {"POST line", 0, NULL, NULL},
             {"POST line", 503, "{\"code\":\"line_full\",\"poll_after_ms\":1}", "1"},
             {"POST line", 429, STAGE_CODE("rate_limited"), NULL},
             {"POST line", 410, STAGE_CODE("sold_out"), NULL});
        assert_int_equal(stage.crowd.buyers[0].trace.ticket_us, LG_NEVER);
        assert_int_equal(stage.crowd.again.limited, 1);
        stage_close(&stage);
}

static void test_a_lapsed_pass_leads_back_to_the_line(void **state) {
        (void)state;
        PLAY(LG_END_SOLD, {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
             {"POST holds", 403, STAGE_CODE("pass_expired"), NULL},
             {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_2), NULL},
             {"POST holds", 201, STAGE_HOLD("held"), NULL},
             {"POST confirm", 201, STAGE_HOLD("sold"), NULL});
        assert_string_equal(stage.seen[3].pass, STAGE_PASS_2);
        assert_string_equal(stage.seen[3].key, stage.seen[1].key);
        assert_int_equal(facts_of().passes_seen, 2);
        stage_close(&stage);
}

static void test_a_hold_paid_too_late_is_given_back(void **state) {
        (void)state;
        PLAY(LG_END_LEFT, {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
             {"POST holds", 201, STAGE_HOLD("held"), NULL},
             {"POST confirm", 409, STAGE_CODE("hold_expired"), NULL},
             {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_2), NULL},
             {"POST holds", 200, STAGE_HOLD("expired"), NULL},
             {"POST line", 410, STAGE_CODE("sold_out"), NULL});
        assert_string_not_equal(stage.seen[1].key, stage.seen[4].key);
        struct lg_facts f = facts_of();
        assert_int_equal(f.refused, 0); /* it had a hold */
        assert_int_equal(f.left, 1);
        assert_int_equal(f.units_given_back, 2);
        assert_int_equal(f.max_units_per_account, 0);
        stage_close(&stage);
}

static void test_who_never_pays_leaves_when_the_hold_ends(void **state) {
        (void)state;
        static const struct stage_row rows[] = {
                {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
                {"POST holds", 201, STAGE_HOLD("held"), NULL},
        };
        stage_open(&stage, rows, NET_COUNT_OF(rows));
        stage.options.unpaid = 1;
        int64_t began_us = loop_clock_us();
        stage_run(&stage, LG_END_LEFT);
        assert_true(loop_clock_us() - began_us >= 1000000);
        struct lg_facts f = facts_of();
        assert_int_equal(f.units_given_back, 1);
        assert_int_equal(f.demand, 0);
        stage_close(&stage);
}

static void test_a_leaver_leaves_even_at_its_turn(void **state) {
        (void)state;
        static const struct stage_row rows[] = {
                {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
                {"DELETE line", 503, STAGE_CODE("paused"), NULL},
                {"DELETE line", 204, NULL, NULL},
        };
        stage_open(&stage, rows, NET_COUNT_OF(rows));
        stage.options.leavers = 1;
        stage_run(&stage, LG_END_LEFT);
        assert_int_equal(facts_of().passes_unused, 1);
        stage_close(&stage);
}

static void test_an_answer_out_of_contract_breaks_the_buyer(void **state) {
        (void)state;
        PLAY(LG_END_BROKEN, {"POST line", 401, STAGE_CODE("account_required"), NULL});
        assert_string_equal(stage.crowd.broken_by, "POST line was answered 401 account_required");
        assert_int_equal(facts_of().broken, 1);
        stage_close(&stage);
        PLAY(LG_END_BROKEN, {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
             {"POST holds", 422, STAGE_CODE("idempotency_mismatch"), NULL});
        stage_close(&stage);
        PLAY(LG_END_BROKEN, {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
             {"POST holds", 201, "{}", NULL});
        stage_close(&stage);
        PLAY(LG_END_BROKEN, {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
             {"POST holds", 201, STAGE_HOLD("held"), NULL},
             {"POST confirm", 409, STAGE_CODE("already_sold"), NULL});
        stage_close(&stage);
}

static void test_a_place_given_anew_is_no_evidence(void **state) {
        (void)state;
        PLAY(LG_END_REFUSED, {"POST line", 202, STAGE_WAITING("t1"), NULL},
             {"GET line", 202, STAGE_WAITING("t1"), NULL},
             {"GET line", 202,
              "{\"state\":\"waiting\",\"reason\":\"turn_missed\",\"poll_after_ms\":1,"
              "\"ticket\":\"t2\"}",
              NULL},
             {"GET line", 410, STAGE_CODE("sold_out"), NULL});
        assert_int_equal(stage.crowd.buyers[0].trace.last_waiting_us, LG_NEVER);
        assert_true(stage.crowd.buyers[0].trace.ticket_us != LG_NEVER);
        stage_close(&stage);
}

static void test_a_second_hold_of_a_cheat_counts(void **state) {
        (void)state;
        static const struct stage_row rows[] = {
                {"POST line", 200, STAGE_ADMITTED(STAGE_PASS_1), NULL},
                {"POST holds", 201, STAGE_HOLD("held"), NULL},
                {"POST holds", 201, STAGE_HOLD("held"), NULL},
                {"POST confirm", 200, STAGE_HOLD("sold"), NULL},
        };
        struct lg_plan plan;
        uint64_t seed = 0;
        stage_open(&stage, rows, NET_COUNT_OF(rows));
        stage.options.cheats = 1;
        do {
                lg_plan_of(&stage.options, ++seed, 0, &plan);
        } while (plan.cheat != LG_CHEAT_HOLDS_TWICE);
        stage.seed = seed;
        stage_run(&stage, LG_END_SOLD);
        assert_string_not_equal(stage.seen[1].key, stage.seen[2].key);
        struct lg_facts f = facts_of();
        assert_int_equal(f.cheats_won, 1);
        assert_int_equal(f.max_units_per_account, 2);
        stage_close(&stage);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_waits_claims_holds_and_pays),
                cmocka_unit_test(test_one_key_until_there_is_an_answer),
                cmocka_unit_test(test_fewer_units_are_another_intention),
                cmocka_unit_test(test_sold_out_and_closed_refuse),
                cmocka_unit_test(test_a_ticket_nobody_knows_is_dropped),
                cmocka_unit_test(test_before_the_opening_it_joins_again),
                cmocka_unit_test(test_a_lapsed_pass_leads_back_to_the_line),
                cmocka_unit_test(test_a_hold_paid_too_late_is_given_back),
                cmocka_unit_test(test_who_never_pays_leaves_when_the_hold_ends),
                cmocka_unit_test(test_a_leaver_leaves_even_at_its_turn),
                cmocka_unit_test(test_an_answer_out_of_contract_breaks_the_buyer),
                cmocka_unit_test(test_a_place_given_anew_is_no_evidence),
                cmocka_unit_test(test_a_second_hold_of_a_cheat_counts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
