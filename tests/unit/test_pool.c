#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/pool.h"
#include "net/random.h"

#define PIECES 4096

static void test_pieces_are_distinct_and_keep_their_bytes(void **state) {
        (void)state;
        static unsigned char *pieces[PIECES];
        static size_t sizes[PIECES];
        struct pool *p = pool_new();
        struct random_fast r;
        random_fast_init(&r, 1);
        for (int round = 0; round < 200000; round++) {
                size_t i = random_fast_below(&r, PIECES);
                unsigned char mark = (unsigned char)i;
                if (pieces[i]) {
                        assert_int_equal(pieces[i][0], mark);
                        assert_int_equal(pieces[i][sizes[i] - 1], mark);
                        pool_give(p, pieces[i]);
                        pieces[i] = NULL;
                        continue;
                }
                sizes[i] = 1 + random_fast_below(&r, round % 50 ? 600 : 40000);
                pieces[i] = pool_take(p, sizes[i]);
                assert_int_equal((uintptr_t)pieces[i] % 16, 0);
                memset(pieces[i], mark, sizes[i]);
                if (round % 1000 == 0)
                        pool_trim(p);
                if (round % 100 == 0)
                        (void)pool_trim_some(p);
        }
        for (size_t i = 0; i < PIECES; i++)
                pool_give(p, pieces[i]);
        pool_free(&p);
}

static void test_a_resized_piece_keeps_its_bytes(void **state) {
        (void)state;
        struct pool *p = pool_new();
        char *piece = pool_resize(p, NULL, 10);
        memcpy(piece, "0123456789", 10);
        for (size_t n = 20; n < 200000; n *= 2) {
                piece = pool_resize(p, piece, n);
                assert_memory_equal(piece, "0123456789", 10);
                piece[n - 1] = 'x';
        }
        pool_give(p, piece);
        pool_free(&p);
}

static void test_arena_pieces_die_together(void **state) {
        (void)state;
        struct pool *p = pool_new();
        struct arena a;
        arena_init(&a, p);
        for (size_t n = 1; n < 20000; n = n * 3 / 2 + 1) {
                char *piece = arena_take(&a, n);
                assert_int_equal((uintptr_t)piece % 8, 0);
                memset(piece, 1, n);
        }
        struct span copy = arena_copy(&a, SPAN("text"));
        assert_true(span_eq(copy, SPAN("text")));
        assert_non_null(arena_copy(&a, SPAN("")).p);
        arena_fini(&a);
        pool_free(&p);
}

static void test_memory_goes_back_when_it_is_not_needed(void **state) {
        (void)state;
        static void *pieces[20000];
        struct pool *p = pool_new();
        for (size_t i = 0; i < NET_COUNT_OF(pieces); i++)
                pieces[i] = pool_take(p, 1000);
        size_t most = pool_bytes(p);
        for (size_t i = 0; i < NET_COUNT_OF(pieces); i++)
                pool_give(p, pieces[i]);
        pool_trim(p);
        pool_trim(p);
        size_t n = 0; /* little at a time, or a loop would stand still */
        while (pool_trim_some(p))
                n++;
        assert_true(most == 0 || n > most / (1 << 20)); /* 0: a sanitizer has it */
        assert_true(pool_bytes(p) <= most / 50);
        pieces[0] = pool_take(p, 1000); /* and can be taken again */
        memset(pieces[0], 1, 1000);
        pool_give(p, pieces[0]);
        pool_free(&p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pieces_are_distinct_and_keep_their_bytes),
                cmocka_unit_test(test_a_resized_piece_keeps_its_bytes),
                cmocka_unit_test(test_arena_pieces_die_together),
                cmocka_unit_test(test_memory_goes_back_when_it_is_not_needed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
