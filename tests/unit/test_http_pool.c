#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/http_pool_rig.h"

/* Only a second connection lets the first one go on. */
static void answer_when_two(struct fake_conn *c) {
        fake_greet(c, 3);
        for (int i = 0; i < 10000 && atomic_load(&c->peer->n_conns) < 2; i++)
                usleep(1000);
        answer(c);
}

static void test_many_calls_share_one_connection(void **state) {
        struct http_pool_stats stats;

        (void)state;
        begin(answer_all);
        http_pool_stats(rig.pool, &stats);
        assert_int_equal(stats.connections_open, 0);
        run_calls(1000, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 1000);
        assert_int_equal(atomic_load(&rig.peer.n_conns), 1);
        http_pool_stats(rig.pool, &stats);
        assert_int_equal(stats.calls_total, 1000);
        assert_int_equal(stats.connections_open, 1);
        assert_int_equal(stats.failures_total, 0);
        finish_peer();
}

/* Answers when as many are open as may be, and notes the most. */
static void answer_in_threes(struct fake_conn *c) {
        int32_t streams[4], stream;
        int open = 0, most;

        fake_greet(c, 3);
        while ((stream = fake_await_request(c))) {
                assert(open < 4);
                streams[open++] = stream;
                most = atomic_load(&c->peer->most_open);
                if (open > most)
                        atomic_store(&c->peer->most_open, open);
                if (open < 3)
                        continue;
                while (open)
                        frame_head(&c->out, streams[--open], 201, 0, true);
                fake_send(c);
        }
}

static void test_peers_ceiling_holds_and_nothing_is_reset(void **state) {
        struct http_pool_conf conf;

        (void)state;
        fake_peer_start(&rig.peer, answer_in_threes);
        conf = conf_to(rig.peer.address);
        conf.connections = 1;
        make_pool(conf);
        run_calls(63, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 63);
        assert_int_equal(atomic_load(&rig.peer.most_open), 3);
        finish_peer();
}

static void test_second_connection_is_opened_when_the_first_is_full(void **state) {
        (void)state;
        begin(answer_when_two);
        run_calls(60, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 60);
        assert_int_equal(atomic_load(&rig.peer.n_conns), 2);
        finish_peer();
}

static void test_calls_in_flight_and_waiting_are_bounded(void **state) {
        struct http_pool_conf conf;
        struct http_pool_stats stats;

        (void)state;
        fake_peer_start(&rig.peer, say_nothing);
        conf = conf_to(rig.peer.address);
        conf.in_flight = 4;
        conf.waiting = 10;
        make_pool(conf);
        for (size_t i = 0; i < 10; i++)
                assert_int_equal(start(i, 60000), 0);
        await_in_flight(4);
        http_pool_stats(rig.pool, &stats);
        assert_int_equal(stats.waiting, 6);
        for (size_t i = 10; i < 14; i++)
                assert_int_equal(start(i, 60000), 0);
        assert_int_equal(start(14, 60000), -ENOBUFS);
        assert_int_equal(start(14, 60000), -ENOBUFS);
        http_pool_stats(rig.pool, &stats);
        assert_int_equal(stats.refused_full, 2);
        for (size_t i = 0; i < 14; i++)
                http_call_cancel(&rig.calls[i]);
        assert_int_equal(rig.n_ended, 0);
        finish_peer();
}

static void test_waiting_calls_keep_their_deadline(void **state) {
        struct http_pool_conf conf;

        (void)state;
        fake_peer_start(&rig.peer, say_nothing);
        conf = conf_to(rig.peer.address);
        conf.in_flight = 1;
        make_pool(conf);
        rig.wanted = 3;
        assert_int_equal(start(0, 60000), 0);
        await_in_flight(1);
        for (size_t i = 1; i < 4; i++)
                assert_int_equal(start(i, 30), 0);

        int64_t from = loop_clock_ms();

        loop_run(rig.loop);
        assert_int_equal(rig.ended[HTTP_CALL_TIMEOUT], 3);
        assert_in_range(loop_clock_ms() - from, 29, 30000);
        assert_false(http_pool_is_away(rig.pool));
        http_call_cancel(&rig.calls[0]);
        finish_peer();
}

/* Every connection serves ten requests, then says so. */
static void go_away_after_ten(struct fake_conn *c) {
        int32_t stream, last = 0;

        fake_greet(c, 0);
        for (int i = 0; i < 10; i++) {
                stream = fake_await_request(c);
                if (!stream)
                        return;
                last = stream;
                frame_head(&c->out, stream, 200, 0, true);
                if (i == 9)
                        frame_goaway(&c->out, last, 0);
                fake_send(c);
        }
        fake_await_end(c);
}

static void start_next(struct http_call *c, enum http_call_outcome outcome) {
        (void)outcome;
        if (rig.n_ended + 8 <= rig.wanted)
                assert_int_equal(start((size_t)(c - rig.calls), 60000), 0);
}

static void test_graceful_goaway_loses_nothing(void **state) {
        struct http_pool_stats stats;

        (void)state;
        begin(go_away_after_ten);
        rig.done = start_next;
        rig.wanted = 200;
        for (size_t i = 0; i < 8; i++)
                assert_int_equal(start(i, 60000), 0);
        loop_run(rig.loop);
        rig.done = NULL;
        assert_int_equal(rig.ended[HTTP_CALL_OK], rig.n_ended);
        http_pool_stats(rig.pool, &stats);
        assert_int_equal(stats.failures_total, 0);
        assert_false(http_pool_is_away(rig.pool));
        assert_true(atomic_load(&rig.peer.n_conns) >= 20);
        for (size_t i = 0; i < 8; i++)
                http_call_cancel(&rig.calls[i]);
        finish_peer();
}

