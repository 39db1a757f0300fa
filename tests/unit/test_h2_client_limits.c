#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/h2_client_rig.h"

static void test_head_over_the_ceiling_is_malformed_and_reset(void **state) {
        static char value[4096];
        struct frames block = {.len = 0};

        (void)state;
        memset(value, 'a', sizeof(value));
        /* A literal field of 3,000 bytes, twice: 7-bit prefix, then 2,873. */
        for (int i = 0; i < 2; i++) {
                memcpy(block.data + block.len, "\x00\x01t\x7f\xb9\x16", 6);
                memcpy(block.data + block.len + 6, value, 3000);
                block.len += 3006;
        }
        submit_gets(2);
        put_out();
        rig.sent_len = 0;
        frame_put(&rig.in, FRAME_HEADERS, 0, 1, SPAN("\x88"));
        frame_put(&rig.in, FRAME_CONTINUATION, FRAME_END_HEADERS, 1,
                  (struct span){block.data, block.len});
        frame_head(&rig.in, 3, 200, -1, true);
        turn();
        expect_events("E1:M H3:200:0 E3:C");
        expect_frames("R1:8");
        frame_text(&rig.in, 1, "late", true);
        turn();
        expect_events("");
}

static void test_stalled_call_does_not_eat_the_connections_window(void **state) {
        static char piece[16384];
        size_t stalled = 65535 / sizeof(piece);

        (void)state;
        submit_gets(2);
        put_out();
        rig.sent_len = 0;
        frame_head(&rig.in, 1, 200, -1, false);
        frame_head(&rig.in, 3, 200, -1, false);
        for (size_t i = 0; i < stalled; i++)
                frame_put(&rig.in, FRAME_DATA, 0, 1, (struct span){piece, sizeof(piece)});
        turn();
        /* 64 MiB through the other call, the first one stays untouched. */
        for (int i = 0; i < 4096; i++) {
                frame_put(&rig.in, FRAME_DATA, 0, 3, (struct span){piece, sizeof(piece)});
                turn();
                h2_client_consumed(rig.h, &calls[1], sizeof(piece));
                put_out();

                struct span bytes = {rig.sent, rig.sent_len};
                struct frame f;

                while (frame_take(&bytes, &f))
                        assert_true(f.type == FRAME_WINDOW && f.stream != 1);
                rig.sent_len = 0;
        }
        assert_false(h2_client_is_over(rig.h));
        h2_client_consumed(rig.h, &calls[0], stalled * sizeof(piece));
        put_out();
        rig.log_len = 0;
        expect_frames("W1");
}

static void test_peer_that_oversteps_the_window_is_cut_off(void **state) {
        static char piece[16384];

        (void)state;
        submit_gets(1);
        put_out();
        frame_head(&rig.in, 1, 200, -1, false);
        for (int i = 0; i < 5; i++)
                frame_put(&rig.in, FRAME_DATA, 0, 1, (struct span){piece, sizeof(piece)});
        turn();
        assert_non_null(strstr(rig.log, "E1:M"));
}

static void test_connection_errors_end_the_session(void **state) {
        static const struct {
                const char *why;
                enum frame_type type;
                int32_t stream;
                struct span payload;
        } rows[] = {
                {"data for a stream never opened", FRAME_DATA, 9, {"x", 1}},
                {"pushed answer", FRAME_PUSH, 1, {"\0\0\0\2\x88", 5}},
                {"broken compression", FRAME_HEADERS, 1, {"\xff\xff\xff\xff\xff\xff", 6}},
                {"settings of odd length", FRAME_SETTINGS, 0, {"x", 1}},
                {"continuation of nothing", FRAME_CONTINUATION, 1, {"x", 1}},
                {"window overflow", FRAME_WINDOW, 0, {"\x7f\xff\xff\xff", 4}},
        };

        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                assert_int_equal(setup(state), 0);
                submit_gets(1);
                put_out();
                frame_put(&rig.in, rows[i].type, FRAME_END_HEADERS, rows[i].stream,
                          rows[i].payload);
                (void)feed();
                put_out();
                if (!h2_client_is_over(rig.h))
                        print_error("%s\n", rows[i].why);
                assert_true(h2_client_is_over(rig.h));
                assert_int_equal(h2_client_room(rig.h), 0);
                teardown(state);
        }
}

