/* Paths and hosts: which are ours, which are malformed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "gateway/host.h"
#include "gateway/route.h"

#define API "/_sluice/v1/"

struct route_row {
        const char *path;
        enum gw_route_kind kind;
        const char *sale, *hold;
};

static void assert_span(struct span s, const char *text) {
        assert_int_equal(s.len, strlen(text));
        assert_memory_equal(s.p, text, s.len);
}

static void test_each_path_has_its_route(void **state) {
        static const struct route_row rows[] = {
                {API "sales", GW_ROUTE_LIST, "", ""},
                {API "sales?x=1", GW_ROUTE_LIST, "", ""},
                {API "sales/a", GW_ROUTE_FLAG, "a", ""},
                {API "sales/0-drop-7?#", GW_ROUTE_FLAG, "0-drop-7", ""},
                {API "sales/a/draw", GW_ROUTE_DRAW, "a", ""},
                {API "sales/a/line", GW_ROUTE_LINE, "a", ""},
                {API "sales/a/line?x=/events", GW_ROUTE_LINE, "a", ""},
                {API "sales/a/line/events", GW_ROUTE_EVENTS, "a", ""},
                {API "sales/a/holds", GW_ROUTE_HOLDS, "a", ""},
                {API "sales/a/holds/h1", GW_ROUTE_HOLD, "a", "h1"},
                {API "sales/a/holds/h1/extend", GW_ROUTE_EXTEND, "a", "h1"},
                {API "sales/a/holds/h1/release", GW_ROUTE_RELEASE, "a", "h1"},
                {API "jwks.json", GW_ROUTE_JWKS, "", ""},
                {API "sales/", GW_ROUTE_GATED, NULL, NULL},
                {API "sales/a/", GW_ROUTE_NONE, "a", ""},
                {API "sales/a/line/", GW_ROUTE_NONE, "a", ""},
                {API "sales/a/line/other", GW_ROUTE_NONE, "a", ""},
                {API "sales/a/holds/h1/confirm", GW_ROUTE_NONE, "a", "h1"},
                {API "sales/a/holds/h1/extend/x", GW_ROUTE_NONE, "a", "h1"},
                {API "salesmen", GW_ROUTE_NONE, "", ""},
                {API, GW_ROUTE_NONE, "", ""},
                {"/_sluice", GW_ROUTE_NONE, "", ""},
                {"/_sluice/v2/sales", GW_ROUTE_NONE, "", ""},
                {"/_sluiced", GW_ROUTE_GATED, "", ""},
                {"/", GW_ROUTE_GATED, "", ""},
                {"/shop/a%20b?x=%2e", GW_ROUTE_GATED, "", ""},
        };
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct gw_route r;
                int outcome = gw_route_of(span_of(rows[i].path), &r);
                if (!rows[i].sale) { /* an empty sale id is outside the pattern */
                        assert_int_equal(outcome, GW_ROUTE_MALFORMED);
                        continue;
                }
                assert_int_equal(outcome, GW_ROUTE_FOUND);
                assert_int_equal(r.kind, rows[i].kind);
                assert_span(r.sale, rows[i].sale);
                assert_span(r.hold, rows[i].hold);
        }
}

static void test_paths_with_two_readings_are_malformed(void **state) {
        static const char *const paths[] = {
                "",
                "shop",
                "//",
                "/a//b",
                "/.",
                "/..",
                "/a/../b",
                "/a/./b",
                "/a/..;x/b",
                "/.;",
                "/%2e%2e/a",
                "/%2E",
                "/a%2fb",
                "/a%5cb",
                "/a%5Cb",
                "/a%00",
                "/a%0d%0a",
                "/a%7f",
                "/%252e%252e/",
                "/a%",
                "/a%2",
                "/a%zz",
                "/a\\b",
                "/a#b",
                "/caf\xc3\xa9",
                "/a\x7f",
                "/a b",
                "/a%3bx",
                "*",
                API "sales/A",
                API "sales/-a",
                API "sales/a_b",
                API "sales/a%20b",
                API "sales/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        };
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(paths); i++) {
                struct gw_route r;
                bool is_clean = http_path_is_clean(span_of(paths[i])); /* the server's question */
                assert_true(!is_clean || gw_route_of(span_of(paths[i]), &r) == GW_ROUTE_MALFORMED);
        }
}

