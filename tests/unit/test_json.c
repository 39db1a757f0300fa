#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "net/json.h"
#include "net/problem.h"

static struct json_out out;
static char room[4096];

static void assert_written(const char *expected) {
        struct span text = json_out_done(&out);

        assert_non_null(text.p);
        assert_int_equal(text.len, strlen(expected));
        assert_memory_equal(text.p, expected, text.len);
}

static void write_everything(struct json_out *o) {
        json_out_object(o, NULL);
        json_out_int(o, "low", INT64_MIN);
        json_out_uint(o, "high", UINT64_MAX);
        json_out_real(o, "real", 2.50, 3);
        json_out_real(o, "none", 1.0 / 0.0, 3);
        json_out_array(o, "list");
        json_out_bool(o, NULL, true);
        json_out_null(o, NULL);
        json_out_array(o, NULL);
        json_out_array_end(o);
        json_out_object(o, NULL);
        json_out_object_end(o);
        json_out_int(o, NULL, -7);
        json_out_array_end(o);
        json_out_time(o, "at", 1795942800000);
        json_out_time(o, "never", JSON_NO_TIME);
        json_out_text(o, "text", NULL);
        json_out_raw(o, "raw", SPAN("[1]"));
        json_out_object_end(o);
}

static void test_commas_stand_between_values(void **state) {
        (void)state;
        json_out_init(&out, room, sizeof(room));
        write_everything(&out);
        assert_written("{\"low\":-9223372036854775808,\"high\":18446744073709551615,\"real\":2.5,"
                       "\"none\":null,\"list\":[true,null,[],{},-7],"
                       "\"at\":\"2026-11-29T09:00:00Z\",\"never\":null,\"text\":null,"
                       "\"raw\":[1]}");
}

