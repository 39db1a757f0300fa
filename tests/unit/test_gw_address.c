/* Whose address a request comes from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "gateway/address.h"

static union net_address peer_of(const char *text) {
        union net_address a = {.v6 = {0}};
        if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) {
                a.v4.sin_family = AF_INET;
        } else {
                assert_int_equal(inet_pton(AF_INET6, text, &a.v6.sin6_addr), 1);
                a.v6.sin6_family = AF_INET6;
        }
        return a;
}

static struct conf_network networks[] = {
        /* 10.0.0.0/8, 127.0.0.1/32, fd00::/8 */
        {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10}, 104},
        {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}, 128},
        {{0xfd}, 8},
};
static const struct conf_networks trusted = {networks, NET_COUNT_OF(networks)};

static void test_forwarded_for_is_read_from_the_right_past_trusted_proxies(void **state) {
        static const struct {
                const char *peer, *first, *second, *client, *why;
        } rows[] = {
                {"192.0.2.1", NULL, NULL, "192.0.2.1", "no field"},
                {"192.0.2.1", "6.6.6.6", NULL, "192.0.2.1", "the peer is nobody we trust"},
                {"127.0.0.1", "6.6.6.6", NULL, "6.6.6.6", "the peer is trusted"},
                {"127.0.0.1", "1.1.1.1, 6.6.6.6", NULL, "6.6.6.6", "left of it is hearsay"},
                {"127.0.0.1", "1.1.1.1,6.6.6.6 , 10.1.2.3", NULL, "6.6.6.6", "two proxies"},
                {"127.0.0.1", "1.1.1.1", "6.6.6.6, 10.0.0.9", "6.6.6.6", "the last field first"},
                {"127.0.0.1", "6.6.6.6", "10.0.0.9", "6.6.6.6", "on to the field before"},
                {"127.0.0.1", "10.0.0.1, 10.0.0.2", NULL, "10.0.0.1", "only proxies"},
                {"127.0.0.1", "6.6.6.6, rubbish", NULL, "127.0.0.1", "stops at what it is not"},
                {"127.0.0.1", "rubbish, 6.6.6.6", NULL, "6.6.6.6", "rubbish left of the client"},
                {"127.0.0.1", "6.6.6.6:4711", NULL, "6.6.6.6", "a port"},
                {"127.0.0.1", "[2001:db8::1]:443", NULL, "2001:db8::1", "brackets and a port"},
                {"127.0.0.1", "2001:db8::1", NULL, "2001:db8::1", "bare IPv6"},
                {"fd00::1", "2001:db8::2", NULL, "2001:db8::2", "an IPv6 proxy"},
                {"127.0.0.1", "", NULL, "127.0.0.1", "empty"},
        };
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                union net_address peer = peer_of(rows[i].peer);
                struct http_header headers[] = {
                        {SPAN("x-forwarded-for"), span_of(rows[i].first),
                         HTTP_FIELD_X_FORWARDED_FOR},
                        {SPAN("accept"), SPAN("1.2.3.4"), HTTP_FIELD_ACCEPT},
                        {SPAN("x-forwarded-for"), span_of(rows[i].second),
                         HTTP_FIELD_X_FORWARDED_FOR},
                };
                struct http_request r = {.headers = headers};
                r.n_headers = rows[i].second ? 3 : rows[i].first ? 2 : 0;
                r.at[HTTP_FIELD_X_FORWARDED_FOR] = rows[i].first ? 1 : 0;
                struct gw_address a = gw_address_of_client(&peer, &r, &trusted);
                char text[GW_ADDRESS_TEXT_MAX];
                (void)gw_address_text(&a, text);
                assert_string_equal(text, rows[i].client);
        }
}

static uint64_t key_of(const char *text) {
        struct gw_address a;
        assert_true(gw_address_parse(span_of(text), &a));
        return gw_address_key(&a, 7);
}

static void test_limits_count_ipv6_by_its_64_bits(void **state) {
        (void)state;
        assert_true(key_of("2001:db8:0:1::1") == key_of("2001:db8:0:1:ffff::2"));
        assert_true(key_of("2001:db8:0:1::1") != key_of("2001:db8:0:2::1"));
        assert_true(key_of("192.0.2.1") != key_of("192.0.2.2"));
        assert_true(key_of("192.0.2.1") == key_of("::ffff:192.0.2.1"));
}

static void test_what_is_no_address_is_refused(void **state) {
        static const char *const rows[] = {
                "",
                "x",
                "1.2.3",
                "1.2.3.4.5",
                "[::1",
                "::g",
                "1.2.3.4 ",
                "unknown",
                "_hidden",
                "256.1.1.1",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
        struct gw_address a;
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++)
                assert_false(gw_address_parse(span_of(rows[i]), &a));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_forwarded_for_is_read_from_the_right_past_trusted_proxies),
                cmocka_unit_test(test_limits_count_ipv6_by_its_64_bits),
                cmocka_unit_test(test_what_is_no_address_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