static void test_floods_end_the_connection(void **state) {
        static const struct {
                const char *why;
                enum frame_type type;
                unsigned flags;
                int32_t stream;
                struct span payload;
                int most;
        } rows[] = {
                {"ping", FRAME_PING, 0, 0, {"12345678", 8}, 2000},
                {"ping answers", FRAME_PING, FRAME_ACK, 0, {"12345678", 8}, 2000},
                {"settings", FRAME_SETTINGS, 0, 0, {"", 0}, 200},
                {"settings answers", FRAME_SETTINGS, FRAME_ACK, 0, {"", 0}, 200},
                {"priority", FRAME_PRIORITY, 0, 1, {"\0\0\0\0\1", 5}, 2000},
                {"empty data", FRAME_DATA, 0, 1, {"", 0}, 200},
                {"padding", FRAME_DATA, FRAME_PADDED, 1, {"\3\0\0\0", 4}, 200},
                {"window by one", FRAME_WINDOW, 0, 0, {"\0\0\0\1", 4}, 2000},
                {"goaway", FRAME_GOAWAY, 0, 0, {"\x7f\xff\xff\xff\0\0\0\0", 8}, 200},
                {"unknown type", (enum frame_type)0x77, 0, 0, {"0123456789abcdef", 16}, 120000},
                {"interim answers",
                 FRAME_HEADERS,
                 FRAME_END_HEADERS,
                 3,
                 {"\x08\x03"
                  "103",
                  5},
                 2000},
        };

        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                int n = 0, r = 0;

                assert_int_equal(setup(state), 0);
                submit_gets(2);
                put_out();
                frame_head(&rig.in, 1, 200, -1, false);
                turn();
                while (r == 0 && n < rows[i].most && !h2_client_is_over(rig.h)) {
                        for (int k = 0; k < 50; k++, n++)
                                frame_put(&rig.in, rows[i].type, rows[i].flags, rows[i].stream,
                                          rows[i].payload);
                        r = feed();
                        if (r == 0)
                                put_out();
                        rig.sent_len = 0;
                        rig.log_len = 0;
                }
                if (r != -EPROTO && !h2_client_is_over(rig.h))
                        print_error("%s: %d taken\n", rows[i].why, n);
                assert_true(r == -EPROTO || h2_client_is_over(rig.h));
                teardown(state);
        }
}

static void test_ping_answers_nobody_takes_are_bounded(void **state) {
        int r = 0;

        (void)state;
        for (int i = 0; i < 300 && r == 0; i++) {
                frame_put(&rig.in, FRAME_PING, 0, 0, SPAN("12345678"));
                r = feed();
        }
        assert_int_equal(r, -EPROTO);
}

/* All in one millisecond: it is the calls that pay, not the time. */
static void test_honest_traffic_is_no_flood(void **state) {
        (void)state;
        for (int i = 0; i < 20000; i++) {
                submit(&calls[0], get("GET"));
                put_out();
                rig.sent_len = 0;
                if (i % 100 == 0) {
                        frame_rst(&rig.in, calls[0].stream, REFUSED_STREAM);
                } else {
                        frame_head(&rig.in, calls[0].stream, 103, -1, false);
                        frame_window(&rig.in, 0, 20);
                        frame_window(&rig.in, calls[0].stream, 20);
                        frame_head(&rig.in, calls[0].stream, 200, 2, false);
                        frame_text(&rig.in, calls[0].stream, "", false);
                        frame_text(&rig.in, calls[0].stream, "ok", true);
                        frame_put(&rig.in, FRAME_PING, 0, 0, SPAN("12345678"));
                }
                turn();
                rig.log_len = 0;
        }
        assert_false(h2_client_is_over(rig.h));
}

static void test_damaged_bytes_do_no_harm(void **state) {
        unsigned seed = 1;

        for (int round = 0; round < 3000; round++) {
                int r = 0;

                assert_int_equal(setup(state), 0);
                submit_gets(4);
                put_out();
                frame_head(&rig.in, 1, 200, 5, false);
                frame_text(&rig.in, 1, "hello", true);
                frame_put(&rig.in, FRAME_HEADERS, 0, 3, SPAN("\x88\x00\x01t\x01v"));
                frame_put(&rig.in, FRAME_CONTINUATION, FRAME_END_HEADERS, 3,
                          SPAN("\x00\x01u\x01w"));
                frame_put(&rig.in, FRAME_DATA, FRAME_PADDED | FRAME_END, 3, SPAN("\2ab\0\0"));
                frame_rst(&rig.in, 5, 2);
                frame_goaway(&rig.in, 7, 0);
                frame_head(&rig.in, 7, 304, -1, true);
                for (int k = 0; k < 1 + round % 4; k++) {
                        seed = seed * 1103515245u + 12345u;
                        rig.in.data[(seed >> 8) % rig.in.len] = (char)(seed >> 24);
                }
                /* In two parts, each in memory of its own size. */
                for (size_t at = 0, n; at < rig.in.len && r == 0; at += n) {
                        n = at ? rig.in.len - at : (seed >> 4) % rig.in.len + 1;

                        char *part = malloc(n);

                        memcpy(part, rig.in.data + at, n);
                        r = h2_client_feed(rig.h, (struct span){part, n}, 0);
                        take_events();
                        free(part);
                        put_out();
                        take_events();
                }
                teardown(state);
        }
        assert_int_equal(setup(state), 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_head_over_the_ceiling_is_malformed_and_reset),
                T(test_stalled_call_does_not_eat_the_connections_window),
                T(test_peer_that_oversteps_the_window_is_cut_off),
                cmocka_unit_test(test_connection_errors_end_the_session),
                cmocka_unit_test(test_floods_end_the_connection),
                T(test_ping_answers_nobody_takes_are_bounded),
                T(test_honest_traffic_is_no_flood),
                cmocka_unit_test_teardown(test_damaged_bytes_do_no_harm, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
