#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/h2_hpack.h"
#include "net/h2_server.h"
#include "tests/unit/h2_peer.h"

#define ENHANCE_YOUR_CALM 11

#define PAYLOAD(literal) SPAN(literal)

static struct span field_of(const struct http_stream *st, enum http_field id) {
        return http_request_field(&st->head.request, id);
}
/* ---- header budget ---- */

static void test_ninety_crumbs_become_one_cookie(void **state) {
        (void)state;
        struct peer_field more[92];
        for (size_t i = 0; i < 90; i++)
                more[i] = (struct peer_field){"cookie", "ab=cd"};
        more[90] = (struct peer_field){"accept", "*/*"};
        more[91] = (struct peer_field){NULL, NULL};
        peer->mode = PEER_HOLD;
        peer_request(peer, 1, "/", more, true);
        peer_turn(peer);
        assert_int_equal(peer->outcome, HTTP_HEAD_GOOD);
        assert_int_equal(peer->held[0]->head.request.n_headers, 2);
        struct span cookie = field_of(peer->held[0], HTTP_FIELD_COOKIE);
        assert_int_equal(cookie.len, 90 * 7 - 2);
        assert_true(span_starts(cookie, SPAN("ab=cd; ab=cd; ")));
        assert_true(span_eq(field_of(peer->held[0], HTTP_FIELD_ACCEPT), SPAN("*/*")));
}

static void test_too_many_crumbs_are_too_large_and_the_next_is_fine(void **state) {
        (void)state;
        struct peer_field more[102];
        for (size_t i = 0; i < 101; i++)
                more[i] = (struct peer_field){"cookie", "a"};
        more[101] = (struct peer_field){NULL, NULL};
        peer_request(peer, 1, "/", more, true);
        peer_turn(peer);
        assert_int_equal(peer->outcome, HTTP_HEAD_TOO_LARGE);
        peer_request(peer, 3, "/", NULL, true);
        peer_turn(peer);
        assert_int_equal(peer->outcome, HTTP_HEAD_GOOD);
}

static void test_too_many_bytes_are_too_large(void **state) {
        (void)state;
        static char value[16384];
        memset(value, 'v', sizeof value - 1);
        const struct peer_field more[] = {{"accept", value}, {NULL, NULL}};
        peer_request(peer, 1, "/", more, true);
        peer_turn(peer);
        assert_int_equal(peer->outcome, HTTP_HEAD_TOO_LARGE);
}

/* One indexed name and value again and again: little on the wire. */
static void test_a_header_bomb_stores_nothing(void **state) {
        (void)state;
        static char block[16000];
        static const char start[] = "\x82\x87\x84\x01\x01"
                                    "a" /* GET, https, /, a */
                                    "\x40\x06"
                                    "cookie\x01"
                                    "a";
        memcpy(block, start, sizeof start - 1);
        memset(block + sizeof start - 1, 0x80 | 62, sizeof block - sizeof start + 1);
        peer->mode = PEER_HOLD;
        for (int32_t id = 1; id < 100; id += 2)
                frame_put(&peer->to, FRAME_HEADERS, FRAME_END_HEADERS | FRAME_END, id,
                          (struct span){block, id == 1 ? sizeof block : 4000}),
                        peer_turn(peer);
        assert_int_equal(peer->outcome, HTTP_HEAD_TOO_LARGE);
        assert_true(peer->session->stored_bytes < HTTP_SESSION_STORED_MAX);
        assert_true(pool_bytes(peer->pool) < (size_t)2 << 20);
}

static void test_heads_of_all_streams_share_a_budget(void **state) {
        (void)state;
        static char value[8000];
        memset(value, 'v', sizeof value - 1);
        const struct peer_field more[] = {{"accept", value}, {NULL, NULL}};
        peer->mode = PEER_HOLD;
        for (int32_t id = 1; id < 80; id += 2) {
                peer_request(peer, id, "/", more, true);
                peer_turn(peer);
        }
        assert_int_equal(peer->outcome, HTTP_HEAD_TOO_LARGE);
        assert_true(peer->session->stored_bytes < HTTP_SESSION_STORED_MAX + 16384);
}

/* ---- abuse ---- */

static bool is_cut_off(void) {
        return peer->fed < 0 && peer->goaway_code == ENHANCE_YOUR_CALM &&
               peer->session->ops->is_done(peer->session);
}

