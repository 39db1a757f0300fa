#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/http_head.h"

static struct pool *pool;
static struct arena arena;
static struct http_head head;

static const struct http_head_limits plain_limits = {.fields = 100, .bytes = 16384};

static int setup(void **state) {
        (void)state;
        pool = pool_new();
        arena_init(&arena, pool);
        http_head_init(&head);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        arena_fini(&arena);
        pool_free(&pool);
        return 0;
}

static void add_to(const struct http_head_limits *limits, const char *name, const char *value) {
        struct http_field_seen f = http_field_see(span_of(name), span_of(value));
        http_head_add(&head, &arena, limits, &f);
}

static void add(const char *name, const char *value) {
        add_to(&plain_limits, name, value);
}

static const struct {
        const char *method, *scheme, *authority, *host, *path;
        int outcome;
        const char *why;
} targets[] = {
        {"GET", "https", "a.test", NULL, "/", 0, "ordinary"},
        {"GET", "https", "a.test:8443", NULL, "/a/b?c=d//../e", 0, "query is free"},
        {"GET", "https", "[::1]:8443", NULL, "/", 0, "IPv6"},
        {"GET", "https", NULL, "a.test", "/", 0, "Host alone"},
        {"GET", "https", "A.test", "a.TEST", "/", 0, "same but for case"},
        {"get", "https", "a.test", NULL, "/", 0, "the handler says 405"},
        {"GET", "https", "a.test", "b.test", "/", 400, "two hosts"},
        {"GET", "https", "a@b", NULL, "/", 400, "user information"},
        {"GET", "https", "a,b", NULL, "/", 400, "list"},
        {"GET", "https", "a b", NULL, "/", 400, "space"},
        {"GET", "https", "a/b", NULL, "/", 400, "slash"},
        {"GET", "https", "", NULL, "/", 400, "empty"},
        {"GET", "https", NULL, NULL, "/", 400, "no host"},
        {"GET", "http", "a", NULL, "/", 400, "scheme of the other port"},
        {"GET", "javascript", "a", NULL, "/", 400, "odd scheme"},
        {"GET", NULL, "a", NULL, "/", 400, "no scheme"},
        {NULL, "https", "a", NULL, "/", 400, "no method"},
        {"GET", "https", "a", NULL, NULL, 400, "no path"},
        {"GET", "https", "a", NULL, "", 400, "empty path"},
        {"GET", "https", "a", NULL, "a", 400, "no slash"},
        {"GET", "https", "a", NULL, "//a", 400, "two slashes"},
        {"GET", "https", "a", NULL, "/a/../b", 400, "dot segment"},
        {"GET", "https", "a", NULL, "/a/.", 400, "dot segment at the end"},
        {"GET", "https", "a", NULL, "/%2e%2e/a", 400, "escaped dots"},
        {"GET", "https", "a", NULL, "/a%2fb", 400, "escaped slash"},
        {"GET", "https", "a", NULL, "/a%5cb", 400, "escaped backslash"},
        {"GET", "https", "a", NULL, "/a%00", 400, "escaped zero"},
        {"GET", "https", "a", NULL, "/a%2", 400, "broken escape"},
        {"GET", "https", "a", NULL, "/a\\b", 400, "backslash"},
        {"GET", "https", "a", NULL, "/a#b", 400, "fragment"},
        {"GET", "https", "a", NULL, "/a?b#c", 400, "fragment in the query"},
        {"GET", "https", "a", NULL, "/a?\x80", 400, "high byte in the query"},
        {"GET", "https", "a", NULL, "/\xc3\xa4", 400, "high bytes"},
        {"GET", "https", "a", NULL, "/a b", 400, "space"},
        {"GET", "https", "a", NULL, "/...", 0, "three dots are a name"},
        {"CONNECT", NULL, "a:443", NULL, NULL, 405, "tunnel"},
};

static void test_targets_are_judged(void **state) {
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(targets); i++) {
                http_head_init(&head);
                if (targets[i].method)
                        add(":method", targets[i].method);
                if (targets[i].scheme)
                        add(":scheme", targets[i].scheme);
                if (targets[i].authority)
                        add(":authority", targets[i].authority);
                if (targets[i].path)
                        add(":path", targets[i].path);
                if (targets[i].host)
                        add("host", targets[i].host);
                int got = http_head_end(&head, &arena, true, false);
                if (got != targets[i].outcome)
                        fail_msg("%s: %d, not %d", targets[i].why, got, targets[i].outcome);
        }
}

