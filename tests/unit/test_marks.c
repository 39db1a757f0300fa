/* The array of marks: who is awake, ranks, frontier, old marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "adm_world.h"
#include "admission/line.h"

struct bare {
        struct adm_line_head head;
        struct adm_line line;
};

static void bare_open(struct bare *b, uint32_t capacity) {
        *b = (struct bare){.line = {.capacity = capacity}};
        b->line.h = &b->head;
        b->line.marks = calloc(2 * (size_t)capacity, sizeof(b->line.marks[0]));
        b->line.live = calloc(2 * (size_t)capacity / ADM_LINE_BLOCK, sizeof(b->line.live[0]));
        assert_non_null(b->line.marks);
        assert_non_null(b->line.live);
}

static void bare_close(struct bare *b) {
        free((void *)b->line.marks);
        free(b->line.live);
}

static void test_marks_are_live_exactly_until_skip_after_promise(void **state) {
        (void)state;
        for (int64_t base = WORLD_T0; base < WORLD_T0 + 20000000; base += 777777) {
                struct bare b;
                bare_open(&b, 1024);
                adm_line_prepare(&b.line, base + 2500);
                adm_line_give(&b.line, base);
                uint16_t m = adm_line_mark(&b.line, 1024);
                assert_true(adm_awake_is(adm_line_awake(base, 15), m));
                assert_true(adm_awake_is(adm_line_awake(base + 17500, 15), m));
                assert_false(adm_awake_is(adm_line_awake(base + 18251, 15), m));
                assert_false(adm_awake_is(adm_line_awake(base + 600000, 15), m));
                assert_false(adm_awake_is(adm_line_awake(base + 9000000, 15), m));
                assert_in_range(adm_mark_ahead_ms(m, base), 2500, 3251);
                bare_close(&b);
        }
}

static void test_refresh_needs_a_live_mark(void **state) {
        (void)state;
        struct bare b;
        bare_open(&b, 1024);
        struct adm_awake a = adm_line_awake(WORLD_T0, 15);
        adm_line_prepare(&b.line, 0);
        adm_line_give(&b.line, WORLD_T0);
        assert_false(adm_line_refresh(&b.line, 1024, WORLD_T0 + 2500, a));
        adm_line_touch(&b.line, 1024, WORLD_T0 + 1000, a);
        assert_true(adm_line_refresh(&b.line, 1024, WORLD_T0 + 2500, a));
        adm_line_serve(&b.line, 1024, a);
        adm_line_serve(&b.line, 1024, a);
        assert_int_equal(b.head.gone, 1);
        assert_false(adm_line_refresh(&b.line, 1024, WORLD_T0 + 2500, a));
        adm_line_restore(&b.line, 1024, WORLD_T0 - 20000);
        adm_line_restore(&b.line, 1024, WORLD_T0 - 20000);
        assert_int_equal(b.head.gone, 0);
        assert_false(adm_line_refresh(&b.line, 1024, WORLD_T0 + 2500, a));
        bare_close(&b);
}

/* Rank and frontier against a plain count. */
static void test_rank_and_frontier_match_a_plain_count(void **state) {
        (void)state;
        struct bare b;
        struct world seed = {.seed = 7};
        const uint32_t n = 5000, capacity = 8192;
        bare_open(&b, capacity);
        struct adm_awake a = adm_line_awake(WORLD_T0, 15);
        for (uint32_t i = 0; i < 3000; i++) {
                uint32_t at = (uint32_t)world_random(&seed) % 3000;
                adm_line_admit_old(&b.line, at);
                adm_line_touch(&b.line, at, WORLD_T0 + 2500, a);
        }
        for (uint32_t i = 0; i < n; i++) {
                adm_line_prepare(&b.line,
                                 world_random(&seed) % 3 ? WORLD_T0 + 2500 : WORLD_T0 - 60000);
                adm_line_give(&b.line, WORLD_T0 - 60000);
        }
        uint32_t all = adm_line_recount(&b.line, a);
        uint32_t count = 0;
        for (uint32_t at = 0; at < capacity + n; at++) {
                if (at % 97 == 0)
                        assert_int_equal(adm_line_rank(&b.line, at, a), count);
                count += adm_awake_is(a, adm_line_mark(&b.line, at));
        }
        assert_int_equal(all, count);
        for (uint32_t room = 0; room <= all + 3; room += 113) {
                struct adm_frontier f = adm_line_frontier(&b.line, room, WORLD_T0, a);
                uint32_t below = f.end == ADM_LINE_NONE ? all : adm_line_rank(&b.line, f.end, a);
                assert_int_equal(f.live, below);
                assert_true(below <= room);
                if (room < all)
                        assert_int_equal(below, room);
        }
        assert_int_equal(adm_line_frontier(&b.line, all, WORLD_T0, a).end, capacity + n);
        assert_int_equal(adm_line_frontier(&b.line, all + 1, WORLD_T0, a).end, ADM_LINE_NONE);
        bare_close(&b);
}

static void test_sweep_wipes_old_marks_before_they_wrap(void **state) {
        (void)state;
        struct bare b;
        bare_open(&b, 4096);
        struct adm_awake a = adm_line_awake(WORLD_T0, 15);
        for (int i = 0; i < 3000; i++) {
                adm_line_prepare(&b.line, WORLD_T0 + 2500);
                adm_line_give(&b.line, WORLD_T0);
        }
        adm_line_serve(&b.line, 4096 + 5, a);
        for (int64_t t = 0; t < 20000000; t += 60000) {
                adm_line_sweep(&b.line, WORLD_T0 + t);
                uint32_t live = adm_line_recount(&b.line, adm_line_awake(WORLD_T0 + t, 15));
                assert_int_equal(live, t == 0 ? 2999 : 0);
        }
        assert_int_equal(adm_line_mark(&b.line, 4096 + 4), ADM_MARK_NEVER);
        assert_int_equal(adm_line_mark(&b.line, 4096 + 5), ADM_MARK_GONE);
        adm_line_touch(&b.line, 4096, WORLD_T0 + 20000000, adm_line_awake(WORLD_T0, 15));
        adm_line_silence(&b.line);
        assert_int_equal(adm_line_mark(&b.line, 4096), ADM_MARK_NEVER);
        assert_int_equal(adm_line_mark(&b.line, 4096 + 5), ADM_MARK_GONE);
        bare_close(&b);
}

static void test_index_is_of_numbers_that_exist(void **state) {
        (void)state;
        struct bare b;
        bare_open(&b, 1024);
        adm_line_prepare(&b.line, WORLD_T0);
        adm_line_give(&b.line, WORLD_T0);
        assert_int_equal(adm_line_index(&b.line, 0, false), ADM_LINE_NONE);
        assert_int_equal(adm_line_index(&b.line, 1, false), 1024);
        assert_int_equal(adm_line_index(&b.line, 2, false), ADM_LINE_NONE);
        assert_int_equal(adm_line_index(&b.line, 2, true), 1);
        assert_int_equal(adm_line_index(&b.line, 1025, true), ADM_LINE_NONE);
        bare_close(&b);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_marks_are_live_exactly_until_skip_after_promise),
                cmocka_unit_test(test_refresh_needs_a_live_mark),
                cmocka_unit_test(test_rank_and_frontier_match_a_plain_count),
                cmocka_unit_test(test_sweep_wipes_old_marks_before_they_wrap),
                cmocka_unit_test(test_index_is_of_numbers_that_exist),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
