#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/http_pool_rig.h"

static void start_another(struct http_call *c, enum http_call_outcome outcome) {
        static size_t started;

        (void)c;
        (void)outcome;
        /* Those that come later are told at once, by the same start. */
        if (started++ < 5)
                assert_int_equal(start(999, 60000), -EHOSTDOWN);
}

static void test_calls_to_a_dead_host_end_soon_and_then_at_once(void **state) {
        struct http_pool_stats stats;
        char address[32];
        int64_t from = loop_clock_ms();

        (void)state;
        fake_dead_address(address);
        make_pool(conf_to(address));
        rig.done = start_another;
        run_calls(999, 60000);
        rig.done = NULL;
        assert_int_equal(rig.ended[HTTP_CALL_UNSENT], 999);
        assert_in_range(loop_clock_ms() - from, 0, 30000);
        assert_true(http_pool_is_away(rig.pool));
        assert_int_equal(start(0, 60000), -EHOSTDOWN);
        http_pool_stats(rig.pool, &stats);
        assert_int_equal(stats.refused_away, 6);
        assert_int_equal(stats.failures_total, 3);
}

static void test_one_probe_at_a_time_while_away(void **state) {
        char address[32];

        (void)state;
        fake_dead_address(address);
        make_pool(conf_to(address));
        run_calls(1, 60000);
        assert_true(http_pool_is_away(rig.pool));
        pass_ms(1100);
        assert_false(http_pool_is_away(rig.pool));
        rig.wanted = 2;
        assert_int_equal(start(0, 60000), 0);
        assert_true(http_pool_is_away(rig.pool));
        assert_int_equal(start(1, 60000), -EHOSTDOWN);
        loop_run(rig.loop);
        assert_int_equal(rig.ended[HTTP_CALL_UNSENT], 2);
        assert_true(http_pool_is_away(rig.pool));
        assert_int_equal(start(1, 60000), -EHOSTDOWN);
}

/* The first connection never answers, later ones do. */
static void stall_at_first(struct fake_conn *c) {
        if (c->nth == 0)
                say_nothing(c);
        else
                answer_all(c);
}

static void test_timeouts_in_a_row_drop_the_connection_and_a_probe_brings_it_back(void **state) {
        (void)state;
        begin(stall_at_first);
        connect_first();
        run_calls(3, 30);
        assert_int_equal(rig.ended[HTTP_CALL_TIMEOUT], 3);
        pass_ms(1);
        assert_true(http_pool_is_away(rig.pool));
        pass_ms(1100);
        run_calls(1, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
        assert_false(http_pool_is_away(rig.pool));
        assert_int_equal(atomic_load(&rig.peer.n_conns), 2);
        run_calls(100, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 100);
        finish_peer();
}

static void test_calls_on_a_dropped_connection_are_lost(void **state) {
        (void)state;
        begin(stall_at_first);
        connect_first();
        for (size_t i = 0; i < 6; i++)
                assert_int_equal(start(i, i < 3 ? 30 : 60000), 0);
        rig.wanted = 6;
        loop_run(rig.loop);
        assert_int_equal(rig.ended[HTTP_CALL_TIMEOUT], 3);
        assert_int_equal(rig.ended[HTTP_CALL_LOST], 3);
        finish_peer();
}

static void stall_always(struct fake_conn *c) {
        say_nothing(c);
}

static void test_probe_that_times_out_keeps_the_pool_away(void **state) {
        (void)state;
        begin(stall_always);
        connect_first();
        run_calls(3, 20);
        pass_ms(1100);
        run_calls(1, 50);
        assert_int_equal(rig.ended[HTTP_CALL_TIMEOUT], 1);
        assert_true(http_pool_is_away(rig.pool));
        assert_int_equal(start(0, 20), -EHOSTDOWN);
        finish_peer();
}

/* The second connection answers all but its first request (a long poll). */
static void answer_all_but_the_first(struct fake_conn *c) {
        if (c->nth == 0) {
                say_nothing(c);
                return;
        }
        fake_greet(c, 0);
        (void)fake_await_request(c);
        answer(c);
}

static void test_probe_without_an_answer_does_not_bar_the_next(void **state) {
        (void)state;
        begin(answer_all_but_the_first);
        connect_first();
        run_calls(3, 20);
        pass_ms(1100);
        assert_int_equal(start(500, 60000), 0);
        assert_int_equal(start(501, 60000), -EHOSTDOWN);
        pass_ms(1100);
        run_calls(1, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
        assert_false(http_pool_is_away(rig.pool));
        http_call_cancel(&rig.calls[500]);
        finish_peer();
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_calls_to_a_dead_host_end_soon_and_then_at_once),
                T(test_one_probe_at_a_time_while_away),
                T(test_timeouts_in_a_row_drop_the_connection_and_a_probe_brings_it_back),
                T(test_calls_on_a_dropped_connection_are_lost),
                T(test_probe_that_times_out_keeps_the_pool_away),
                T(test_probe_without_an_answer_does_not_bar_the_next),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
