#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/h2_repeat.h"
#include "tests/unit/h2_peer.h"

static int setup(void **state) {
        (void)peer_setup(state);
        peer->mode = PEER_HOLD;
        return 0;
}

static void test_only_blocks_that_change_no_table_are_pure(void **state) {
        static const struct {
                struct span block;
                bool is_pure;
                const char *why;
        } rows[] = {
                {SPAN(""), true, "empty"},
                {SPAN("\x82\x87\x84\xbe"), true, "indexed"},
                {SPAN("\xff\x05"), true, "indexed, long number"},
                {SPAN("\xff"), false, "number cut off"},
                {SPAN("\xff\x80\x80\x80\x80\x01"), false, "number too long"},
                {SPAN("\x04\x02/a"), true, "literal not added, name indexed"},
                {SPAN("\x14\x02/a"), true, "literal never added"},
                {SPAN("\x00\x01x\x01y"), true, "literal not added, new name"},
                {SPAN("\x0f\x0d\x01y"), true, "literal, long index"},
                {SPAN("\x00\x01x\x02y"), false, "value cut off"},
                {SPAN("\x00\x01"), false, "name cut off"},
                {SPAN("\x04"), false, "no value"},
                {SPAN("\x44\x02/a"), false, "added to the table"},
                {SPAN("\x40\x01x\x01y"), false, "added with its name"},
                {SPAN("\x20"), false, "table resized"},
                {SPAN("\x3f\xe1\x1f"), false, "table resized, long number"},
                {SPAN("\x82\x44\x02/a"), false, "added behind an indexed one"},
        };
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                if (h2_block_is_pure(rows[i].block) != rows[i].is_pure)
                        fail_msg("%s", rows[i].why);
        }
}

/* ---- one connection ---- */

static void request(int32_t id, struct span block, unsigned flags) {
        frame_put(&peer->to, FRAME_HEADERS, FRAME_END_HEADERS | flags, id, block);
        peer_turn(peer);
        assert_int_equal(peer->fed, 0);
}

static struct span path_of_last(void) {
        return peer->held[peer->n_held - 1]->head.request.path;
}

/* GET https a and whatever stands newest in the table. */
#define NEWEST                                                                                     \
        "\x82\x87\x01\x01"                                                                         \
        "a\xbe"

static void path_add(const char *value) {
        static char block[64];
        size_t n = strlen(value);
        memcpy(block,
               "\x82\x87\x01\x01"
               "a\x44",
               6);
        block[6] = (char)n;
        memcpy(block + 7, value, n);
        request(2 * (int32_t)peer->n_held + 1, (struct span){block, 7 + n}, FRAME_END);
}

static void test_the_same_block_means_what_the_table_says_now(void **state) {
        (void)state;
        path_add("/one");
        for (int i = 0; i < 5; i++) {
                request(2 * (int32_t)peer->n_held + 1, SPAN(NEWEST), FRAME_END);
                assert_true(span_eq(path_of_last(), SPAN("/one")));
        }
        assert_non_null(peer->held[4]->repeat);
        path_add("/two");
        for (int i = 0; i < 5; i++) {
                request(2 * (int32_t)peer->n_held + 1, SPAN(NEWEST), FRAME_END);
                assert_true(span_eq(path_of_last(), SPAN("/two")));
        }
        assert_non_null(peer->held[10]->repeat);
        assert_true(span_eq(peer->held[4]->head.request.path, SPAN("/one")));
}

static void test_a_block_in_pieces_ends_the_memory(void **state) {
        (void)state;
        path_add("/one");
        for (int i = 0; i < 4; i++)
                request(2 * (int32_t)peer->n_held + 1, SPAN(NEWEST), FRAME_END);
        int32_t id = 2 * (int32_t)peer->n_held + 1;
        frame_put(&peer->to, FRAME_HEADERS, FRAME_END, id, SPAN("\x82\x87\x01\x01"));
        frame_put(&peer->to, FRAME_CONTINUATION, FRAME_END_HEADERS, id, SPAN("a\x44\x04/two"));
        peer_turn(peer);
        assert_true(span_eq(path_of_last(), SPAN("/two")));
        request(id + 2, SPAN(NEWEST), FRAME_END);
        assert_true(span_eq(path_of_last(), SPAN("/two")));
        assert_null(peer->held[peer->n_held - 1]->repeat);
}

