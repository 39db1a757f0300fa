#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/http_pool_rig.h"

#define BODY_LEN 14 /* of the rig's requests */
#define ANSWER "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

static void make(void (*script)(struct fake_conn *), uint32_t connections, int64_t idle_ms) {
        struct http_pool_conf conf;

        fake_peer_start(&rig.peer, script);
        conf = conf_to(rig.peer.address);
        conf.protocol = HTTP_PROTOCOL_HTTP11;
        conf.connections = connections;
        conf.idle_ms = idle_ms;
        make_pool(conf);
}

static uint64_t open_now(void) {
        struct http_pool_stats stats;

        http_pool_stats(rig.pool, &stats);
        return stats.connections_open;
}

static bool take(struct fake_conn *c) {
        return fake_await_head(c) && fake_take_body(c, BODY_LEN);
}

static void answer_http11(struct fake_conn *c) {
        while (take(c))
                fake_say(c, ANSWER);
}

/* ---- how many connections, and which ---- */

static void test_calls_in_turn_share_one_connection(void **state) {
        (void)state;
        make(answer_http11, 8, 0);
        for (int i = 0; i < 100; i++)
                run_calls(1, 60000);
        assert_int_equal(atomic_load(&rig.peer.requests), 100);
        assert_int_equal(atomic_load(&rig.peer.n_conns), 1);
        finish_peer();
}

/* Answers its first request once three connections have one each. */
static void answer_when_three(struct fake_conn *c) {
        if (!take(c))
                return;
        for (int i = 0; i < 10000 && atomic_load(&c->peer->requests) < 3; i++)
                usleep(1000);
        fake_say(c, ANSWER);
        while (take(c)) {
                atomic_store(&c->peer->most_open, c->nth + 1);
                fake_say(c, ANSWER);
        }
}

static void test_the_connection_used_last_is_used_next(void **state) {
        (void)state;
        make(answer_when_three, 8, 0);
        run_calls(3, 60000);
        assert_int_equal(open_now(), 3);
        run_calls(1, 60000);
        int nth = atomic_load(&rig.peer.most_open);
        assert_true(nth > 0);
        for (int i = 0; i < 20; i++) {
                run_calls(1, 60000);
                assert_int_equal(atomic_load(&rig.peer.most_open), nth);
        }
        finish_peer();
}

static void test_connections_have_a_ceiling_and_the_rest_waits(void **state) {
        (void)state;
        make(answer_http11, 3, 0);
        run_calls(500, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 500);
        assert_true(atomic_load(&rig.peer.n_conns) <= 3);
        finish_peer();
}

static void test_an_unused_connection_is_closed(void **state) {
        (void)state;
        make(answer_when_three, 8, 60);
        run_calls(3, 60000);
        assert_int_equal(open_now(), 3);
        for (int i = 0; i < 5000 && open_now() > 0; i++)
                pass_ms(1);
        assert_int_equal(open_now(), 0);
        finish_peer();
}

/* ---- connections that are not used again ---- */

static atomic_int n_told;

static void note_end(struct http_call *c, enum http_call_outcome outcome) {
        (void)c;
        (void)outcome;
        atomic_fetch_add(&n_told, 1);
}

/* Answers, and reads the body only when the answer has arrived. */
static void answer_early(struct fake_conn *c) {
        if (fake_await_head(c))
                fake_say(c, ANSWER);
        for (int i = 0; i < 10000 && atomic_load(&n_told) <= c->nth; i++)
                usleep(1000);
        fake_await_end(c);
}

/* A body that no socket takes at once. */
#define LONG_BODY ((size_t)16 << 20)

static void start_long(size_t i) {
        char *body = calloc(1, LONG_BODY);
        struct http_call_request r = {.method = SPAN("POST"),
                                      .scheme = SPAN("http"),
                                      .authority = SPAN("a.test"),
                                      .path = SPAN("/v1/x"),
                                      .body = {body, LONG_BODY},
                                      .deadline_ms = 60000};

        assert_non_null(body);
        rig.calls[i].events = &events;
        assert_int_equal(http_pool_start(rig.pool, &rig.calls[i], &r), 0);
        free(body);
}

static void test_an_early_answer_costs_the_connection(void **state) {
        (void)state;
        atomic_store(&n_told, 0);
        rig.done = note_end;
        make(answer_early, 8, 0);
        for (int i = 0; i < 3; i++) {
                memset(rig.ended, 0, sizeof(rig.ended));
                rig.n_ended = 0;
                rig.wanted = 1;
                start_long(0);
                loop_run(rig.loop);
                assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
        }
        /* More where connecting took too long for one. */
        assert_true(atomic_load(&rig.peer.n_conns) >= 3);
        finish_peer();
}

static void answer_and_more(struct fake_conn *c) {
        while (take(c))
                fake_say(c, ANSWER "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil");
}

static void answer_and_close(struct fake_conn *c) {
        if (take(c))
                fake_say(c, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok");
        fake_await_end(c);
}

static void answer_until_end(struct fake_conn *c) {
        if (take(c))
                fake_say(c, "HTTP/1.1 200 OK\r\n\r\nok");
}

static void test_a_spoiled_connection_is_not_used_again(void **state) {
        static void (*const scripts[])(struct fake_conn *) = {answer_and_more, answer_and_close,
                                                              answer_until_end};

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(scripts); i++) {
                make(scripts[i], 8, 0);
                for (int k = 0; k < 4; k++) {
                        run_calls(1, 60000);
                        assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
                }
                assert_int_equal(atomic_load(&rig.peer.n_conns), 4);
                finish_peer();
        }
}

