#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/http.h"

static void show(const char *why, const char *in) {
        print_error("%s: <%s>\n", why, in ? in : "(missing)");
}

static void test_every_known_field_is_found_by_its_name(void **state) {
        (void)state;
        for (unsigned id = 1; id < HTTP_FIELD_COUNT; id++) {
                struct span name = http_field_name((enum http_field)id);

                assert_int_equal(http_field_of(name), id);
                for (size_t i = 0; i < name.len; i++)
                        assert_false(name.p[i] >= 'A' && name.p[i] <= 'Z');
        }
}

static void test_other_names_are_unknown(void **state) {
        static const char *const names[] = {"",          "a",          "cooki",  "cookies",
                                            "Cookie",    "x_csrf",     "x-real", "x-account",
                                            "x_account", "via",        "tE",     "t",
                                            ":path",     "accept-enc", "sluice"};

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(names); i++)
                assert_int_equal(http_field_of(span_of(names[i])), HTTP_FIELD_UNKNOWN);
}

static void test_identity_and_hop_fields_are_not_forwarded(void **state) {
        static const enum http_field kept[] = {
                HTTP_FIELD_UNKNOWN,
                HTTP_FIELD_CONNECTION,
                HTTP_FIELD_CONTENT_LENGTH,
                HTTP_FIELD_EXPECT,
                HTTP_FIELD_FORWARDED,
                HTTP_FIELD_HOST,
                HTTP_FIELD_SLUICE_ACCOUNT,
                HTTP_FIELD_SLUICE_PASS,
                HTTP_FIELD_TE,
                HTTP_FIELD_X_FORWARDED_FOR,
                HTTP_FIELD_X_FORWARDED_HOST,
                HTTP_FIELD_TRANSFER_ENCODING,
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(kept); i++)
                assert_false(http_field_is_forwarded(kept[i]));
        assert_true(http_field_is_forwarded(HTTP_FIELD_COOKIE));
        assert_true(http_field_is_forwarded(HTTP_FIELD_IDEMPOTENCY_KEY));
}

static void test_methods_are_case_sensitive(void **state) {
        (void)state;
        for (unsigned m = 0; m < HTTP_METHOD_OTHER; m++)
                assert_int_equal(http_method_of(http_method_name((enum http_method)m)), m);
        assert_int_equal(http_method_of(SPAN("get")), HTTP_METHOD_OTHER);
        assert_int_equal(http_method_of(SPAN("GETS")), HTTP_METHOD_OTHER);
        assert_int_equal(http_method_of(SPAN("")), HTTP_METHOD_OTHER);
}

static void test_cookie(void **state) {
        static const struct {
                const char *why, *cookies, *value;
        } rows[] = {
                {"space before the name, others around", "a=1; wr=T; b=2", "T"},
                {"no space after the semicolon", "b=2;wr=T", "T"},
                {"quotes are taken off", "wr=\"T\"", "T"},
                {"padding belongs to the value", "wr=dGk=; b=2", "dGk="},
                {"double padding at the end", "a=1; wr=dA==", "dA=="},
                {"quoted padding", "wr=\"dA==\"", "dA=="},
                {"first of two", "wr=1; wr=2", "1"},
                {"name is a suffix of another", "xwr=1; wr=2", "2"},
                {"name is a prefix of another", "wrx=1; wr=2", "2"},
                {"name inside another value", "a=wr=3; wr=4", "4"},
                {"tabs and blanks around", "a=1;\t wr = T \t;b=2", "T"},
                {"empty value", "wr=; a=1", ""},
                {"empty crumbs", ";;; ;wr=T;", "T"},
                {"one quote stays", "wr=\"T", "\"T"},
                {"only a quote", "wr=\"", "\""},
                {"empty quotes", "wr=\"\"", ""},
                {"no equals sign is no cookie", "wr; a=1", NULL},
                {"case matters", "WR=T", NULL},
                {"absent", "a=1; b=2", NULL},
                {"empty list", "", NULL},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct span v = http_cookie(span_of(rows[i].cookies), SPAN("wr"));

                if (!v.p != !rows[i].value || (v.p && !span_eq(v, span_of(rows[i].value))))
                        show(rows[i].why, rows[i].cookies);
                assert_int_equal(!v.p, !rows[i].value);
                assert_true(span_eq(v, span_of(rows[i].value)));
        }
        assert_null(http_cookie((struct span){NULL, 0}, SPAN("wr")).p);
}

