#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/base64.h"

struct pair {
        const char *why;
        struct span bytes, text;
};

/* RFC 4648, section 10, without padding, and the two letters of base64url. */
static const struct pair pairs[] = {
        {"nothing", {"", 0}, {"", 0}},
        {"one byte, four unused bits", {"f", 1}, {"Zg", 2}},
        {"two bytes, two unused bits", {"fo", 2}, {"Zm8", 3}},
        {"three bytes", {"foo", 3}, {"Zm9v", 4}},
        {"four bytes", {"foob", 4}, {"Zm9vYg", 6}},
        {"letters 62 and 63", {"\xfb\xff\xfe", 3}, {"-__-", 4}},
        {"a zero byte", {"\0", 1}, {"AA", 2}},
};

static void test_bytes_and_text_translate_both_ways(void **state) {
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(pairs); i++) {
                const struct pair *p = &pairs[i];
                char text[16];
                uint8_t bytes[16];
                size_t len = 99;

                print_message("  %s\n", p->why);
                assert_int_equal(base64_url_encode(text, p->text.len, p->bytes.p, p->bytes.len),
                                 p->text.len);
                assert_memory_equal(text, p->text.p, p->text.len);
                assert_int_equal(base64_url_decode(bytes, p->bytes.len, &len, p->text), 0);
                assert_int_equal(len, p->bytes.len);
                assert_memory_equal(bytes, p->bytes.p, len);
                assert_int_equal(BASE64_URL_LEN(p->bytes.len), p->text.len);
                assert_int_equal(BASE64_URL_BYTES(p->text.len), p->bytes.len);
        }
}

static void test_other_spellings_are_malformed(void **state) {
        static const struct {
                const char *why, *text;
        } rows[] = {
                {"one letter is no byte", "Z"},
                {"five letters are no bytes", "Zm9vY"},
                {"unused bits set, one byte", "Zh"},
                {"unused bits set, two bytes", "Zm9"},
                {"padding", "Zg=="},
                {"white space", "Zm 9v"},
                {"line end", "Zm9v\n"},
                {"the letters of plain base64", "+//+"},
                {"a byte above ASCII", "Zm\xc3\xa9"},
        };
        uint8_t bytes[16];
        size_t len;

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                print_message("  %s\n", rows[i].why);
                assert_int_equal(
                        base64_url_decode(bytes, sizeof(bytes), &len, span_of(rows[i].text)),
                        BASE64_MALFORMED);
        }
}

static void test_room_is_never_exceeded(void **state) {
        uint8_t bytes[4] = {0, 0, 0, 0xAA};
        char text[5] = {0, 0, 0, 0, 'x'};
        size_t len;

        (void)state;
        assert_int_equal(base64_url_decode(bytes, 2, &len, SPAN("Zm9v")), BASE64_TOO_LONG);
        assert_int_equal(base64_url_decode(bytes, 3, &len, SPAN("Zm9v")), 0);
        assert_int_equal(bytes[3], 0xAA);
        assert_int_equal(base64_url_encode(text, 3, "foo", 3), 0);
        assert_int_equal(base64_url_encode(text, 4, "foo", 3), 4);
        assert_int_equal(text[4], 'x');
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bytes_and_text_translate_both_ways),
                cmocka_unit_test(test_other_spellings_are_malformed),
                cmocka_unit_test(test_room_is_never_exceeded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
