#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/http_client_rig.h"

#define REFUSED_STREAM 7u
#define CANCEL 8u

static void test_calls_are_answered(void **state) {
        (void)state;
        play(answer_all, (struct client_plan){.calls = 10, .deadline_ms = 60000}, "OOOOOOOOOO", 0);
        for (int i = 0; i < 10; i++) {
                assert_int_equal(rig.statuses[i], 200);
                assert_int_equal(rig.bytes[i], 5);
                assert_null(rig.calls[i].client);
        }
}

static void answer_post(struct fake_conn *c) {
        struct frame f;
        size_t got = 0;
        int32_t stream;

        fake_greet(c, 0);
        stream = fake_await_request(c);
        while (fake_await(c, FRAME_DATA, &f)) {
                got += f.payload.len;
                frame_window(&c->out, 0, 100000);
                fake_send(c);
                if (f.flags & FRAME_END)
                        break;
                frame_window(&c->out, stream, 100000);
                fake_send(c);
        }
        frame_head(&c->out, stream, got == 200000 ? 201 : 400, -1, true);
        fake_send(c);
        fake_await_end(c);
}

static void test_body_larger_than_the_window_arrives(void **state) {
        static char body[200000];

        (void)state;
        play(answer_post,
             (struct client_plan){.calls = 1, .deadline_ms = 60000, .body = {body, sizeof(body)}},
             "O", 0);
        assert_int_equal(rig.statuses[0], 201);
}

static void test_bad_addresses_are_told_at_once(void **state) {
        static const char *const bad[] = {"",
                                          "127.0.0.1",
                                          "127.0.0.1:",
                                          "127.0.0.1:0",
                                          ":80",
                                          "[::1]",
                                          "[::1:80",
                                          "[]:80",
                                          "127.1.1.1.1:80",
                                          "host:80",
                                          "127.0.0.1:65536",
                                          "127.0.0.1:8x",
                                          "127.0.0.1:-1",
                                          "::1:80",
                                          "1234567890123456789012345678901234567890123456:80"};
        struct http_client_conf conf = {.connect_ms = 100, .max_streams = 1};
        struct http_client *c;

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(bad); i++) {
                conf.address = bad[i];
                if (http_client_open(rig.loop, &conf, &c) != -EINVAL)
                        print_error("<%s>\n", bad[i]);
                assert_int_equal(http_client_open(rig.loop, &conf, &c), -EINVAL);
        }
}

static void test_refused_connection_is_told_later(void **state) {
        char address[32];

        (void)state;
        fake_dead_address(address);
        open_to(address, 60000);
        assert_int_equal(rig.closed, 0);
        assert_int_equal(http_client_room(rig.client), 0);
        assert_int_equal(start(0), -ENOTCONN);
        loop_run(rig.loop);
        assert_int_equal(rig.closed, 1);
        assert_int_equal(rig.why, -ECONNREFUSED);
}

static void say_nothing(struct fake_conn *c) {
        fake_await_end(c);
}

static void test_peer_without_settings_times_out(void **state) {
        int64_t from = loop_clock_ms();

        (void)state;
        fake_peer_start(&rig.peer, say_nothing);
        open_to(rig.peer.address, 50);
        loop_run(rig.loop);
        fake_peer_stop(&rig.peer);
        assert_int_equal(rig.why, -ETIMEDOUT);
        assert_true(loop_clock_ms() - from >= 50);
}