static void test_every_text_becomes_json(void **state) {
        static const struct {
                const char *why;
                struct span text;
                const char *json;
        } rows[] = {
                {"quote and backslash", SPAN("a\"b\\c"), "\"a\\\"b\\\\c\""},
                {"controls", SPAN("\n\t\r\b\f\x01\x7f"), "\"\\n\\t\\r\\b\\f\\u0001\\u007f\""},
                {"a zero byte", {"a\0b", 3}, "\"a\\u0000b\""},
                {"UTF-8 of 2, 3 and 4 bytes", SPAN("é€😀"), "\"é€😀\""},
                {"a lone continuation", SPAN("\x80z"), "\"\xEF\xBF\xBDz\""},
                {"overlong", SPAN("\xC0\xAF"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
                {"a surrogate", SPAN("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
                {"above U+10FFFF", SPAN("\xF4\x90\x80\x80"),
                 "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
                {"cut in the middle", SPAN("\xE2\x82"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                json_t *tree;

                print_message("  %s\n", rows[i].why);
                json_out_init(&out, room, sizeof(room));
                json_out_str(&out, NULL, rows[i].text);
                assert_written(rows[i].json);
                tree = json_loadb(out.p, out.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
                assert_non_null(tree);
                json_decref(tree);
        }
}

static void test_overflow_stays_and_nothing_is_written_behind(void **state) {
        size_t whole;

        (void)state;
        json_out_init(&out, room, sizeof(room));
        write_everything(&out);
        whole = out.len;
        for (size_t cap = 0; cap <= whole; cap++) {
                memset(room, 'x', whole + 1);
                json_out_init(&out, room, cap);
                write_everything(&out);
                assert_int_equal(json_out_done(&out).p == NULL, cap < whole);
                assert_int_equal(room[cap], 'x');
        }
}

static void test_a_tree_is_written_as_it_is(void **state) {
        json_t *tree = json_pack("{s:[i,b,n]}", "a", 1, 1);

        (void)state;
        json_out_init(&out, room, sizeof(room));
        json_out_array(&out, NULL);
        json_out_int(&out, NULL, 0);
        json_out_tree(&out, NULL, tree);
        json_out_array_end(&out);
        assert_written("[0,{\"a\":[1,true,null]}]");
        json_out_init(&out, room, 5);
        json_out_tree(&out, NULL, tree);
        assert_null(json_out_done(&out).p);
        json_decref(tree);
}

/* Reads a hold's body, as an example of rules. */
static const char *read_hold(const char *text) {
        static char error[JSON_ERROR_MAX];
        static const char *const channels[] = {"web", "shop", NULL};
        struct json_body b;
        struct span buyer;
        int64_t qty = 1, at;
        int channel = 0, done;
        double factor = 1;
        bool captured = false;
        const json_t *lines = NULL;

        if (json_body_open(&b, span_of(text)) == 0) {
                json_read_int(&b, "qty", JSON_OPTIONAL, 1, 100, &qty);
                json_read_str(&b, "buyer", JSON_NULLABLE, 1, 8, &buyer);
                json_read_choice(&b, "channel", JSON_OPTIONAL, channels, &channel);
                json_read_time(&b, "at", JSON_NULLABLE, &at);
                json_read_real(&b, "factor", JSON_OPTIONAL, 1, 2, &factor);
                json_read_bool(&b, "captured", JSON_OPTIONAL, &captured);
                json_read_array(&b, "lines", JSON_OPTIONAL, 2, &lines);
                for (size_t i = 0; i < json_array_size(lines); i++) {
                        struct json_body line;
                        char path[32];

                        (void)snprintf(path, sizeof(path), "lines[%zu].", i);
                        json_body_borrow(&line, json_array_get(lines, i), path);
                        json_read_int(&line, "qty", JSON_REQUIRED, 1, 100, &qty);
                        if (json_body_finish(&line) != 0 && !b.error[0])
                                memcpy(b.error, line.error, sizeof(b.error));
                        json_body_close(&line);
                }
                done = json_body_finish(&b);
                assert_int_equal(done, b.error[0] ? 1 : 0);
        }
        memcpy(error, b.error, sizeof(error));
        json_body_close(&b);
        return error;
}

static void test_a_body_is_read_strictly(void **state) {
        static const struct {
                const char *text, *error;
        } rows[] = {
                {"", ""},
                {"{}", ""},
                {"{\"qty\":1}", ""},
                {"{\"qty\":100,\"buyer\":null,\"captured\":true,\"channel\":\"shop\"}", ""},
                {"{\"at\":\"2026-11-29T09:00:00Z\",\"factor\":1}", ""},
                {"{\"lines\":[{\"qty\":1},{\"qty\":2}]}", ""},
                {"[]", "body: expected a JSON object"},
                {"1", "body: expected a JSON object"},
                {"{\"qty\":1", "body: expected JSON; it breaks at byte 8"},
                {"{\"qty\":1} x", "body: expected JSON; it breaks at byte 11"},
                {"{\"qty\":1,\"qty\":2}", "body: a field occurs twice"},
                {"{\"qty\":0}", "field `qty`: expected an integer 1..100"},
                {"{\"qty\":101}", "field `qty`: expected an integer 1..100"},
                {"{\"qty\":1.0}", "field `qty`: expected an integer 1..100"},
                {"{\"qty\":\"1\"}", "field `qty`: expected an integer 1..100"},
                {"{\"qty\":null}", "field `qty`: expected an integer 1..100"},
                {"{\"qty\":true}", "field `qty`: expected an integer 1..100"},
                {"{\"buyer\":\"\"}", "field `buyer`: expected a string of 1..8 bytes"},
                {"{\"buyer\":\"123456789\"}", "field `buyer`: expected a string of 1..8 bytes"},
                {"{\"buyer\":\"a\\u0000b\"}", "body: expected JSON; it breaks at byte 19"},
                {"{\"channel\":\"post\"}", "field `channel`: expected one of web, shop"},
                {"{\"channel\":0}", "field `channel`: expected one of web, shop"},
                {"{\"factor\":2.5}", "field `factor`: expected a number 1..2"},
                {"{\"captured\":1}", "field `captured`: expected true or false"},
                {"{\"at\":\"2026-11-29T09:00:00\"}",
                 "field `at`: expected a time with an offset, as 2026-11-29T09:00:00Z or "
                 "2026-11-29T09:00:00+01:00"},
                {"{\"lines\":{}}", "field `lines`: expected an array of at most 2"},
                {"{\"lines\":[1,2,3]}", "field `lines`: expected an array of at most 2"},
                {"{\"lines\":[{\"qty\":1},{\"qty\":0}]}",
                 "field `lines[1].qty`: expected an integer 1..100"},
                {"{\"lines\":[{}]}", "field `lines[0].qty`: expected an integer 1..100"},
                {"{\"lines\":[1]}", "field `lines[0]`: expected an object"},
                {"{\"lines\":[{\"qty\":1,\"x\":1}]}", "field `lines[0].x`: unknown"},
                {"{\"quantity\":1}", "field `quantity`: unknown"},
                {"{\"qty\":0,\"quantity\":1}", "field `qty`: expected an integer 1..100"},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                print_message("  %s\n", rows[i].text);
                assert_string_equal(read_hold(rows[i].text), rows[i].error);
        }
}

static void test_depth_is_bounded(void **state) {
        char text[64];
        struct json_body b;

        (void)state;
        (void)snprintf(text, sizeof(text), "{\"a\":%.15s%.15s}", "[[[[[[[[[[[[[[[",
                       "]]]]]]]]]]]]]]]");
        assert_int_equal(json_body_open(&b, span_of(text)), 0);
        json_body_close(&b);
        (void)snprintf(text, sizeof(text), "{\"a\":%.16s%.16s}", "[[[[[[[[[[[[[[[[",
                       "]]]]]]]]]]]]]]]]");
        assert_int_equal(json_body_open(&b, span_of(text)), 1);
        assert_string_equal(b.error, "body: expected at most 16 levels");
        json_body_close(&b);
        assert_int_equal(json_body_open(&b, SPAN("{\"a\":\"[[[[[[[[[[[[[[[[[[[[\\\"[\"}")), 0);
        json_body_close(&b);
}

static void test_absent_and_null_are_told_apart(void **state) {
        struct json_body b;

        (void)state;
        assert_int_equal(json_body_open(&b, SPAN("{\"a\":null,\"b\":1}")), 0);
        assert_true(json_read_has(&b, "a"));
        assert_true(json_read_is_null(&b, "a"));
        assert_false(json_read_is_null(&b, "b"));
        assert_false(json_read_has(&b, "c"));
        assert_false(json_read_is_null(&b, "c"));
        json_body_close(&b);
}

static void add_state(struct json_out *o, const void *context) {
        json_out_text(o, "state", context);
}

static void test_a_problem_is_rfc_9457(void **state) {
        (void)state;
        json_out_init(&out, room, sizeof(room));
        problem_render(&out, PROBLEM_HOLD_EXPIRED, "too late", add_state, "expired");
        assert_written(
                "{\"type\":\"about:blank\",\"title\":\"The hold has expired\",\"status\":409,"
                "\"code\":\"hold_expired\",\"detail\":\"too late\",\"state\":\"expired\"}");
        json_out_init(&out, room, sizeof(room));
        problem_render(&out, PROBLEM_CLOSED, NULL, NULL, NULL);
        assert_written("{\"type\":\"about:blank\",\"title\":\"The sale is closed\",\"status\":410,"
                       "\"code\":\"closed\"}");
}

static void test_every_code_has_the_status_of_the_contract(void **state) {
        static const struct {
                const char *code;
                int status;
        } rows[] = {
                {"account_required", 401},
                {"pass_required", 403},
                {"pass_expired", 403},
                {"pass_revoked", 403},
                {"buyer_limit", 403},
                {"not_found", 404},
                {"method_not_allowed", 405},
                {"bad_request", 400},
                {"idempotency_key_required", 400},
                {"sold_out", 410},
                {"sold_out", 409},
                {"all_held", 409},
                {"not_enough", 409},
                {"closed", 410},
                {"not_open", 409},
                {"already_sold", 409},
                {"hold_expired", 409},
                {"hold_released", 409},
                {"hold_cancelled", 409},
                {"conflict", 409},
                {"idempotency_mismatch", 422},
                {"misdirected", 421},
                {"work_required", 428},
                {"rate_limited", 429},
                {"headers_too_large", 431},
                {"body_too_large", 413},
                {"line_full", 503},
                {"paused", 503},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                enum problem_code code = problem_find(span_of(rows[i].code), rows[i].status);

                print_message("  %s\n", rows[i].code);
                assert_int_not_equal(code, PROBLEM_CODE_COUNT);
                assert_string_equal(problem_of(code)->code, rows[i].code);
                assert_int_equal(problem_of(code)->status, rows[i].status);
        }
        assert_int_equal(problem_find(SPAN("nonsense"), 0), PROBLEM_CODE_COUNT);
        for (unsigned i = 0; i < PROBLEM_CODE_COUNT; i++)
                assert_in_range(problem_of((enum problem_code)i)->status, 400, 599);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_commas_stand_between_values),
                cmocka_unit_test(test_every_text_becomes_json),
                cmocka_unit_test(test_overflow_stays_and_nothing_is_written_behind),
                cmocka_unit_test(test_a_tree_is_written_as_it_is),
                cmocka_unit_test(test_a_body_is_read_strictly),
                cmocka_unit_test(test_depth_is_bounded),
                cmocka_unit_test(test_absent_and_null_are_told_apart),
                cmocka_unit_test(test_a_problem_is_rfc_9457),
                cmocka_unit_test(test_every_code_has_the_status_of_the_contract),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
