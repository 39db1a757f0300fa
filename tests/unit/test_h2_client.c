#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/h2_orphans.h"
#include "tests/unit/h2_client_rig.h"

static void test_preface_and_settings_come_first(void **state) {
        struct client_session_conf conf = {
                .max_streams = 1, .header_bytes = 4096, .window_bytes = 65535};

        (void)state;
        h2_client_free(&rig.h);
        rig.h = h2_client_new(&conf);
        rig.sent_len = 0;
        put_out();
        assert_true(
                span_starts((struct span){rig.sent, rig.sent_len}, SPAN("PRI * HTTP/2.0\r\n\r\n")));
        expect_frames("S0 W0");
        assert_false(h2_client_is_greeted(rig.h));
        frame_settings(&rig.in, 0, 0);
        turn();
        assert_true(h2_client_is_greeted(rig.h));
}

static void test_room_is_the_lower_of_both_ceilings(void **state) {
        (void)state;
        assert_int_equal(h2_client_room(rig.h), 100);
        frame_settings(&rig.in, 3, 3);
        turn();
        assert_int_equal(h2_client_room(rig.h), 3);
        submit_gets(3);
        assert_int_equal(h2_client_room(rig.h), 0);

        struct http_call_request r = get("GET");

        assert_int_equal(h2_client_submit(rig.h, &calls[3], &r, false), -EAGAIN);
        put_out();
        frame_settings(&rig.in, 3, 1);
        turn();
        assert_int_equal(h2_client_room(rig.h), 0);
        frame_head(&rig.in, 1, 200, 0, true);
        frame_head(&rig.in, 3, 200, 0, true);
        turn();
        assert_int_equal(h2_client_room(rig.h), 0);
        frame_head(&rig.in, 5, 200, 0, true);
        turn();
        assert_int_equal(h2_client_room(rig.h), 1);
        frame_settings(&rig.in, 3, 1000);
        turn();
        assert_int_equal(h2_client_room(rig.h), 100);
}

static void test_calls_above_a_lowered_ceiling_wait_inside(void **state) {
        (void)state;
        submit_gets(2);
        frame_settings(&rig.in, 3, 1);
        turn();
        expect_frames("S0 H1");
        frame_head(&rig.in, 1, 200, 0, true);
        turn();
        expect_events("H1:200:1 E1:C");
        expect_frames("H3");
}

static void test_answers_with_and_without_a_body(void **state) {
        (void)state;
        submit_gets(5);
        submit(&calls[5], get("HEAD"));
        put_out();
        frame_head(&rig.in, 1, 200, 5, false);
        frame_text(&rig.in, 1, "hel", false);
        frame_text(&rig.in, 1, "lo", true);
        frame_head(&rig.in, 3, 204, -1, true);
        frame_head(&rig.in, 5, 304, 700, true);
        frame_head(&rig.in, 7, 200, 0, true);
        frame_head(&rig.in, 9, 200, -1, false);
        frame_text(&rig.in, 9, "", true);
        frame_head(&rig.in, 11, 200, 700, true);
        turn();
        expect_events("H1:200:1 D1:hel D1:lo E1:C H3:204:0 E3:C H5:304:1 E5:C H7:200:1 E7:C "
                      "H9:200:0 E9:C H11:200:1 E11:C");
}

static void test_fed_byte_by_byte_says_the_same(void **state) {
        struct frames whole = {.len = 0};

        (void)state;
        submit_gets(2);
        put_out();
        frame_head(&whole, 1, 103, -1, false);
        frame_head(&whole, 1, 200, 2, false);
        frame_head(&whole, 3, 200, 7, true);
        frame_text(&whole, 1, "hi", true);
        /* 7 announced, none sent, on stream 3. */
        for (size_t i = 0; i < whole.len; i++) {
                rig.in.data[0] = whole.data[i];
                rig.in.len = 1;
                turn();
        }
        expect_events("H1:200:1 E3:M D1:h D1:i E1:C");
}

static void test_interim_answers_and_trailers_are_dropped(void **state) {
        (void)state;
        submit_gets(1);
        put_out();
        frame_head(&rig.in, 1, 103, -1, false);
        frame_head(&rig.in, 1, 100, -1, false);
        frame_head(&rig.in, 1, 200, -1, false);
        frame_text(&rig.in, 1, "x", false);
        /* A literal field, name and value of one letter. */
        frame_put(&rig.in, FRAME_HEADERS, FRAME_END | FRAME_END_HEADERS, 1, SPAN("\x00\x01t\x01v"));
        turn();
        expect_events("H1:200:0 D1:x E1:C");
}

