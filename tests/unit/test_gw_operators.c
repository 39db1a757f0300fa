/* The operators' token file: names, tokens, and what is no such file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gateway/operators.h"

static char path[64];

static int read_text(struct gw_operators *o, const char *text, char *why, size_t cap) {
        (void)snprintf(path, sizeof(path), "/tmp/gw-operators-XXXXXX");
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        assert_int_equal(close(fd), 0);
        int r = gw_operators_read(o, path, why, cap);
        assert_int_equal(unlink(path), 0);
        return r;
}

static void test_each_token_has_its_name(void **state) {
        (void)state;
        struct gw_operators o, moved;
        char why[256];
        assert_int_equal(read_text(&o, "first\r\n\nanna second\nbob third\n", why, sizeof(why)), 0);
        gw_operators_take(&moved, &o);
        assert_int_equal(o.count, 0);
        static const struct {
                const char *token, *name;
        } rows[] = {
                {"first", "operator"}, {"second", "anna"},    {"third", "bob"}, {"secon", NULL},
                {"secondx", NULL},     {"anna second", NULL}, {"", NULL},       {"fourth", NULL},
        };
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                const struct gw_operator *one = gw_operators_find(&moved, span_of(rows[i].token));
                if (!rows[i].name != !one)
                        fail_msg("%s", rows[i].token);
                if (one)
                        assert_true(span_eq(one->name, span_of(rows[i].name)));
        }
        gw_operators_fini(&moved);
        assert_null(gw_operators_find(&moved, SPAN("first")));
}

static void test_what_is_no_token_file_is_told_by_its_line(void **state) {
        (void)state;
        static const struct {
                const char *text, *told, *why;
        } rows[] = {
                {"", "No data", "empty"},
                {"\n\n", "expected a token", "only empty lines"},
                {"good\nanna two words\n", ":2:", "a blank in the token"},
                {"anna \n", ":1:", "a name alone"},
                {" token\n", ":1:", "a token without its name"},
                {"an\"na token\n", ":1:", "a name no audit takes"},
                {"caf\xc3\xa9\n", ":1:", "not ASCII"},
                {"tab\there\n", ":1:", "a control character"},
                {"0123456789012345678901234567890123456789012345678901234567890123x t\n",
                 ":1:", "a name too long"},
        };
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct gw_operators o;
                char why[256] = "";
                if (read_text(&o, rows[i].text, why, sizeof(why)) != 1 ||
                    !strstr(why, rows[i].told))
                        fail_msg("%s: %s", rows[i].why, why);
                assert_null(strstr(why, "words"));
        }
}

static void test_there_is_an_end_to_operators(void **state) {
        (void)state;
        struct gw_operators o;
        char text[1024] = "", why[256];
        for (int i = 0; i < GW_OPERATORS_MAX; i++)
                (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "t%d\n", i);
        assert_int_equal(read_text(&o, text, why, sizeof(why)), 0);
        assert_non_null(gw_operators_find(&o, SPAN("t31")));
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "more\n");
        assert_int_equal(read_text(&o, text, why, sizeof(why)), 1);
        assert_non_null(strstr(why, ":33:"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_token_has_its_name),
                cmocka_unit_test(test_what_is_no_token_file_is_told_by_its_line),
                cmocka_unit_test(test_there_is_an_end_to_operators),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
