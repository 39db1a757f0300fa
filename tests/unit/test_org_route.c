#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "origin/route.h"

static void assert_span(struct span s, const char *text) {
        assert_int_equal(s.len, strlen(text));
        assert_memory_equal(s.p, text, s.len);
}

static void test_each_path_names_its_resource(void **state) {
        static const struct {
                const char *path;
                enum org_resource resource;
        } rows[] = {
                {"/healthz", ORG_HEALTHZ},
                {"/readyz?x", ORG_READYZ},
                {"/metrics", ORG_METRICS},
                {"/v1/snapshot?after=a&wait=5", ORG_SNAPSHOT},
                {"/v1/invariant", ORG_INVARIANT},
                {"/v1/locks", ORG_LOCKS},
                {"/v1/sales", ORG_SALES},
                {"/v1/sales/s-1", ORG_SALE},
                {"/v1/sales/s-1/open", ORG_SALE_VERB},
                {"/v1/sales/s-1/revoke", ORG_SALE_VERB},
                {"/v1/sales/s-1/audit", ORG_SALE_AUDIT},
                {"/v1/audit", ORG_SALE_AUDIT},
                {"/v1/tenants/T/items/I", ORG_ITEM},
                {"/v1/tenants/T/items/I/holds", ORG_ITEM_HOLDS},
                {"/v1/tenants/T/orders", ORG_ORDERS},
                {"/v1/holds/h", ORG_HOLD},
                {"/v1/holds/h/events", ORG_HOLD_EVENTS},
                {"/v1/holds/h/confirm", ORG_HOLD_VERB},
                {"/v1/holds/h/ship", ORG_HOLD_VERB},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++)
                assert_int_equal(org_route_of(span_of(rows[i].path)).resource, rows[i].resource);
}

static void test_names_come_out_of_the_path(void **state) {
        struct org_route r = org_route_of(SPAN("/v1/tenants/shop/items/hand.grinder_4/holds?q"));

        (void)state;
        assert_span(r.tenant, "shop");
        assert_span(r.item, "hand.grinder_4");
        assert_span(r.query, "q");
        r = org_route_of(SPAN("/v1/sales/black-friday/pause"));
        assert_span(r.sale, "black-friday");
        assert_span(r.verb, "pause");
        r = org_route_of(SPAN("/v1/holds/a0f/extend"));
        assert_span(r.hold, "a0f");
        assert_span(r.verb, "extend");
}

static void test_what_is_not_ours_is_unknown_or_outside(void **state) {
        static const char *const unknown[] = {
                "/v1",
                "/v1/",
                "/v1/sale",
                "/v1/sales/",
                "/v1/sales/s/",
                "/v1/sales/s/x",
                "/v1/sales/s/open/",
                "/v1/holds",
                "/v1/holds/",
                "/v1/holds/h/x",
                "/v1/tenants/T",
                "/v1/tenants/T/items",
                "/v1/tenants",
                "/v1/invariant/",
                "/v1/tenants/T/items/I/holds/h",
                "/v1/a/b/c/d/e/f/g/h",
        };
        static const char *const outside[] = {"/",         "/v1x", "/demo", "/v2/sales",
                                              "/healthz/", "*",    "",      "v1/sales"};

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(unknown); i++)
                assert_int_equal(org_route_of(span_of(unknown[i])).resource, ORG_UNKNOWN);
        for (size_t i = 0; i < NET_COUNT_OF(outside); i++)
                assert_int_equal(org_route_of(span_of(outside[i])).resource, ORG_OUTSIDE);
}

static void test_a_bad_name_says_which(void **state) {
        static const struct {
                const char *path, *field;
        } rows[] = {
                {"/v1/sales/Big", "sale"},           {"/v1/sales/-a/open", "sale"},
                {"/v1/sales/a_b", "sale"},           {"/v1/tenants/a%2Fb/items/i", "tenant"},
                {"/v1/tenants/t/items/a b", "item"}, {"/v1/tenants/t/items/-i/holds", "item"},
                {"/v1/tenants/~/orders", "tenant"},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct org_route r = org_route_of(span_of(rows[i].path));

                assert_int_equal(r.resource, ORG_MALFORMED);
                assert_string_equal(r.field, rows[i].field);
                assert_non_null(r.expected);
        }
}

static void test_names_end_at_63(void **state) {
        char name[65];

        (void)state;
        memset(name, 'a', sizeof(name));
        assert_true(org_sale_name_is_good((struct span){name, 63}));
        assert_false(org_sale_name_is_good((struct span){name, 64}));
        assert_true(org_stock_name_is_good((struct span){name, 63}));
        assert_false(org_stock_name_is_good((struct span){name, 64}));
        assert_false(org_stock_name_is_good((struct span){name, 0}));
}

static void test_query_values_are_found_whole(void **state) {
        struct span q = SPAN("xafter=1&after=abc&wait=&after=z");

        (void)state;
        assert_span(org_query_value(q, SPAN("after")), "abc");
        assert_span(org_query_value(q, SPAN("wait")), "");
        assert_non_null(org_query_value(q, SPAN("wait")).p);
        assert_null(org_query_value(q, SPAN("aft")).p);
        assert_null(org_query_value((struct span){NULL, 0}, SPAN("after")).p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_path_names_its_resource),
                cmocka_unit_test(test_names_come_out_of_the_path),
                cmocka_unit_test(test_what_is_not_ours_is_unknown_or_outside),
                cmocka_unit_test(test_a_bad_name_says_which),
                cmocka_unit_test(test_names_end_at_63),
                cmocka_unit_test(test_query_values_are_found_whole),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