static void test_wrong_lengths_are_malformed(void **state) {
        (void)state;
        submit_gets(3);
        put_out();
        rig.sent_len = 0;
        frame_head(&rig.in, 1, 200, 5, false);
        frame_text(&rig.in, 1, "shor", true);
        frame_head(&rig.in, 3, 200, 3, false);
        frame_text(&rig.in, 3, "long", false);
        frame_head(&rig.in, 5, 200, 5, true);
        turn();
        expect_events("H1:200:1 D1:shor H3:200:1 E1:M E3:M E5:M");
        expect_frames("R1:1 R3:1 R5:1");
}

static void test_resets_of_the_peer(void **state) {
        (void)state;
        submit_gets(4);
        put_out();
        frame_rst(&rig.in, 1, REFUSED_STREAM);
        frame_rst(&rig.in, 3, 2);
        frame_rst(&rig.in, 5, 0);
        frame_head(&rig.in, 7, 200, 9, false);
        frame_rst(&rig.in, 7, REFUSED_STREAM);
        turn();
        expect_events("E1:R E3:B E5:B H7:200:1 E7:B");
        assert_int_equal(h2_client_room(rig.h), 100);
}

static void test_goaway_refuses_only_later_calls(void **state) {
        (void)state;
        submit_gets(4);
        put_out();
        frame_goaway(&rig.in, 5, 0);
        turn();
        expect_events("E7:R");
        assert_true(h2_client_is_going(rig.h));
        assert_false(h2_client_is_over(rig.h));
        assert_int_equal(h2_client_room(rig.h), 0);
        frame_head(&rig.in, 1, 200, 0, true);
        frame_head(&rig.in, 3, 200, 0, true);
        frame_head(&rig.in, 5, 200, 2, false);
        turn();
        frame_text(&rig.in, 5, "ok", true);
        turn();
        expect_events("H1:200:1 E1:C H3:200:1 E3:C H5:200:1 D5:ok E5:C");

        struct http_call_request r = get("GET");

        assert_int_equal(h2_client_submit(rig.h, &calls[5], &r, false), -ENOTCONN);
}

static void test_goaway_in_two_steps(void **state) {
        (void)state;
        submit_gets(2);
        put_out();
        frame_goaway(&rig.in, INT32_MAX, 0);
        turn();
        expect_events("");
        assert_true(h2_client_is_going(rig.h));
        frame_goaway(&rig.in, 1, 0);
        turn();
        expect_events("E3:R");
        frame_head(&rig.in, 1, 200, 0, true);
        turn();
        expect_events("H1:200:1 E1:C");
}

static void test_calls_not_put_out_before_goaway_are_refused(void **state) {
        (void)state;
        submit_gets(1);
        put_out();
        rig.sent_len = 0;
        submit(&calls[1], get("GET"));
        frame_goaway(&rig.in, INT32_MAX, 0);
        turn();
        expect_events("E3:R");
        expect_frames("");
        assert_true(calls[1].first_byte == UINT64_MAX);
}

static void test_a_cancelled_answer_runs_out_and_says_nothing(void **state) {
        (void)state;
        submit_gets(2);
        put_out();
        rig.sent_len = 0;
        h2_client_cancel(rig.h, &calls[0]);
        memset(&calls[0], 0xee, sizeof(calls[0]));
        assert_int_equal(h2_client_room(rig.h), 98);
        frame_head(&rig.in, 1, 200, 2, false);
        frame_text(&rig.in, 1, "no", true);
        frame_head(&rig.in, 3, 200, 0, true);
        turn();
        expect_events("H3:200:1 E3:C");
        expect_frames("");
        assert_int_equal(h2_client_room(rig.h), 100);
        assert_int_equal(h2_client_tick(rig.h, 100000), INT64_MAX);
        put_out();
        expect_frames("");
}

static void test_a_cancelled_answer_that_does_not_end_is_reset(void **state) {
        (void)state;
        submit_gets(2);
        put_out();
        rig.sent_len = 0;
        assert_int_equal(h2_client_tick(rig.h, 1000), INT64_MAX);
        h2_client_cancel(rig.h, &calls[0]);
        assert_int_equal(h2_client_tick(rig.h, 1001), 1000 + H2_ORPHAN_MS);
        assert_int_equal(h2_client_tick(rig.h, 1000 + H2_ORPHAN_MS), INT64_MAX);
        put_out();
        expect_frames("R1:8");
        assert_int_equal(h2_client_room(rig.h), 99);
        /* What was under way is taken in silence. */
        frame_head(&rig.in, 1, 200, 2, false);
        frame_head(&rig.in, 3, 200, 0, true);
        turn();
        expect_events("H3:200:1 E3:C");
        expect_frames("");
}

