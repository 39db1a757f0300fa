#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "loadgen/inversions.h"
#include "loadgen/plan.h"

#define N LG_NEVER

/* The definition, word by word, in n² steps. */
static int64_t count_slowly(const struct lg_trace *t, size_t n) {
        int64_t pairs = 0;
        for (size_t a = 0; a < n; a++) {
                for (size_t b = 0; b < n; b++) {
                        if (t[a].ticket_us == N || t[a].last_waiting_us == N ||
                            t[b].joined_us == N || t[b].admitted_us == N)
                                continue;
                        pairs += t[b].joined_us > t[a].ticket_us &&
                                 t[a].last_waiting_us > t[b].admitted_us;
                }
        }
        return pairs;
}

static void test_each_clause_of_the_definition(void **state) {
        (void)state;
        static const struct {
                struct lg_trace a, b;
                int64_t pairs;
                const char *why;
        } rows[] = {
                {{1, 2, N, 9}, {3, 4, 5, N}, 1, "A waited on after B was served"},
                {{1, 2, 8, 9}, {3, 4, 5, N}, 1, "that A was served later is no excuse"},
                {{1, 2, N, 5}, {3, 4, 5, N}, 0, "A asked in the instant B was told"},
                {{1, 2, N, 4}, {3, 4, 5, N}, 0, "A asked before B was told"},
                {{1, 3, N, 9}, {3, 4, 5, N}, 0, "B joined in the instant A was told"},
                {{1, 4, N, 9}, {3, 4, 5, N}, 0, "B joined before A had its ticket"},
                {{1, 2, N, N}, {3, 4, 5, N}, 0, "A was never told to wait"},
                {{1, N, N, 9}, {3, 4, 5, N}, 0, "A never had a ticket"},
                {{1, 2, N, 9}, {3, 4, N, N}, 0, "B was never served"},
                {{N, N, N, N}, {N, N, N, N}, 0, "nobody came"},
        };
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct lg_trace pair[2] = {rows[i].a, rows[i].b};
                if (lg_inversions_count(pair, 2) != rows[i].pairs)
                        fail_msg("%s", rows[i].why);
                assert_int_equal(count_slowly(pair, 2), rows[i].pairs);
        }
}

static void test_nobody_at_all(void **state) {
        (void)state;
        assert_int_equal(lg_inversions_count(NULL, 0), 0);
}

static void test_an_honest_line_has_none(void **state) {
        (void)state;
        struct lg_trace t[500];
        for (int i = 0; i < 500; i++)
                t[i] = (struct lg_trace){i * 10, i * 10 + 5, 10000 + i, 9999 + i};
        assert_int_equal(lg_inversions_count(t, 500), 0);
}

static void test_the_last_served_first_overtakes_everyone(void **state) {
        (void)state;
        struct lg_trace t[500];
        for (int i = 0; i < 500; i++)
                t[i] = (struct lg_trace){i * 10, i * 10 + 5, N, 20000};
        t[499].admitted_us = 10000;
        assert_int_equal(lg_inversions_count(t, 500), 499);
}

static void test_sweep_agrees_with_the_definition(void **state) {
        (void)state;
        for (uint64_t seed = 0; seed < 300; seed++) {
                struct lg_trace t[60];
                size_t n = 1 + seed % 60;
                for (size_t i = 0; i < n; i++) {
                        int64_t at[4];
                        for (uint64_t k = 0; k < 4; k++) {
                                uint64_t h = lg_plan_hash(seed, i, k);
                                at[k] = h % 9 == 0 ? N : (int64_t)(h >> 8) % 40;
                        }
                        t[i] = (struct lg_trace){at[0], at[1], at[2], at[3]};
                        if (at[0] != N && at[1] != N && at[1] < at[0])
                                t[i].ticket_us = at[0];
                }
                if (lg_inversions_count(t, n) != count_slowly(t, n))
                        fail_msg("seed %llu", (unsigned long long)seed);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_clause_of_the_definition),
                cmocka_unit_test(test_nobody_at_all),
                cmocka_unit_test(test_an_honest_line_has_none),
                cmocka_unit_test(test_the_last_served_first_overtakes_everyone),
                cmocka_unit_test(test_sweep_agrees_with_the_definition),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
