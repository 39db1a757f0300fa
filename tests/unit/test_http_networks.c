#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>

#include "net/http_networks.h"

static struct http_networks networks;

static int setup(void **state) {
        (void)state;
        return http_networks_init(&networks, 20, 10000);
}

static int teardown(void **state) {
        (void)state;
        http_networks_fini(&networks);
        return 0;
}

static union net_address address_of(const char *text) {
        union net_address a = {.v6 = {0}};
        if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1)
                a.v4.sin_family = AF_INET;
        else if (inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1)
                a.v6.sin6_family = AF_INET6;
        return a;
}

static struct http_network *find(const char *text, int64_t now_ms) {
        union net_address a = address_of(text);
        bool is_full;
        return http_networks_find(&networks, &a, now_ms, &is_full);
}

static void test_a_network_is_24_bits_or_56(void **state) {
        static const struct {
                const char *one, *other;
                bool same;
        } rows[] = {
                {"192.0.2.1", "192.0.2.255", true},
                {"192.0.2.1", "192.0.3.1", false},
                {"192.0.2.1", "::ffff:192.0.2.9", true},
                {"2001:db8:0:1200::1", "2001:db8:0:12ff:1::2", true},
                {"2001:db8:0:1200::1", "2001:db8:0:1300::1", false},
                {"::1", "0.0.0.1", false},
                {"2001:db8::1", "32.1.13.1", false},
        };
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct http_network *one = find(rows[i].one, 0);
                assert_non_null(one);
                assert_int_equal(one == find(rows[i].other, 0), rows[i].same);
        }
        assert_null(find("neither", 0));
}

static void test_the_twentieth_strike_closes_for_a_while(void **state) {
        (void)state;
        struct http_network *w = find("192.0.2.1", 1000);
        for (int i = 0; i < 19; i++)
                assert_false(http_network_strike(&networks, w, 1000 + i));
        assert_false(http_network_is_closed(w, 1020));
        assert_true(http_network_strike(&networks, w, 1020));
        assert_true(http_network_is_closed(w, 1020));
        assert_true(http_network_is_closed(w, 11019));
        assert_false(http_network_is_closed(w, 11020));
        assert_false(http_network_strike(&networks, w, 11020)); /* anew from the first */
}

static void test_good_ones_take_strikes_back(void **state) {
        (void)state;
        struct http_network *w = find("192.0.2.1", 0);
        for (int i = 0; i < 1000; i++) { /* every second one of a crowd fails */
                assert_false(http_network_strike(&networks, w, 0));
                http_network_forgive(w);
        }
        http_network_forgive(w); /* nothing is saved up for later */
        for (int i = 0; i < 19; i++)
                assert_false(http_network_strike(&networks, w, 0));
        assert_true(http_network_strike(&networks, w, 0));
}

static void test_time_takes_strikes_back(void **state) {
        (void)state;
        struct http_network *w = find("192.0.2.1", 0);
        for (int i = 0; i < 1000; i++) /* two a second, for ever */
                assert_false(http_network_strike(&networks, w, i * 500));
        int64_t now = 1000 * 500;
        int n = 0;
        while (!http_network_strike(&networks, w, now + 100 * n))
                n++; /* ten a second */
        assert_in_range(n, 19, 26);
}

static void test_a_full_table_keeps_what_is_under_way(void **state) {
        (void)state;
        static const uint8_t kinds[] = {10, 11, 12, 13};
        size_t full = 0;
        for (unsigned i = 0; i < 4 * 65536u; i++) {
                union net_address a = {.v4 = {.sin_family = AF_INET}};
                a.v4.sin_addr.s_addr =
                        htonl((uint32_t)kinds[i >> 16] << 24 | (i & 0xffff) << 8 | 1u);
                bool is_full;
                struct http_network *w = http_networks_find(&networks, &a, 0, &is_full);
                assert_int_equal(w == NULL, is_full);
                full += is_full;
                if (w) {
                        assert_int_equal(w->handshakes, 0);
                        w->handshakes = 1;
                }
        }
        assert_int_equal(full, 4 * 65536 - NETWORKS_MAX);
        struct http_network *w = networks.entries;
        uint64_t name = w->name;
        w->handshakes = 0;
        w->strikes_milli = 5000;
        for (unsigned i = 0; i < 65536u && w->name == name; i++) {
                union net_address a = {.v4 = {.sin_family = AF_INET}};
                a.v4.sin_addr.s_addr = htonl((uint32_t)20 << 24 | i << 8);
                bool is_full;
                (void)http_networks_find(&networks, &a, 0, &is_full);
        }
        assert_true(w->name != name); /* its past alone keeps nobody in */
        assert_int_equal(w->strikes_milli, 0);
}

static void test_nobody_is_judged_without_a_limit(void **state) {
        (void)state;
        struct http_networks none;
        union net_address a = address_of("192.0.2.1");
        bool is_full = true;
        assert_int_equal(http_networks_init(&none, 0, 0), 0);
        assert_null(http_networks_find(&none, &a, 0, &is_full));
        assert_false(is_full);
        http_networks_fini(&none);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_a_network_is_24_bits_or_56),
                T(test_the_twentieth_strike_closes_for_a_while),
                T(test_good_ones_take_strikes_back),
                T(test_time_takes_strikes_back),
                T(test_a_full_table_keeps_what_is_under_way),
                T(test_nobody_is_judged_without_a_limit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