static size_t resets_put_out(void) {
        struct span bytes;
        struct frame f;
        size_t n = 0;

        put_out();
        bytes = (struct span){rig.sent, rig.sent_len};
        while (frame_take(&bytes, &f))
                n += f.type == FRAME_RST;
        rig.sent_len = 0;
        return n;
}

/* To a peer that counts them, more would be an attack. */
static void test_resets_come_slowly_and_too_many_end_the_connection(void **state) {
        size_t resets = 0, cancelled = 0;

        (void)state;
        for (int64_t now = 0; now < 60000 && !h2_client_is_going(rig.h); now += 10) {
                (void)h2_client_tick(rig.h, now);
                submit(&calls[0], get("GET"));
                put_out();
                h2_client_cancel(rig.h, &calls[0]);
                cancelled++;
                resets += resets_put_out();
                assert_true(resets <=
                            H2_ORPHAN_RESET_BURST + (size_t)now * H2_ORPHAN_RESETS_PER_S / 1000);
        }
        assert_true(h2_client_is_going(rig.h));
        assert_int_equal(cancelled, H2_ORPHANS_MAX);
        assert_int_equal(resets, 0);
        assert_int_equal(h2_client_submit(rig.h, &calls[0], &(struct http_call_request){0}, true),
                         -ENOTCONN);
}

static void test_resets_are_paced(void **state) {
        size_t resets = 0;
        int64_t now = 0;

        (void)state;
        /* As fast as they expire, so that the connection stays. */
        for (int i = 0; i < 60; i++) {
                submit(&calls[0], get("GET"));
                put_out();
                h2_client_cancel(rig.h, &calls[0]);
                now += H2_ORPHAN_MS / 20;
                (void)h2_client_tick(rig.h, now);
                resets += resets_put_out();
                assert_true(resets <= H2_ORPHAN_RESET_BURST + (size_t)now / 200);
        }
        assert_false(h2_client_is_going(rig.h));
        assert_in_range(resets, H2_ORPHAN_RESET_BURST, 40);
}

static void test_cancelled_before_it_was_put_out_leaves_no_trace(void **state) {
        struct client_call *call = calloc(1, sizeof(*call));
        struct http_call_request r = get("POST");

        (void)state;
        r.body = SPAN("body");
        submit(call, r);
        submit(&calls[1], get("GET"));
        h2_client_cancel(rig.h, call);
        free(call);
        put_out();
        take_events();
        expect_frames("H3");
        expect_events("");
}

static void test_cancelled_in_the_middle_of_its_events(void **state) {
        struct client_event e;

        (void)state;
        submit_gets(2);
        put_out();
        rig.sent_len = 0;
        frame_head(&rig.in, 1, 200, 2, false);
        frame_text(&rig.in, 1, "no", true);
        frame_head(&rig.in, 3, 200, 0, true);
        assert_int_equal(h2_client_feed(rig.h, (struct span){rig.in.data, rig.in.len}, 0), 0);
        rig.in.len = 0;
        assert_true(h2_client_next(rig.h, &e));
        assert_ptr_equal(e.call, &calls[0]);
        h2_client_cancel(rig.h, &calls[0]);
        memset(&calls[0], 0xee, sizeof(calls[0]));
        take_events();
        turn();
        expect_events("H3:200:1 E3:C");
        expect_frames("");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_preface_and_settings_come_first),
                T(test_room_is_the_lower_of_both_ceilings),
                T(test_calls_above_a_lowered_ceiling_wait_inside),
                T(test_answers_with_and_without_a_body),
                T(test_fed_byte_by_byte_says_the_same),
                T(test_interim_answers_and_trailers_are_dropped),
                T(test_wrong_lengths_are_malformed),
                T(test_resets_of_the_peer),
                T(test_goaway_refuses_only_later_calls),
                T(test_goaway_in_two_steps),
                T(test_calls_not_put_out_before_goaway_are_refused),
                T(test_a_cancelled_answer_runs_out_and_says_nothing),
                T(test_a_cancelled_answer_that_does_not_end_is_reset),
                T(test_resets_come_slowly_and_too_many_end_the_connection),
                T(test_resets_are_paced),
                T(test_cancelled_before_it_was_put_out_leaves_no_trace),
                T(test_cancelled_in_the_middle_of_its_events),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
