#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "loadgen/plan.h"

static struct lg_options options(void) {
        return (struct lg_options){
                .buyers = 10000,
                .units = 100,
                .tabs = 1,
                .qty_low = 1,
                .qty_high = 1,
                .spread_s = 10,
        };
}

static void test_the_seed_alone_decides(void **state) {
        (void)state;
        struct lg_options o = options();
        o.unpaid = o.leavers = o.sleepers = o.cheats = 0.2;
        o.qty_high = 5;
        o.arrival = LG_ARRIVAL_POISSON;
        int differ = 0;
        for (int64_t i = 0; i < 100; i++) {
                struct lg_plan a, b, other;
                lg_plan_of(&o, 7, i, &a);
                lg_plan_of(&o, 7, i, &b);
                lg_plan_of(&o, 8, i, &other);
                assert_memory_equal(&a, &b, sizeof(a));
                differ += a.arrives_ms != other.arrives_ms;
        }
        assert_true(differ > 90);
}

static void test_shares_are_met(void **state) {
        (void)state;
        struct lg_options o = options();
        o.unpaid = 0.3;
        o.leavers = 0.1;
        o.sleepers = 0.2;
        o.cheats = 0.1;
        int count[LG_ROLE_COUNT] = {0};
        for (int64_t i = 0; i < o.buyers; i++) {
                struct lg_plan plan;
                lg_plan_of(&o, 1, i, &plan);
                count[plan.role]++;
        }
        assert_in_range(count[LG_ROLE_UNPAID], 2800, 3200);
        assert_in_range(count[LG_ROLE_LEAVES], 850, 1150);
        assert_in_range(count[LG_ROLE_SLEEPS] + count[LG_ROLE_IS_GONE], 1800, 2200);
        assert_in_range(count[LG_ROLE_SLEEPS], 850, 1150);
        assert_in_range(count[LG_ROLE_CHEATS], 850, 1150);
}

static void test_whole_shares_leave_nobody_else(void **state) {
        (void)state;
        struct lg_options o = options();
        o.unpaid = 1;
        for (int64_t i = 0; i < 1000; i++) {
                struct lg_plan plan;
                lg_plan_of(&o, 3, i, &plan);
                assert_int_equal(plan.role, LG_ROLE_UNPAID);
        }
}

static void test_quantities_stay_in_range_and_reach_both_ends(void **state) {
        (void)state;
        struct lg_options o = options();
        o.qty_low = 2;
        o.qty_high = 4;
        bool seen[5] = {false};
        for (int64_t i = 0; i < 200; i++) {
                struct lg_plan plan;
                lg_plan_of(&o, 3, i, &plan);
                assert_in_range(plan.qty, 2, 4);
                seen[plan.qty] = true;
        }
        assert_true(seen[2] && seen[3] && seen[4]);
}

static void test_arrivals_follow_their_shape(void **state) {
        (void)state;
        struct lg_options o = options();
        static const struct {
                enum lg_arrival arrival;
                int low, high; /* of 10,000, in the first half of the spread */
        } rows[] = {
                {LG_ARRIVAL_HERD, 10000, 10000},
                {LG_ARRIVAL_RAMP, 2300, 2700},
                {LG_ARRIVAL_POISSON, 4800, 5200},
                {LG_ARRIVAL_PREQUEUE, 4800, 5200},
        };
        for (size_t row = 0; row < NET_COUNT_OF(rows); row++) {
                int early = 0;
                o.arrival = rows[row].arrival;
                for (int64_t i = 0; i < o.buyers; i++) {
                        struct lg_plan plan;
                        lg_plan_of(&o, 1, i, &plan);
                        assert_in_range(plan.arrives_ms, 0, 10000);
                        early += plan.arrives_ms < 5000;
                }
                assert_in_range(early, rows[row].low, rows[row].high);
        }
}

static void test_back_off_doubles_to_a_second(void **state) {
        (void)state;
        static const struct {
                uint32_t tries;
                int low, high;
        } rows[] = {{0, 38, 62},    {1, 75, 125},    {4, 600, 1000},
                    {5, 750, 1250}, {60, 750, 1250}, {UINT32_MAX, 750, 1250}};
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                for (uint64_t salt = 0; salt < 100; salt++)
                        assert_in_range(lg_backoff_ms(rows[i].tries, salt), rows[i].low,
                                        rows[i].high);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_seed_alone_decides),
                cmocka_unit_test(test_shares_are_met),
                cmocka_unit_test(test_whole_shares_leave_nobody_else),
                cmocka_unit_test(test_quantities_stay_in_range_and_reach_both_ends),
                cmocka_unit_test(test_arrivals_follow_their_shape),
                cmocka_unit_test(test_back_off_doubles_to_a_second),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
