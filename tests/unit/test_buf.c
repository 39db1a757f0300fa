#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/buf.h"

static void test_content_is_what_was_written_and_not_eaten(void **state) {
        struct buf b;
        unsigned next_in = 0, next_out = 0, seed = 7;

        (void)state;
        buf_init(&b, 5000);
        for (int i = 0; i < 20000; i++) {
                unsigned char run[700];
                size_t n;

                seed = seed * 1103515245u + 12345u;
                n = (seed >> 16) % sizeof(run);
                if (seed & 0x40000000u) {
                        for (size_t k = 0; k < n; k++)
                                run[k] = (unsigned char)(next_in + k);
                        if (buf_len(&b) + n > 5000) {
                                assert_int_equal(buf_append(&b, run, n), -ENOBUFS);
                                continue;
                        }
                        assert_int_equal(buf_append(&b, run, n), 0);
                        next_in += (unsigned)n;
                } else {
                        if (n > buf_len(&b))
                                n = buf_len(&b);

                        struct span s = buf_span(&b);

                        for (size_t k = 0; k < n; k++)
                                assert_int_equal((unsigned char)s.p[k],
                                                 (unsigned char)(next_out + k));
                        buf_eat(&b, n);
                        next_out += (unsigned)n;
                }
                assert_int_equal(buf_len(&b), next_in - next_out);
                assert_true(b.size <= 5000 + 5000 / 3);
        }
        buf_fini(&b);
}

static void test_ceiling_is_exact(void **state) {
        struct buf b;
        char data[101] = {0};
        char *where;

        (void)state;
        buf_init(&b, 100);
        assert_int_equal(buf_append(&b, data, 101), -ENOBUFS);
        assert_int_equal(buf_append(&b, data, 100), 0);
        assert_int_equal(buf_reserve(&b, 1, &where), -ENOBUFS);
        assert_int_equal(buf_append(&b, data, 0), 0);
        buf_eat(&b, 1);
        assert_int_equal(buf_append(&b, data, 1), 0);
        buf_fini(&b);
}

static void test_reserve_then_commit_less(void **state) {
        struct buf b;
        char *where;

        (void)state;
        buf_init(&b, SIZE_MAX);
        assert_int_equal(buf_reserve(&b, 10, &where), 0);
        memcpy(where, "abc", 3);
        buf_commit(&b, 3);
        assert_int_equal(buf_append(&b, "d", 1), 0);
        assert_true(span_eq(buf_span(&b), SPAN("abcd")));
        buf_fini(&b);
}

static void test_release_gives_memory_back_and_keeps_the_ceiling(void **state) {
        struct buf b;

        (void)state;
        buf_init(&b, 10);
        assert_int_equal(buf_append(&b, "0123456789", 10), 0);
        buf_release(&b);
        assert_null(b.data);
        assert_int_equal(buf_len(&b), 0);
        assert_non_null(buf_span(&b).p);
        assert_int_equal(buf_append(&b, "01234567890", 11), -ENOBUFS);
        assert_int_equal(buf_append(&b, "x", 1), 0);
        buf_fini(&b);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_content_is_what_was_written_and_not_eaten),
                cmocka_unit_test(test_ceiling_is_exact),
                cmocka_unit_test(test_reserve_then_commit_less),
                cmocka_unit_test(test_release_gives_memory_back_and_keeps_the_ceiling),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
