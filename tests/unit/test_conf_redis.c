/* conf/redis.h: what an address may look like, and what it may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conf/redis.h"

static void test_what_is_taken(void **state) {
        static const struct {
                const char *why, *text, *host, *user, *password;
                uint32_t port, database;
        } rows[] = {
                {"a host alone", "redis://cache", "cache", "", "", 6379, 0},
                {"a port", "redis://10.0.0.1:7000", "10.0.0.1", "", "", 7000, 0},
                {"a database", "redis://h:1/15", "h", "", "", 1, 15},
                {"an end without one", "redis://h/", "h", "", "", 6379, 0},
                {"IPv6", "redis://[::1]:65535/2", "::1", "", "", 65535, 2},
                {"IPv6 without a port", "redis://[fe80::1]", "fe80::1", "", "", 6379, 0},
                {"a password", "redis://:s3cret@h", "h", "", "s3cret", 6379, 0},
                {"user and password", "redis://u:p@h:2", "h", "u", "p", 2, 0},
                {"encoded", "redis://u%3A:%40%2f%25:x@h", "h", "u:", "@/%:x", 6379, 0},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct conf_redis out;

                print_message("%s\n", rows[i].why);
                assert_null(conf_redis_parse(rows[i].text, &out));
                assert_string_equal(out.host, rows[i].host);
                assert_string_equal(out.user, rows[i].user);
                assert_string_equal(out.password, rows[i].password);
                assert_int_equal(out.port, rows[i].port);
                assert_int_equal(out.database, rows[i].database);
        }
}

static void test_what_is_not(void **state) {
        static const char *const rows[] = {
                "",
                "redis",
                "redis://",
                "rediss://h",
                "http://h",
                "redis://h:",
                "redis://h:0",
                "redis://h:65536",
                "redis://:1",
                "redis://h:1x",
                "redis://u@h",
                "redis://u:@h",
                "redis://h/x",
                "redis://h/10000",
                "redis://[::1",
                "redis://[::1]x",
                "redis://[]",
                "redis://:%4@h",
                "redis://:%00@h",
                "redis://:a@b@h:1",
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct conf_redis out;
                const char *why = conf_redis_parse(rows[i], &out);

                print_message("%s\n", rows[i]);
                assert_non_null(why);
                assert_non_null(strstr(why, "expected redis://"));
        }
}

static void test_what_does_not_fit_is_refused(void **state) {
        char text[600] = "redis://:";
        struct conf_redis out;

        (void)state;
        memset(text + 9, 'p', 255);
        memcpy(text + 9 + 255, "@h", 3);
        assert_null(conf_redis_parse(text, &out));
        assert_int_equal(strlen(out.password), 255);
        memcpy(text + 9 + 255, "p@h", 4);
        assert_non_null(conf_redis_parse(text, &out));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_taken),
                cmocka_unit_test(test_what_is_not),
                cmocka_unit_test(test_what_does_not_fit_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
