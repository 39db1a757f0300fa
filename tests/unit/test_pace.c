/* Pace and poll times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admission/pace.h"
#include "admission/poll.h"

#define T0 INT64_C(1800000000000)

/* Plays ten ticks a second with a line that takes what it gets; -> passes
 * issued in the last second. */
static int play_second(struct adm_pace *p, uint32_t rate, int64_t from_ms) {
        int issued = 0;
        for (int i = 0; i < 10; i++) {
                int64_t now = from_ms + i * 100;
                adm_pace_advance(p, rate, 0, now);
                while (adm_pace_keys(p) > 0 && adm_pace_may_issue(p, rate, now)) {
                        adm_pace_issued(p, now);
                        issued++;
                }
        }
        return issued;
}

static void test_600_a_minute_is_about_ten_a_second(void **state) {
        (void)state;
        struct adm_pace p = {0};
        int history[200] = {0};
        for (int s = 0; s < 200; s++) {
                history[s] = play_second(&p, 600, T0 + s * 1000);
                assert_in_range(history[s], 0, 11);
                int minute = 0;
                for (int i = s; i >= 0 && i > s - 60; i--)
                        minute += history[i];
                assert_in_range(minute, 0, 600);
        }
        int total = 0;
        for (int s = 100; s < 200; s++)
                total += history[s];
        assert_in_range(total, 950, 1000);
}

static void test_nothing_is_saved_up(void **state) {
        (void)state;
        struct adm_pace p = {0};
        for (int i = 0; i < 1000; i++)
                adm_pace_advance(&p, 600, 0, T0 + i * 100);
        assert_int_equal(adm_pace_keys(&p), 10);
        for (int i = 1000; i < 1100; i++)
                adm_pace_advance(&p, 600, 7, T0 + i * 100);
        assert_int_equal(adm_pace_keys(&p), 17);
        /* A stalled upkeep earns one second at most. */
        adm_pace_reset(&p, T0 + 110000);
        assert_int_equal(adm_pace_keys(&p), 0);
        adm_pace_advance(&p, 600, 100, T0 + 170000);
        assert_int_equal(adm_pace_keys(&p), 10);
}

static void test_slow_rates_let_one_in_at_a_time(void **state) {
        (void)state;
        struct adm_pace p = {0};
        int issued = 0;
        for (int s = 0; s < 300; s++)
                issued += play_second(&p, 1, T0 + s * 1000);
        assert_in_range(issued, 4, 5);
}

static void test_no_rate_is_no_limit(void **state) {
        (void)state;
        struct adm_pace p = {.allowance_micro = 5};
        adm_pace_advance(&p, 0, 0, T0);
        assert_int_equal(p.allowance_micro, 0);
        for (int i = 0; i < 1000; i++) {
                assert_true(adm_pace_may_issue(&p, 0, T0));
                adm_pace_issued(&p, T0);
        }
        assert_false(adm_pace_may_issue(&p, 1000, T0));
        assert_true(adm_pace_may_issue(&p, 1000, T0 + 61000));
}

static void test_time_that_runs_backwards_earns_nothing(void **state) {
        (void)state;
        struct adm_pace p = {0};
        adm_pace_advance(&p, 60, 5, T0);
        adm_pace_advance(&p, 60, 5, T0 - 5000);
        adm_pace_reset(&p, T0 - 5000);
        assert_int_equal(p.seen_ms, T0);
        adm_pace_advance(&p, 60, 5, T0 + 500);
        assert_int_equal(p.allowance_micro, 500000);
}

static void test_speed_is_measured_or_unknown(void **state) {
        (void)state;
        struct adm_pace p = {0};
        assert_int_equal(adm_pace_measured_milli(&p, T0), 0);
        for (int i = 0; i < 40; i++)
                adm_pace_issued(&p, T0);
        assert_int_equal(adm_pace_measured_milli(&p, T0), 0);
        assert_int_equal(adm_pace_measured_milli(&p, T0 + 9000), 4000);
        assert_int_equal(adm_pace_measured_milli(&p, T0 + 40000), 0);
}

