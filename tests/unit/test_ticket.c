/* Tickets: what is written is what is read, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/hmac.h>

#include "admission/ticket.h"

static const uint8_t secret_a[40] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const uint8_t secret_b[80] =
        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

static struct adm_ticket_keys *ring(uint8_t first) {
        struct adm_ticket_secret both[2] = {
                {.id = 1, .bytes = secret_a, .len = sizeof(secret_a)},
                {.id = 2, .bytes = secret_b, .len = sizeof(secret_b)},
        };
        struct adm_ticket_keys *k = NULL;
        if (first == 2) {
                struct adm_ticket_secret t = both[0];
                both[0] = both[1];
                both[1] = t;
        }
        assert_int_equal(adm_ticket_keys_new(both, 2, &k), 0);
        return k;
}

static struct adm_ticket sample(void) {
        return (struct adm_ticket){
                .flags = ADM_TICKET_GUEST,
                .round = 7,
                .sale = adm_sale_hash("demo", 4),
                .key = UINT64_C(0x8000010000000005),
                .tag = adm_account_tag("b1-17", 5, true),
                .issued_at_ms = INT64_C(1800000000123),
                .promised_at_ms = INT64_C(1800000002623),
                .ahead = 4711,
        };
}

static void test_ticket_survives_the_round_trip(void **state) {
        (void)state;
        struct adm_ticket_keys *k = ring(1);
        struct adm_ticket t = sample(), u;
        char text[ADM_TICKET_TEXT_LEN];
        adm_ticket_encode(k, &t, text);
        assert_int_equal(adm_ticket_decode(k, text, sizeof(text), &u), ADM_TICKET_GOOD);
        assert_int_equal(u.flags, t.flags);
        assert_int_equal(u.round, t.round);
        assert_int_equal(u.sale, t.sale);
        assert_int_equal(u.key, t.key);
        assert_true(adm_tag_equal(&u.tag, &t.tag));
        assert_int_equal(u.issued_at_ms, t.issued_at_ms);
        assert_int_equal(u.promised_at_ms, t.promised_at_ms);
        assert_int_equal(u.ahead, t.ahead);
        adm_ticket_keys_free(&k);
        assert_null(k);
        adm_ticket_keys_free(&k);
}

static uint32_t letter_value(char c) {
        static const char a[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        return (uint32_t)(strchr(a, c) - a);
}

/* The MAC of the text equals OpenSSL's own HMAC over the first 55 bytes. */
static void check_mac(uint8_t first, const uint8_t *secret, size_t len) {
        struct adm_ticket_keys *k = ring(first);
        struct adm_ticket t = sample();
        char text[ADM_TICKET_TEXT_LEN];
        uint8_t raw[ADM_TICKET_LEN], md[32];
        adm_ticket_encode(k, &t, text);
        for (size_t i = 0, j = 0; i < sizeof(text); i += 4, j += 3) {
                uint32_t v = letter_value(text[i]) << 18 | letter_value(text[i + 1]) << 12 |
                             letter_value(text[i + 2]) << 6 | letter_value(text[i + 3]);
                raw[j] = (uint8_t)(v >> 16);
                raw[j + 1] = (uint8_t)(v >> 8);
                raw[j + 2] = (uint8_t)v;
        }
        assert_non_null(HMAC(EVP_sha256(), secret, (int)len, raw, 55, md, NULL));
        assert_memory_equal(raw + 55, md, 20);
        adm_ticket_keys_free(&k);
}

static void test_mac_is_plain_hmac_sha256(void **state) {
        (void)state;
        check_mac(1, secret_a, sizeof(secret_a));
        check_mac(2, secret_b, sizeof(secret_b)); /* longer than a block */
}

static void test_every_flipped_bit_is_refused(void **state) {
        (void)state;
        struct adm_ticket_keys *k = ring(1);
        struct adm_ticket t = sample(), u;
        char text[ADM_TICKET_TEXT_LEN], bad[ADM_TICKET_TEXT_LEN];
        adm_ticket_encode(k, &t, text);
        for (size_t i = 0; i < sizeof(text); i++) {
                for (int bit = 0; bit < 8; bit++) {
                        memcpy(bad, text, sizeof(bad));
                        bad[i] = (char)(bad[i] ^ 1 << bit);
                        assert_int_not_equal(adm_ticket_decode(k, bad, sizeof(bad), &u), 0);
                }
        }
        adm_ticket_keys_free(&k);
}

