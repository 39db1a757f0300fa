/* The limiter: bursts, rates, clocks that step, a crowded table, threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admission/limiter.h"

#define T0 INT64_C(1800000000000)

static const struct adm_limit ten_a_second = {.burst = 10, .period_ms = 1000};

static uint64_t key_of(uint64_t n) {
        uint64_t z = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        return z ^ z >> 31;
}

static struct adm_limiter *table(size_t cells) {
        struct adm_limiter *l = NULL;
        assert_int_equal(adm_limiter_new(cells, &l), 0);
        return l;
}

static void test_a_burst_then_the_rate(void **state) {
        (void)state;
        struct adm_limiter *l = table(0);
        for (int i = 0; i < 10; i++)
                assert_int_equal(adm_limiter_take(l, key_of(1), ten_a_second, T0), 0);
        assert_int_equal(adm_limiter_take(l, key_of(1), ten_a_second, T0), 100);
        assert_int_equal(adm_limiter_take(l, key_of(1), ten_a_second, T0 + 99), 1);
        assert_int_equal(adm_limiter_take(l, key_of(1), ten_a_second, T0 + 100), 0);
        assert_int_equal(adm_limiter_take(l, key_of(2), ten_a_second, T0 + 100), 0);
        int allowed = 0;
        for (int64_t t = 101; t <= 60100; t++)
                allowed += adm_limiter_take(l, key_of(1), ten_a_second, T0 + t) == 0;
        assert_in_range(allowed, 599, 601);
        adm_limiter_free(&l);
        assert_null(l);
}

static void test_a_look_counts_nothing(void **state) {
        (void)state;
        struct adm_limiter *l = table(64);
        for (int i = 0; i < 100; i++)
                assert_int_equal(adm_limiter_look(l, key_of(1), ten_a_second, T0), 0);
        for (int i = 0; i < 10; i++)
                assert_int_equal(adm_limiter_take(l, key_of(1), ten_a_second, T0), 0);
        assert_true(adm_limiter_look(l, key_of(1), ten_a_second, T0) > 0);
        adm_limiter_free(&l);
}

static void test_a_clock_that_steps_back_earns_nothing(void **state) {
        (void)state;
        struct adm_limiter *l = table(64);
        for (int i = 0; i < 10; i++)
                assert_int_equal(adm_limiter_take(l, key_of(1), ten_a_second, T0), 0);
        assert_true(adm_limiter_take(l, key_of(1), ten_a_second, T0 - 11000) > 0);
        assert_true(adm_limiter_take(l, key_of(1), ten_a_second, 0) > 0);
        assert_int_equal(adm_limiter_take(l, key_of(1), ten_a_second, T0 + 100), 0);
        adm_limiter_free(&l);
}

static void test_extreme_limits_stay_sane(void **state) {
        (void)state;
        struct adm_limiter *l = table(64);
        struct adm_limit one_an_hour = {.burst = 1, .period_ms = 3600000};
        assert_int_equal(adm_limiter_take(l, key_of(1), one_an_hour, T0), 0);
        assert_int_equal(adm_limiter_take(l, key_of(1), one_an_hour, T0), 3600000);
        assert_int_equal(adm_limiter_take(l, key_of(1), one_an_hour, T0 + 3600000), 0);
        struct adm_limit flood = {.burst = 1000000, .period_ms = 1000};
        for (int i = 0; i < 1000; i++)
                assert_int_equal(adm_limiter_take(l, key_of(2), flood, T0), 0);
        struct adm_limit none = {.burst = 0, .period_ms = 1000};
        assert_int_equal(adm_limiter_take(l, key_of(3), none, T0), 0);
        assert_true(adm_limiter_take(l, key_of(3), none, T0) > 0);
        adm_limiter_free(&l);
}

static void test_a_crowded_table_is_strict_not_open(void **state) {
        (void)state;
        struct adm_limiter *l = table(64);
        struct adm_limit one_a_minute = {.burst = 1, .period_ms = 60000};
        int allowed = 0;
        for (uint64_t n = 0; n < 10000; n++)
                allowed += adm_limiter_take(l, key_of(n), one_a_minute, T0) == 0;
        assert_in_range(allowed, 50, 64);
        assert_true(adm_limiter_shared_total(l) > 9000);
        /* Idle cells are anybody's again. */
        assert_int_equal(adm_limiter_take(l, key_of(20000), one_a_minute, T0 + 60001), 0);
        adm_limiter_free(&l);
}

#define THREADS 4
#define TRIES 20000

struct racer {
        struct adm_limiter *l;
        int allowed;
};

static void *race(void *arg) {
        struct racer *r = arg;
        struct adm_limit limit = {.burst = 1000, .period_ms = 1000000};
        for (int i = 0; i < TRIES; i++)
                r->allowed += adm_limiter_take(r->l, key_of(1), limit, T0 + i / 1000) == 0;
        return NULL;
}

static void test_threads_share_one_limit(void **state) {
        (void)state;
        struct adm_limiter *l = table(1024);
        pthread_t t[THREADS];
        struct racer r[THREADS] = {0};
        int allowed = 0;
        for (int i = 0; i < THREADS; i++) {
                r[i].l = l;
                assert_int_equal(pthread_create(&t[i], NULL, race, &r[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
                assert_int_equal(pthread_join(t[i], NULL), 0);
                allowed += r[i].allowed;
        }
        assert_in_range(allowed, 1000, 1001);
        adm_limiter_free(&l);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_burst_then_the_rate),
                cmocka_unit_test(test_a_look_counts_nothing),
                cmocka_unit_test(test_a_clock_that_steps_back_earns_nothing),
                cmocka_unit_test(test_extreme_limits_stay_sane),
                cmocka_unit_test(test_a_crowded_table_is_strict_not_open),
                cmocka_unit_test(test_threads_share_one_limit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
