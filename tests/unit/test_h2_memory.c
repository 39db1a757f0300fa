/* A session's whole life, again and again, each time with one piece of memory
 * less: whatever is not there must cost at most the request or the connection
 * it was for, and nothing may be left behind. Arenas ask the pool for every
 * piece here, so that each of them fails once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/h2_server.h"
#include "tests/unit/failing_pool.h"
#include "tests/unit/h2_peer.h"

#define PIECES_MAX 5000

static void answer_own(struct http_stream *st) {
        static const struct http_header headers[] = {
                {SPAN("x-own"), SPAN("a value of its own"), 0}};
        static const char body[3000];
        const struct http_answer a = {.status = 201, .headers = headers, .n = 1, .has_body = true};
        st->fixed = (struct span){body, sizeof body};
        st->out_end = true;
        if (!st->closed)
                st->session->ops->answer(st, &a);
        st->answered = true;
        http_stream_release(st);
}

/* Whom the server's side still holds, answered. Streams that ended without an
 * answer were told as gone, and released. */
static void held_answer(void) {
        for (struct http_stream *st = peer->session->streams, *next; st; st = next) {
                next = st->next;
                if (st->held && !st->answered)
                        answer_own(st);
        }
        peer->n_held = 0;
}

/* One of each: pages, answers of their own, bodies, cookies, trailers, resets,
 * heads that come again, control frames that pile up, a drain. */
static void play(void) {
        static const struct peer_field more[] = {
                {"cookie", "a=b"}, {"cookie", "c=d"}, {"accept", "*/*"}, {NULL, NULL}};
        static const struct peer_field trailers[] = {{"x-trailer", "1"}, {NULL, NULL}};
        int32_t id = 1;
        for (int i = 0; i < 4; i++, id += 2)
                peer_request(peer, id, "/again", NULL, true);
        peer_request(peer, id, "/cookies", more, true);
        peer_turn(peer);
        peer->mode = PEER_HOLD;
        id += 2;
        peer_request(peer, id, "/body", more, false);
        frame_text(&peer->to, id, "some of it", false);
        peer_turn(peer);
        peer_fields(peer, id, trailers, true);
        peer_turn(peer);
        held_answer();
        id += 2;
        peer_request(peer, id, "/reset", NULL, true);
        frame_rst(&peer->to, id, 8);
        for (int i = 0; i < 30; i++)
                frame_put(&peer->to, FRAME_PING, 0, 0, SPAN("12345678"));
        frame_window(&peer->to, 0, 100000);
        peer_turn(peer);
        id += 2;
        peer_request(peer, id, "/last", NULL, true);
        peer_turn(peer);
        peer->session->ops->drain(peer->session, true);
        held_answer();
        peer_turn(peer);
}

/* True while the piece was asked for at all. */
static bool life(unsigned n, bool for_good) {
        peer_open(peer);
        failing_pool_arm(n, for_good);
        play();
        bool has_failed = failing_pool_failed();
        failing_pool_arm(0, false);
        if (!has_failed)
                assert_true(peer->session->ops->is_done(peer->session));
        held_answer();
        peer_close(peer);
        return has_failed;
}

static void test_any_piece_that_is_missing_is_survived(void **state) {
        (void)state;
        unsigned n = 1;
        while (n < PIECES_MAX && life(n, false))
                n++;
        assert_in_range(n, 30, PIECES_MAX - 1);
}

static void test_all_pieces_missing_from_one_on_are_survived(void **state) {
        (void)state;
        unsigned n = 1;
        while (n < PIECES_MAX && life(n, true))
                n++;
        assert_in_range(n, 30, PIECES_MAX - 1);
}

static void test_a_session_that_cannot_begin_leaves_nothing(void **state) {
        (void)state;
        unsigned n = 1;
        for (bool has_failed = true; has_failed; n++) {
                peer_open(peer);
                failing_pool_arm(n, false);
                struct http_session *other = h2_server_new(&peer->conf, 1000);
                has_failed = failing_pool_failed();
                failing_pool_arm(0, false);
                assert_int_equal(other == NULL, has_failed);
                if (other)
                        other->ops->free(other);
                peer_close(peer);
        }
        assert_true(n > 3);
}

static int setup(void **state) {
        (void)state;
        peer = calloc(1, sizeof *peer);
        return peer ? 0 : -1;
}

static int teardown(void **state) {
        (void)state;
        free(peer);
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_any_piece_that_is_missing_is_survived),
                cmocka_unit_test(test_all_pieces_missing_from_one_on_are_survived),
                cmocka_unit_test(test_a_session_that_cannot_begin_leaves_nothing),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