static void test_accept(void **state) {
        static const struct {
                const char *why, *accept;
                unsigned json, html;
        } rows[] = {
                {"missing accepts all", NULL, 1000, 1000},
                {"empty accepts all", "", 1000, 1000},
                {"blank accepts all", " \t", 1000, 1000},
                {"exact", "application/json", 1000, 0},
                {"two with q", "application/json, text/html;q=0.8", 1000, 800},
                {"html first", "text/html,application/json;q=0.1", 100, 1000},
                {"any", "*/*", 1000, 1000},
                {"refused", "application/json;q=0", 0, 0},
                {"refused, rest taken", "application/json;q=0, */*", 0, 1000},
                {"a browser", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                 800, 1000},
                {"main type range", "text/*;q=0.3, */*;q=0.1", 100, 300},
                {"specific beats order", "*/*, text/html;q=0.2, text/*;q=0.9", 1000, 200},
                {"three digits", "text/html;q=0.123", 0, 123},
                {"q of one with zeros", "text/html;q=1.000", 0, 1000},
                {"q with a bare point", "text/html;q=0.", 0, 0},
                {"blanks", " text/html ; q=0.5 ,\tapplication/json ; Q=0.25 ", 250, 500},
                {"letters in any case", "Text/HTML, APPLICATION/json;q=0.5", 500, 1000},
                {"parameters do not hide the type", "application/json;charset=utf-8", 1000, 0},
                {"a range without parameters wins", "text/html;level=1, text/html;q=0.7", 0, 700},
                {"the same, other order", "text/html;q=0.7, text/html;level=1", 0, 700},
                {"comma in quotes", "text/html;a=\"x,application/json\";q=0.4", 0, 400},
                {"escaped quote", "text/html;a=\"\\\",application/json\";q=0.4", 0, 400},
                {"open quote", "text/html;a=\"application/json", 0, 1000},
                {"backslash at the end", "text/html;a=\"\\", 0, 1000},
                {"after q nothing counts", "text/html;q=0.4;ext=1", 0, 400},
                {"q above one is broken", "text/html;q=1.5, */*;q=0.1", 100, 100},
                {"q above one by a hair", "text/html;q=1.001, */*;q=0.1", 100, 100},
                {"letters in q are broken", "text/html;q=x", 0, 0},
                {"four digits are broken", "text/html;q=0.1234", 0, 0},
                {"minus is broken", "text/html;q=-1", 0, 0},
                {"no q value is broken", "text/html;q", 0, 0},
                {"suffix types are other types", "application/problem+json", 0, 0},
                {"no such range", "*/json, */html", 0, 0},
                {"longer and shorter", "application/jso, application/jsonp, app/*", 0, 0},
                {"empty elements", ",, ,text/html,", 0, 1000},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                unsigned json = http_accept_q(span_of(rows[i].accept), SPAN("application/json"));
                unsigned html = http_accept_q(span_of(rows[i].accept), SPAN("text/html"));

                if (json != rows[i].json || html != rows[i].html)
                        show(rows[i].why, rows[i].accept);
                assert_int_equal(json, rows[i].json);
                assert_int_equal(html, rows[i].html);
        }
}

static void test_etags(void **state) {
        static const struct {
                const char *why, *list;
                bool match;
        } rows[] = {
                {"same", "\"a1\"", true},
                {"weak compares equal", "W/\"a1\"", true},
                {"star", "*", true},
                {"star with blanks", " * ", true},
                {"second of a list", "\"x\", \"a1\"", true},
                {"no blanks", "\"x\",W/\"y\",\"a1\"", true},
                {"comma inside a tag", "\"x,y\", \"a1\"", true},
                {"empty elements", ", ,\"a1\"", true},
                {"other", "\"a2\"", false},
                {"prefix", "\"a\"", false},
                {"longer", "\"a11\"", false},
                {"not quoted", "a1", false},
                {"open quote", "\"a1", false},
                {"small w", "w/\"a1\"", false},
                {"star in a list is no tag", "\"x\", *", false},
                {"tag inside another", "\"x\"a1\"", false},
                {"empty", "", false},
                {"weak sign alone", "W/", false},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                if (http_etag_matches(span_of(rows[i].list), SPAN("\"a1\"")) != rows[i].match)
                        show(rows[i].why, rows[i].list);
                assert_int_equal(http_etag_matches(span_of(rows[i].list), SPAN("\"a1\"")),
                                 rows[i].match);
        }
        assert_true(http_etag_matches(SPAN("\"a1\""), SPAN("W/\"a1\"")));
        assert_false(http_etag_matches((struct span){NULL, 0}, SPAN("\"a1\"")));
}

