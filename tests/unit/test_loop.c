#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/loop.h"

struct rig {
        struct loop *loop;
        struct loop_timer timer, other;
        struct loop_io io;
        struct loop_wake wake;
        struct loop_signal signal;
        struct loop_defer a, b, c;
        int pair[2];
        int runs;
        int64_t at_ms;
        char order[16];
        size_t n_order;
};

static struct rig rig;

static int setup(void **state) {
        rig = (struct rig){.loop = loop_new()};
        *state = &rig;
        return rig.loop ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, rig.pair) : -1;
}

static int teardown(void **state) {
        (void)state;
        loop_free(&rig.loop);
        close(rig.pair[0]);
        close(rig.pair[1]);
        return 0;
}

static void note(char what) {
        assert_true(rig.n_order < sizeof(rig.order) - 1);
        rig.order[rig.n_order++] = what;
}

static void on_timer_stop(struct loop_timer *t) {
        rig.runs++;
        rig.at_ms = loop_now_ms(t->loop);
        loop_stop(t->loop);
}

static void test_timer_fires_once_and_not_early(void **state) {
        (void)state;
        for (int i = 0; i < 20; i++) {
                int64_t from = loop_now_ms(rig.loop);

                rig.runs = 0;
                loop_timer_init(rig.loop, &rig.timer, on_timer_stop);
                loop_timer_start(&rig.timer, 3);
                assert_true(loop_timer_is_started(&rig.timer));
                loop_run(rig.loop);
                assert_false(loop_timer_is_started(&rig.timer));
                assert_int_equal(rig.runs, 1);
                assert_true(rig.at_ms - from >= 3);
        }
}

static void on_other(struct loop_timer *t) {
        (void)t;
        note('o');
}

static void test_cancelled_timer_does_not_fire_and_restart_moves_it(void **state) {
        (void)state;
        loop_timer_init(rig.loop, &rig.timer, on_timer_stop);
        loop_timer_init(rig.loop, &rig.other, on_other);
        loop_timer_start(&rig.other, 1);
        loop_timer_cancel(&rig.other);
        loop_timer_cancel(&rig.other);
        loop_timer_start(&rig.timer, 1);
        loop_timer_start(&rig.timer, 20);

        int64_t from = loop_now_ms(rig.loop);

        loop_run(rig.loop);
        assert_true(rig.at_ms - from >= 20);
        assert_int_equal(rig.n_order, 0);
}

static void test_timer_started_before_run_counts_from_its_start(void **state) {
        (void)state;
        /* The loop last looked at the clock when it was made. */
        int64_t made = loop_clock_ms();

        while (loop_clock_ms() < made + 15)
                ;
        loop_timer_init(rig.loop, &rig.timer, on_timer_stop);

        int64_t from = loop_clock_ms();

        loop_timer_start(&rig.timer, 10);
        loop_run(rig.loop);
        assert_true(loop_clock_ms() - from >= 10);
}

static void on_c(struct loop_defer *d) {
        (void)d;
        note('c');
}

static void on_a(struct loop_defer *d) {
        (void)d;
        note('a');
        loop_defer(rig.loop, &rig.c, on_c);
}

static void on_b(struct loop_defer *d) {
        (void)d;
        note('b');
}

static void on_timer_defers(struct loop_timer *t) {
        note('t');
        loop_defer(t->loop, &rig.a, on_a);
        loop_defer(t->loop, &rig.b, on_b);
        loop_defer(t->loop, &rig.a, on_a);
        loop_stop(t->loop);
}

static void test_deferred_work_runs_once_in_order_at_turn_end(void **state) {
        (void)state;
        loop_timer_init(rig.loop, &rig.timer, on_timer_defers);
        loop_timer_start(&rig.timer, 0);
        loop_run(rig.loop);
        assert_string_equal(rig.order, "tabc");
}

static void on_timer_cancels_defer(struct loop_timer *t) {
        loop_defer(t->loop, &rig.a, on_a);
        loop_defer(t->loop, &rig.b, on_b);
        loop_defer(t->loop, &rig.c, on_c);
        loop_defer_cancel(t->loop, &rig.a);
        loop_defer_cancel(t->loop, &rig.c);
        loop_defer_cancel(t->loop, &rig.c);
        loop_defer(t->loop, &rig.c, on_c);
        loop_defer_cancel(t->loop, &rig.b);
        loop_stop(t->loop);
}

static void test_cancelled_deferred_work_leaves_the_rest_queued(void **state) {
        (void)state;
        loop_timer_init(rig.loop, &rig.timer, on_timer_cancels_defer);
        loop_timer_start(&rig.timer, 0);
        loop_run(rig.loop);
        assert_string_equal(rig.order, "c");
}

static void test_loop_free_runs_what_is_deferred(void **state) {
        struct loop *l = loop_new();

        (void)state;
        loop_defer(l, &rig.b, on_b);
        loop_free(&l);
        assert_null(l);
        assert_string_equal(rig.order, "b");
}

