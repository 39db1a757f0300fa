#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "origin/sale_fields.h"

#define MAX_HOLD 1800
#define LEAST "\"tenant\":\"t\",\"item\":\"i\",\"opens_at\":\"2026-11-29T09:00:00+01:00\""

/* Reads a body over the defaults, or over `base`; the fault, or "". */
static const char *read_text(const char *base, const char *text, char out[4096]) {
        static char fault[JSON_ERROR_MAX];
        struct json_body under = {0}, b;
        struct org_sale s;
        struct json_out o;

        org_sale_init(&s);
        if (base) {
                assert_int_equal(json_body_open(&under, span_of(base)), 0);
                org_sale_read(&s, &under, false, MAX_HOLD);
                assert_string_equal(under.error, "");
        }
        if (json_body_open(&b, span_of(text)) == 0)
                org_sale_read(&s, &b, base != NULL, MAX_HOLD);
        if (!b.error[0])
                org_sale_check(&s, &b);
        (void)snprintf(fault, sizeof(fault), "%s", b.error);
        if (!fault[0]) {
                json_out_init(&o, out, 4095);
                org_sale_write(&s, &o);
                assert_false(o.overflow);
                out[o.len] = '\0';
        }
        json_body_close(&b);
        json_body_close(&under);
        return fault;
}

static void test_defaults_are_the_contracts(void **state) {
        char out[4096];

        (void)state;
        assert_string_equal(read_text(NULL, "{" LEAST "}", out), "");
        assert_string_equal(
                out, "{\"tenant\":\"t\",\"item\":\"i\",\"opens_at\":\"2026-11-29T08:00:00Z\","
                     "\"prequeue_at\":null,\"closes_at\":null,\"queue\":\"fifo\",\"overbook\":1,"
                     "\"rate_per_minute\":0,\"max_active\":0,\"per_account\":1,"
                     "\"hold_seconds\":600,\"extend_seconds\":300,\"first_use_seconds\":20,"
                     "\"pass_seconds\":300,\"skip_seconds\":15,\"forget_seconds\":600,"
                     "\"match\":[],\"bypass\":[],\"upstream\":null,\"pages\":null,"
                     "\"identity\":\"account\",\"guest_work\":\"none\",\"login_url\":null,"
                     "\"store_loss\":\"hold\",\"beacon_source\":null,\"left\":\"hidden\"}");
}

static void test_equal_windows_give_equal_text(void **state) {
        char one[4096], two[4096];

        (void)state;
        assert_string_equal(
                read_text(NULL, "{" LEAST ",\"match\":[{\"path\":\"/x\",\"host\":\"a.test\"}]}",
                          one),
                "");
        assert_string_equal(
                read_text(NULL,
                          "{\"match\":[{\"host\":\"a.test\",\"prefix\":false,\"path\":\"/x\"}],"
                          "\"opens_at\":\"2026-11-29T08:00:00.000Z\",\"item\":\"i\","
                          "\"overbook\":1.00,\"tenant\":\"t\",\"closes_at\":null}",
                          two),
                "");
        assert_string_equal(one, two);
}

static void test_what_was_written_reads_back_the_same(void **state) {
        char one[4096], two[4096];

        (void)state;
        assert_string_equal(
                read_text(NULL,
                          "{" LEAST ",\"queue\":\"draw\",\"identity\":\"guest\","
                          "\"guest_work\":\"auto\",\"overbook\":1.25,\"left\":\"few\","
                          "\"bypass\":[{\"host\":null,\"path\":\"/static\",\"prefix\":true}],"
                          "\"prequeue_at\":\"2026-11-29T07:00:00.250Z\",\"login_url\":\"/in\"}",
                          one),
                "");
        assert_string_equal(read_text(NULL, one, two), "");
        assert_string_equal(one, two);
}

static void test_a_patch_leaves_what_it_does_not_name(void **state) {
        char out[4096], again[4096];
        const char *base = "{" LEAST ",\"hold_seconds\":7,\"login_url\":\"/in\","
                           "\"closes_at\":\"2027-01-01T00:00:00Z\"}";

        (void)state;
        assert_string_equal(read_text(base, "{}", out), "");
        assert_non_null(strstr(out, "\"hold_seconds\":7"));
        assert_non_null(strstr(out, "\"login_url\":\"/in\""));
        assert_non_null(strstr(out, "\"closes_at\":\"2027-01-01T00:00:00Z\""));
        assert_string_equal(
                read_text(base, "{\"login_url\":null,\"closes_at\":null,\"per_account\":3}", again),
                "");
        assert_non_null(strstr(again, "\"login_url\":null"));
        assert_non_null(strstr(again, "\"closes_at\":null"));
        assert_non_null(strstr(again, "\"per_account\":3"));
        assert_non_null(strstr(again, "\"hold_seconds\":7"));
}

