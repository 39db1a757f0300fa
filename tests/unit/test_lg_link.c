#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "loadgen/link.h"

#define LINKS 5

static struct loop *loop;
static struct lg_links *links;
static struct lg_ask asks[LINKS];
static struct loop_timer timer, guard;
static int answered, wanted;
static bool stuck;

/* An endpoint at which nobody listens: connections are refused at once. */
static struct lg_endpoint closed_port(void) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t len = sizeof(at);
        struct lg_endpoint e = {.host = "127.0.0.1"};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
        close(fd);
        snprintf(e.address, sizeof(e.address), "127.0.0.1:%u", ntohs(at.sin_port));
        return e;
}

static void on_guard(struct loop_timer *t) {
        (void)t;
        stuck = true;
        loop_stop(loop);
}

static void on_answer(struct lg_ask *a) {
        assert_true(a->lost && a->unsent);
        if (++answered == wanted)
                loop_stop(loop);
}

static void ask_one(size_t i) {
        asks[i] = (struct lg_ask){
                .on_answer = on_answer,
                .method = SPAN("GET"),
                .path = SPAN("/"),
                .deadline_ms = 1000,
                .answer_bytes = 10,
        };
        lg_link_ask(lg_links_at(links, i), &asks[i]);
}

static void ask_all(struct loop_timer *t) {
        (void)t;
        for (size_t i = 0; i < LINKS; i++)
                ask_one(i);
}

/* A turn so long that several timers expire in it. */
static void dawdle(struct loop_timer *t) {
        (void)t;
        int64_t until_ms = loop_clock_ms() + LG_LINK_GAP_MS + 150;
        while (loop_clock_ms() < until_ms)
                ;
}

static void run(int answers) {
        answered = 0;
        wanted = answers;
        loop_timer_start(&guard, 5000);
        loop_run(loop);
        loop_timer_cancel(&guard);
        assert_false(stuck);
        assert_int_equal(answered, answers);
}

static int set_up(void **state) {
        (void)state;
        struct lg_endpoint e = closed_port();
        loop = loop_new();
        stuck = false;
        loop_timer_init(loop, &timer, ask_all);
        loop_timer_init(loop, &guard, on_guard);
        return lg_links_new(loop, &e, 1, LINKS, NULL, &links);
}

static int tear_down(void **state) {
        (void)state;
        loop_timer_cancel(&timer);
        lg_links_free(&links);
        loop_free(&loop);
        return 0;
}

static void test_asks_end_when_no_connection_comes(void **state) {
        (void)state;
        ask_all(NULL);
        run(LINKS);
        assert_int_equal(lg_links_ready(links), 0);
        ask_all(NULL); /* within the gap: tried again behind it */
        int64_t began_ms = loop_clock_ms();
        run(LINKS);
        assert_true(loop_clock_ms() - began_ms >= LG_LINK_GAP_MS / 2);
}

/* The timers of the asks and of one link's gap fall due in one turn, the asks'
 * run first: once this listed that link twice and lost the links behind it. */
static void test_asks_in_the_turn_in_which_a_gap_ends(void **state) {
        (void)state;
        ask_one(0);
        run(1);
        struct loop_timer slow;
        loop_timer_init(loop, &slow, dawdle);
        loop_timer_start(&slow, 0);
        loop_timer_start(&timer, LG_LINK_GAP_MS - 50);
        run(LINKS);
}

static void test_a_cancelled_ask_is_not_answered(void **state) {
        (void)state;
        ask_all(NULL);
        lg_ask_cancel(&asks[2]);
        lg_ask_cancel(&asks[2]);
        assert_true(lg_ask_is_idle(&asks[2]));
        answered = 0;
        wanted = LINKS;
        loop_timer_init(loop, &timer, on_guard);
        loop_timer_start(&timer, 300);
        loop_run(loop);
        assert_int_equal(answered, LINKS - 1);
}

static void test_asks_under_way_are_forgotten_with_their_links(void **state) {
        (void)state;
        answered = 0;
        ask_all(NULL);
        lg_links_free(&links);
        assert_int_equal(answered, 0);
        for (size_t i = 0; i < LINKS; i++)
                assert_true(lg_ask_is_idle(&asks[i]));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_asks_end_when_no_connection_comes, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_asks_in_the_turn_in_which_a_gap_ends, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_cancelled_ask_is_not_answered, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_asks_under_way_are_forgotten_with_their_links,
                                                set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