static void on_io(struct loop_io *io, unsigned events) {
        char byte;

        rig.runs++;
        if (events & LOOP_READ) {
                note('r');
                assert_int_equal(read(io->fd, &byte, 1), 1);
                loop_stop(io->loop);
        }
        if (events & LOOP_WRITE) {
                note('w');
                loop_io_want(io, LOOP_READ);
                assert_int_equal(write(rig.pair[1], "x", 1), 1);
        }
}

static void test_io_wants_are_followed_exactly(void **state) {
        (void)state;
        loop_io_init(rig.loop, &rig.io, rig.pair[0], on_io);
        loop_io_want(&rig.io, LOOP_WRITE);
        loop_run(rig.loop);
        assert_string_equal(rig.order, "wr");
        loop_io_want(&rig.io, 0);
        assert_int_equal(write(rig.pair[1], "x", 1), 1);
        loop_timer_init(rig.loop, &rig.timer, on_timer_stop);
        loop_timer_start(&rig.timer, 5);
        loop_run(rig.loop);
        assert_string_equal(rig.order, "wr");
}

static void test_descriptor_number_used_again_is_watched_again(void **state) {
        (void)state;
        for (int i = 0; i < 3; i++) {
                int old = rig.pair[0];

                loop_io_init(rig.loop, &rig.io, rig.pair[0], on_io);
                loop_io_want(&rig.io, LOOP_READ);
                assert_int_equal(write(rig.pair[1], "x", 1), 1);
                loop_run(rig.loop);
                assert_int_equal(rig.runs, i + 1);
                loop_io_want(&rig.io, 0);
                close(rig.pair[0]);
                close(rig.pair[1]);
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, rig.pair), 0);
                assert_int_equal(rig.pair[0], old);
        }
}

static void on_wake(struct loop_wake *w) {
        rig.runs++;
        loop_stop(w->loop);
}

static void *send_wake(void *arg) {
        loop_wake_send(arg);
        return NULL;
}

static void test_wake_from_another_thread(void **state) {
        pthread_t thread;

        (void)state;
        loop_wake_init(rig.loop, &rig.wake, on_wake);
        assert_int_equal(pthread_create(&thread, NULL, send_wake, &rig.wake), 0);
        loop_run(rig.loop);
        pthread_join(thread, NULL);
        assert_int_equal(rig.runs, 1);
        loop_wake_fini(&rig.wake);
}

static void on_signal(struct loop_signal *s) {
        rig.runs++;
        loop_stop(s->loop);
}

static void test_signal_is_delivered_in_the_loop(void **state) {
        (void)state;
        loop_signal_start(rig.loop, &rig.signal, SIGUSR1, on_signal);
        assert_int_equal(raise(SIGUSR1), 0);
        loop_run(rig.loop);
        assert_int_equal(rig.runs, 1);
        loop_signal_cancel(&rig.signal);
}

static void test_stop_before_run_ends_it_at_once(void **state) {
        (void)state;
        loop_stop(rig.loop);
        loop_run(rig.loop);
        loop_timer_init(rig.loop, &rig.timer, on_timer_stop);
        loop_timer_start(&rig.timer, 0);
        loop_run(rig.loop);
        assert_int_equal(rig.runs, 1);
}

static int64_t cpu_us(void) {
        struct rusage u;

        getrusage(RUSAGE_THREAD, &u);
        return (int64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec +
               u.ru_stime.tv_usec;
}

static void *wake_after_300_ms(void *arg) {
        int64_t from = loop_clock_ms();

        while (loop_clock_ms() - from < 300)
                usleep(1000);
        loop_wake_send(arg);
        return NULL;
}

static void test_waiting_costs_no_processor_time(void **state) {
        pthread_t thread;

        (void)state;
        loop_wake_init(rig.loop, &rig.wake, on_wake);
        assert_int_equal(pthread_create(&thread, NULL, wake_after_300_ms, &rig.wake), 0);

        int64_t used = cpu_us();

        loop_run(rig.loop);
        used = cpu_us() - used;
        pthread_join(thread, NULL);
        loop_wake_fini(&rig.wake);
        assert_true(used < 50000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_timer_fires_once_and_not_early, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        test_cancelled_timer_does_not_fire_and_restart_moves_it, setup, teardown),
                cmocka_unit_test_setup_teardown(test_timer_started_before_run_counts_from_its_start,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_deferred_work_runs_once_in_order_at_turn_end,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_cancelled_deferred_work_leaves_the_rest_queued,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_loop_free_runs_what_is_deferred, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_io_wants_are_followed_exactly, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_descriptor_number_used_again_is_watched_again,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_wake_from_another_thread, setup, teardown),
                cmocka_unit_test_setup_teardown(test_signal_is_delivered_in_the_loop, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_stop_before_run_ends_it_at_once, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_waiting_costs_no_processor_time, setup,
                                                teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
