#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/http_pool.h"
#include "tests/unit/fake_peer.h"

#define CALLS 1000
#define REFUSED_STREAM 7u

struct rig {
        struct loop *loop;
        struct http_pool *pool;
        struct fake_peer peer;
        struct http_call calls[CALLS];
        size_t wanted;   /* ends to wait for */
        size_t ended[5]; /* by enum http_call_outcome */
        size_t n_ended;
        bool in_start;
        struct loop_timer timer;
        void (*done)(struct http_call *c, enum http_call_outcome outcome);
};

static struct rig rig;

static void on_done(struct http_call *c, enum http_call_outcome outcome) {
        assert_false(rig.in_start);
        assert_null(c->client);
        rig.ended[outcome]++;
        rig.n_ended++;
        if (rig.done)
                rig.done(c, outcome);
        if (rig.n_ended >= rig.wanted)
                loop_stop(rig.loop);
}

static const struct http_call_events events = {.on_done = on_done};

static int start(size_t i, int64_t deadline_ms) {
        const struct http_header headers[] = {{.name = SPAN("x-test"), .value = SPAN("value")}};
        char body[] = "{\"quantity\":1}";
        struct http_call_request r = {.method = SPAN("POST"),
                                      .scheme = SPAN("http"),
                                      .authority = SPAN("a.test"),
                                      .path = SPAN("/v1/x"),
                                      .headers = headers,
                                      .n_headers = 1,
                                      .body = {body, sizeof(body) - 1},
                                      .deadline_ms = deadline_ms};
        int result;

        rig.calls[i].events = &events;
        rig.in_start = true;
        result = http_pool_start(rig.pool, &rig.calls[i], &r);
        rig.in_start = false;
        memset(body, 'x', sizeof(body)); /* it must have been copied */
        return result;
}

static int setup(void **state) {
        (void)state;
        memset(&rig, 0, sizeof(rig));
        rig.loop = loop_new();
        return rig.loop ? 0 : -1;
}

static int teardown(void **state) {
        (void)state;
        http_pool_free(&rig.pool);
        loop_free(&rig.loop);
        return 0;
}

static struct http_pool_conf conf_to(const char *address) {
        return (struct http_pool_conf){.address = address,
                                       .connections = 2,
                                       .in_flight = 64,
                                       .waiting = 1000,
                                       .header_bytes = 16384,
                                       .window_bytes = 65535,
                                       .breaker_failures = 3,
                                       .connect_ms = 500,
                                       .breaker_ms = 100};
}

static void make_pool(struct http_pool_conf conf) {
        assert_int_equal(http_pool_new(rig.loop, &conf, &rig.pool), 0);
}

static void begin(void (*script)(struct fake_conn *)) {
        fake_peer_start(&rig.peer, script);
        make_pool(conf_to(rig.peer.address));
}

/* Starts `n` calls and waits for their ends. */
static void run_calls(size_t n, int64_t deadline_ms) {
        memset(rig.ended, 0, sizeof(rig.ended));
        rig.n_ended = 0;
        rig.wanted = n;
        for (size_t i = 0; i < n; i++)
                assert_int_equal(start(i, deadline_ms), 0);
        loop_run(rig.loop);
        assert_int_equal(rig.n_ended, n);
}

static void finish_peer(void) {
        struct http_pool_stats stats;

        http_pool_stats(rig.pool, &stats);
        assert_int_equal(stats.in_flight, 0);
        assert_int_equal(stats.waiting, 0);
        http_pool_free(&rig.pool);
        fake_peer_stop(&rig.peer);
}

static void on_pass(struct loop_timer *t) {
        loop_stop(t->loop);
}

static void pass_ms(int64_t ms) {
        loop_timer_init(rig.loop, &rig.timer, on_pass);
        loop_timer_start(&rig.timer, ms);
        loop_run(rig.loop);
}

/* Turns the loop until so many calls are in flight. */
static void await_in_flight(size_t n) {
        struct http_pool_stats stats;

        for (int i = 0; i < 5000; i++) {
                http_pool_stats(rig.pool, &stats);
                if (stats.in_flight == n)
                        return;
                pass_ms(1);
        }
        fail_msg("never %zu calls in flight", n);
}

/* So that short deadlines do not count the time it takes to connect. */
static void connect_first(void) {
        assert_int_equal(start(CALLS - 1, 9000), 0);
        await_in_flight(1);
        http_call_cancel(&rig.calls[CALLS - 1]);
}

static void answer(struct fake_conn *c) {
        int32_t stream;

        while ((stream = fake_await_request(c))) {
                frame_head(&c->out, stream, 200, 2, false);
                frame_text(&c->out, stream, "ok", true);
                fake_send(c);
        }
}

static void answer_all(struct fake_conn *c) {
        fake_greet(c, 0);
        answer(c);
}

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
        run_calls(1000, 9000);
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
        run_calls(63, 5000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 63);
        assert_int_equal(atomic_load(&rig.peer.most_open), 3);
        finish_peer();
}

static void test_second_connection_is_opened_when_the_first_is_full(void **state) {
        (void)state;
        begin(answer_when_two);
        run_calls(60, 5000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 60);
        assert_int_equal(atomic_load(&rig.peer.n_conns), 2);
        finish_peer();
}