static void test_other_lengths_and_letters_are_malformed(void **state) {
        (void)state;
        struct adm_ticket_keys *k = ring(1);
        struct adm_ticket t = sample(), u;
        char text[ADM_TICKET_TEXT_LEN + 4];
        memset(text, 'A', sizeof(text));
        adm_ticket_encode(k, &t, text);
        for (size_t len = 0; len < sizeof(text); len++)
                if (len != ADM_TICKET_TEXT_LEN)
                        assert_int_equal(adm_ticket_decode(k, text, len, &u), ADM_TICKET_MALFORMED);
        static const char odd[] = "+/=. \r\n\"";
        for (size_t i = 0; odd[i]; i++) {
                text[50] = odd[i];
                assert_int_equal(adm_ticket_decode(k, text, ADM_TICKET_TEXT_LEN, &u),
                                 ADM_TICKET_MALFORMED);
        }
        memset(text, 'B', sizeof(text)); /* another version */
        assert_int_equal(adm_ticket_decode(k, text, ADM_TICKET_TEXT_LEN, &u), ADM_TICKET_MALFORMED);
        adm_ticket_keys_free(&k);
}

static void test_previous_key_still_checks_and_unknown_does_not(void **state) {
        (void)state;
        struct adm_ticket_keys *one = ring(1), *two = ring(2), *only = NULL;
        struct adm_ticket t = sample(), u;
        char text[ADM_TICKET_TEXT_LEN];
        adm_ticket_encode(one, &t, text);
        assert_int_equal(adm_ticket_decode(two, text, sizeof(text), &u), ADM_TICKET_GOOD);
        struct adm_ticket_secret s = {.id = 2, .bytes = secret_b, .len = sizeof(secret_b)};
        assert_int_equal(adm_ticket_keys_new(&s, 1, &only), 0);
        assert_int_equal(adm_ticket_decode(only, text, sizeof(text), &u), ADM_TICKET_FORGED);
        adm_ticket_keys_free(&only);
        /* The same id with another secret is a forger's. */
        s = (struct adm_ticket_secret){.id = 1, .bytes = secret_b, .len = sizeof(secret_b)};
        assert_int_equal(adm_ticket_keys_new(&s, 1, &only), 0);
        assert_int_equal(adm_ticket_decode(only, text, sizeof(text), &u), ADM_TICKET_FORGED);
        adm_ticket_keys_free(&only);
        adm_ticket_keys_free(&one);
        adm_ticket_keys_free(&two);
}

static void test_bad_rings_are_refused(void **state) {
        (void)state;
        struct adm_ticket_keys *k = NULL;
        struct adm_ticket_secret s[5];
        for (uint8_t i = 0; i < 5; i++)
                s[i] = (struct adm_ticket_secret){.id = i, .bytes = secret_a, .len = 32};
        assert_int_equal(adm_ticket_keys_new(s, 0, &k), ADM_TICKET_BAD_RING);
        assert_int_equal(adm_ticket_keys_new(s, 5, &k), ADM_TICKET_BAD_RING);
        s[1].id = 0;
        assert_int_equal(adm_ticket_keys_new(s, 2, &k), ADM_TICKET_BAD_RING);
        s[1].id = 1;
        s[1].len = 31;
        assert_int_equal(adm_ticket_keys_new(s, 2, &k), ADM_TICKET_BAD_RING);
        s[1].len = 32;
        s[1].bytes = NULL;
        assert_int_equal(adm_ticket_keys_new(s, 2, &k), ADM_TICKET_BAD_RING);
        assert_null(k);
}

static void test_guest_never_meets_the_account_of_one_name(void **state) {
        (void)state;
        struct adm_tag a = adm_account_tag("x", 1, false), g = adm_account_tag("x", 1, true);
        struct adm_tag e = adm_account_tag(NULL, 0, false);
        assert_false(adm_tag_equal(&a, &g));
        assert_false(adm_tag_equal(&a, &e));
        assert_int_not_equal(adm_sale_hash("a", 1), adm_sale_hash("b", 1));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ticket_survives_the_round_trip),
                cmocka_unit_test(test_mac_is_plain_hmac_sha256),
                cmocka_unit_test(test_every_flipped_bit_is_refused),
                cmocka_unit_test(test_other_lengths_and_letters_are_malformed),
                cmocka_unit_test(test_previous_key_still_checks_and_unknown_does_not),
                cmocka_unit_test(test_bad_rings_are_refused),
                cmocka_unit_test(test_guest_never_meets_the_account_of_one_name),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
