/* The origin's snapshot document, from its bytes to what workers answer by:
 * facts, rules, flags; and a request's body by the same library. */
#include <stdlib.h>

#include "gateway/flag.h"
#include "gateway/parse.h"
#include "gateway/rule.h"
#include "net/json.h"
#include "tests/fuzz/fuzz.h"

#define NOW 1796040000123

static void sale_free(struct gw_sale *s) {
        free(s->match.at);
        free(s->bypass.at);
}

static void rule_check(const struct gw_rules *rules) {
        FUZZ_CHECK(rules->count <= GW_RULES_MAX);
        for (size_t i = 0; i < rules->count; i++) {
                const struct gw_rule *rule = &rules->at[i];
                FUZZ_CHECK(rule->path.p && rule->path.len > 0 && rule->path.p[0] == '/');
                (void)gw_rule_matches(rule, SPAN("shop.test"), SPAN("/a/b"));
                FUZZ_CHECK(gw_rule_matches(rule, rule->host, rule->path) || rule->host.p);
        }
}

static void sale_run(const json_t *document, const json_t *row, const struct gw_items *items) {
        struct gw_sale s = {0};
        struct adm_sale_update u;
        char text[GW_FLAG_MAX];
        int r = gw_parse_sale(row, items, NOW, &s);
        FUZZ_CHECK(r == 0 || r == 1);
        if (r == 0) {
                FUZZ_CHECK(strlen(s.facts.id) > 0 && memchr(s.facts.tenant, 0, ADM_ID_LEN));
                rule_check(&s.match);
                rule_check(&s.bypass);
                s.state = s.facts.stock.available > 0 ? ADM_SALE_OPEN : ADM_SALE_SOLD_OUT;
                FUZZ_CHECK(gw_flag_render(&s, text) <= GW_FLAG_MAX);
                FUZZ_CHECK(gw_parse_update(document, &s, &u) == 0);
                gw_parse_free_update(&u);
        }
        sale_free(&s);
}

static void document_run(struct span text) {
        json_error_t why;
        size_t i;
        const json_t *row;
        json_t *document = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why);
        struct gw_items items;
        if (!document)
                return;
        (void)json_get_int(document, "now", 0);
        (void)json_get_bool(document, "unchanged", false);
        FUZZ_CHECK(gw_items_init(&items, json_object_get(document, "items")) == 0);
        json_array_foreach(json_object_get(document, "sales"), i, row) {
                sale_run(document, row, &items);
        }
        gw_items_fini(&items);
        json_decref(document);
}

static const char *const choices[] = {"one", "two", NULL};

static void body_read(struct json_body *b) {
        int64_t number;
        int64_t at_ms;
        double real;
        bool flag;
        int choice;
        struct span s;
        const json_t *array;
        const json_t *object;
        if (json_read_int(b, "qty", JSON_REQUIRED, 1, 100, &number))
                FUZZ_CHECK(number >= 1 && number <= 100);
        if (json_read_real(b, "overbook", JSON_OPTIONAL, 1, 2, &real))
                FUZZ_CHECK(real >= 1 && real <= 2);
        (void)json_read_bool(b, "paused", JSON_NULLABLE, &flag);
        if (json_read_str(b, "sale", JSON_NULLABLE, 1, 63, &s))
                FUZZ_CHECK(s.len >= 1 && s.len <= 63 && s.p[s.len] == '\0');
        if (json_read_choice(b, "queue", JSON_OPTIONAL, choices, &choice))
                FUZZ_CHECK(choice >= 0 && choice < 2);
        (void)json_read_time(b, "opens_at", JSON_OPTIONAL, &at_ms);
        if (json_read_array(b, "lines", JSON_OPTIONAL, 10, &array))
                FUZZ_CHECK(json_array_size(array) <= 10);
        if (json_read_object(b, "extra", JSON_OPTIONAL, &object)) {
                struct json_body inner;
                json_body_borrow(&inner, object, "extra.");
                (void)json_read_int(&inner, "qty", JSON_OPTIONAL, 0, 5, &number);
                FUZZ_CHECK((json_body_finish(&inner) == 0) == (inner.error[0] == '\0'));
                json_body_close(&inner);
        }
}

static void body_run(struct span text) {
        static char out[65536];
        struct json_body b;
        struct json_out o;
        int r = json_body_open(&b, text);
        FUZZ_CHECK((r == 0) == (b.error[0] == '\0'));
        if (r == 0) {
                json_out_init(&o, out, sizeof out);
                json_out_tree(&o, NULL, b.root);
                FUZZ_CHECK(text.len > 4000 || json_out_done(&o).p);
                body_read(&b);
                FUZZ_CHECK((json_body_finish(&b) == 0) == (b.error[0] == '\0'));
        }
        FUZZ_CHECK(memchr(b.error, 0, sizeof b.error));
        json_body_close(&b);
        json_out_init(&o, out, sizeof out);
        json_out_str(&o, NULL, text);
        struct span done = json_out_done(&o);
        FUZZ_CHECK(text.len > 8000 || done.p);
        json_t *back = done.p ? json_loadb(done.p, done.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                              : NULL;
        FUZZ_CHECK(!done.p || json_is_string(back));
        json_decref(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct span in = fuzz_copy(data, size);
        document_run(in);
        body_run(in);
        free((void *)(uintptr_t)in.p);
        return 0;
}