static void test_rapid_reset_is_cut_off(void **state) {
        (void)state;
        int32_t id = 1;
        for (int i = 0; i < 100; i++, id += 2) {
                peer_request(peer, id, "/a", NULL, true);
                frame_rst(&peer->to, id, 8);
        }
        peer_turn(peer);
        assert_int_equal(peer->fed, 0);
        peer_request(peer, id, "/a", NULL, true);
        frame_rst(&peer->to, id, 8);
        peer_turn(peer);
        assert_true(is_cut_off());
        assert_int_equal(peer->session->why, HTTP_SESSION_RESETS);
        assert_int_equal(peer->shown, 0);
}

static void test_slow_resets_pass(void **state) {
        (void)state;
        int32_t id = 1;
        for (int i = 0; i < 500; i++, id += 2) {
                peer->session->now_ms += 50; /* 20 a second */
                peer_request(peer, id, "/a", NULL, true);
                frame_rst(&peer->to, id, 8);
                peer_turn(peer);
        }
        assert_int_equal(peer->fed, 0);
}

static void test_a_reset_behind_a_whole_answer_is_free(void **state) {
        (void)state;
        int32_t id = 1;
        for (int i = 0; i < 2000; i++, id += 2) {
                peer_request(peer, id, "/a", NULL, true);
                peer_turn(peer);
                frame_rst(&peer->to, id, 8);
                peer_turn(peer);
        }
        assert_int_equal(peer->fed, 0);
        assert_int_equal(peer->shown, 2000);
        assert_int_equal(peer->seen[FRAME_GOAWAY], 0);
}

static void overflow(int32_t id) {
        peer_request(peer, id, "/a", NULL, true);
        frame_window(&peer->to, id, 0x7fffffff);
}

static void upper_case(int32_t id) {
        const struct peer_field bad[] = {{"Upper", "1"}, {NULL, NULL}};
        peer_request(peer, id, "/a", bad, true);
}

static void wrong_length(int32_t id) {
        const struct peer_field bad[] = {{"content-length", "5"}, {NULL, NULL}};
        peer_request(peer, id, "/a", bad, false);
        frame_text(&peer->to, id, "longer than five", true);
}

static void test_making_the_server_reset_is_cut_off(void **state) {
        (void)state;
        static void (*const ways[])(int32_t) = {overflow, upper_case, wrong_length};
        for (size_t i = 0; i < NET_COUNT_OF(ways); i++) {
                int32_t id = 1;
                peer->mode = PEER_HOLD;
                for (int n = 0; n < 110 && peer->fed == 0; n++, id += 2) {
                        ways[i](id);
                        peer_turn(peer);
                        peer->n_held = 0;
                }
                assert_true(peer->seen[FRAME_RST] >= 100 && peer->seen[FRAME_RST] <= 102);
                peer_turn(peer);
                assert_true(is_cut_off());
                peer_close(peer);
                peer_open(peer);
        }
}

static void put_ping(void) {
        frame_put(&peer->to, FRAME_PING, 0, 0, PAYLOAD("12345678"));
}

static void put_settings(void) {
        frame_settings(&peer->to, 0, 0);
}

static void put_priority(void) {
        frame_put(&peer->to, FRAME_PRIORITY, 0, 7, PAYLOAD("\0\0\0\0\1"));
}

static void put_tiny_window(void) {
        frame_window(&peer->to, 0, 1);
}

static void put_unknown(void) {
        frame_put(&peer->to, (enum frame_type)0x42, 0, 0, PAYLOAD("x"));
}

static void put_goaway(void) {
        frame_goaway(&peer->to, 0, 0);
}

static void put_empty_data(void) {
        frame_put(&peer->to, FRAME_DATA, 0, 1, PAYLOAD(""));
}

static void put_padding(void) {
        frame_put(&peer->to, FRAME_DATA, FRAME_PADDED, 1, PAYLOAD("\3\0\0\0"));
}

