#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/clock.h"

static void test_rfc3339_is_read(void **state) {
        static const struct {
                const char *why, *text;
                int64_t at_ms;
        } rows[] = {
                {"the epoch", "1970-01-01T00:00:00Z", 0},
                {"a sale's opening", "2026-11-29T09:00:00Z", 1795942800000},
                {"east of Greenwich", "2026-11-29T10:00:00+01:00", 1795942800000},
                {"west, over midnight", "2026-11-28T23:30:00-09:30", 1795942800000},
                {"-00:00 is UTC", "2026-11-29T09:00:00-00:00", 1795942800000},
                {"small letters", "2026-11-29t09:00:00z", 1795942800000},
                {"milliseconds", "2026-11-29T09:00:00.123Z", 1795942800123},
                {"one digit of fraction", "2026-11-29T09:00:00.5Z", 1795942800500},
                {"finer than we keep: cut", "2026-11-29T09:00:00.999999999Z", 1795942800999},
                {"leap day", "2024-02-29T00:00:00Z", 1709164800000},
                {"leap day of a century", "2000-02-29T12:00:00Z", 951825600000},
                {"leap second: the next minute", "2016-12-31T23:59:60Z", 1483228800000},
                {"the last second", "9999-12-31T23:59:59Z", 253402300799000},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                int64_t at_ms = -1;

                print_message("  %s\n", rows[i].why);
                assert_int_equal(clock_parse_rfc3339(span_of(rows[i].text), &at_ms), 0);
                assert_int_equal(at_ms, rows[i].at_ms);
        }
}

static void test_other_times_are_refused_by_name(void **state) {
        static const struct {
                const char *why, *text;
                int outcome;
        } rows[] = {
                {"no offset", "2026-11-29T09:00:00", CLOCK_NO_OFFSET},
                {"no offset, with a fraction", "2026-11-29T09:00:00.5", CLOCK_NO_OFFSET},
                {"nothing", "", CLOCK_MALFORMED},
                {"a day alone", "2026-11-29", CLOCK_MALFORMED},
                {"a space for T", "2026-11-29 09:00:00Z", CLOCK_MALFORMED},
                {"no seconds", "2026-11-29T09:00Z", CLOCK_MALFORMED},
                {"a point without digits", "2026-11-29T09:00:00.Z", CLOCK_MALFORMED},
                {"an offset without minutes", "2026-11-29T09:00:00+01", CLOCK_MALFORMED},
                {"an offset without colon", "2026-11-29T09:00:00+0100", CLOCK_MALFORMED},
                {"something behind", "2026-11-29T09:00:00Zx", CLOCK_MALFORMED},
                {"something behind the offset", "2026-11-29T09:00:00+01:00Z", CLOCK_MALFORMED},
                {"a sign in a number", "2026-11-29T+9:00:00Z", CLOCK_MALFORMED},
                {"a zone's name", "2026-11-29T09:00:00 CET", CLOCK_MALFORMED},
                {"month 13", "2026-13-01T00:00:00Z", CLOCK_RANGE},
                {"month 0", "2026-00-01T00:00:00Z", CLOCK_RANGE},
                {"29 February of no leap year", "2026-02-29T00:00:00Z", CLOCK_RANGE},
                {"29 February 2100", "2100-02-29T00:00:00Z", CLOCK_RANGE},
                {"31 April", "2026-04-31T00:00:00Z", CLOCK_RANGE},
                {"hour 24", "2026-04-30T24:00:00Z", CLOCK_RANGE},
                {"minute 60", "2026-04-30T23:60:00Z", CLOCK_RANGE},
                {"second 61", "2026-04-30T23:59:61Z", CLOCK_RANGE},
                {"offset of 24 hours", "2026-04-30T23:59:00+24:00", CLOCK_RANGE},
                {"before the epoch", "1969-12-31T23:59:59Z", CLOCK_RANGE},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                int64_t at_ms;

                print_message("  %s\n", rows[i].why);
                assert_int_equal(clock_parse_rfc3339(span_of(rows[i].text), &at_ms),
                                 rows[i].outcome);
                assert_true(strlen(clock_outcome_text(rows[i].outcome)) > 20);
        }
}

static void test_times_are_written_in_utc(void **state) {
        static const struct {
                int64_t at_ms;
                const char *rfc3339, *http;
        } rows[] = {
                {0, "1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
                {1795942800000, "2026-11-29T09:00:00Z", "Sun, 29 Nov 2026 09:00:00 GMT"},
                {1795942800007, "2026-11-29T09:00:00.007Z", "Sun, 29 Nov 2026 09:00:00 GMT"},
                {-1, "1969-12-31T23:59:59.999Z", "Wed, 31 Dec 1969 23:59:59 GMT"},
                {-62135596800000, "0001-01-01T00:00:00Z", "Mon, 01 Jan 0001 00:00:00 GMT"},
                {INT64_MAX, "9999-12-31T23:59:59.999Z", "Fri, 31 Dec 9999 23:59:59 GMT"},
                {INT64_MIN, "0000-01-01T00:00:00Z", "Sat, 01 Jan 0000 00:00:00 GMT"},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                char text[CLOCK_TEXT_MAX];

                assert_int_equal(clock_format_rfc3339(text, rows[i].at_ms),
                                 strlen(rows[i].rfc3339));
                assert_string_equal(text, rows[i].rfc3339);
                assert_int_equal(clock_format_http(text, rows[i].at_ms), strlen(rows[i].http));
                assert_string_equal(text, rows[i].http);
        }
}

static void test_what_is_written_reads_back(void **state) {
        (void)state;
        for (int64_t at_ms = 0; at_ms < 253402300800000; at_ms += 86399999 * 97ll) {
                char text[CLOCK_TEXT_MAX];
                size_t len = clock_format_rfc3339(text, at_ms);
                int64_t again;

                assert_int_equal(clock_parse_rfc3339((struct span){text, len}, &again), 0);
                assert_int_equal(again, at_ms);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rfc3339_is_read),
                cmocka_unit_test(test_other_times_are_refused_by_name),
                cmocka_unit_test(test_times_are_written_in_utc),
                cmocka_unit_test(test_what_is_written_reads_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