static void say_bad(struct fake_conn *c) {
        if (take(c))
                fake_say(c, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok");
        fake_await_end(c);
}

static void test_a_malformed_answer_is_told(void **state) {
        (void)state;
        make(say_bad, 8, 0);
        run_calls(2, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_PROTOCOL], 2);
        finish_peer();
}

static void stay_silent(struct fake_conn *c) {
        fake_await_end(c);
}

static void test_a_deadline_ends_call_and_connection(void **state) {
        (void)state;
        make(stay_silent, 8, 0);
        run_calls(2, 100);
        assert_int_equal(rig.ended[HTTP_CALL_TIMEOUT], 2);
        pass_ms(1);
        assert_int_equal(open_now(), 0);
        finish_peer();
}

/* ---- what is asked again ---- */

/* Closes when it is asked a second time, without a word. */
static void answer_once(struct fake_conn *c) {
        if (!fake_await_head(c) || !fake_take_body(c, BODY_LEN))
                return;
        fake_say(c, ANSWER);
        (void)fake_await_head(c);
}

static void test_a_kept_connection_that_ended_is_tried_anew_when_safe(void **state) {
        (void)state;
        make(answer_once, 8, 0);
        rig.method = "GET";
        run_calls(1, 60000);
        run_calls(1, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
        assert_int_equal(atomic_load(&rig.peer.n_conns), 2);
        assert_int_equal(atomic_load(&rig.peer.requests), 3);
        finish_peer();
}

static void test_what_may_have_been_acted_upon_is_not_sent_twice(void **state) {
        (void)state;
        make(answer_once, 8, 0);
        run_calls(1, 60000);
        run_calls(1, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_LOST], 1);
        assert_int_equal(atomic_load(&rig.peer.requests), 2);
        finish_peer();
}

/* A first answer is no kept connection: nothing says that it was not acted upon. */
static void close_at_once(struct fake_conn *c) {
        (void)fake_await_head(c);
}

static void test_a_new_connection_that_ends_is_not_tried_anew(void **state) {
        (void)state;
        make(close_at_once, 8, 0);
        rig.method = "GET";
        run_calls(1, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_LOST], 1);
        assert_int_equal(atomic_load(&rig.peer.requests), 1);
        finish_peer();
}

/* Closes right behind an answer, so that the end is there before a request. */
static void answer_and_leave(struct fake_conn *c) {
        if (take(c))
                fake_say(c, ANSWER);
}

static void test_a_connection_that_ended_meanwhile_costs_nothing(void **state) {
        (void)state;
        make(answer_and_leave, 8, 0);
        for (int i = 0; i < 10; i++) {
                run_calls(1, 60000);
                assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
                for (int k = 0; k < 5000 && open_now() > 0; k++)
                        pass_ms(1);
        }
        finish_peer();
}

/* ---- cancelling ---- */

static void test_a_cancelled_call_leaves_nothing_behind(void **state) {
        (void)state;
        make(stay_silent, 8, 0);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(start(i, 60000), 0);
        await_in_flight(4);
        pass_ms(1);
        for (size_t i = 0; i < 4; i++)
                http_call_cancel(&rig.calls[i]);
        pass_ms(1);
        assert_int_equal(open_now(), 0);
        finish_peer();
}

/* ---- back-pressure ---- */

#define LONG_ANSWER 4000000

static void answer_long(struct fake_conn *c) {
        static char piece[10001];

        memset(piece, 'x', sizeof(piece) - 1);
        if (!take(c))
                return;
        fake_say(c, "HTTP/1.1 200 OK\r\ncontent-length: 4000000\r\n\r\n");
        for (int i = 0; i < LONG_ANSWER / 10000; i++)
                fake_say(c, piece);
        fake_await_end(c);
}

static size_t arrived;

static void on_data(struct http_call *c, struct span data) {
        (void)c;
        arrived += data.len;
}

static void on_long_done(struct http_call *c, enum http_call_outcome outcome) {
        (void)c;
        rig.ended[outcome]++;
        loop_stop(rig.loop);
}

static void test_unread_data_stops_the_peer(void **state) {
        static const struct http_call_events long_events = {.on_data = on_data,
                                                            .on_done = on_long_done};
        size_t before, consumed = 0;

        (void)state;
        arrived = 0;
        make(answer_long, 8, 0);
        assert_int_equal(start(0, 60000), 0);
        rig.calls[0].events = &long_events;
        rig.calls[0].manual_window = true;
        for (int still = 0; still < 20; still++) {
                before = arrived;
                pass_ms(2);
                still = before == arrived && arrived > 0 ? still : 0;
        }
        assert_in_range(arrived, 65535, 65535 + 65536);
        for (int i = 0; i < 5000 && !rig.ended[HTTP_CALL_OK]; i++) {
                size_t n = arrived - consumed;

                consumed += n;
                http_call_consumed(&rig.calls[0], n);
                pass_ms(1);
        }
        assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
        assert_int_equal(arrived, LONG_ANSWER);
        finish_peer();
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_calls_in_turn_share_one_connection),
                T(test_the_connection_used_last_is_used_next),
                T(test_connections_have_a_ceiling_and_the_rest_waits),
                T(test_an_unused_connection_is_closed),
                T(test_an_early_answer_costs_the_connection),
                T(test_a_spoiled_connection_is_not_used_again),
                T(test_a_malformed_answer_is_told),
                T(test_a_deadline_ends_call_and_connection),
                T(test_a_kept_connection_that_ended_is_tried_anew_when_safe),
                T(test_what_may_have_been_acted_upon_is_not_sent_twice),
                T(test_a_new_connection_that_ends_is_not_tried_anew),
                T(test_a_connection_that_ended_meanwhile_costs_nothing),
                T(test_a_cancelled_call_leaves_nothing_behind),
                T(test_unread_data_stops_the_peer),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