static void speak_http11(struct fake_conn *c) {
        static const char text[] = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n";

        (void)send(c->fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
        fake_await_end(c);
}

static void test_peer_that_speaks_another_protocol(void **state) {
        (void)state;
        play(speak_http11, (struct client_plan){.calls = 0}, "", -EPROTO);
}

static void close_at_once(struct fake_conn *c) {
        (void)c;
}

static void test_peer_that_hangs_up(void **state) {
        (void)state;
        play(close_at_once, (struct client_plan){.calls = 0}, "", -ECONNRESET);
}

static void go_away_after_5(struct fake_conn *c) {
        fake_greet(c, 0);
        while (fake_await_request(c) != 7)
                ;
        frame_goaway(&c->out, 5, 0);
        for (int32_t stream = 1; stream <= 5; stream += 2)
                frame_head(&c->out, stream, 200, 0, true);
        fake_send(c);
        fake_await_end(c);
}

static void test_goaway_is_no_failure_of_calls_it_includes(void **state) {
        (void)state;
        play(go_away_after_5, (struct client_plan){.calls = 4, .deadline_ms = 60000}, "OOOU", 0);
}

static void answer_in_threes(struct fake_conn *c) {
        int open = 0, most = 0;
        int32_t streams[CALLS], stream;

        fake_greet(c, 3);
        while ((stream = fake_await_request(c))) {
                streams[open++] = stream;
                most = open > most ? open : most;
                if (open < 3)
                        continue;
                for (int i = 0; i < open; i++)
                        frame_head(&c->out, streams[i], 200, 0, true);
                open = 0;
                fake_send(c);
        }
        atomic_store(&c->peer->most_open, most);
}

static size_t next_to_start;

static void start_more(struct http_call *c) {
        (void)c;
        while (next_to_start < 30 && http_client_room(rig.client))
                assert_int_equal(start(next_to_start++), 0);
}

static void start_some(void) {
        assert_int_equal(http_client_room(rig.client), 3);
        next_to_start = 0;
        start_more(NULL);
        assert_int_equal(http_client_room(rig.client), 0);
        assert_int_equal(start(40), -EAGAIN);
        rig.outcomes[40] = '\0';
        rig.plan.calls = 30;
}

static void test_peers_ceiling_of_streams_holds_from_the_start(void **state) {
        (void)state;
        play(answer_in_threes,
             (struct client_plan){.deadline_ms = 60000, .ready = start_some, .done = start_more},
             "OOOOOOOOOOOOOOOOOOOOOOOOOOOOOO", 0);
        assert_int_equal(atomic_load(&rig.peer.most_open), 3);
}

static void stall_first(struct fake_conn *c) {
        struct frame f;

        fake_greet(c, 0);
        (void)fake_await_request(c);
        if (fake_await(c, FRAME_RST, &f) && f.stream == 1 && frame_number(f.payload, 0) == CANCEL)
                frame_head(&c->out, 3, 200, 0, true);
        fake_send(c);
        fake_await_end(c);
}

static void start_patient(void) {
        rig.plan.deadline_ms = 60000;
        assert_int_equal(start(1), 0);
        rig.plan.calls = 2;
}

static void test_call_past_its_deadline_is_reset_and_others_go_on(void **state) {
        (void)state;
        play(stall_first,
             (struct client_plan){.calls = 1, .deadline_ms = 30, .ready = start_patient}, "TO", 0);
}

static void close_after_requests(struct fake_conn *c) {
        fake_greet(c, 0);
        (void)fake_await_request(c);
        (void)fake_await_request(c);
}

static void test_calls_under_way_when_the_peer_closes_are_lost(void **state) {
        (void)state;
        play(close_after_requests, (struct client_plan){.calls = 2, .deadline_ms = 60000}, "LL",
             -ECONNRESET);
}

static void cut_in_the_body(struct fake_conn *c) {
        int32_t stream;

        fake_greet(c, 0);
        stream = fake_await_request(c);
        frame_head(&c->out, stream, 200, 50, false);
        frame_text(&c->out, stream, "only this", false);
        fake_send(c);
}

static void test_answer_cut_by_the_end_of_the_connection_is_lost(void **state) {
        (void)state;
        play(cut_in_the_body, (struct client_plan){.calls = 1, .deadline_ms = 60000}, "L",
             -ECONNRESET);
        assert_int_equal(rig.bytes[0], 9);
}

static void shorten_the_body(struct fake_conn *c) {
        int32_t stream;

        fake_greet(c, 0);
        stream = fake_await_request(c);
        frame_head(&c->out, stream, 200, 50, false);
        frame_text(&c->out, stream, "only this", true);
        stream = fake_await_request(c);
        frame_head(&c->out, stream, 200, 0, true);
        fake_send(c);
        fake_await_end(c);
}

static void test_answer_shorter_than_announced_is_malformed(void **state) {
        (void)state;
        play(shorten_the_body, (struct client_plan){.calls = 2, .deadline_ms = 60000}, "PO", 0);
}

static void close_now(void) {
        http_client_close(rig.client);
        assert_int_equal(rig.closed, 1);
        assert_int_equal(start(9), -ENOTCONN);
        rig.outcomes[9] = '\0';
        http_client_close(rig.client);
        http_client_drain(rig.client);
}

static void greet_and_wait(struct fake_conn *c) {
        fake_greet(c, 0);
        (void)fake_await_request(c);
        fake_await_end(c);
}

static void test_calls_closed_in_the_turn_of_their_start_are_unsent(void **state) {
        (void)state;
        play(greet_and_wait,
             (struct client_plan){.calls = 3, .deadline_ms = 60000, .ready = close_now}, "UUU", 0);
        assert_int_equal(atomic_load(&rig.peer.requests), 0);
}

static void cancel_it(struct http_call *c) {
        http_call_cancel(c);
        http_call_cancel(c);
        rig.outcomes[index_of(c)] = 'x';
        memset(c, 0, sizeof(*c));
        if (++rig.n_done == rig.plan.calls)
                http_client_drain(rig.client);
}

static void cancel_in_data(struct http_call *c, struct span data) {
        (void)data;
        cancel_it(c);
}

static void test_call_may_be_cancelled_in_its_callbacks(void **state) {
        (void)state;
        play(answer_all, (struct client_plan){.calls = 5, .deadline_ms = 60000, .head = cancel_it},
             "xxxxx", 0);
        teardown(state);
        setup(state);
        play(answer_all,
             (struct client_plan){.calls = 5, .deadline_ms = 60000, .data = cancel_in_data},
             "xxxxx", 0);
}

static void cancel_all_but_last(void) {
        for (size_t i = 0; i < 4; i++) {
                http_call_cancel(&rig.calls[i]);
                rig.outcomes[i] = 'x';
                rig.n_done++;
        }
}

static void test_cancelled_calls_never_put_out_are_not_seen(void **state) {
        (void)state;
        play(answer_all,
             (struct client_plan){.calls = 5, .deadline_ms = 60000, .ready = cancel_all_but_last},
             "xxxxO", 0);
        assert_int_equal(atomic_load(&rig.peer.requests), 1);
}

static void close_in_head(struct http_call *c) {
        if (index_of(c) == 1)
                http_client_close(rig.client);
}

static void answer_together(struct fake_conn *c) {
        fake_greet(c, 0);
        for (int i = 0; i < 4; i++) {
                int32_t stream = fake_await_request(c);

                frame_head(&c->out, stream, 200, 2, false);
                frame_text(&c->out, stream, "ok", true);
        }
        fake_send(c);
        fake_await_end(c);
}

static void test_connection_may_be_closed_in_a_callback(void **state) {
        (void)state;
        play(answer_together,
             (struct client_plan){.calls = 4, .deadline_ms = 60000, .head = close_in_head}, "OLLL",
             0);
        assert_int_equal(rig.statuses[2], 0);
}

static void start_again(struct http_call *c) {
        if (rig.n_done < 200) {
                assert_int_equal(start(index_of(c)), 0);
                rig.plan.calls = rig.n_done + 1;
        }
}

static void test_call_may_be_started_again_in_its_end(void **state) {
        (void)state;
        play(answer_all,
             (struct client_plan){.calls = 1, .deadline_ms = 60000, .done = start_again}, "O", 0);
        assert_int_equal(atomic_load(&rig.peer.requests), 200);
}

static void drain_and_start(void) {
        http_client_drain(rig.client);
        assert_false(http_client_is_ready(rig.client));
        assert_int_equal(start(9), -ENOTCONN);
        rig.outcomes[9] = '\0';
}

static void test_drain_waits_for_open_calls(void **state) {
        (void)state;
        play(answer_all,
             (struct client_plan){.calls = 3, .deadline_ms = 60000, .ready = drain_and_start},
             "OOO", 0);
        teardown(state);
        setup(state);
        play(answer_all, (struct client_plan){.calls = 0, .ready = drain_and_start}, "", 0);
}

static void refuse_some(struct fake_conn *c) {
        fake_greet(c, 0);
        frame_rst(&c->out, fake_await_request(c), REFUSED_STREAM);
        frame_rst(&c->out, fake_await_request(c), 2);
        frame_head(&c->out, fake_await_request(c), 200, 0, true);
        fake_send(c);
        fake_await_end(c);
}

static void test_refused_stream_is_unsent_and_another_reset_is_lost(void **state) {
        (void)state;
        play(refuse_some, (struct client_plan){.calls = 3, .deadline_ms = 60000}, "ULO", 0);
}

static void close_when_idle(struct fake_conn *c) {
        fake_greet(c, 0);
        frame_head(&c->out, fake_await_request(c), 204, -1, true);
        fake_send(c);
}

static void test_idle_connection_the_peer_closes_is_an_orderly_end(void **state) {
        (void)state;
        play(close_when_idle,
             (struct client_plan){.calls = 1, .deadline_ms = 60000, .keep_open = true}, "O", 0);
        assert_int_equal(rig.statuses[0], 204);
}

/* Sends 1 MiB, then notes how much of it the window let through. */
static void send_a_lot(struct fake_conn *c) {
        static const char piece[16384];
        long window = 65535, sent = 0;
        struct frame f;
        int32_t stream;

        fake_greet(c, 0);
        stream = fake_await_request(c);
        frame_head(&c->out, stream, 200, -1, false);
        while (sent < 64 * 16384) {
                while (window < (long)sizeof(piece) && fake_await(c, FRAME_WINDOW, &f))
                        if (f.stream == stream)
                                window += frame_number(f.payload, 0);
                frame_put(&c->out, FRAME_DATA, 0, stream, (struct span){piece, sizeof(piece)});
                fake_send(c);
                window -= (long)sizeof(piece);
                sent += (long)sizeof(piece);
        }
        frame_text(&c->out, stream, "", true);
        fake_send(c);
        fake_await_end(c);
}

static struct loop_timer slow_timer;
static size_t unread;

static void on_slow_reader(struct loop_timer *t) {
        size_t n = unread < 16384 ? unread : 16384;

        if (rig.n_done)
                return;
        unread -= n;
        if (n)
                http_call_consumed(&rig.calls[0], n);
        loop_timer_start(t, 1);
}

static void hold_back(struct http_call *c, struct span data) {
        (void)c;
        unread += data.len;
        assert_true(unread <= 65535);
}

static void read_slowly(void) {
        unread = 0;
        rig.calls[0].manual_window = true;
        loop_timer_init(rig.loop, &slow_timer, on_slow_reader);
        loop_timer_start(&slow_timer, 0);
}

static void test_manual_window_bounds_what_comes(void **state) {
        (void)state;
        play(send_a_lot,
             (struct client_plan){
                     .calls = 1, .deadline_ms = 60000, .ready = read_slowly, .data = hold_back},
             "O", 0);
        assert_int_equal(rig.bytes[0], 64 * 16384);
        loop_timer_cancel(&slow_timer);
}

/* Takes nothing off the socket after the first request. */
static void stop_reading(struct fake_conn *c) {
        int small = 4096;

        setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
        fake_greet(c, 0);
        frame_window(&c->out, 0, 1 << 30);
        frame_settings(&c->out, 4, 1 << 30);
        fake_send(c);
        while (atomic_load(&c->peer->requests) == 0)
                usleep(1000);
}

static void end_script(struct http_call *c) {
        (void)c;
        atomic_store(&rig.peer.requests, 1);
}

static void test_peer_that_does_not_read_costs_deadlines_only(void **state) {
        static char body[400000];

        (void)state;
        play(stop_reading,
             (struct client_plan){.calls = 20,
                                  .deadline_ms = 100,
                                  .body = {body, sizeof(body)},
                                  .done = end_script},
             "TTTTTTTTTTTTTTTTTTTT", rig.why);
        assert_int_equal(rig.closed, 1);
}

int main(void) {
#undef T
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_calls_are_answered),
                T(test_body_larger_than_the_window_arrives),
                T(test_bad_addresses_are_told_at_once),
                T(test_refused_connection_is_told_later),
                T(test_peer_without_settings_times_out),
                T(test_peer_that_speaks_another_protocol),
                T(test_peer_that_hangs_up),
                T(test_goaway_is_no_failure_of_calls_it_includes),
                T(test_peers_ceiling_of_streams_holds_from_the_start),
                T(test_call_past_its_deadline_is_reset_and_others_go_on),
                T(test_calls_under_way_when_the_peer_closes_are_lost),
                T(test_answer_cut_by_the_end_of_the_connection_is_lost),
                T(test_answer_shorter_than_announced_is_malformed),
                T(test_calls_closed_in_the_turn_of_their_start_are_unsent),
                T(test_call_may_be_cancelled_in_its_callbacks),
                T(test_cancelled_calls_never_put_out_are_not_seen),
                T(test_connection_may_be_closed_in_a_callback),
                T(test_call_may_be_started_again_in_its_end),
                T(test_drain_waits_for_open_calls),
                T(test_refused_stream_is_unsent_and_another_reset_is_lost),
                T(test_idle_connection_the_peer_closes_is_an_orderly_end),
                T(test_manual_window_bounds_what_comes),
                T(test_peer_that_does_not_read_costs_deadlines_only),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
