/* When a loop is busy, judged inside the turns of a real one. Times are only waited
 * for, never measured: a slow machine makes an old turn older, not younger. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/http_load.h"

#define CEILING_MS 20
#define UNJUDGED 255 /* requests of a turn */
#define LONG 60000

static struct {
        struct loop *loop;
        struct loop_timer next;
        void (*const *turns)(void); /* NULL: the end */
        struct http_load load;
        bool is_apart; /* the machine was away between two turns */
} world;

static void on_turn(struct loop_timer *t) {
        if (!*world.turns) {
                loop_stop(world.loop);
                return;
        }
        (*world.turns++)();
        loop_timer_start(t, 0);
}

static void run(int64_t ceiling_ms, void (*const *turns)(void)) {
        world.load = (struct http_load){.ceiling_ms = ceiling_ms};
        world.turns = turns;
        loop_timer_start(&world.next, 0);
        loop_run(world.loop);
}

static int setup(void **state) {
        (void)state;
        world.loop = loop_new();
        if (!world.loop)
                return -1;
        loop_timer_init(world.loop, &world.next, on_turn);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        loop_timer_cancel(&world.next);
        loop_free(&world.loop);
        return 0;
}

/* The last one's level. */
static enum http_load_level requests(int n) {
        enum http_load_level level = HTTP_LOAD_FINE;
        for (int i = 0; i < n; i++)
                level = http_load_add(&world.load, world.loop);
        return level;
}

static void grow_older(int64_t ms) {
        int64_t until_ms = loop_now_ms(world.loop) + ms;
        while (loop_clock_ms() <= until_ms)
                usleep(1000);
}

static void work(int64_t ms) {
        int64_t until_ms = loop_worked_ms() + ms;
        while (loop_worked_ms() <= until_ms)
                ;
}

static void few_requests(void) {
        grow_older(2 * CEILING_MS);
        assert_int_equal(requests(UNJUDGED), HTTP_LOAD_FINE);
        assert_false(http_load_is_busy(&world.load, loop_now_ms(world.loop)));
}

static void test_a_turn_of_few_requests_is_never_busy(void **state) {
        (void)state;
        run(CEILING_MS, (void (*const[])(void)){few_requests, few_requests, NULL});
}

static void many_requests(void) {
        grow_older(2 * CEILING_MS);
        assert_int_equal(requests(1000), HTTP_LOAD_FINE);
}

static void test_no_turn_is_busy_before_its_time_or_without_a_ceiling(void **state) {
        (void)state;
        run(LONG, (void (*const[])(void)){many_requests, many_requests, NULL});
        run(0, (void (*const[])(void)){many_requests, many_requests, NULL});
}

static void old_turn(void) {
        assert_int_equal(requests(UNJUDGED), HTTP_LOAD_FINE);
        assert_false(world.load.wants_flush);
        grow_older(CEILING_MS);
        assert_int_equal(requests(1), HTTP_LOAD_BUSY);
        assert_true(world.load.wants_flush); /* what was answered need not wait */
}

static void test_an_old_turn_of_many_requests_is_busy(void **state) {
        (void)state;
        run(CEILING_MS, (void (*const[])(void)){old_turn, NULL});
        const struct http_load *l = &world.load;
        int64_t last_ms = l->busy_at_ms;
        assert_true(http_load_is_busy(l, last_ms + 249));
        assert_false(http_load_is_busy(l, last_ms + 250));
        assert_false(http_load_is_shut(l, l->busy_since_ms + 249));
        assert_true(http_load_is_shut(l, last_ms + 249)); /* it lasted a while */
        assert_false(http_load_is_shut(l, last_ms + 250));
}

static void waits_then_works(void) {
        (void)requests(UNJUDGED);
        grow_older(CEILING_MS);
        assert_int_equal(requests(1), HTTP_LOAD_BUSY);
        usleep(10 * CEILING_MS * 1000); /* without a processor */
        assert_int_equal(requests(16), HTTP_LOAD_BUSY);
        work(4 * CEILING_MS + 1);
        assert_int_equal(requests(16), HTTP_LOAD_TOO_BUSY);
}

static void test_work_and_not_time_sends_clients_away(void **state) {
        (void)state;
        run(CEILING_MS, (void (*const[])(void)){waits_then_works, NULL});
}

static int64_t before_end_ms;

static void very_old_turn(void) {
        (void)requests(UNJUDGED);
        grow_older(2 * CEILING_MS);
        assert_int_equal(requests(1), HTTP_LOAD_BUSY);
        before_end_ms = loop_clock_ms();
}

/* Young, and yet its requests have waited. */
static void next_turn(void) {
        world.is_apart = loop_now_ms(world.loop) - before_end_ms >= 20;
        (void)requests(UNJUDGED);
        grow_older(1);
        if (!world.is_apart)
                assert_int_equal(requests(1), HTTP_LOAD_BUSY);
}

static void test_less_is_allowed_after_a_long_turn(void **state) {
        (void)state;
        world.is_apart = true;
        for (int i = 0; i < 100 && world.is_apart; i++)
                run(CEILING_MS, (void (*const[])(void)){very_old_turn, next_turn, NULL});
        assert_false(world.is_apart);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_a_turn_of_few_requests_is_never_busy),
                T(test_no_turn_is_busy_before_its_time_or_without_a_ceiling),
                T(test_an_old_turn_of_many_requests_is_busy),
                T(test_work_and_not_time_sends_clients_away),
                T(test_less_is_allowed_after_a_long_turn),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
