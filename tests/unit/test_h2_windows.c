#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/h2_peer.h"

#define CANCEL 8
#define FLOW_CONTROL_ERROR 3
#define WINDOW 65535
#define FULL 16384

static char chunk[FULL];

static int setup(void **state) {
        (void)peer_setup(state);
        peer->mode = PEER_HOLD;
        return 0;
}

static void put_data(int32_t id, size_t n) {
        frame_put(&peer->to, FRAME_DATA, 0, id, (struct span){chunk, n});
}

static void open_stream(int32_t id) {
        peer_request(peer, id, "/a", NULL, false);
        peer_turn(peer);
}

/* Nobody reads the bodies, so nothing is given back. */
static void test_the_connections_window_ends_at_its_last_byte(void **state) {
        (void)state;
        for (int32_t id = 1; id < 9; id += 2) {
                open_stream(id);
                put_data(id, id == 7 ? FULL - 1 : FULL);
        }
        peer_turn(peer);
        assert_int_equal(peer->fed, 0);
        put_data(7, 1);
        peer_turn(peer);
        assert_true(peer->fed < 0);
        assert_int_equal(peer->goaway_code, FLOW_CONTROL_ERROR);
}

/* What is thrown away counts for the connection only: it is given back there. */
static void test_a_streams_window_ends_at_its_last_byte(void **state) {
        (void)state;
        open_stream(1);
        peer->held[0]->discard_body = true;
        for (int i = 0; i < 4; i++) {
                put_data(1, i == 3 ? FULL - 1 : FULL);
                peer_turn(peer);
        }
        assert_true(peer->seen[FRAME_WINDOW] > 0);
        put_data(1, 0);
        peer_turn(peer);
        assert_int_equal(peer->seen[FRAME_RST], 0);
        put_data(1, 1);
        peer_turn(peer);
        assert_int_equal(peer->fed, 0);
        assert_int_equal(peer->rst_code, FLOW_CONTROL_ERROR);
}

/* The server gives up a stream in the middle of one of its frames. */
static void test_the_rest_of_a_frame_gives_its_window_back(void **state) {
        (void)state;
        for (int32_t id = 1; id < 20; id += 2) {
                open_stream(id);
                put_data(id, FULL);
                peer->to.len -= FULL - 1;
                peer_turn(peer);
                struct http_stream *st = peer->held[--peer->n_held];
                peer->session->ops->abort(st);
                http_stream_release(st);
                memcpy(peer->to.data, chunk, FULL - 1);
                peer->to.len = FULL - 1;
                peer_turn(peer);
                assert_int_equal(peer->fed, 0);
        }
        assert_true(peer->seen[FRAME_WINDOW] >= 3);
}

static void test_a_stream_that_is_over_has_no_window(void **state) {
        (void)state;
        open_stream(1);
        frame_window(&peer->to, 1, 0x7fffffff - WINDOW);
        frame_rst(&peer->to, 1, CANCEL);
        frame_settings(&peer->to, 4, WINDOW + 1);
        peer_turn(peer);
        assert_int_equal(peer->fed, 0);
        open_stream(3);
        frame_window(&peer->to, 3, 0x7fffffff - WINDOW - 1);
        frame_settings(&peer->to, 4, WINDOW + 2);
        peer_turn(peer);
        assert_int_equal(peer->goaway_code, FLOW_CONTROL_ERROR);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, peer_teardown)
        const struct CMUnitTest tests[] = {
                T(test_the_connections_window_ends_at_its_last_byte),
                T(test_a_streams_window_ends_at_its_last_byte),
                T(test_the_rest_of_a_frame_gives_its_window_back),
                T(test_a_stream_that_is_over_has_no_window),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