static void test_faults_name_the_field(void **state) {
        static const struct {
                const char *more, *field, *why;
        } rows[] = {
                {",\"overbook\":0.99", "`overbook`", "below one would refuse while units are free"},
                {",\"overbook\":2.01", "`overbook`", "above two"},
                {",\"hold_seconds\":0", "`hold_seconds`", "no time to pay"},
                {",\"hold_seconds\":1801", "`hold_seconds`", "above the ceiling"},
                {",\"per_account\":0", "`per_account`", "nobody could buy"},
                {",\"per_account\":1.5", "`per_account`", "no integer"},
                {",\"queue\":\"lottery\"", "`queue`", "no such queue"},
                {",\"queue\":null", "`queue`", "not nullable"},
                {",\"closes_at\":\"2026-11-29T08:00:00Z\"", "`closes_at`", "ends as it opens"},
                {",\"prequeue_at\":\"2026-11-29T08:00:01Z\"", "`prequeue_at`", "after opening"},
                {",\"closes_at\":\"2027-01-01T00:00:00\"", "`closes_at`", "no offset"},
                {",\"queue\":\"draw\",\"identity\":\"guest\"", "`guest_work`", "a draw of bots"},
                {",\"match\":{}", "`match`", "no list"},
                {",\"match\":[{\"path\":\"x\"}]", "`match[0].path`", "no slash"},
                {",\"match\":[{\"path\":\"/a?b\"}]", "`match[0].path`", "a query"},
                {",\"match\":[{\"path\":\"/a\",\"odd\":1}]", "`match[0].odd`", "unknown member"},
                {",\"bypass\":[{\"path\":\"/a\",\"host\":\"A\"}]", "`bypass[0].host`", "capital"},
                {",\"bypass\":[7]", "`bypass[0]`", "no object"},
                {",\"upstream\":\"http://evil.test/\"", "`upstream`", "an address, not a name"},
                {",\"pages\":\"../etc\"", "`pages`", "leaves the folder"},
                {",\"login_url\":\"javascript:x\"", "`login_url`", "no link"},
                {",\"login_url\":\"/a b\"", "`login_url`", "a space"},
                {",\"colour\":\"red\"", "`colour`", "unknown"},
        };
        char body[512], out[4096];

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                const char *fault;

                (void)snprintf(body, sizeof(body), "{" LEAST "%s}", rows[i].more);
                fault = read_text(NULL, body, out);
                if (!strstr(fault, rows[i].field))
                        fail_msg("%s: %s", rows[i].why, fault);
        }
}

static void test_a_new_window_needs_tenant_and_opening(void **state) {
        char out[4096];

        (void)state;
        assert_non_null(strstr(read_text(NULL, "{\"opens_at\":\"2026-11-29T08:00:00Z\"}", out),
                               "`tenant`"));
        assert_non_null(strstr(read_text(NULL, "{\"tenant\":\"t\"}", out), "`opens_at`"));
        assert_non_null(strstr(read_text("{" LEAST "}", "{\"opens_at\":null}", out), "`opens_at`"));
}

static void test_what_get_shows_may_come_back(void **state) {
        char out[4096];

        (void)state;
        assert_string_equal(read_text(NULL,
                                      "{" LEAST ",\"sale\":\"s\",\"state\":\"open\",\"round\":1,"
                                      "\"version\":3,\"paused\":false,\"hard\":false,"
                                      "\"paused_at\":null,\"closed\":false,\"changed\":true}",
                                      out),
                            "");
        assert_null(strstr(out, "version"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults_are_the_contracts),
                cmocka_unit_test(test_equal_windows_give_equal_text),
                cmocka_unit_test(test_what_was_written_reads_back_the_same),
                cmocka_unit_test(test_a_patch_leaves_what_it_does_not_name),
                cmocka_unit_test(test_faults_name_the_field),
                cmocka_unit_test(test_a_new_window_needs_tenant_and_opening),
                cmocka_unit_test(test_what_get_shows_may_come_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
