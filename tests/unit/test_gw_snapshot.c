/* The origin's document becomes facts, rules and flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "gateway/flag.h"
#include "gateway/parse.h"
#include "gateway/rule.h"
#include "gateway/sale_clock.h"

#include <stdlib.h>

#define NOW 1796040000123

static json_t *parse(const char *text) {
        json_error_t why;
        json_t *root = json_loads(text, 0, &why);
        if (!root)
                fail_msg("%s", why.text);
        return root;
}

static const char sale_text[] =
        "{\"sale\":\"demo\",\"tenant\":\"shop\",\"item\":\"grinder\","
        "\"opens_at\":\"2026-11-30T12:00:00Z\",\"prequeue_at\":null,"
        "\"closes_at\":\"2026-11-30T14:00:00+01:00\",\"queue\":\"fifo\",\"overbook\":1.25,"
        "\"rate_per_minute\":600,\"max_active\":7,\"per_account\":2,\"hold_seconds\":60,"
        "\"match\":[{\"host\":null,\"path\":\"/demo\",\"prefix\":true}],\"bypass\":[],"
        "\"upstream\":\"shop\",\"pages\":null,\"identity\":\"guest\",\"login_url\":\"https://l\","
        "\"left\":\"exact\",\"state\":\"open\",\"round\":3,\"version\":9,\"paused\":true,"
        "\"hard\":true,\"closed\":false}";

static const char items_text[] =
        "[{\"tenant\":\"shop\",\"item\":\"other\",\"total\":1,\"available\":1,\"held\":0,"
        "\"sold\":0,\"version\":\"1.1\"},"
        "{\"tenant\":\"shop\",\"item\":\"grinder\",\"total\":100,\"available\":42,\"held\":8,"
        "\"sold\":50,\"version\":\"2.108\"}]";

static void free_sale(struct gw_sale *s) {
        free(s->match.at);
        free(s->bypass.at);
        memset(s, 0, sizeof *s);
}

static void test_a_sale_is_read_whole(void **state) {
        json_t *row = parse(sale_text), *rows = parse(items_text);
        struct gw_items items;
        struct gw_sale s = {0};
        (void)state;
        assert_int_equal(gw_items_init(&items, rows), 0);
        assert_int_equal(gw_parse_sale(row, &items, NOW, &s), 0);
        const struct adm_sale_facts *f = &s.facts;
        assert_string_equal(f->id, "demo");
        assert_string_equal(f->tenant, "shop");
        assert_string_equal(f->item, "grinder");
        assert_true(f->has_item);
        assert_int_equal(f->opens_at_ms, 1796040000000);
        assert_int_equal(f->prequeue_at_ms, 0);
        assert_int_equal(f->closes_at_ms, 1796043600000);
        assert_int_equal(f->overbook_milli, 1250);
        assert_int_equal(f->rate_per_minute, 600);
        assert_int_equal(f->max_active, 7);
        assert_int_equal(f->per_account, 2);
        assert_int_equal(f->hold_seconds, 60);
        assert_int_equal(f->extend_seconds, 300); /* the default: it was not sent */
        assert_int_equal(f->round, 3);
        assert_int_equal(f->version, 9);
        assert_true(f->paused && f->hard_pause && !f->closed);
        assert_int_equal(f->identity, ADM_IDENTITY_GUEST);
        assert_int_equal(f->stock.timeline, 2);
        assert_int_equal(f->stock.n, 108);
        assert_int_equal(f->stock.available, 42);
        assert_int_equal(f->stock.held, 8);
        assert_int_equal(f->stock.sold, 50);
        assert_int_equal(f->stock.db_now_ms, NOW);
        assert_int_equal(s.left, GW_LEFT_EXACT);
        assert_string_equal(s.upstream, "shop");
        assert_string_equal(s.login_url, "https://l");
        assert_int_equal(s.match.count, 1);
        assert_null(s.match.at[0].host.p);
        assert_true(s.match.at[0].prefix);
        free_sale(&s);
        gw_items_fini(&items);
        json_decref(row);
        json_decref(rows);
}

