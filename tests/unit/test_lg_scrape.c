#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "loadgen/scrape.h"

static void read_text(const char *text, uint64_t now[LG_COUNTER_COUNT]) {
        lg_scrape_read(span_of(text), SPAN("s1"), now);
}

static void test_series_are_told_apart_by_their_labels(void **state) {
        (void)state;
        uint64_t now[LG_COUNTER_COUNT];
        read_text("# HELP sluice_origin_requests_total x\n"
                  "# TYPE sluice_origin_requests_total counter\n"
                  "sluice_origin_requests_total{kind=\"snapshot\"} 7\n"
                  "sluice_origin_requests_total{kind=\"hold\"} 5\n"
                  "sluice_origin_requests_total{kind=\"hold_read\"} 2\n"
                  "sluice_origin_requests_total{kind=\"forward\"} 1\n"
                  "sluice_origin_requests_total{kind=\"health\"} 9\n"
                  "sluice_origin_requests_total{kind=\"new\"} 4\n"
                  "sluice_store_calls_total{op=\"join\"} 10\n"
                  "sluice_store_calls_total{op=\"claim\"} 3\n"
                  "sluice_passes_issued_total{sale=\"s1\"} 100\n"
                  "sluice_passes_issued_total{sale=\"s12\"} 999\n"
                  "sluice_passes_issued_total_of_others{sale=\"s1\"} 999\n"
                  "go_threads 8\n",
                  now);
        assert_int_equal(now[LG_COUNTER_ASKED_SNAPSHOT], 7);
        assert_int_equal(now[LG_COUNTER_ASKED_HOLD], 5);
        assert_int_equal(now[LG_COUNTER_ASKED_HOLD_READ], 2);
        assert_int_equal(now[LG_COUNTER_ASKED_FORWARD], 1);
        assert_int_equal(now[LG_COUNTER_ASKED_HEALTH], 9);
        assert_int_equal(now[LG_COUNTER_ASKED_OTHER], 4);
        assert_int_equal(now[LG_COUNTER_STORE_CALLS], 13);
        assert_int_equal(now[LG_COUNTER_PASSES_ISSUED], 100);
}

static void test_odd_text_is_read_without_harm(void **state) {
        (void)state;
        static const char *const texts[] = {
                "",
                "\n\n",
                "sluice_",
                "sluice_store_calls_total",
                "sluice_store_calls_total{",
                "sluice_store_calls_total{op=\"a",
                "sluice_store_calls_total{op=\"a\"}",
                "sluice_store_calls_total x",
                "sluice_store_calls_total -5",
                "sluice_store_calls_total NaN",
                "sluice_store_calls_total 1111111111111111111111111111111111111111111",
                "sluice_passes_issued_total{sale=\"} 5",
                "sluice_passes_issued_total{xsale=\"s1\"} 5",
        };
        for (size_t i = 0; i < NET_COUNT_OF(texts); i++) {
                uint64_t now[LG_COUNTER_COUNT];
                read_text(texts[i], now);
                for (size_t k = 0; k < LG_COUNTER_COUNT; k++)
                        assert_int_equal(now[k], 0);
        }
}

static void look(struct lg_scrape *s, uint64_t passes, uint64_t calls) {
        uint64_t now[LG_COUNTER_COUNT] = {0};
        now[LG_COUNTER_PASSES_ISSUED] = passes;
        now[LG_COUNTER_STORE_CALLS] = calls;
        lg_scrape_add(s, now);
}

static void test_the_first_look_is_no_growth(void **state) {
        (void)state;
        struct lg_scrape s = {.begun = false};
        look(&s, 50, 1000);
        assert_int_equal(s.grown[LG_COUNTER_PASSES_ISSUED], 0);
        look(&s, 60, 1500);
        assert_int_equal(s.grown[LG_COUNTER_PASSES_ISSUED], 10);
        assert_int_equal(s.grown[LG_COUNTER_STORE_CALLS], 500);
}

static void test_growth_goes_on_over_a_restart(void **state) {
        (void)state;
        struct lg_scrape s = {.begun = false};
        look(&s, 10, 1000);
        look(&s, 40, 2000);
        look(&s, 5, 300); /* killed and started again */
        look(&s, 8, 400);
        assert_int_equal(s.grown[LG_COUNTER_PASSES_ISSUED], 30 + 5 + 3);
        assert_int_equal(s.grown[LG_COUNTER_STORE_CALLS], 1000 + 300 + 100);
}

static void test_a_counter_that_outlives_its_process_is_not_added_twice(void **state) {
        (void)state;
        struct lg_scrape s = {.begun = false};
        look(&s, 0, 1000);
        look(&s, 90, 2000);
        look(&s, 95, 40); /* passes are counted in the state directory */
        assert_int_equal(s.grown[LG_COUNTER_PASSES_ISSUED], 95);
        assert_int_equal(s.grown[LG_COUNTER_STORE_CALLS], 1040);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_series_are_told_apart_by_their_labels),
                cmocka_unit_test(test_odd_text_is_read_without_harm),
                cmocka_unit_test(test_the_first_look_is_no_growth),
                cmocka_unit_test(test_growth_goes_on_over_a_restart),
                cmocka_unit_test(test_a_counter_that_outlives_its_process_is_not_added_twice),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
