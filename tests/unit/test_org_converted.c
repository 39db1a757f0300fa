#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "origin/converted.h"

static bool add(struct org_converted *c, const char *hold, long end_ms, uint64_t number) {
        char json[96];
        int n = snprintf(json, sizeof(json), "{\"hold\":\"%s\",\"hold_end_ms\":%ld}", hold, end_ms);

        return org_converted_add(c, span_of(hold), (struct span){json, (size_t)n}, number);
}

static void assert_told(const struct org_converted *c, uint64_t after, const char *text) {
        struct buf b;

        buf_init(&b, 1 << 20);
        assert_int_equal(org_converted_write(c, after, &b), 0);
        assert_int_equal(buf_len(&b), strlen(text));
        if (buf_len(&b) > 0)
                assert_memory_equal(buf_span(&b).p, text, strlen(text));
        buf_fini(&b);
}

static void test_each_is_told_once_to_those_who_have_not_heard(void **state) {
        struct org_converted c;

        (void)state;
        assert_int_equal(org_converted_init(&c), 0);
        assert_true(add(&c, "a", 10, 1));
        assert_true(add(&c, "b", 20, 2));
        assert_false(add(&c, "a", 10, 3));
        assert_told(&c, 0,
                    "{\"hold\":\"a\",\"hold_end_ms\":10},{\"hold\":\"b\",\"hold_end_ms\":20}");
        assert_told(&c, 1, "{\"hold\":\"b\",\"hold_end_ms\":20}");
        assert_told(&c, 2, "");
        org_converted_fini(&c);
}

static void test_a_new_word_of_an_old_hold_is_news(void **state) {
        struct org_converted c;

        (void)state;
        assert_int_equal(org_converted_init(&c), 0);
        assert_true(add(&c, "a", 10, 1));
        assert_true(add(&c, "a", 15, 2));
        assert_false(add(&c, "a", 15, 3));
        assert_told(&c, 1, "{\"hold\":\"a\",\"hold_end_ms\":15}");
        org_converted_fini(&c);
}

static void test_the_old_are_forgotten_ten_minutes_past_their_end(void **state) {
        struct org_converted c;

        (void)state;
        assert_int_equal(org_converted_init(&c), 0);
        assert_true(add(&c, "a", 1000, 1));
        assert_true(add(&c, "b", 2000, 1));
        org_converted_forget(&c, 1000 + ORG_CONVERTED_KEEP_MS);
        assert_int_equal(c.count, 2);
        org_converted_forget(&c, 1001 + ORG_CONVERTED_KEEP_MS);
        assert_int_equal(c.count, 1);
        assert_told(&c, 0, "{\"hold\":\"b\",\"hold_end_ms\":2000}");
        org_converted_forget(&c, INT64_MAX);
        assert_int_equal(c.count, 0);
        assert_true(add(&c, "c", 1, 2));
        org_converted_fini(&c);
}

static void test_the_ceiling_drops_the_oldest(void **state) {
        struct org_converted c;
        char name[24];

        (void)state;
        assert_int_equal(org_converted_init(&c), 0);
        for (int i = 0; i < ORG_CONVERTED_MAX + 5; i++) {
                (void)snprintf(name, sizeof(name), "h%d", i);
                assert_true(add(&c, name, i, (uint64_t)i + 1));
        }
        assert_int_equal(c.count, ORG_CONVERTED_MAX);
        assert_true(add(&c, "h0", 0, 9));
        assert_false(add(&c, "h100004", 100004, 9));
        org_converted_fini(&c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_is_told_once_to_those_who_have_not_heard),
                cmocka_unit_test(test_a_new_word_of_an_old_hold_is_news),
                cmocka_unit_test(test_the_old_are_forgotten_ten_minutes_past_their_end),
                cmocka_unit_test(test_the_ceiling_drops_the_oldest),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