static void say_nothing(struct fake_conn *c) {
        fake_greet(c, 0);
        fake_await_end(c);
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
                assert_int_equal(start(i, 5000), 0);
        await_in_flight(4);
        http_pool_stats(rig.pool, &stats);
        assert_int_equal(stats.waiting, 6);
        for (size_t i = 10; i < 14; i++)
                assert_int_equal(start(i, 5000), 0);
        assert_int_equal(start(14, 5000), -ENOBUFS);
        assert_int_equal(start(14, 5000), -ENOBUFS);
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
        assert_int_equal(start(0, 5000), 0);
        await_in_flight(1);
        for (size_t i = 1; i < 4; i++)
                assert_int_equal(start(i, 30), 0);

        int64_t from = loop_clock_ms();

        loop_run(rig.loop);
        assert_int_equal(rig.ended[HTTP_CALL_TIMEOUT], 3);
        assert_in_range(loop_clock_ms() - from, 29, 1000);
        assert_false(http_pool_is_away(rig.pool));
        http_call_cancel(&rig.calls[0]);
        finish_peer();
}

static void start_another(struct http_call *c, enum http_call_outcome outcome) {
        static size_t started;

        (void)c;
        (void)outcome;
        /* Those that come later are told at once, by the same start. */
        if (started++ < 5)
                assert_int_equal(start(999, 1000), -EHOSTDOWN);
}

static void test_calls_to_a_dead_host_end_soon_and_then_at_once(void **state) {
        struct http_pool_stats stats;
        char address[32];
        int64_t from = loop_clock_ms();

        (void)state;
        fake_dead_address(address);
        make_pool(conf_to(address));
        rig.done = start_another;
        run_calls(999, 5000);
        rig.done = NULL;
        assert_int_equal(rig.ended[HTTP_CALL_UNSENT], 999);
        assert_in_range(loop_clock_ms() - from, 0, 1000);
        assert_true(http_pool_is_away(rig.pool));
        assert_int_equal(start(0, 5000), -EHOSTDOWN);
        http_pool_stats(rig.pool, &stats);
        assert_int_equal(stats.refused_away, 6);
        assert_int_equal(stats.failures_total, 3);
}

static void test_one_probe_at_a_time_while_away(void **state) {
        char address[32];

        (void)state;
        fake_dead_address(address);
        make_pool(conf_to(address));
        run_calls(1, 5000);
        assert_true(http_pool_is_away(rig.pool));
        pass_ms(110);
        assert_false(http_pool_is_away(rig.pool));
        rig.wanted = 2;
        assert_int_equal(start(0, 5000), 0);
        assert_true(http_pool_is_away(rig.pool));
        assert_int_equal(start(1, 5000), -EHOSTDOWN);
        loop_run(rig.loop);
        assert_int_equal(rig.ended[HTTP_CALL_UNSENT], 2);
        assert_true(http_pool_is_away(rig.pool));
        assert_int_equal(start(1, 5000), -EHOSTDOWN);
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
        pass_ms(110);
        run_calls(1, 5000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
        assert_false(http_pool_is_away(rig.pool));
        assert_int_equal(atomic_load(&rig.peer.n_conns), 2);
        run_calls(100, 5000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 100);
        finish_peer();
}

static void test_calls_on_a_dropped_connection_are_lost(void **state) {
        (void)state;
        begin(stall_at_first);
        connect_first();
        for (size_t i = 0; i < 6; i++)
                assert_int_equal(start(i, i < 3 ? 30 : 9000), 0);
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
        pass_ms(110);
        run_calls(1, 50);
        assert_int_equal(rig.ended[HTTP_CALL_TIMEOUT], 1);
        assert_true(http_pool_is_away(rig.pool));
        assert_int_equal(start(0, 20), -EHOSTDOWN);
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
                assert_int_equal(start((size_t)(c - rig.calls), 5000), 0);
}

static void test_graceful_goaway_loses_nothing(void **state) {
        struct http_pool_stats stats;

        (void)state;
        begin(go_away_after_ten);
        rig.done = start_next;
        rig.wanted = 200;
        for (size_t i = 0; i < 8; i++)
                assert_int_equal(start(i, 5000), 0);
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
        run_calls(1, 5000);
        assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
        assert_int_equal(atomic_load(&rig.peer.requests), 2);
        atomic_store(&rig.peer.most_open, 4);
        run_calls(1, 5000);
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
        run_calls(1, 5000);
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
                run_calls(1, 5000);
                assert_int_equal(rig.ended[HTTP_CALL_OK], 1);
                pass_ms(20);
        }
        assert_int_equal(atomic_load(&rig.peer.n_conns), 5);
        finish_peer();
}

static void test_cancelled_calls_never_end(void **state) {
        (void)state;
        begin(answer_all);
        for (size_t i = 0; i < 10; i++)
                assert_int_equal(start(i, 5000), 0);
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
                assert_int_equal(start(i, 5000), 0);
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
                T(test_calls_to_a_dead_host_end_soon_and_then_at_once),
                T(test_one_probe_at_a_time_while_away),
                T(test_timeouts_in_a_row_drop_the_connection_and_a_probe_brings_it_back),
                T(test_calls_on_a_dropped_connection_are_lost),
                T(test_probe_that_times_out_keeps_the_pool_away),
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
