#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "loadgen/judge.h"

/* 10,000 buyers, 100 units, everything as it should be. */
static struct lg_facts good(void) {
        return (struct lg_facts){
                .buyers = 10000,
                .units = 100,
                .demand = 10000,
                .per_account = 1,
                .deadline_s = 240,
                .sold_to = 100,
                .refused = 9900,
                .admitted = 100,
                .units_confirmed = 100,
                .passes_seen = 100,
                .max_units_per_account = 1,
                .sent_with_pass = 100,
                .stock_known = true,
                .stock_sold = 100,
                .invariant_known = true,
                .invariant_ok = true,
                .metrics_known = true,
                .passes_issued = 100,
                .asked_origin = 160,
                .asked_for_people = 100,
        };
}

/* The race with one fact changed is not ok for exactly one reason, in which
 * `word` occurs. */
static void assert_only_why(const struct lg_facts *f, const char *word) {
        struct lg_verdict v;
        lg_judge(f, &v);
        if (v.ok || v.n_why != 1 || !strstr(v.why[0], word))
                fail_msg("wanted only \"%s\", got %zu: %s", word, v.n_why,
                         v.n_why ? v.why[0] : "ok");
}

static void test_a_good_race_is_ok(void **state) {
        (void)state;
        struct lg_facts f = good();
        struct lg_verdict v;
        lg_judge(&f, &v);
        assert_true(v.ok);
        assert_int_equal(v.n_why, 0);
        assert_int_equal(v.unsold, 0);
        assert_int_equal(v.oversold, 0);
        assert_int_equal(v.refused_while_free, 0);
        assert_int_equal(v.origin_requests_for_refused, 0);
}

static void test_a_unit_too_many_is_told(void **state) {
        (void)state;
        struct lg_facts f = good();
        f.stock_sold = f.units_confirmed = f.sold_to = 101;
        f.refused = 9899;
        assert_only_why(&f, "oversold: 1 ");
}

static void test_a_payer_told_more_than_the_stock_is_oversold(void **state) {
        (void)state;
        struct lg_facts f = good();
        struct lg_verdict v;
        f.units_confirmed = 101;
        lg_judge(&f, &v);
        assert_false(v.ok);
        assert_int_equal(v.oversold, 1);
}

static void test_refused_while_a_unit_stayed_free(void **state) {
        (void)state;
        struct lg_facts f = good();
        struct lg_verdict v;
        f.stock_sold = f.units_confirmed = f.sold_to = 99;
        f.refused = 9901;
        lg_judge(&f, &v);
        assert_false(v.ok);
        assert_int_equal(v.unsold, 1);
        assert_int_equal(v.refused_while_free, 9901);
        assert_int_equal(v.n_why, 2);
}

static void test_fewer_payers_than_units_may_leave_some_unsold(void **state) {
        (void)state;
        struct lg_facts f = good();
        f.buyers = 50;
        f.demand = 30;
        f.sold_to = f.units_confirmed = f.stock_sold = f.passes_issued = 30;
        f.left = 20;
        f.refused = 0;
        struct lg_verdict v;
        lg_judge(&f, &v);
        assert_true(v.ok);
        assert_int_equal(v.unsold, 70);
}

static void test_origin_asked_for_the_refused(void **state) {
        (void)state;
        struct lg_facts f = good();
        f.asked_for_people = 103;
        assert_only_why(&f, "asked 3 times");
        f.asked_for_people = 90; /* some were answered from memory */
        struct lg_verdict v;
        lg_judge(&f, &v);
        assert_true(v.ok);
        assert_int_equal(v.origin_requests_for_refused, 0);
}

static void test_passes_are_bounded_by_stock_and_what_came_back(void **state) {
        (void)state;
        struct lg_facts f = good();
        struct lg_verdict v;
        f.passes_issued = 105;
        lg_judge(&f, &v);
        assert_true(v.ok);
        f.passes_issued = 106;
        assert_only_why(&f, "106 passes");
        f.units_given_back = 40;
        lg_judge(&f, &v);
        assert_true(v.ok);
        f.passes_issued = 148;
        assert_only_why(&f, "148 passes");
        f = good();
        f.passes_seen = 106;
        assert_only_why(&f, "saw 106");
}

static void test_each_other_rule_is_told_by_itself(void **state) {
        (void)state;
        struct lg_facts f = good();
        f.stock_held = 2;
        assert_only_why(&f, "still held");
        f = good();
        f.invariant_ok = false;
        assert_only_why(&f, "invariant is violated");
        f = good();
        f.invariant_known = false;
        assert_only_why(&f, "invariant could not");
        f = good();
        f.stock_known = false;
        assert_only_why(&f, "stock at the origin");
        f = good();
        f.metrics_known = false;
        assert_only_why(&f, "metrics");
        f = good();
        f.inversions = 3;
        assert_only_why(&f, "3 times");
        f.inversions = -1;
        assert_only_why(&f, "memory");
        f = good();
        f.max_units_per_account = 2;
        assert_only_why(&f, "2 units, the limit is 1");
        f = good();
        f.cheats_won = 1;
        assert_only_why(&f, "cheats");
        f = good();
        f.refused--;
        f.unfinished++;
        assert_only_why(&f, "no end after 240 s");
        f.broken++;
        assert_only_why(&f, "no shopper can go on");
        f = good();
        f.refused--;
        assert_only_why(&f, "9999 ends");
}

static void test_more_reasons_than_room_are_cut(void **state) {
        (void)state;
        struct lg_verdict v = {.ok = true};
        for (int i = 0; i < LG_WHY_MAX + 5; i++)
                lg_verdict_add(&v, "reason %d", i);
        assert_false(v.ok);
        assert_int_equal(v.n_why, LG_WHY_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_good_race_is_ok),
                cmocka_unit_test(test_a_unit_too_many_is_told),
                cmocka_unit_test(test_a_payer_told_more_than_the_stock_is_oversold),
                cmocka_unit_test(test_refused_while_a_unit_stayed_free),
                cmocka_unit_test(test_fewer_payers_than_units_may_leave_some_unsold),
                cmocka_unit_test(test_origin_asked_for_the_refused),
                cmocka_unit_test(test_passes_are_bounded_by_stock_and_what_came_back),
                cmocka_unit_test(test_each_other_rule_is_told_by_itself),
                cmocka_unit_test(test_more_reasons_than_room_are_cut),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
