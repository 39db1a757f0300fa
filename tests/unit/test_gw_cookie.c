/* Our cookies, those of others, and guests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "gateway/cookie.h"
#include "gateway/forward.h"
#include "gateway/guest.h"
#include "gateway/names.h"

static void assert_text(struct span s, const char *text) {
        assert_int_equal(s.len, strlen(text));
        assert_memory_equal(s.p, text, s.len);
}

static void test_cookies_have_the_flags_of_the_contract(void **state) {
        char out[512];
        (void)state;
        size_t n = gw_cookie_set(GW_COOKIE_TICKET, SPAN("demo"), SPAN("T"), out, sizeof out);
        assert_text((struct span){out, n},
                    "__Host-sluice-demo=T; Path=/; Secure; HttpOnly; SameSite=Lax");
        n = gw_cookie_set(GW_COOKIE_PASS, SPAN("demo"), SPAN("P"), out, sizeof out);
        assert_text((struct span){out, n},
                    "__Host-sluice-pass-demo=P; Path=/; Secure; HttpOnly; SameSite=Lax");
        n = gw_cookie_set(GW_COOKIE_TICKET, SPAN("demo"), (struct span){NULL, 0}, out, sizeof out);
        assert_text((struct span){out, n},
                    "__Host-sluice-demo=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0");
}

static void test_a_cookie_is_found_among_others(void **state) {
        static const char *const rows[] = {"__Host-sluice-demo=T", "a=1; __Host-sluice-demo=T; b=2",
                                           "b=2;__Host-sluice-demo=T",
                                           "__Host-sluice-demo2=X; __Host-sluice-demo=T",
                                           "__Host-sluice-demo=\"T\""};
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++)
                assert_text(gw_cookie_get(span_of(rows[i]), GW_COOKIE_TICKET, SPAN("demo")), "T");
        assert_null(gw_cookie_get(SPAN("__Host-sluice-demo="), GW_COOKIE_TICKET, SPAN("demo")).p);
        assert_null(gw_cookie_get(SPAN("x=__Host-sluice-demo"), GW_COOKIE_TICKET, SPAN("demo")).p);
        assert_null(gw_cookie_get((struct span){NULL, 0}, GW_COOKIE_TICKET, SPAN("demo")).p);
}

static void test_none_of_ours_leaves(void **state) {
        static const struct {
                const char *in, *out;
        } rows[] = {
                {"__Host-sluice-demo=T", ""},
                {"a=1; __Host-sluice-demo=T; b=2", "a=1; b=2"},
                {"__Host-sluice-pass-x=P;a=1;__host-SLUICE_guest=G", "a=1"},
                {"a=1;b=2;c=3", "a=1; b=2; c=3"},
                {" a=1 ;; ; b=\"x;y\"", "a=1; b=\"x; y\""},
                {"sluice=1; __Host-other=2", "sluice=1; __Host-other=2"},
                {"", ""},
        };
        char out[256];
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                size_t n = gw_cookie_strip(span_of(rows[i].in), out);
                assert_true(n <= 2 * strlen(rows[i].in));
                assert_text((struct span){out, n}, rows[i].out);
        }
        assert_true(gw_cookie_is_ours(SPAN(" __Host-sluice-demo=x; Path=/")));
        assert_false(gw_cookie_is_ours(SPAN("session=__Host-sluice")));
}

static void test_hop_by_hop_and_gateway_fields_go_no_further(void **state) {
        static const char *const dropped[] = {
                "connection",      "keep-alive",      "transfer-encoding",
                "upgrade",         "trailer",         "te",
                "content-length",  "sluice-done",     "sluice-available",
                "sluice-version",  "sluice-anything", ":status",
                "proxy-connection"};
        static const char *const kept[] = {"content-type", "etag",     "set-cookie",    "location",
                                           "date",         "x-sluice", "cache-control", "vary"};
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(dropped); i++)
                assert_true(gw_forward_drops(span_of(dropped[i])));
        for (size_t i = 0; i < NET_COUNT_OF(kept); i++)
                assert_false(gw_forward_drops(span_of(kept[i])));
}

static void test_a_guest_cookie_is_known_again_and_no_other(void **state) {
        uint8_t key[GW_GUEST_KEY_LEN], other[GW_GUEST_KEY_LEN];
        char text[GW_GUEST_TEXT_LEN];
        struct adm_tag guest = gw_guest_new(), read;
        (void)state;
        gw_guest_key("secret", 6, key);
        gw_guest_key("secreT", 6, other);
        gw_guest_encode(key, &guest, text);
        struct span s = {text, sizeof text};
        assert_true(gw_guest_decode(key, s, &read));
        assert_true(adm_tag_equal(&guest, &read));
        assert_false(gw_guest_decode(other, s, &read));
        assert_false(gw_guest_decode(key, (struct span){text, sizeof text - 1}, &read));
        for (size_t i = 0; i < sizeof text; i++) {
                char was = text[i];
                text[i] = was == 'A' ? 'B' : 'A';
                assert_false(gw_guest_decode(key, s, &read));
                text[i] = was;
        }
        assert_true(gw_guest_decode(key, s, &read));
}

static void test_a_guests_name_is_read_back_and_no_other_is_one(void **state) {
        char name[GW_GUEST_NAME_LEN];
        struct adm_tag guest = gw_guest_new(), read;
        (void)state;
        gw_guest_name(&guest, name);
        assert_true(jwt_sub_is_good((struct span){name, sizeof name}));
        assert_true(gw_guest_of_name((struct span){name, sizeof name}, &read));
        assert_true(adm_tag_equal(&guest, &read));
        assert_false(gw_guest_of_name((struct span){name, sizeof name - 1}, &read));
        name[10] = 'F';
        assert_false(gw_guest_of_name((struct span){name, sizeof name}, &read));
        assert_false(gw_guest_of_name(SPAN("jane"), &read));
}

static void test_names_are_remembered_until_newer_ones_need_their_room(void **state) {
        struct gw_names *n = NULL;
        char out[JWT_SUB_MAX];
        struct adm_tag jane = adm_account_tag("jane", 4, false);
        (void)state;
        assert_int_equal(gw_names_new(16, &n), 0);
        assert_int_equal(gw_names_get(n, &jane, out), 0);
        gw_names_put(n, &jane, SPAN("jane"));
        gw_names_put(n, &jane, SPAN("jane"));
        assert_text((struct span){out, gw_names_get(n, &jane, out)}, "jane");
        for (int i = 0; i < 1000; i++) {
                struct adm_tag other = gw_guest_new();
                gw_names_put(n, &other, SPAN("x"));
                assert_int_equal(gw_names_get(n, &other, out), 1);
        }
        gw_names_free(&n);
        assert_null(n);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cookies_have_the_flags_of_the_contract),
                cmocka_unit_test(test_a_cookie_is_found_among_others),
                cmocka_unit_test(test_none_of_ours_leaves),
                cmocka_unit_test(test_hop_by_hop_and_gateway_fields_go_no_further),
                cmocka_unit_test(test_a_guest_cookie_is_known_again_and_no_other),
                cmocka_unit_test(test_a_guests_name_is_read_back_and_no_other_is_one),
                cmocka_unit_test(test_names_are_remembered_until_newer_ones_need_their_room),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