/* lint: long, a table of cases */
static void test_path(void **state) {
        static const struct {
                const char *why, *path;
                bool clean;
        } rows[] = {
                {"root", "/", true},
                {"plain", "/v1/sales/spring-24/flag", true},
                {"query may hold anything", "/a?b=//%2e%2e/../#\\%00\xc3\xa4", true},
                {"dots inside a name", "/a.b/..a/...b/.well-known/a..", true},
                {"three dots are a name", "/.../x", true},
                {"escapes of letters", "/%41%7e/%20x", true},
                {"escaped high bytes", "/caf%C3%A9", true},
                {"other signs", "/a;b=1/~@:!$&'()*+,=", true},
                {"slash at the end", "/a/", true},
                {"not from the root", "a/b", false},
                {"empty", "", false},
                {"asterisk", "*", false},
                {"only a query", "?a", false},
                {"whole address", "https://a.test/x", false},
                {"fragment", "/a#b", false},
                {"backslash", "/a\\b", false},
                {"two slashes", "/a//b", false},
                {"two slashes first", "//a", false},
                {"two slashes last", "/a//", false},
                {"dot segment", "/./a", false},
                {"dot segment last", "/a/.", false},
                {"up", "/a/../b", false},
                {"up last", "/a/..", false},
                {"up before a query", "/a/..?x", false},
                {"up with a parameter", "/a/..;x/b", false},
                {"up with an escaped parameter", "/a/..%3bx/b", false},
                {"dot with an escaped parameter", "/a/.%3Bx/b", false},
                {"escaped dot", "/a/%2e/b", false},
                {"escaped dots, upper case", "/%2E%2E/admin", false},
                {"half escaped", "/.%2e/admin", false},
                {"escaped semicolon", "/a%3bx", false},
                {"escaped dot inside a name", "/a%2eb", false},
                {"escaped slash", "/a%2fb", false},
                {"escaped slash, upper case", "/a%2Fb", false},
                {"escaped backslash", "/a%5cb", false},
                {"escaped backslash, upper case", "/a%5Cb", false},
                {"escaped twice", "/%252e%252e/admin", false},
                {"escaped zero", "/a%00", false},
                {"escaped newline", "/a%0d%0ab", false},
                {"escaped delete", "/a%7f", false},
                {"broken escape", "/a%", false},
                {"broken escape, one digit", "/a%4", false},
                {"broken escape, no digit", "/a%zz", false},
                {"escape cut by the query", "/a%4?1", false},
                {"wide escape", "/a%u002e", false},
                {"control byte", "/a\x01", false},
                {"newline", "/a\nb", false},
                {"tab", "/a\tb", false},
                {"space", "/a b", false},
                {"delete", "/a\x7f", false},
                {"raw high bytes", "/caf\xc3\xa9", false},
                {"overlong slash", "/a\xc0\xaf", false},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                if (http_path_is_clean(span_of(rows[i].path)) != rows[i].clean)
                        show(rows[i].why, rows[i].path);
                assert_int_equal(http_path_is_clean(span_of(rows[i].path)), rows[i].clean);
        }
        assert_false(http_path_is_clean((struct span){"/a\0b", 4}));
        assert_false(http_path_is_clean((struct span){NULL, 0}));
}

static void test_a_query_is_visible_text(void **state) {
        (void)state;
        assert_true(http_target_is_clean(SPAN("/a?b=c//../%2e%%&d=?;\\~")));
        assert_true(http_target_is_clean(SPAN("/a?")));
        assert_false(http_target_is_clean(SPAN("/a//b?c")));
        assert_false(http_target_is_clean(SPAN("/a?b#c")));
        assert_false(http_target_is_clean(SPAN("/a?123456789 c")));
        for (unsigned c = 0; c < 256; c++) {
                for (size_t at = 3; at < 20; at++) {
                        char text[] = "/a?bcdefghijklmnopqr";
                        text[at] = (char)c;
                        bool is_visible = c > 0x20 && c < 0x7f && c != '#';
                        assert_int_equal(http_target_is_clean((struct span){text, sizeof text - 1}),
                                         is_visible);
                }
        }
}

/* Bytes from a small alphabet, in memory of exactly their size. */
static void test_random_values_are_never_read_past_their_end(void **state) {
        static const char letters[] = "aT=;,\"\\/*. \t%2e5cq01W?#-\x80";
        unsigned seed = 3;

        (void)state;
        for (int round = 0; round < 200000; round++) {
                size_t n = (seed >> 20) % 24;
                char *p = malloc(n);
                struct span s = {p, n};

                for (size_t i = 0; i < n; i++) {
                        seed = seed * 1103515245u + 12345u;
                        p[i] = letters[(seed >> 16) % (sizeof(letters) - 1)];
                }
                seed = seed * 1103515245u + 12345u;

                struct span cookie = http_cookie(s, SPAN("a"));

                assert_true(!cookie.p || (cookie.p >= p && cookie.p + cookie.len <= p + n));
                assert_in_range(http_accept_q(s, SPAN("T/a")), 0, 1000);
                (void)http_etag_matches(s, SPAN("\"a\""));
                (void)http_path_is_clean(s);
                (void)http_field_of(s);
                (void)http_method_of(s);
                free(p);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_known_field_is_found_by_its_name),
                cmocka_unit_test(test_other_names_are_unknown),
                cmocka_unit_test(test_identity_and_hop_fields_are_not_forwarded),
                cmocka_unit_test(test_methods_are_case_sensitive),
                cmocka_unit_test(test_cookie),
                cmocka_unit_test(test_accept),
                cmocka_unit_test(test_etags),
                cmocka_unit_test(test_path),
                cmocka_unit_test(test_a_query_is_visible_text),
                cmocka_unit_test(test_random_values_are_never_read_past_their_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
