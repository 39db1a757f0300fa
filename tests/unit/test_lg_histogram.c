#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "loadgen/histogram.h"

static void test_nothing_seen_is_zero(void **state) {
        (void)state;
        static struct lg_histogram h;
        assert_int_equal(lg_histogram_at(&h, 500), 0);
        assert_int_equal(lg_histogram_at(&h, 1000), 0);
}

static void test_small_values_are_exact(void **state) {
        (void)state;
        static struct lg_histogram h;
        for (uint64_t us = 0; us < 64; us++)
                lg_histogram_add(&h, us);
        assert_int_equal(lg_histogram_at(&h, 0), 0);
        assert_int_equal(lg_histogram_at(&h, 500), 31);
        assert_int_equal(lg_histogram_at(&h, 1000), 63);
}

static void test_large_values_are_within_a_64th(void **state) {
        (void)state;
        for (uint64_t us = 64; us < UINT64_C(1) << 34; us = us * 9 / 8 + 1) {
                struct lg_histogram h = {.count = 0};
                lg_histogram_add(&h, us);
                lg_histogram_add(&h, us * 4); /* so that the largest is no help */
                uint64_t told = lg_histogram_at(&h, 500);
                assert_true(told >= us);
                assert_true(told - us <= us / 64);
        }
}

static void test_a_quantile_is_the_rank_from_below(void **state) {
        (void)state;
        static struct lg_histogram h;
        for (uint64_t us = 1; us <= 1000; us++)
                lg_histogram_add(&h, us <= 990 ? 10 : 50);
        assert_int_equal(lg_histogram_at(&h, 500), 10);
        assert_int_equal(lg_histogram_at(&h, 990), 10);
        assert_int_equal(lg_histogram_at(&h, 991), 50);
        assert_int_equal(lg_histogram_at(&h, 999), 50);
}

static void test_no_quantile_passes_the_largest_value(void **state) {
        (void)state;
        static struct lg_histogram h;
        lg_histogram_add(&h, 1000001);
        assert_int_equal(lg_histogram_at(&h, 999), 1000001);
}

static void test_a_value_beyond_the_last_slot_is_kept_as_largest(void **state) {
        (void)state;
        static struct lg_histogram h;
        lg_histogram_add(&h, UINT64_MAX);
        assert_int_equal(h.count, 1);
        assert_true(lg_histogram_at(&h, 500) == UINT64_MAX);
}

static void test_two_merged_are_one_that_saw_all(void **state) {
        (void)state;
        static struct lg_histogram a, b;
        lg_histogram_add(&a, 10);
        for (int i = 0; i < 3; i++)
                lg_histogram_add(&b, 5000);
        lg_histogram_merge(&a, &b);
        assert_int_equal(a.count, 4);
        assert_int_equal(a.max_us, 5000);
        assert_int_equal(lg_histogram_at(&a, 250), 10);
        assert_int_equal(lg_histogram_at(&a, 260), 5000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_seen_is_zero),
                cmocka_unit_test(test_small_values_are_exact),
                cmocka_unit_test(test_large_values_are_within_a_64th),
                cmocka_unit_test(test_a_quantile_is_the_rank_from_below),
                cmocka_unit_test(test_no_quantile_passes_the_largest_value),
                cmocka_unit_test(test_a_value_beyond_the_last_slot_is_kept_as_largest),
                cmocka_unit_test(test_two_merged_are_one_that_saw_all),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
