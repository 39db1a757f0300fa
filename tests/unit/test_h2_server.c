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

#define NO_ERROR 0
#define PROTOCOL_ERROR 1
#define FLOW_CONTROL_ERROR 3
#define SETTINGS_TIMEOUT 4
#define ENHANCE_YOUR_CALM 11

#define PAYLOAD(literal) SPAN(literal)

static struct peer *peer; /* too large for a stack */

static int setup(void **state) {
        (void)state;
        peer = calloc(1, sizeof *peer);
        peer_open(peer);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        peer_close(peer);
        free(peer);
        return 0;
}

static struct span field_of(const struct http_stream *st, enum http_field id) {
        return http_request_field(&st->head.request, id);
}

/* ---- requests ---- */

static void test_settings_come_first_and_are_acknowledged(void **state) {
        (void)state;
        assert_int_equal(peer->seen[FRAME_SETTINGS], 2);
        assert_int_equal(peer->session->ack_since_ms, 0);
        assert_int_equal(peer->session->head_since_ms, 0);
}

static void test_a_request_is_shown_with_its_fields(void **state) {
        (void)state;
        const struct peer_field more[] = {
                {"accept", "text/html"}, {"x-unknown", "1"}, {"x_account", "me"}, {NULL, NULL}};
        peer->mode = PEER_HOLD;
        peer_request(peer, 1, "/a?b=c", more, true);
        peer_turn(peer);
        assert_int_equal(peer->outcome, HTTP_HEAD_GOOD);
        const struct http_request *r = &peer->held[0]->head.request;
        assert_int_equal(r->method, HTTP_GET);
        assert_true(span_eq(r->path, SPAN("/a?b=c")));
        assert_true(span_eq(r->authority, SPAN("a.test")));
        assert_true(span_eq(field_of(peer->held[0], HTTP_FIELD_ACCEPT), SPAN("text/html")));
        assert_int_equal(r->n_headers, 1);
        assert_false(r->has_body);
}

static void test_bytes_may_come_one_by_one(void **state) {
        (void)state;
        peer_request(peer, 1, "/a", NULL, true);
        struct frames whole = peer->to;
        for (size_t i = 0; i < whole.len; i++) {
                assert_int_equal(peer->shown, 0);
                assert_int_equal(peer->session->head_since_ms != 0, i >= 9);
                peer->to.len = 1;
                peer->to.data[0] = whole.data[i];
                peer_turn(peer);
        }
        assert_int_equal(peer->shown, 1);
        assert_int_equal(peer->session->head_since_ms, 0);
        assert_int_equal(peer->data_bytes, 5);
}

static void test_head_is_answered_without_a_body(void **state) {
        (void)state;
        const struct peer_field head[] = {{":method", "HEAD"},
                                          {":scheme", "https"},
                                          {":authority", "a"},
                                          {":path", "/"},
                                          {NULL, NULL}};
        peer_fields(peer, 1, head, true);
        peer_turn(peer);
        assert_int_equal(peer->seen[FRAME_HEADERS], 1);
        assert_int_equal(peer->seen[FRAME_DATA], 0);
        assert_int_equal(peer->ended, 1);
        /* content-length: 5, literal with the name of index 28 */
        assert_non_null(memmem(peer->last_head.p, peer->last_head.len, "\x0f\x0d", 2));
}

static void test_a_stream_reset_in_its_batch_is_never_shown(void **state) {
        (void)state;
        for (int32_t id = 1; id < 100; id += 2) {
                peer_request(peer, id, "/a", NULL, true);
                frame_rst(&peer->to, id, 8);
        }
        peer_turn(peer);
        assert_int_equal(peer->shown, 0);
        assert_int_equal(peer->session->n_streams, 0);
        assert_int_equal(peer->fed, 0);
}

static void test_a_reset_of_a_held_stream_is_told(void **state) {
        (void)state;
        peer->mode = PEER_HOLD;
        peer_request(peer, 1, "/a", NULL, true);
        peer_turn(peer);
        frame_rst(&peer->to, 1, 8);
        peer_turn(peer);
        assert_int_equal(peer->gone, 1);
        assert_int_equal(peer->session->n_streams, 0);
}