static struct adm_poll_in waiter(int64_t ahead, int64_t obtainable) {
        return (struct adm_poll_in){.ahead = ahead,
                                    .obtainable = obtainable,
                                    .live = 10000,
                                    .polls_per_s = 30000,
                                    .random = UINT32_C(0x80000000)};
}

static void test_the_ramp_of_poll_times(void **state) {
        (void)state;
        static const struct {
                int64_t ahead, obtainable, live, want;
                const char *why;
        } rows[] = {
                {0, 100, 10, 2500, "next"},
                {99, 100, 10000, 2500, "as many ahead as units"},
                {999, 100, 10000, 25000, "ten times as many"},
                {9999, 100, 10000, 30000, "far"},
                {99, 5, 10000, 12500, "L is at least 20"},
                {500000, 100, 1000000, 33333, "a million: by the budget"},
                {500000, 100, 9000000, 120000, "two minutes at most"},
                {500000, -1, 1000000, 2500, "no stock: only rate limits"},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct adm_poll_in in = waiter(rows[i].ahead, rows[i].obtainable);
                in.live = rows[i].live;
                int64_t got = adm_poll_after_ms(&in);
                if (got < rows[i].want * 999 / 1000 || got > rows[i].want * 1001 / 1000)
                        fail_msg("%s: %lld", rows[i].why, (long long)got);
        }
}

static void test_jitter_is_a_fifth_either_way(void **state) {
        (void)state;
        assert_int_equal(adm_poll_jitter_ms(10000, 0), 8000);
        assert_int_equal(adm_poll_jitter_ms(10000, UINT32_MAX), 12000);
        struct adm_poll_in in = waiter(0, 100);
        in.random = 0;
        assert_int_equal(adm_poll_after_ms(&in), 2000);
        in.polls_per_s = 0;
        assert_int_equal(adm_poll_after_ms(&in), 2000);
}

static void test_a_rate_means_half_the_predicted_wait(void **state) {
        (void)state;
        struct adm_poll_in in = waiter(99, 1000);
        in.rate_per_minute = 60;
        assert_in_range(adm_poll_after_ms(&in), 49000, 50000);
        in.ahead = 1000;
        assert_in_range(adm_poll_after_ms(&in), 119000, 121000);
        in.ahead = 0;
        assert_in_range(adm_poll_after_ms(&in), 2499, 2501);
}

static void test_no_promise_crosses_the_opening(void **state) {
        (void)state;
        struct adm_poll_in in = waiter(0, 100);
        assert_int_equal(adm_poll_before_opening_ms(&in, 2500, T0, T0 + 2501), 2500);
        assert_int_equal(adm_poll_before_opening_ms(&in, 2500, T0, T0), 2500);
        assert_int_equal(adm_poll_before_opening_ms(&in, 2500, T0, T0 - 5), 2500);
        in.random = 0;
        assert_int_equal(adm_poll_before_opening_ms(&in, 2500, T0, T0 + 1000), 1000);
        in.random = UINT32_MAX;
        assert_in_range(adm_poll_before_opening_ms(&in, 2500, T0, T0 + 1000), 2990, 3000);
        in.live = 1000000;
        assert_in_range(adm_poll_before_opening_ms(&in, 2500, T0, T0 + 1000), 34000, 34400);
        in.live = 100000000;
        assert_int_equal(adm_poll_before_opening_ms(&in, 2500, T0, T0 + 1000), ADM_POLL_HORIZON_MS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_600_a_minute_is_about_ten_a_second),
                cmocka_unit_test(test_nothing_is_saved_up),
                cmocka_unit_test(test_slow_rates_let_one_in_at_a_time),
                cmocka_unit_test(test_no_rate_is_no_limit),
                cmocka_unit_test(test_time_that_runs_backwards_earns_nothing),
                cmocka_unit_test(test_speed_is_measured_or_unknown),
                cmocka_unit_test(test_the_ramp_of_poll_times),
                cmocka_unit_test(test_jitter_is_a_fifth_either_way),
                cmocka_unit_test(test_a_rate_means_half_the_predicted_wait),
                cmocka_unit_test(test_no_promise_crosses_the_opening),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