static void test_a_sale_that_is_wrong_is_unusable_alone(void **state) {
        static const struct {
                const char *field, *value;
        } rows[] = {
                {"sale", "\"Bad\""},
                {"sale", "5"},
                {"tenant", "null"},
                {"queue", "\"lottery\""},
                {"identity", "\"anyone\""},
                {"left", "\"lots\""},
                {"match", "[{\"host\":null,\"path\":\"/a//b\",\"prefix\":true}]"},
                {"match", "[{\"host\":null,\"path\":\"a\",\"prefix\":true}]"},
                {"bypass", "[{\"host\":null}]"},
        };
        json_t *all = parse(items_text);
        struct gw_items items;
        (void)state;
        assert_int_equal(gw_items_init(&items, all), 0);
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                json_t *row = parse(sale_text);
                struct gw_sale s = {0};
                json_t *value = json_loads(rows[i].value, JSON_DECODE_ANY, NULL);
                assert_int_equal(json_object_set_new(row, rows[i].field, value), 0);
                assert_int_equal(gw_parse_sale(row, &items, NOW, &s), 1);
                free_sale(&s);
                json_decref(row);
        }
        gw_items_fini(&items);
        json_decref(all);
}

static void test_the_store_is_told_of_this_sales_passes_alone(void **state) {
        json_t *doc = parse(
                "{\"converted\":["
                "{\"sale\":\"demo\",\"round\":3,\"jti\":\"AAAAAAAAAAAAAAAAAAAAAQ\",\"qty\":2,"
                "\"state\":\"held\",\"hold_end_ms\":5},"
                "{\"sale\":\"demo\",\"round\":2,\"jti\":\"AAAAAAAAAAAAAAAAAAAAAQ\",\"qty\":2,"
                "\"state\":\"held\",\"hold_end_ms\":5},"
                "{\"sale\":\"other\",\"round\":3,\"jti\":\"AAAAAAAAAAAAAAAAAAAAAQ\",\"qty\":2,"
                "\"state\":\"held\",\"hold_end_ms\":5},"
                "{\"sale\":\"demo\",\"round\":3,\"jti\":\"AAAAAAAAAAAAAAAAAAAAAQ\",\"qty\":2,"
                "\"state\":\"released\",\"hold_end_ms\":5},"
                "{\"sale\":\"demo\",\"round\":3,\"jti\":\"short\",\"qty\":2,\"state\":\"held\"}],"
                "\"revocations\":[{\"sale\":\"demo\",\"account\":\"bot\",\"round\":3,\"at_ms\":7},"
                "{\"sale\":\"demo\",\"account\":\"bot\",\"round\":1,\"at_ms\":7}]}");
        struct gw_sale s = {.facts = {.id = "demo", .round = 3}};
        struct adm_sale_update u;
        (void)state;
        assert_int_equal(gw_parse_update(doc, &s, &u), 0);
        assert_int_equal(u.n_converted, 1);
        assert_int_equal(u.converted[0].qty, 2);
        assert_int_equal(u.converted[0].hold_end_ms, 5);
        assert_int_equal(u.converted[0].jti[15], 1);
        assert_int_equal(u.n_revoked, 1);
        struct adm_tag bot = adm_account_tag("bot", 3, false);
        assert_true(adm_tag_equal(&u.revoked[0].tag, &bot));
        assert_int_equal(u.revoked[0].at_ms, 7);
        gw_parse_free_update(&u);
        json_decref(doc);
}

/* ---- flags ---- */

static struct gw_sale sale_in(enum adm_sale_state state, enum gw_left left, int64_t available) {
        return (struct gw_sale){
                .facts = {.id = "demo",
                          .opens_at_ms = 1796040000000,
                          .has_item = true,
                          .stock = {.available = available}},
                .state = state,
                .left = left,
                .flag_version = 4,
                .flag_as_of_ms = NOW,
        };
}

static void assert_flag(struct gw_sale s, const char *text) {
        char out[GW_FLAG_MAX + 1];
        size_t n = gw_flag_render(&s, out);
        out[n] = '\0';
        assert_string_equal(out, text);
}

