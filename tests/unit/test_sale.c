/* A sale's states, its facts checked, stock versions compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "admission/place.h"
#include "admission/sale.h"

static struct adm_sale_facts sale(void) {
        struct adm_sale_facts f;
        adm_sale_defaults(&f);
        (void)snprintf(f.id, sizeof(f.id), "demo");
        f.has_item = true;
        f.prequeue_at_ms = 1000;
        f.opens_at_ms = 2000;
        f.closes_at_ms = 9000;
        f.stock = (struct adm_stock){.available = 5, .held = 5, .total = 10};
        return f;
}

static void test_states_follow_the_clock(void **state) {
        (void)state;
        struct adm_sale_facts f = sale();
        static const struct {
                int64_t now_ms;
                enum adm_sale_state want;
                const char *why;
        } rows[] = {
                {0, ADM_SALE_SCHEDULED, "long before"},
                {999, ADM_SALE_SCHEDULED, "a moment before the prequeue"},
                {1000, ADM_SALE_PREQUEUE, "prequeue is inclusive"},
                {1999, ADM_SALE_PREQUEUE, "a moment before opening"},
                {2000, ADM_SALE_OPEN, "opening is inclusive"},
                {8999, ADM_SALE_OPEN, "last moment"},
                {9000, ADM_SALE_CLOSED, "closing is inclusive"},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (adm_sale_state(&f, NULL, rows[i].now_ms) != rows[i].want)
                        fail_msg("%s", rows[i].why);
        f.prequeue_at_ms = 0;
        assert_int_equal(adm_sale_state(&f, NULL, 1999), ADM_SALE_SCHEDULED);
        f.closes_at_ms = 0;
        assert_int_equal(adm_sale_state(&f, NULL, 99999), ADM_SALE_OPEN);
}

static void test_states_by_precedence(void **state) {
        (void)state;
        struct adm_sale_facts f = sale();
        f.paused = true;
        assert_int_equal(adm_sale_state(&f, NULL, 1500), ADM_SALE_PREQUEUE);
        assert_int_equal(adm_sale_state(&f, NULL, 3000), ADM_SALE_PAUSED);
        f.paused = false;
        f.hard_pause = true;
        assert_int_equal(adm_sale_state(&f, NULL, 3000), ADM_SALE_PAUSED);
        f.stock.available = 0;
        assert_int_equal(adm_sale_state(&f, NULL, 3000), ADM_SALE_PAUSED);
        f.hard_pause = false;
        assert_int_equal(adm_sale_state(&f, NULL, 3000), ADM_SALE_ALL_HELD);
        f.stock.held = 0;
        assert_int_equal(adm_sale_state(&f, NULL, 3000), ADM_SALE_SOLD_OUT);
        assert_int_equal(adm_sale_state(&f, NULL, 1500), ADM_SALE_PREQUEUE);
        f.paused = true;
        assert_int_equal(adm_sale_state(&f, NULL, 3000), ADM_SALE_SOLD_OUT);
        f.closed = true;
        assert_int_equal(adm_sale_state(&f, NULL, 3000), ADM_SALE_CLOSED);
        f = sale();
        f.queue = ADM_QUEUE_REJECT;
        assert_int_equal(adm_sale_state(&f, NULL, 3000), ADM_SALE_CLOSED);
        f = sale();
        f.has_item = false;
        f.stock = (struct adm_stock){0};
        assert_int_equal(adm_sale_state(&f, NULL, 3000), ADM_SALE_OPEN);
}

static void test_all_held_is_told_late_and_its_end_at_once(void **state) {
        (void)state;
        struct adm_sale_facts f = sale();
        struct adm_sale_shown shown = {0};
        assert_int_equal(adm_sale_state(&f, &shown, 3000), ADM_SALE_OPEN);
        f.stock.available = 0;
        assert_int_equal(adm_sale_state(&f, &shown, 3100), ADM_SALE_OPEN);
        assert_int_equal(adm_sale_state(&f, &shown, 5099), ADM_SALE_OPEN);
        f.stock.available = 1; /* came back in time: never shown */
        assert_int_equal(adm_sale_state(&f, &shown, 5100), ADM_SALE_OPEN);
        f.stock.available = 0;
        assert_int_equal(adm_sale_state(&f, &shown, 5200), ADM_SALE_OPEN);
        assert_int_equal(adm_sale_state(&f, &shown, 7200), ADM_SALE_ALL_HELD);
        f.closes_at_ms = 0;
        f.stock.available = 1; /* somebody can buy: told at once */
        assert_int_equal(adm_sale_state(&f, &shown, 7300), ADM_SALE_OPEN);
        f.stock.available = 0; /* and gone again: not before it has lasted */
        assert_int_equal(adm_sale_state(&f, &shown, 7400), ADM_SALE_OPEN);
        assert_int_equal(adm_sale_state(&f, &shown, 9399), ADM_SALE_OPEN);
        assert_int_equal(adm_sale_state(&f, &shown, 9400), ADM_SALE_ALL_HELD);
        f.stock = (struct adm_stock){.sold = 10, .total = 10};
        assert_int_equal(adm_sale_state(&f, &shown, 9301), ADM_SALE_SOLD_OUT);
}

