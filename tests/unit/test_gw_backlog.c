#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/backlog.h"

#define SHARE 2

static void test_nobody_is_cut_within_share_and_time(void **state) {
        struct gw_backlog b = {0};
        struct gw_unread u[SHARE] = {0};

        (void)state;
        assert_null(gw_backlog_victim(&b, SHARE, 0));
        for (size_t i = 0; i < SHARE; i++)
                gw_backlog_add(&b, &u[i], 7, 100);
        assert_null(gw_backlog_victim(&b, SHARE, 100 + GW_BACKLOG_STALL_MS - 1));
}

static void test_who_has_more_than_the_share_loses_the_longest_unread(void **state) {
        struct gw_backlog b = {0};
        struct gw_unread honest = {0}, greedy[SHARE + 2] = {0};

        (void)state;
        gw_backlog_add(&b, &honest, 1, 100);
        for (size_t i = 0; i < SHARE + 2; i++)
                gw_backlog_add(&b, &greedy[i], 7, 100 + (int64_t)i);
        for (size_t i = 0; i < 2; i++) {
                assert_ptr_equal(gw_backlog_victim(&b, SHARE, 200), &greedy[i]);
                gw_backlog_remove(&b, &greedy[i]);
        }
        assert_null(gw_backlog_victim(&b, SHARE, 200));
        assert_int_equal(b.count, SHARE + 1);
}

static void test_who_reads_nothing_for_long_loses_within_the_share(void **state) {
        struct gw_backlog b = {0};
        struct gw_unread old = {0}, young = {0};

        (void)state;
        gw_backlog_add(&b, &old, 1, 100);
        gw_backlog_add(&b, &young, 2, 200);
        /* Saying it again does not make it younger. */
        gw_backlog_add(&b, &old, 1, 300);
        assert_ptr_equal(gw_backlog_victim(&b, SHARE, 100 + GW_BACKLOG_STALL_MS), &old);
        gw_backlog_remove(&b, &old);
        assert_null(gw_backlog_victim(&b, SHARE, 100 + GW_BACKLOG_STALL_MS));
        assert_ptr_equal(gw_backlog_victim(&b, SHARE, 200 + GW_BACKLOG_STALL_MS), &young);
}

static void test_leaving_in_any_order_leaves_nothing(void **state) {
        static const size_t order[] = {1, 3, 0, 2};
        struct gw_backlog b = {0};
        struct gw_unread u[4] = {0};

        (void)state;
        for (size_t i = 0; i < 4; i++)
                gw_backlog_add(&b, &u[i], i, 1);
        for (size_t i = 0; i < 4; i++) {
                gw_backlog_remove(&b, &u[order[i]]);
                gw_backlog_remove(&b, &u[order[i]]);
                assert_int_equal(b.count, 3 - i);
        }
        assert_null(b.first);
        assert_null(b.last);
        for (size_t i = 0; i < GW_BACKLOG_CLIENTS; i++)
                assert_int_equal(b.of_client[i], 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nobody_is_cut_within_share_and_time),
                cmocka_unit_test(test_who_has_more_than_the_share_loses_the_longest_unread),
                cmocka_unit_test(test_who_reads_nothing_for_long_loses_within_the_share),
                cmocka_unit_test(test_leaving_in_any_order_leaves_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