static void test_a_flag_reads_as_the_contract_says(void **state) {
        (void)state;
        assert_flag(sale_in(ADM_SALE_OPEN, GW_LEFT_HIDDEN, 5),
                    "{\"sale\":\"demo\",\"state\":\"open\",\"sold_out\":false,"
                    "\"opens_at\":\"2026-11-30T12:00:00Z\",\"closes_at\":null,\"left\":null,"
                    "\"version\":4,\"as_of\":\"2026-11-30T12:00:00.123Z\"}");
        assert_flag(sale_in(ADM_SALE_SOLD_OUT, GW_LEFT_EXACT, 0),
                    "{\"sale\":\"demo\",\"state\":\"sold_out\",\"sold_out\":true,"
                    "\"opens_at\":\"2026-11-30T12:00:00Z\",\"closes_at\":null,\"left\":0,"
                    "\"version\":4,\"as_of\":\"2026-11-30T12:00:00.123Z\"}");
        assert_flag(sale_in(ADM_SALE_ALL_HELD, GW_LEFT_FEW, 3),
                    "{\"sale\":\"demo\",\"state\":\"all_held\",\"sold_out\":false,"
                    "\"opens_at\":\"2026-11-30T12:00:00Z\",\"closes_at\":null,\"left\":\"few\","
                    "\"version\":4,\"as_of\":\"2026-11-30T12:00:00.123Z\"}");
}

static void test_only_what_a_flag_shows_counts_as_a_change(void **state) {
        struct gw_sale hidden = sale_in(ADM_SALE_OPEN, GW_LEFT_HIDDEN, 5);
        struct gw_sale fewer = sale_in(ADM_SALE_OPEN, GW_LEFT_HIDDEN, 4);
        struct gw_sale exact = sale_in(ADM_SALE_OPEN, GW_LEFT_EXACT, 5);
        struct gw_sale less = sale_in(ADM_SALE_OPEN, GW_LEFT_EXACT, 4);
        struct gw_sale paused = sale_in(ADM_SALE_PAUSED, GW_LEFT_HIDDEN, 5);
        (void)state;
        struct gw_flag a = gw_flag_of(&hidden), b = gw_flag_of(&fewer);
        assert_true(gw_flag_equal(&a, &b));
        a = gw_flag_of(&exact);
        b = gw_flag_of(&less);
        assert_false(gw_flag_equal(&a, &b));
        a = gw_flag_of(&hidden);
        b = gw_flag_of(&paused);
        assert_false(gw_flag_equal(&a, &b));
}

/* ---- rules ---- */

static void test_a_rule_matches_by_host_and_to_a_segment_border(void **state) {
        static const struct {
                const char *host, *path;
                bool prefix;
                const char *asked_host, *asked_path;
                bool matches;
        } rows[] = {
                {NULL, "/shop", true, "a.test", "/shop", true},
                {NULL, "/shop", true, "a.test", "/shop/x", true},
                {NULL, "/shop", true, "a.test", "/shopping", false},
                {NULL, "/shop/", true, "a.test", "/shop/x", true},
                {NULL, "/shop/", true, "a.test", "/shop", false},
                {NULL, "/", true, "a.test", "/anything", true},
                {NULL, "/shop", false, "a.test", "/shop", true},
                {NULL, "/shop", false, "a.test", "/shop/", false},
                {"a.test", "/shop", true, "a.test", "/shop", true},
                {"A.test", "/shop", true, "a.test", "/shop", true},
                {"a.test", "/shop", true, "b.test", "/shop", false},
        };
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct gw_rule rule = {span_of(rows[i].host), span_of(rows[i].path),
                                       rows[i].prefix};
                assert_int_equal(gw_rule_matches(&rule, span_of(rows[i].asked_host),
                                                 span_of(rows[i].asked_path)),
                                 rows[i].matches);
        }
}