static void test_check_names_the_fault(void **state) {
        (void)state;
        struct adm_sale_facts f = sale();
        assert_int_equal(adm_sale_check(&f), ADM_SALE_GOOD);
        static const char *bad_ids[] = {"", "-a", "A", "a_b", "a b", "a/b"};
        for (size_t i = 0; i < sizeof(bad_ids) / sizeof(bad_ids[0]); i++) {
                f = sale();
                (void)snprintf(f.id, sizeof(f.id), "%s", bad_ids[i]);
                assert_int_equal(adm_sale_check(&f), ADM_SALE_BAD_ID);
        }
        f = sale();
        memset(f.id, 'a', sizeof(f.id));
        assert_int_equal(adm_sale_check(&f), ADM_SALE_BAD_ID);
        f = sale();
        f.prequeue_at_ms = 2001; /* opened early */
        f.closes_at_ms = 2000;
        assert_int_equal(adm_sale_check(&f), ADM_SALE_GOOD);
        f = sale();
        f.opens_at_ms = -1;
        assert_int_equal(adm_sale_check(&f), ADM_SALE_BAD_WINDOW);
        f = sale();
        f.queue = ADM_QUEUE_DRAW;
        assert_int_equal(adm_sale_check(&f), ADM_SALE_BAD_QUEUE);
        f.queue = ADM_QUEUE_RANDOM;
        assert_int_equal(adm_sale_check(&f), ADM_SALE_BAD_QUEUE);
        f.queue = ADM_QUEUE_PASSTHROUGH;
        assert_int_equal(adm_sale_check(&f), ADM_SALE_GOOD);
}

static void test_numbers_have_ranges(void **state) {
        (void)state;
        static const struct {
                size_t at;
                uint32_t low;
                uint32_t high;
        } rows[] = {
                {offsetof(struct adm_sale_facts, overbook_milli), 1000, 2000},
                {offsetof(struct adm_sale_facts, per_account), 1, 1000000},
                {offsetof(struct adm_sale_facts, hold_seconds), 1, 86400},
                {offsetof(struct adm_sale_facts, extend_seconds), 0, 86400},
                {offsetof(struct adm_sale_facts, first_use_seconds), 1, 86400},
                {offsetof(struct adm_sale_facts, pass_seconds), 1, 86400},
                {offsetof(struct adm_sale_facts, skip_seconds), 1, 86400},
                {offsetof(struct adm_sale_facts, forget_seconds), 1, 86400},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                uint32_t tries[4] = {rows[i].low, rows[i].high, rows[i].low - 1, rows[i].high + 1};
                for (int t = 0; t < 4; t++) {
                        struct adm_sale_facts f = sale();
                        memcpy((char *)&f + rows[i].at, &tries[t], sizeof(tries[t]));
                        int want = t < 2 ? ADM_SALE_GOOD : ADM_SALE_BAD_NUMBER;
                        assert_int_equal(adm_sale_check(&f), want);
                }
        }
}

static void test_newer_stock_wins_by_timeline_then_n_then_time(void **state) {
        (void)state;
        struct adm_stock a = {.timeline = 1, .n = 5, .db_now_ms = 10}, b = a;
        assert_int_equal(adm_stock_compare(&a, &b), 0);
        b.db_now_ms = 11;
        assert_true(adm_stock_compare(&a, &b) < 0 && adm_stock_compare(&b, &a) > 0);
        a.n = 6;
        assert_true(adm_stock_compare(&a, &b) > 0 && adm_stock_compare(&b, &a) < 0);
        b.timeline = 2;
        assert_true(adm_stock_compare(&a, &b) < 0 && adm_stock_compare(&b, &a) > 0);
}

static void test_names_are_the_contracts(void **state) {
        (void)state;
        static const char *sales[] = {"scheduled", "prequeue", "open",  "paused",
                                      "all_held",  "sold_out", "closed"};
        for (int i = 0; i < 7; i++)
                assert_string_equal(adm_sale_state_name((enum adm_sale_state)i), sales[i]);
        static const char *places[] = {"not_open", "waiting",  "ready",  "admitted", "all_held",
                                       "paused",   "sold_out", "closed", "line_full"};
        for (int i = 0; i < 9; i++)
                assert_string_equal(adm_place_state_name((enum adm_place_state)i), places[i]);
        static const char *reasons[] = {"forgotten", "turn_missed", "ticket_invalid",
                                        "other_account", "round_over"};
        assert_null(adm_reason_name(ADM_REASON_NONE));
        for (int i = 0; i < 5; i++)
                assert_string_equal(adm_reason_name((enum adm_reason)(i + 1)), reasons[i]);
        for (int i = 0; i < 5; i++)
                assert_string_not_equal(adm_sale_fault_name(i), "unknown");
        assert_string_equal(adm_sale_fault_name(99), "unknown");
        assert_string_equal(adm_sale_state_name((enum adm_sale_state)99), "unknown");
        assert_string_equal(adm_place_state_name((enum adm_place_state)99), "unknown");
        assert_null(adm_reason_name((enum adm_reason)99));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_states_follow_the_clock),
                cmocka_unit_test(test_states_by_precedence),
                cmocka_unit_test(test_all_held_is_told_late_and_its_end_at_once),
                cmocka_unit_test(test_check_names_the_fault),
                cmocka_unit_test(test_numbers_have_ranges),
                cmocka_unit_test(test_newer_stock_wins_by_timeline_then_n_then_time),
                cmocka_unit_test(test_names_are_the_contracts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