static void refuse_first(struct fake_conn *c) {
        int32_t stream;

        fake_greet(c, 0);
        while ((stream = fake_await_request(c))) {
                if (atomic_load(&c->peer->requests) <= atomic_load(&c->peer->most_open))
                        frame_rst(&c->out, stream, REFUSED_STREAM);
                else
                        frame_head(&c->out, stream, 200, 0, true);
                fake_send(c);
        }
}

static void test_refused_call_is_tried_once_more(void **state) {
        (void)state;
        begin(refuse_first);
        atomic_store(&rig.peer.most_open, 1);
        run_calls(1, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
        assert_int_equal(atomic_load(&rig.peer.requests), 2);
        atomic_store(&rig.peer.most_open, 4);
        run_calls(1, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_UNSENT], 1);
        assert_int_equal(atomic_load(&rig.peer.requests), 4);
        finish_peer();
}

static void take_and_close(struct fake_conn *c) {
        fake_greet(c, 0);
        (void)fake_await_request(c);
}

static void test_call_that_may_have_been_acted_upon_is_not_sent_twice(void **state) {
        (void)state;
        begin(take_and_close);
        run_calls(1, 60000);
        assert_int_equal(rig.ended[HTTP_CALL_LOST], 1);
        pass_ms(50);
        assert_int_equal(atomic_load(&rig.peer.requests), 1);
        finish_peer();
}

static void close_when_idle(struct fake_conn *c) {
        fake_greet(c, 0);
        frame_head(&c->out, fake_await_request(c), 200, 0, true);
        fake_send(c);
}

static void test_connection_closed_while_idle_is_opened_anew(void **state) {
        (void)state;
        begin(close_when_idle);
        for (int i = 0; i < 5; i++) {
                run_calls(1, 60000);
                assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
                await_connections(0);
        }
        assert_int_equal(atomic_load(&rig.peer.n_conns), 5);
        finish_peer();
}

static void test_cancelled_calls_never_end(void **state) {
        (void)state;
        begin(answer_all);
        for (size_t i = 0; i < 10; i++)
                assert_int_equal(start(i, 60000), 0);
        for (size_t i = 0; i < 9; i++) {
                http_call_cancel(&rig.calls[i]);
                http_call_cancel(&rig.calls[i]);
        }
        rig.wanted = 1;
        loop_run(rig.loop);
        assert_int_equal(rig.n_ended, 1);
        assert_int_equal(atomic_load(&rig.peer.requests), 1);
        finish_peer();
}

static void free_pool(struct http_call *c, enum http_call_outcome outcome) {
        (void)c;
        (void)outcome;
        http_pool_free(&rig.pool);
}

static void test_pool_may_be_freed_in_an_end(void **state) {
        static void (*const scripts[])(struct fake_conn *) = {answer_all, take_and_close,
                                                              say_nothing};

        for (size_t i = 0; i < NET_COUNT_OF(scripts); i++) {
                teardown(state);
                setup(state);
                fake_peer_start(&rig.peer, scripts[i]);

                struct http_pool_conf conf = conf_to(rig.peer.address);

                conf.in_flight = 5;
                make_pool(conf);
                rig.done = free_pool;
                rig.wanted = 20;
                for (size_t k = 0; k < 20; k++)
                        assert_int_equal(start(k, 50), 0);
                loop_run(rig.loop);
                assert_int_equal(rig.n_ended, 20);
                fake_peer_stop(&rig.peer);
        }
}

static void test_pool_freed_with_calls_ends_them(void **state) {
        (void)state;
        begin(say_nothing);
        for (size_t i = 0; i < 70; i++)
                assert_int_equal(start(i, 60000), 0);
        await_in_flight(64);
        rig.wanted = SIZE_MAX;
        http_pool_free(&rig.pool);
        assert_null(rig.pool);
        assert_int_equal(rig.ended[HTTP_CALL_LOST], 64);
        assert_int_equal(rig.ended[HTTP_CALL_UNSENT], 6);
        fake_peer_stop(&rig.peer);
}

static void test_what_may_not_be_sent_is_refused_at_start(void **state) {
        struct http_call_request r = {.method = SPAN("GET"),
                                      .scheme = SPAN("http"),
                                      .authority = SPAN("a.test"),
                                      .path = SPAN("/a b"),
                                      .deadline_ms = 100};

        (void)state;
        begin(answer_all);
        rig.calls[0].events = &events;
        assert_int_equal(http_pool_start(rig.pool, &rig.calls[0], &r), -EINVAL);
        finish_peer();
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_many_calls_share_one_connection),
                T(test_peers_ceiling_holds_and_nothing_is_reset),
                T(test_second_connection_is_opened_when_the_first_is_full),
                T(test_calls_in_flight_and_waiting_are_bounded),
                T(test_waiting_calls_keep_their_deadline),
                T(test_graceful_goaway_loses_nothing),
                T(test_refused_call_is_tried_once_more),
                T(test_call_that_may_have_been_acted_upon_is_not_sent_twice),
                T(test_connection_closed_while_idle_is_opened_anew),
                T(test_cancelled_calls_never_end),
                T(test_pool_may_be_freed_in_an_end),
                T(test_pool_freed_with_calls_ends_them),
                T(test_what_may_not_be_sent_is_refused_at_start),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