static void test_floods_of_odd_frames_are_cut_off(void **state) {
        (void)state;
        static const struct {
                void (*put)(void);
                int at_least, at_most;
        } floods[] = {
                {put_ping, 1000, 1001},     {put_settings, 100, 101},
                {put_priority, 1000, 1001}, {put_tiny_window, 1000, 1001},
                {put_unknown, 1000, 1001},  {put_goaway, 100, 101},
                {put_empty_data, 100, 101}, {put_padding, 100, 101},
        };
        for (size_t i = 0; i < NET_COUNT_OF(floods); i++) {
                int n = 0;
                peer->mode = PEER_HOLD;
                peer_request(peer, 1, "/a", NULL, false);
                peer_turn(peer);
                while (peer->fed == 0 && n < 2000) {
                        floods[i].put();
                        peer_turn(peer);
                        n++;
                }
                if (n < floods[i].at_least || n > floods[i].at_most)
                        fail_msg("flood %zu: cut off after %d", i, n);
                assert_int_equal(peer->session->why, HTTP_SESSION_GLITCHES);
                peer_turn(peer);
                assert_int_equal(peer->goaway_code, ENHANCE_YOUR_CALM);
                peer_close(peer);
                peer_open(peer);
        }
}

static void test_padding_that_outweighs_data_is_cut_off(void **state) {
        (void)state;
        static char padded[255];
        padded[0] = (char)(sizeof padded - 2);
        peer->mode = PEER_HOLD;
        peer_request(peer, 1, "/a", NULL, false);
        peer_turn(peer);
        peer->session->now_ms += 1000;
        uint64_t sent = 0;
        while (peer->fed == 0 && sent < (uint64_t)16 << 20) {
                frame_put(&peer->to, FRAME_DATA, FRAME_PADDED, 1,
                          (struct span){padded, sizeof padded});
                sent += peer->to.len;
                peer_turn(peer);
                if (peer->n_held == 1)
                        peer->session->ops->consume(peer->held[0], peer->held[0]->unconsumed);
                buf_eat(&peer->held[0]->body, buf_len(&peer->held[0]->body));
        }
        assert_in_range(sent, 2000000, 3000000);
        assert_int_equal(peer->session->why, HTTP_SESSION_GLITCHES);
}

static void test_pings_at_an_honest_pace_pass(void **state) {
        (void)state;
        for (int i = 0; i < 5000; i++) {
                peer->session->now_ms += 100;
                put_ping();
                peer_turn(peer);
        }
        assert_int_equal(peer->fed, 0);
        assert_int_equal(peer->seen[FRAME_PING], 5000);
}

static void test_a_flood_of_continuations_is_cut_off(void **state) {
        (void)state;
        frame_put(&peer->to, FRAME_HEADERS, FRAME_END, 1, PAYLOAD("\x82"));
        for (int i = 0; i < 10; i++)
                frame_put(&peer->to, FRAME_CONTINUATION, 0, 1, PAYLOAD(""));
        peer_turn(peer);
        assert_true(peer->fed < 0 || peer->session->ops->is_done(peer->session));
        assert_int_equal(peer->shown, 0);
}

static void test_a_wrong_preface_ends_it(void **state) {
        (void)state;
        peer_close(peer);
        memset(peer, 0, sizeof *peer);
        peer->pool = pool_new();
        peer->coder = h2_coder_new(peer->pool);
        peer->conf.pool = peer->pool;
        peer->conf.coder = peer->coder;
        peer->session = h2_server_new(&peer->conf, 1000);
        const char text[] = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        assert_true(peer->session->ops->feed(peer->session, text, sizeof text - 1) < 0);
        assert_int_equal(peer->session->why, HTTP_SESSION_PROTOCOL);
}
int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)
        const struct CMUnitTest tests[] = {
                T(test_ninety_crumbs_become_one_cookie),
                T(test_too_many_crumbs_are_too_large_and_the_next_is_fine),
                T(test_too_many_bytes_are_too_large),
                T(test_a_header_bomb_stores_nothing),
                T(test_heads_of_all_streams_share_a_budget),
                T(test_rapid_reset_is_cut_off),
                T(test_slow_resets_pass),
                T(test_a_reset_behind_a_whole_answer_is_free),
                T(test_making_the_server_reset_is_cut_off),
                T(test_floods_of_odd_frames_are_cut_off),
                T(test_padding_that_outweighs_data_is_cut_off),
                T(test_pings_at_an_honest_pace_pass),
                T(test_a_flood_of_continuations_is_cut_off),
                T(test_a_wrong_preface_ends_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