static void test_plain_escapes_and_odd_queries_are_good(void **state) {
        static const char *const paths[] = {"/a%20b", "/caf%C3%A9",     "/a/",        "/a...b",
                                            "/...",   "/a?//../%2e#\\", "/~a+b,c=d;e"};
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(paths); i++) {
                struct gw_route r;
                assert_int_equal(gw_route_of(span_of(paths[i]), &r), GW_ROUTE_FOUND);
        }
}

static void test_every_route_says_which_methods_it_answers(void **state) {
        (void)state;
        for (int k = 0; k < GW_ROUTES; k++) {
                struct span allow = gw_route_allow((enum gw_route_kind)k);
                unsigned methods = gw_route_methods((enum gw_route_kind)k);
                assert_non_null(gw_route_name((enum gw_route_kind)k));
                if (k == GW_ROUTE_NONE)
                        continue;
                for (int m = 0; m < HTTP_METHOD_OTHER; m++) {
                        struct span name = http_method_name((enum http_method)m);
                        bool named = memmem(allow.p, allow.len, name.p, name.len) != NULL;
                        assert_int_equal(named, (methods >> m) & 1);
                }
        }
        assert_false(gw_route_methods(GW_ROUTE_GATED) & (1U << HTTP_METHOD_OTHER));
}

/* ---- hosts ---- */

static const char *served[] = {"shop.test", "127.0.0.1", "localhost", "ported.test:8443", "[::1]"};
static const struct conf_gateway conf = {.hosts = {served, NET_COUNT_OF(served)}};

static int host_of(const char *authority, const char *field, char *host, size_t *len) {
        struct http_header header = {SPAN("host"), span_of(field), HTTP_FIELD_HOST};
        struct http_request r = {
                .authority = span_of(authority), .headers = &header, .n_headers = field ? 1 : 0};
        r.at[HTTP_FIELD_HOST] = field ? 1 : 0;
        return gw_host_of(&r, &conf, host, len);
}

static void test_hosts_are_ours_foreign_or_malformed(void **state) {
        static const struct {
                const char *authority, *field;
                int outcome;
                const char *host;
        } rows[] = {
                {"shop.test", NULL, GW_HOST_OURS, "shop.test"},
                {"SHOP.Test", NULL, GW_HOST_OURS, "shop.test"},
                {"shop.test.", NULL, GW_HOST_OURS, "shop.test"},
                {"shop.test:443", NULL, GW_HOST_OURS, "shop.test"},
                {"127.0.0.1:9", "127.0.0.1:9", GW_HOST_OURS, "127.0.0.1"},
                {"[::1]:443", NULL, GW_HOST_OURS, "[::1]"},
                {"ported.test:8443", NULL, GW_HOST_OURS, "ported.test"},
                {"ported.test:1", NULL, GW_HOST_FOREIGN, "ported.test"},
                {"evil.test", NULL, GW_HOST_FOREIGN, "evil.test"},
                {"shop.test.evil.test", NULL, GW_HOST_FOREIGN, "shop.test.evil.test"},
                {"shop.test", "evil.test", GW_HOST_MALFORMED, NULL},
                {"admin@shop.test", NULL, GW_HOST_MALFORMED, NULL},
                {"shop.test,evil.test", NULL, GW_HOST_MALFORMED, NULL},
                {"shop.test/x", NULL, GW_HOST_MALFORMED, NULL},
                {"shop.test:", NULL, GW_HOST_MALFORMED, NULL},
                {"shop.test:x", NULL, GW_HOST_MALFORMED, NULL},
                {"shop.test:123456", NULL, GW_HOST_MALFORMED, NULL},
                {"[::1", NULL, GW_HOST_MALFORMED, NULL},
                {"[:/1]", NULL, GW_HOST_MALFORMED, NULL},
                {"", NULL, GW_HOST_MALFORMED, NULL},
                {":443", NULL, GW_HOST_MALFORMED, NULL},
        };
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                char host[GW_HOST_TEXT_MAX];
                size_t len = 0;
                assert_int_equal(host_of(rows[i].authority, rows[i].field, host, &len),
                                 rows[i].outcome);
                if (rows[i].host)
                        assert_span((struct span){host, len}, rows[i].host);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_path_has_its_route),
                cmocka_unit_test(test_paths_with_two_readings_are_malformed),
                cmocka_unit_test(test_plain_escapes_and_odd_queries_are_good),
                cmocka_unit_test(test_every_route_says_which_methods_it_answers),
                cmocka_unit_test(test_hosts_are_ours_foreign_or_malformed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