static void test_a_malformed_field_costs_the_stream_alone(void **state) {
        (void)state;
        static const struct peer_field bad[][2] = {
                {{"Upper", "1"}, {NULL, NULL}},
                {{"a", "b\r\nc: d"}, {NULL, NULL}},
                {{"a", "\x01"}, {NULL, NULL}},
                {{"transfer-encoding", "chunked"}, {NULL, NULL}},
                {{"connection", "close"}, {NULL, NULL}},
                {{"content-length", "+5"}, {NULL, NULL}},
                {{"", "x"}, {NULL, NULL}},
        };
        int32_t id = 1;
        for (size_t i = 0; i < NET_COUNT_OF(bad); i++, id += 2) {
                peer_request(peer, id, "/a", bad[i], true);
                peer_turn(peer);
                assert_int_equal(peer->shown, 0);
                assert_int_equal(peer->seen[FRAME_RST], i + 1);
                assert_int_equal(peer->rst_code, PROTOCOL_ERROR);
        }
        peer_request(peer, id, "/a", NULL, true);
        peer_turn(peer);
        assert_int_equal(peer->shown, 1);
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

/* ---- bodies and answers ---- */

static void test_a_body_is_kept_and_its_window_given_back_on_demand(void **state) {
        (void)state;
        static char chunk[16384];
        peer->mode = PEER_HOLD;
        peer_request(peer, 1, "/a", NULL, false);
        for (int i = 0; i < 3; i++)
                frame_put(&peer->to, FRAME_DATA, 0, 1, (struct span){chunk, sizeof chunk});
        peer_turn(peer);
        struct http_stream *st = peer->held[0];
        assert_int_equal(buf_len(&st->body), 3 * sizeof chunk);
        assert_int_equal(peer->seen[FRAME_WINDOW], 0);
        peer->session->ops->consume(st, st->unconsumed);
        frame_text(&peer->to, 1, "end", true);
        peer_turn(peer);
        assert_int_equal(peer->seen[FRAME_WINDOW], 2); /* connection and stream */
        assert_true(st->received_end);
        assert_int_equal(buf_len(&st->body), 3 * sizeof chunk + 3);
        peer_answer(peer, st);
        peer_turn(peer);
        assert_int_equal(peer->session->n_streams, 0);
}

static void test_a_body_of_a_closed_stream_leaves_the_connection_open(void **state) {
        (void)state;
        static char chunk[16384];
        int32_t id = 1;
        peer->mode = PEER_HOLD;
        for (int i = 0; i < 20; i++, id += 2) { /* five windows in all */
                peer->session->now_ms += 1000;
                peer_request(peer, id, "/a", NULL, false);
                frame_put(&peer->to, FRAME_DATA, 0, id, (struct span){chunk, sizeof chunk});
                peer_turn(peer);
                frame_rst(&peer->to, id, 8);
                peer_turn(peer);
        }
        assert_int_equal(peer->fed, 0);
        assert_int_equal(peer->gone, 20);
        assert_true(peer->seen[FRAME_WINDOW] >= 9);
}

/* Its client has not heard yet that it is over. */
static void test_a_body_behind_a_reset_of_an_old_stream_is_ignored(void **state) {
        (void)state;
        peer->mode = PEER_HOLD;
        peer_request(peer, 1, "/a", NULL, false);
        peer_turn(peer);
        peer->mode = PEER_ANSWER;
        for (int32_t id = 3; id < 603; id += 2) {
                peer_request(peer, id, "/a", NULL, true);
                peer_turn(peer);
        }
        peer->session->ops->abort(peer->held[0]);
        frame_text(&peer->to, 1, "more", false);
        frame_text(&peer->to, 1, "end", true);
        peer_turn(peer);
        assert_int_equal(peer->fed, 0);
        assert_int_equal(peer->seen[FRAME_GOAWAY], 0);
}

static void test_a_streamed_answer_waits_for_data_and_window(void **state) {
        (void)state;
        static char data[40000];
        peer->mode = PEER_HOLD;
        peer_request(peer, 1, "/a", NULL, true);
        peer_turn(peer);
        struct http_stream *st = peer->held[0];
        struct http_answer a = {.status = 200, .has_body = true};
        peer->session->ops->answer(st, &a);
        st->answered = true;
        peer_turn(peer);
        assert_int_equal(peer->seen[FRAME_HEADERS], 1);
        assert_int_equal(peer->data_bytes, 0);
        assert_int_equal(buf_append(&st->out, data, sizeof data), 0);
        peer->session->ops->resume(st);
        peer_turn(peer);
        assert_int_equal(peer->data_bytes, sizeof data);
        assert_int_equal(buf_append(&st->out, data, sizeof data), 0);
        st->out_end = true;
        peer->session->ops->resume(st);
        http_stream_release(st);
        peer_turn(peer);
        assert_int_equal(peer->data_bytes, 65535);
        assert_int_equal(http_session_queued(peer->session), 2 * sizeof data - 65535);
        frame_window(&peer->to, 0, 65535);
        frame_window(&peer->to, 1, 65535);
        peer_turn(peer);
        assert_int_equal(peer->data_bytes, 2 * sizeof data);
        assert_int_equal(peer->ended, 1);
        assert_int_equal(peer->session->n_streams, 0);
}

static void test_an_end_without_more_data_ends_the_stream(void **state) {
        (void)state;
        peer->mode = PEER_HOLD;
        peer_request(peer, 1, "/a", NULL, true);
        peer_turn(peer);
        struct http_stream *st = peer->held[0];
        struct http_answer a = {.status = 200, .has_body = true};
        peer->session->ops->answer(st, &a);
        st->answered = true;
        assert_int_equal(buf_append(&st->out, "x", 1), 0);
        peer_turn(peer);
        st->out_end = true;
        peer->session->ops->resume(st);
        http_stream_release(st);
        peer_turn(peer);
        assert_int_equal(peer->ended, 1);
}

/* ---- the end ---- */

static void test_a_drain_tells_twice_and_finishes_what_is_open(void **state) {
        (void)state;
        peer->mode = PEER_HOLD;
        peer_request(peer, 1, "/a", NULL, true);
        peer_turn(peer);
        peer->session->ops->drain(peer->session, false);
        peer_turn(peer);
        assert_int_equal(peer->goaway_last, 0x7fffffff);
        peer_request(peer, 3, "/a", NULL, true); /* sent before the client knew */
        peer_turn(peer);
        assert_int_equal(peer->shown, 2);
        peer->session->ops->drain(peer->session, true);
        peer_turn(peer);
        assert_int_equal(peer->goaway_last, 3);
        assert_int_equal(peer->goaway_code, NO_ERROR);
        assert_false(peer->session->ops->is_done(peer->session));
        peer_answer(peer, peer->held[0]);
        peer_answer(peer, peer->held[1]);
        peer_turn(peer);
        assert_int_equal(peer->ended, 2);
        assert_true(peer->session->ops->is_done(peer->session));
}

static void test_settings_never_acknowledged_end_it(void **state) {
        (void)state;
        peer_close(peer);
        peer_open_deaf(peer);
        peer->session->now_ms += HTTP_SESSION_ACK_MS + 1;
        peer->session->ops->drain(peer->session, true);
        peer_turn(peer);
        assert_int_equal(peer->goaway_code, SETTINGS_TIMEOUT);
        assert_true(peer->session->ops->is_done(peer->session));
}

/* Once told that it is over, a client's new streams are neither served nor
 * answered, but their fields still change the table. */
static void test_streams_behind_the_last_goaway_are_ignored(void **state) {
        (void)state;
        peer->session->ops->drain(peer->session, true);
        frame_put(&peer->to, FRAME_HEADERS, FRAME_END_HEADERS, 1,
                  PAYLOAD("\x82\x87\x84\x41\x01"
                          "a"));
        frame_text(&peer->to, 1, "body", true);
        peer_turn(peer);
        assert_int_equal(peer->fed, 0);
        assert_int_equal(peer->shown, 0);
        assert_int_equal(peer->seen[FRAME_RST], 0);
        assert_int_equal(peer->goaway_last, 0);
}

static void test_a_peer_that_reads_no_control_frames_is_cut_off(void **state) {
        (void)state;
        for (int i = 0; i < 1000 && peer->fed == 0; i++) {
                frame_put(&peer->to, FRAME_PING, 0, 0, PAYLOAD("12345678"));
                peer_feed(peer);
                peer->session->now_ms += 100; /* slowly: no oddness in itself */
        }
        assert_true(peer->fed < 0);
        peer_turn(peer);
        assert_int_equal(peer->goaway_code, ENHANCE_YOUR_CALM);
        assert_true(peer->seen[FRAME_PING] > 400);
}

/* A page's head is short when the peer has heard it before; any other answer
 * between leaves that true, a smaller table ends it. */
static void test_heads_are_right_whatever_the_peer_heard_before(void **state) {
        (void)state;
        size_t lengths[4];
        for (int i = 0; i < 3; i++) {
                peer_request(peer, 2 * i + 1, "/a", NULL, true);
                peer_turn(peer);
                lengths[i] = peer->last_head.len;
        }
        assert_true(lengths[1] < lengths[0] && lengths[2] == lengths[1]);
        frame_settings(&peer->to, 1, 100);
        peer_request(peer, 7, "/a", NULL, true);
        peer_turn(peer);
        lengths[3] = peer->last_head.len;
        assert_int_equal(peer->last_head.p[0], 0x20);
        peer_request(peer, 9, "/a", NULL, true);
        peer_turn(peer);
        assert_int_equal(peer->last_head.len, lengths[3] - 1);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_settings_come_first_and_are_acknowledged),
                T(test_a_request_is_shown_with_its_fields),
                T(test_bytes_may_come_one_by_one),
                T(test_head_is_answered_without_a_body),
                T(test_a_stream_reset_in_its_batch_is_never_shown),
                T(test_a_reset_of_a_held_stream_is_told),
                T(test_a_malformed_field_costs_the_stream_alone),
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
                T(test_a_body_is_kept_and_its_window_given_back_on_demand),
                T(test_a_body_of_a_closed_stream_leaves_the_connection_open),
                T(test_a_body_behind_a_reset_of_an_old_stream_is_ignored),
                T(test_a_streamed_answer_waits_for_data_and_window),
                T(test_an_end_without_more_data_ends_the_stream),
                T(test_a_drain_tells_twice_and_finishes_what_is_open),
                T(test_settings_never_acknowledged_end_it),
                T(test_streams_behind_the_last_goaway_are_ignored),
                T(test_a_peer_that_reads_no_control_frames_is_cut_off),
                T(test_heads_are_right_whatever_the_peer_heard_before),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