static void add_pseudo(void) {
        add(":method", "POST");
        add(":scheme", "https");
        add(":authority", "a");
        add(":path", "/");
}

static void test_content_length_is_a_number_given_once(void **state) {
        (void)state;
        static const struct {
                const char *text;
                int64_t length; /* -2: malformed */
        } rows[] = {{"0", 0},   {"17", 17}, {"00017", 17}, {"", -2},
                    {"-1", -2}, {"+1", -2}, {"1,1", -2},   {"18446744073709551616", -2}};
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                http_head_init(&head);
                add_pseudo();
                add("content-length", rows[i].text);
                int got = http_head_end(&head, &arena, true, true);
                assert_int_equal(got, rows[i].length == -2 ? 400 : 0);
                if (got == 0)
                        assert_int_equal(head.request.content_length, rows[i].length);
        }
        http_head_init(&head);
        add_pseudo();
        add("content-length", "1");
        add("content-length", "1");
        assert_int_equal(http_head_end(&head, &arena, true, true), 400);
        http_head_init(&head);
        add_pseudo();
        assert_int_equal(http_head_end(&head, &arena, true, true), 0);
        assert_int_equal(head.request.content_length, -1);
        assert_true(head.request.has_body);
}

static void test_unknown_fields_are_kept_only_on_demand(void **state) {
        (void)state;
        struct http_head_limits keep = plain_limits;
        add_pseudo();
        add("x-unknown", "1");
        add("accept", "*/*");
        assert_int_equal(http_head_end(&head, &arena, true, false), 0);
        assert_int_equal(head.request.n_headers, 1);
        http_head_init(&head);
        keep.keep_unknown = true;
        add_pseudo();
        add_to(&keep, "x-unknown", "1");
        add_to(&keep, "x_account", "2");
        add_to(&keep, "accept", "");
        assert_int_equal(http_head_end(&head, &arena, true, false), 0);
        assert_int_equal(head.request.n_headers, 2);
        struct span accept = http_request_field(&head.request, HTTP_FIELD_ACCEPT);
        assert_non_null(accept.p);
        assert_int_equal(accept.len, 0);
        assert_null(http_request_field(&head.request, HTTP_FIELD_COOKIE).p);
}

static void test_crumbs_between_other_fields_are_merged_in_place(void **state) {
        (void)state;
        add_pseudo();
        add("accept", "1");
        add("cookie", "a=1");
        add("origin", "2");
        add("cookie", "b=2");
        add("cookie", "c=3");
        add("referer", "3");
        assert_int_equal(http_head_end(&head, &arena, true, false), 0);
        const struct http_request *r = &head.request;
        assert_int_equal(r->n_headers, 4);
        assert_int_equal(r->headers[1].id, HTTP_FIELD_COOKIE);
        assert_true(span_eq(r->headers[1].value, SPAN("a=1; b=2; c=3")));
        assert_true(span_eq(http_request_field(r, HTTP_FIELD_ORIGIN), SPAN("2")));
        assert_true(span_eq(http_request_field(r, HTTP_FIELD_REFERER), SPAN("3")));
}

static void test_a_doubled_pseudo_field_is_malformed(void **state) {
        (void)state;
        add_pseudo();
        add(":path", "/other");
        assert_int_equal(http_head_end(&head, &arena, true, false), 400);
}

static void test_what_is_over_budget_stores_nothing_more(void **state) {
        (void)state;
        struct http_head_limits small = {.fields = 10, .bytes = 4000};
        add_pseudo();
        for (int i = 0; i < 11; i++)
                add_to(&small, "cookie", "a");
        size_t stored = arena.bytes;
        for (int i = 0; i < 10000; i++)
                add_to(&small, "accept", "some value");
        assert_int_equal(arena.bytes, stored);
        assert_int_equal(http_head_end(&head, &arena, true, false), 431);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_targets_are_judged),
                T(test_content_length_is_a_number_given_once),
                T(test_unknown_fields_are_kept_only_on_demand),
                T(test_crumbs_between_other_fields_are_merged_in_place),
                T(test_a_doubled_pseudo_field_is_malformed),
                T(test_what_is_over_budget_stores_nothing_more),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