static void test_a_block_with_a_body_behind_it_is_no_repeat(void **state) {
        (void)state;
        path_add("/one");
        for (int i = 0; i < 4; i++)
                request(2 * (int32_t)peer->n_held + 1, SPAN(NEWEST), FRAME_END);
        request(2 * (int32_t)peer->n_held + 1, SPAN(NEWEST), 0);
        struct http_stream *st = peer->held[peer->n_held - 1];
        assert_null(st->repeat);
        assert_true(st->head.request.has_body);
        assert_false(st->received_end);
        request(st->id, SPAN(NEWEST), FRAME_END); /* as trailers: malformed */
        assert_int_equal(peer->gone, 1);
}

static void test_a_head_that_is_refused_is_not_kept(void **state) {
        (void)state;
        for (int i = 0; i < 5; i++) {
                request(2 * i + 1, SPAN("\x82\x87\x01\x01@\x84"), FRAME_END);
                assert_int_equal(peer->outcome, HTTP_HEAD_MALFORMED);
                assert_null(peer->held[i]->repeat);
        }
}

/* ---- a loop's ---- */

static void test_the_oldest_makes_room(void **state) {
        struct pool *pool = pool_new();
        struct metrics_counter evicted = {0};
        struct h2_repeats *all = h2_repeats_new(pool, 2, &evicted);
        struct arena arena;
        struct http_head head;
        struct h2_repeat *slots[3] = {NULL};
        struct http_head got;
        (void)state;
        arena_init(&arena, pool);
        http_head_init(&head);
        const char *fields[][2] = {{":method", "GET"},
                                   {":scheme", "https"},
                                   {":authority", "a"},
                                   {":path", "/p"},
                                   {"accept", "text/html"}};
        const struct http_head_limits limits = {.fields = 10, .bytes = 1000};
        for (size_t i = 0; i < NET_COUNT_OF(fields); i++) {
                struct http_field_seen f =
                        http_field_see(span_of(fields[i][0]), span_of(fields[i][1]));
                http_head_add(&head, &arena, &limits, &f);
        }
        assert_int_equal(http_head_end(&head, &arena, true, false), HTTP_HEAD_GOOD);
        h2_repeat_keep(all, &slots[0], SPAN("0"), &head);
        h2_repeat_keep(all, &slots[1], SPAN("1"), &head);
        struct h2_repeat *used = h2_repeat_take(slots[0], &got);
        h2_repeat_keep(all, &slots[2], SPAN("2"), &head);
        assert_null(slots[0]);
        assert_int_equal(metrics_read(&evicted), 1);
        assert_true(h2_repeat_is(slots[1], SPAN("1")) && h2_repeat_is(slots[2], SPAN("2")));
        arena_fini(&arena);
        assert_true(span_eq(got.request.path, SPAN("/p")));
        assert_true(
                span_eq(http_request_field(&got.request, HTTP_FIELD_ACCEPT), SPAN("text/html")));
        h2_repeat_free(&used);
        h2_repeat_forget(&slots[1]);
        h2_repeat_forget(&slots[2]);
        h2_repeats_free(&all);
        pool_free(&pool);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, peer_teardown)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_only_blocks_that_change_no_table_are_pure),
                T(test_the_same_block_means_what_the_table_says_now),
                T(test_a_block_in_pieces_ends_the_memory),
                T(test_a_block_with_a_body_behind_it_is_no_repeat),
                T(test_a_head_that_is_refused_is_not_kept),
                cmocka_unit_test(test_the_oldest_makes_room),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
