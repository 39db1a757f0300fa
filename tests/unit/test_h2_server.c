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
#define SETTINGS_TIMEOUT 4
#define ENHANCE_YOUR_CALM 11

#define PAYLOAD(literal) SPAN(literal)

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
#define T(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)
        const struct CMUnitTest tests[] = {
                T(test_settings_come_first_and_are_acknowledged),
                T(test_a_request_is_shown_with_its_fields),
                T(test_bytes_may_come_one_by_one),
                T(test_head_is_answered_without_a_body),
                T(test_a_stream_reset_in_its_batch_is_never_shown),
                T(test_a_reset_of_a_held_stream_is_told),
                T(test_a_malformed_field_costs_the_stream_alone),
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
