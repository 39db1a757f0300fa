/* origin/broken.h: the item of a refused row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "origin/broken.h"

#define LONG "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabc"

static const struct {
        const char *why, *table, *detail, *tenant, *item;
} rows[] = {
        {"an item", "item", "Failing row contains (shop, i-1, , 5, 4, 2).", "shop", "i-1"},
        {"in German", "item", "Fehlgeschlagene Zeile enthält (t, G.x_1, , 5).", "t", "G.x_1"},
        {"a hold", "hold", "Failing row contains (shop, 0b1c, grinder, , s).", "shop", "grinder"},
        {"longest names", "item", "(" LONG ", " LONG ", , 1)", LONG, LONG},
        {"another table", "sale", "Failing row contains (shop, i-1, , 5).", NULL, NULL},
        {"no row", "item", "Failing", NULL, NULL},
        {"too few values", "item", "Failing row contains (shop).", NULL, NULL},
        {"cut off", "item", "Failing row contains (shop,", NULL, NULL},
        {"cut behind the comma", "hold", "(shop, id,", NULL, NULL},
        {"an empty name", "item", "(, i, , 5)", NULL, NULL},
        {"not a name of ours", "item", "(shop, a b, , 5)", NULL, NULL},
        {"longer than ours", "item", "(" LONG "d, i, , 5)", NULL, NULL},
        {"nothing behind the bracket", "item", "(", NULL, NULL},
};

static void test_rows(void **state) {
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct span tenant, item;

                print_message("%s\n", rows[i].why);
                assert_int_equal(org_broken_row(span_of(rows[i].table), span_of(rows[i].detail),
                                                &tenant, &item),
                                 rows[i].item != NULL);
                if (!rows[i].item)
                        continue;
                assert_true(span_eq(tenant, span_of(rows[i].tenant)));
                assert_true(span_eq(item, span_of(rows[i].item)));
        }
}

static void test_no_detail(void **state) {
        struct span tenant, item;

        (void)state;
        assert_false(org_broken_row(SPAN("item"), (struct span){NULL, 0}, &tenant, &item));
}

int main(void) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows),
                                           cmocka_unit_test(test_no_detail)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