static void test_the_longest_rule_decides_and_bypass_is_an_exception(void **state) {
        struct gw_rule wide[] = {{{NULL, 0}, SPAN("/"), true}};
        struct gw_rule shop[] = {{{NULL, 0}, SPAN("/shop"), true}};
        struct gw_rule pay[] = {{{NULL, 0}, SPAN("/shop/pay"), true}};
        struct gw_rule all[] = {{{NULL, 0}, SPAN("/old"), true}, {{NULL, 0}, SPAN("/shop"), true}};
        struct gw_sale sales[] = {
                {.facts = {.id = "a"}, .state = ADM_SALE_CLOSED, .match = {all, 2}},
                {.facts = {.id = "b"},
                 .state = ADM_SALE_OPEN,
                 .match = {shop, 1},
                 .bypass = {pay, 1}},
                {.facts = {.id = "c"}, .state = ADM_SALE_OPEN, .match = {wide, 1}},
        };
        struct gw_snapshot s = {.sales = sales, .n_sales = 3};
        const struct gw_sale *found;
        (void)state;
        assert_int_equal(gw_rules_build(&s), 0);
        assert_int_equal(gw_rules_find(&s, SPAN("x"), SPAN("/shop/x"), &found), GW_RULE_GATED);
        assert_string_equal(found->facts.id, "b"); /* a has the same rule, but is over */
        assert_int_equal(gw_rules_find(&s, SPAN("x"), SPAN("/shop/pay/n"), &found),
                         GW_RULE_BYPASSED);
        assert_string_equal(found->facts.id, "b");
        assert_int_equal(gw_rules_find(&s, SPAN("x"), SPAN("/old"), &found), GW_RULE_GATED);
        assert_string_equal(found->facts.id, "a");
        assert_int_equal(gw_rules_find(&s, SPAN("x"), SPAN("/else"), &found), GW_RULE_GATED);
        assert_string_equal(found->facts.id, "c");
        s.n_ranked = 0;
        assert_int_equal(gw_rules_find(&s, SPAN("x"), SPAN("/shop"), &found), GW_RULE_NONE);
        assert_null(found);
        free(s.ranked);
}

/* ---- the origin's clock ---- */

static void test_sale_time_follows_up_at_once_and_down_slowly(void **state) {
        struct gw_shared s = {0};
        (void)state;
        int64_t moved_at_ms = 1000;
        gw_sale_clock_init(&s, 1000000, 1000);
        assert_int_equal(gw_sale_time_ms(&s, 1000), 1000000);
        gw_sale_clock_hear(&s, 1005200, 1200, &moved_at_ms); /* ahead by 5 s */
        assert_int_equal(gw_sale_time_ms(&s, 1200), 1005200);
        gw_sale_clock_hear(&s, 1005300, 1400, &moved_at_ms); /* 100 ms late: a delay */
        assert_int_equal(gw_sale_time_ms(&s, 1400), 1005400);
        gw_sale_clock_hear(&s, 1006100, 2200, &moved_at_ms); /* still: a slower clock */
        assert_int_equal(gw_sale_time_ms(&s, 2200), 1006199);
        int64_t before = gw_sale_time_ms(&s, 2200);
        gw_sale_clock_hear(&s, 5000, 3200, &moved_at_ms); /* the clock was set back */
        assert_int_equal(gw_sale_time_ms(&s, 3200), before + 500);
}

static void test_the_origin_is_away_after_its_time(void **state) {
        struct gw_shared s = {.away_after_ms = 3000};
        (void)state;
        gw_sale_clock_init(&s, 0, 0);
        assert_true(gw_origin_is_away(&s, 10));
        atomic_store(&s.snapshot_at_ms, 1000);
        assert_false(gw_origin_is_away(&s, 4000));
        assert_true(gw_origin_is_away(&s, 4001));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_sale_is_read_whole),
                cmocka_unit_test(test_a_sale_that_is_wrong_is_unusable_alone),
                cmocka_unit_test(test_the_store_is_told_of_this_sales_passes_alone),
                cmocka_unit_test(test_a_flag_reads_as_the_contract_says),
                cmocka_unit_test(test_only_what_a_flag_shows_counts_as_a_change),
                cmocka_unit_test(test_a_rule_matches_by_host_and_to_a_segment_border),
                cmocka_unit_test(test_the_longest_rule_decides_and_bypass_is_an_exception),
                cmocka_unit_test(test_sale_time_follows_up_at_once_and_down_slowly),
                cmocka_unit_test(test_the_origin_is_away_after_its_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
