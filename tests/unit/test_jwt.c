#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include "net/base64.h"
#include "net/json.h"
#include "net/jwt.h"

#define NOW_S 1795942800
#define NOW_MS (NOW_S * 1000ll)

/* Keys made for this test alone. */
#define SECRET "sixteen bytes twice is enough!!!"
#define SECRET_JWK                                                                                 \
        "{\"kty\":\"oct\",\"kid\":\"shop\",\"k\":\"c2l4dGVlbiBieXRlcyB0d2ljZSBpcyBlbm91Z2ghISE\"}"
#define PRIVATE_PEM                                                                                \
        "-----BEGIN PRIVATE KEY-----\n"                                                            \
        "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/N0aNmbcym78/9kh\n"                       \
        "w1zIpZgBOEng/08Tt6dk+f6U5lGhRANCAATHH+JZh0cO/mqUX9BGVBeTVXy66IBr\n"                       \
        "0gTrZ7XScQmUiSrBPJ8tLaHJhfTqlM92sKIb3dL53aajge1YZmorJ732\n"                               \
        "-----END PRIVATE KEY-----\n"
#define PUBLIC_PEM                                                                                 \
        "-----BEGIN PUBLIC KEY-----\n"                                                             \
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAExx/iWYdHDv5qlF/QRlQXk1V8uuiA\n"                       \
        "a9IE62e10nEJlIkqwTyfLS2hyYX06pTPdrCiG93S+d2mo4HtWGZqKye99g==\n"                           \
        "-----END PUBLIC KEY-----\n"
#define P384_PEM                                                                                   \
        "-----BEGIN PRIVATE KEY-----\n"                                                            \
        "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDDhMt9c/posStcPfjXD\n"                       \
        "te9yBaPiOVxioteiZo0UyuqMxLSEPoFq/j6A21NziaXxe12hZANiAASdwOA4krRf\n"                       \
        "WSTTaYTETElL8E0nxc4kxUoINDQH09vWN0b7PRDXDvnoZki5U6jj3QBxbDkm6NFZ\n"                       \
        "XmqYF5az17pMbHZY0QXc745d1JsPtr7A4WIprKZ+R380aonvBrK1NXM=\n"                               \
        "-----END PRIVATE KEY-----\n"
#define THUMBPRINT "Op8fcrjTLylbk6ObPP_yPeffNfac8BXHuGwE-ICNFy8"
#define X "\"x\":\"xx_iWYdHDv5qlF_QRlQXk1V8uuiAa9IE62e10nEJlIk\""
#define Y "\"y\":\"KsE8ny0tocmF9OqUz3awohvd0vndpqOB7VhmaisnvfY\""
#define D "\"d\":\"_N0aNmbcym78_9khw1zIpZgBOEng_08Tt6dk-f6U5lE\""
#define EC_JWK "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"e\"," X "," Y "," D "}"
#define N                                                                                          \
        "qnLmzuktLTFz7abo9XPmKpqr4SZFiMfoj__7VqkQgixJCHsmqnLcP0S54tdAkc68YrOKzg9jsJb07vRlZnTpvG6"  \
        "OHasvps6e_qToZ9UlXpMT2XjMfv3PElwG8fhIxPmw1aL6UEA1S6Z2GUABaXNHic1sGHTddiNF5eDPedo5H4xhqA"  \
        "o79JJwPveVaY1ReH0JoUHmp3Kngq9MMpw4CuUS6j5B-qeGtzBinWPNhaWiufVzRAbJ-cy29WsYZShqd6KWPB4NO"  \
        "IUc0SL54Zu6-5MRvRK1AZc12olqNAjYgVTSZHchg-S2OgZcny2k6vKEvVy6wJ-0oFbJHapohOIV4X7Rkw"
#define RSA_JWK "{\"kty\":\"RSA\",\"kid\":\"r\",\"e\":\"AQAB\",\"n\":\"" N "\"}"
/* {"alg":"RS256","kid":"r"} . {"sub":"a","exp":1795942860}, signed elsewhere. */
#define RS256_TOKEN                                                                                \
        "eyJhbGciOiJSUzI1NiIsImtpZCI6InIifQ.eyJzdWIiOiJhIiwiZXhwIjoxNzk1OTQyODYwfQ."               \
        "i-dTIy4MgxfX4yZT18CEb0wW_3hWJ32o7qANvSUezmvNlNImgRyEBhQCBbdBnR_p-qoKu7hqSQbJ2OlSRjivQjGw" \
        "_0fnKjErIQziXwdGH6uuhAD3z_GvFxXxJWZ0PiiKpFaht93lYERTZ1qJ2qFEGtpMVybtIxs_3kq5wKr7mWdpKK8t" \
        "IXLHLNZz1NdhW-4MSDMEgzRwDTRzm-C_0DpDeIrMD-ZHG2zqIHQPRgJ6lhGMZ_iSbLQrAYwbPeuUaYcGFO2pxx9j" \
        "oNnJh8dlpbZoPNdv7-um0Ils8gUSbjnPq2UQST6pF94DjK3-NYBkQngVOTSD5vL_1vd2pl2NbkgzJA"

static const struct jwt_rules plain = {.leeway_ms = 2000};
static struct jwt_claims claims;
static char why[200];

static struct jwt_keys *ring(const char *text) {
        struct jwt_keys *keys;

        assert_int_equal(jwt_keys_new(&keys), 0);
        if (text)
                assert_int_equal(jwt_keys_add_text(keys, span_of(text), why, sizeof(why)), 0);
        return keys;
}

static struct jwt_keys *full_ring(void) {
        return ring("{\"keys\":[" SECRET_JWK "," EC_JWK "," RSA_JWK "]}");
}

/* A token with any header and payload, under HMAC with any key. */
static struct span craft(const char *header, const char *payload, const char *key) {
        static char text[16384];
        uint8_t mac[32];
        size_t n = base64_url_encode(text, sizeof(text), header, strlen(header));

        text[n++] = '.';
        n += base64_url_encode(text + n, sizeof(text) - n, payload, strlen(payload));
        (void)HMAC(EVP_sha256(), key, (int)strlen(key), (uint8_t *)text, n, mac, NULL);
        text[n++] = '.';
        n += base64_url_encode(text + n, sizeof(text) - n, mac, sizeof(mac));
        return (struct span){text, n};
}

#define HS "{\"alg\":\"HS256\",\"kid\":\"shop\"}"
#define GOOD "{\"sub\":\"a\",\"exp\":1795942860}"

static void test_the_key_decides_the_algorithm(void **state) {
        static const struct {
                const char *why, *header, *key;
                int outcome;
        } rows[] = {
                {"the right one", HS, SECRET, 0},
                {"another secret", HS, "another", JWT_BAD_SIGNATURE},
                {"none", "{\"alg\":\"none\",\"kid\":\"shop\"}", SECRET, JWT_ALG_MISMATCH},
                {"HS512", "{\"alg\":\"HS512\",\"kid\":\"shop\"}", SECRET, JWT_ALG_MISMATCH},
                {"small letters", "{\"alg\":\"hs256\",\"kid\":\"shop\"}", SECRET, JWT_ALG_MISMATCH},
                {"ES256 with an HS256 key", "{\"alg\":\"ES256\",\"kid\":\"shop\"}", SECRET,
                 JWT_ALG_MISMATCH},
                {"HS256 by the EC key's PEM", "{\"alg\":\"HS256\",\"kid\":\"e\"}", PUBLIC_PEM,
                 JWT_ALG_MISMATCH},
                {"HS256 by an RSA key's number", "{\"alg\":\"HS256\",\"kid\":\"r\"}", N,
                 JWT_ALG_MISMATCH},
                {"ES256 with 32 bytes for a signature", "{\"alg\":\"ES256\",\"kid\":\"e\"}", SECRET,
                 JWT_BAD_SIGNATURE},
                {"RS256 with 32 bytes for a signature", "{\"alg\":\"RS256\",\"kid\":\"r\"}", SECRET,
                 JWT_BAD_SIGNATURE},
                {"no kid", "{\"alg\":\"HS256\"}", SECRET, JWT_UNKNOWN_KEY},
                {"a kid of no key", "{\"alg\":\"HS256\",\"kid\":\"x\"}", SECRET, JWT_UNKNOWN_KEY},
                {"a kid that begins like one", "{\"alg\":\"HS256\",\"kid\":\"sho\"}", SECRET,
                 JWT_UNKNOWN_KEY},
                {"a kid that is no text", "{\"alg\":\"HS256\",\"kid\":1}", SECRET, JWT_UNKNOWN_KEY},
                {"its own key inside",
                 "{\"alg\":\"HS256\",\"jwk\":{\"kty\":\"oct\",\"k\":\"AAAA\"}}", "\0\0\0",
                 JWT_UNKNOWN_KEY},
                {"no alg", "{\"kid\":\"shop\"}", SECRET, JWT_MALFORMED},
                {"an extension that must be known",
                 "{\"alg\":\"HS256\",\"kid\":\"shop\",\"crit\":[\"b64\"],\"b64\":false}", SECRET,
                 JWT_MALFORMED},
                {"two algs", "{\"alg\":\"none\",\"alg\":\"HS256\",\"kid\":\"shop\"}", SECRET,
                 JWT_MALFORMED},
                {"a header that is no object", "[\"HS256\"]", SECRET, JWT_MALFORMED},
                {"a header that is no JSON", "HS256", SECRET, JWT_MALFORMED},
                {"a pass for an account",
                 "{\"alg\":\"HS256\",\"kid\":\"shop\",\"typ\":\"sluice-pass+jwt\"}", SECRET,
                 JWT_BAD_CLAIMS},
                {"a pass in other letters",
                 "{\"alg\":\"HS256\",\"kid\":\"shop\",\"typ\":\"application/Sluice-Pass+JWT\"}",
                 SECRET, JWT_BAD_CLAIMS},
                {"any other type", "{\"alg\":\"HS256\",\"kid\":\"shop\",\"typ\":\"at+jwt\"}",
                 SECRET, 0},
        };
        struct jwt_keys *keys = full_ring();

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                print_message("  %s\n", rows[i].why);
                assert_int_equal(jwt_verify(keys, craft(rows[i].header, GOOD, rows[i].key), &plain,
                                            NOW_MS, &claims),
                                 rows[i].outcome);
                assert_string_equal(claims.sub, rows[i].outcome == 0 ? "a" : "");
        }
        jwt_keys_free(&keys);
}

static const struct jwt_rules strict = {.issuer = "shop", .audience = "edge", .leeway_ms = 2000};

static const struct {
        const char *why, *payload;
        const struct jwt_rules *rules;
        int outcome;
} claim_rows[] = {
        {"sub and exp suffice", GOOD, &plain, 0},
        {"no exp", "{\"sub\":\"a\"}", &plain, JWT_BAD_CLAIMS},
        {"exp is text", "{\"sub\":\"a\",\"exp\":\"1795942860\"}", &plain, JWT_BAD_CLAIMS},
        {"exp is below zero", "{\"sub\":\"a\",\"exp\":-1}", &plain, JWT_BAD_CLAIMS},
        {"exp is beyond all years", "{\"sub\":\"a\",\"exp\":1e300}", &plain, JWT_BAD_CLAIMS},
        {"exp with a fraction", "{\"sub\":\"a\",\"exp\":1795942860.5}", &plain, 0},
        {"no sub", "{\"exp\":1795942860}", &plain, JWT_BAD_CLAIMS},
        {"sub is a number", "{\"sub\":1,\"exp\":1795942860}", &plain, JWT_BAD_CLAIMS},
        {"sub is empty", "{\"sub\":\"\",\"exp\":1795942860}", &plain, JWT_BAD_CLAIMS},
        {"ended longer ago than the leeway", "{\"sub\":\"a\",\"exp\":1795942798}", &plain,
         JWT_EXPIRED},
        {"ended within the leeway", "{\"sub\":\"a\",\"exp\":1795942799}", &plain, 0},
        {"starts later", "{\"sub\":\"a\",\"exp\":1795942860,\"nbf\":1795942803}", &plain,
         JWT_NOT_YET},
        {"starts within the leeway", "{\"sub\":\"a\",\"exp\":1795942860,\"nbf\":1795942802}",
         &plain, 0},
        {"issued in the future", "{\"sub\":\"a\",\"exp\":1795942860,\"iat\":1795942803}", &plain,
         JWT_NOT_YET},
        {"nbf is text", "{\"sub\":\"a\",\"exp\":1795942860,\"nbf\":\"0\"}", &plain, JWT_BAD_CLAIMS},
        {"two subs", "{\"sub\":\"b\",\"sub\":\"a\",\"exp\":1795942860}", &plain, JWT_MALFORMED},
        {"no object", "[]", &plain, JWT_MALFORMED},
        {"issuer and audience",
         "{\"sub\":\"a\",\"exp\":1795942860,\"iss\":\"shop\",\"aud\":\"edge\"}", &strict, 0},
        {"one of several audiences",
         "{\"sub\":\"a\",\"exp\":1795942860,\"iss\":\"shop\",\"aud\":[\"x\",\"edge\"]}", &strict,
         0},
        {"no issuer", "{\"sub\":\"a\",\"exp\":1795942860,\"aud\":\"edge\"}", &strict,
         JWT_BAD_CLAIMS},
        {"another issuer", "{\"sub\":\"a\",\"exp\":1795942860,\"iss\":\"shop2\",\"aud\":\"edge\"}",
         &strict, JWT_BAD_CLAIMS},
        {"no audience", "{\"sub\":\"a\",\"exp\":1795942860,\"iss\":\"shop\"}", &strict,
         JWT_BAD_CLAIMS},
        {"other audiences",
         "{\"sub\":\"a\",\"exp\":1795942860,\"iss\":\"shop\",\"aud\":[\"edg\",\"edgee\"]}", &strict,
         JWT_BAD_CLAIMS},
        {"an audience that is no text",
         "{\"sub\":\"a\",\"exp\":1795942860,\"iss\":\"shop\",\"aud\":[\"edge\",1]}", &strict,
         JWT_BAD_CLAIMS},
};

static void test_claims_are_judged(void **state) {
        struct jwt_keys *keys = full_ring();

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(claim_rows); i++) {
                print_message("  %s\n", claim_rows[i].why);
                assert_int_equal(jwt_verify(keys, craft(HS, claim_rows[i].payload, SECRET),
                                            claim_rows[i].rules, NOW_MS, &claims),
                                 claim_rows[i].outcome);
        }
        jwt_keys_free(&keys);
}

static void test_subjects_of_the_contract(void **state) {
        char sub[JWT_SUB_MAX + 2];

        (void)state;
        memset(sub, 'a', sizeof(sub));
        assert_true(jwt_sub_is_good((struct span){sub, 1}));
        assert_true(jwt_sub_is_good((struct span){sub, JWT_SUB_MAX}));
        assert_false(jwt_sub_is_good((struct span){sub, JWT_SUB_MAX + 1}));
        assert_false(jwt_sub_is_good((struct span){sub, 0}));
        for (int c = 0; c < 256; c++) {
                sub[1] = (char)c;
                assert_int_equal(jwt_sub_is_good((struct span){sub, 3}),
                                 c >= 0x21 && c <= 0x7E && c != ',' && c != '"' && c != '\\');
        }
}

static void test_an_expired_token_still_tells_whose_it_was(void **state) {
        struct jwt_keys *keys = full_ring();

        (void)state;
        assert_int_equal(jwt_verify(keys,
                                    craft(HS, "{\"sub\":\"a\",\"exp\":5,\"jti\":\"j\"}", SECRET),
                                    &plain, NOW_MS, &claims),
                         JWT_EXPIRED);
        assert_string_equal(claims.sub, "a");
        assert_string_equal(claims.jti, "j");
        assert_int_equal(claims.exp, 5);
        jwt_keys_free(&keys);
}

static void test_every_cut_and_flip_is_refused(void **state) {
        static const char *const key_texts[] = {SECRET_JWK, PRIVATE_PEM};
        char token[JWT_MAX_BYTES], bad[JWT_MAX_BYTES];
        size_t len;

        (void)state;
        for (size_t k = 0; k < NET_COUNT_OF(key_texts); k++) {
                struct jwt_keys *keys = ring(key_texts[k]);

                jwt_claims_init(&claims);
                claims.sub[0] = 'a';
                claims.exp = NOW_S + 60;
                assert_int_equal(jwt_sign(keys, NULL, &claims, token, sizeof(token), &len), 0);
                assert_int_equal(
                        jwt_verify(keys, (struct span){token, len}, &plain, NOW_MS, &claims), 0);
                for (size_t n = 0; n < len; n++)
                        assert_int_not_equal(
                                jwt_verify(keys, (struct span){token, n}, &plain, NOW_MS, &claims),
                                0);
                for (size_t i = 0; i < len; i++) {
                        for (int bit = 0; bit < 8; bit++) {
                                memcpy(bad, token, len);
                                bad[i] = (char)(bad[i] ^ 1 << bit);
                                assert_int_not_equal(jwt_verify(keys, (struct span){bad, len},
                                                                &plain, NOW_MS, &claims),
                                                     0);
                        }
                }
                jwt_keys_free(&keys);
        }
}

static void test_shapes_that_are_no_token(void **state) {
        static const char *const rows[] = {"",    ".",     "..",       "...",
                                           "a.b", "a.b.c", "e30.e30.", "e30.e30.AA.AA"};
        struct jwt_keys *keys = full_ring();
        static char big[8000];

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++)
                assert_int_equal(jwt_verify(keys, span_of(rows[i]), &plain, NOW_MS, &claims),
                                 JWT_MALFORMED);
        (void)snprintf(big, sizeof(big), "{\"sub\":\"a\",\"exp\":1795942860,\"x\":\"%02900d\"}", 0);
        assert_int_equal(jwt_verify(keys, craft(HS, big, SECRET), &plain, NOW_MS, &claims), 0);
        (void)snprintf(big, sizeof(big), "{\"sub\":\"a\",\"exp\":1795942860,\"x\":\"%03100d\"}", 0);
        assert_int_equal(jwt_verify(keys, craft(HS, big, SECRET), &plain, NOW_MS, &claims),
                         JWT_MALFORMED);
        jwt_keys_free(&keys);
}

static void test_rs256_of_somebody_else_is_verified(void **state) {
        struct jwt_keys *keys = full_ring();

        (void)state;
        assert_int_equal(jwt_verify(keys, SPAN(RS256_TOKEN), &plain, NOW_MS, &claims), 0);
        assert_string_equal(claims.sub, "a");
        jwt_keys_free(&keys);
}

static void test_a_pass_goes_round(void **state) {
        const struct jwt_rules pass = {.typ = JWT_TYP_PASS, .issuer = "sluice", .audience = "demo"};
        struct jwt_keys *gateway = ring(PRIVATE_PEM), *origin = ring(NULL);
        struct jwt_claims in, got;
        char token[JWT_MAX_BYTES], set[1024];
        struct json_out o;
        size_t len;

        (void)state;
        json_out_init(&o, set, sizeof(set));
        jwt_keys_export(gateway, &o);
        assert_int_equal(jwt_keys_add_text(origin, json_out_done(&o), why, sizeof(why)), 0);
        assert_string_equal(jwt_keys_kid(origin, 0), THUMBPRINT);
        assert_false(jwt_keys_can_sign(origin, 0));
        assert_null(memmem(set, o.len, "\"d\"", 3));
        jwt_claims_init(&in);
        (void)snprintf(in.iss, sizeof(in.iss), "sluice");
        (void)snprintf(in.sub, sizeof(in.sub), "b1-7");
        (void)snprintf(in.aud, sizeof(in.aud), "demo");
        (void)snprintf(in.jti, sizeof(in.jti), "j1");
        (void)snprintf(in.use, sizeof(in.use), "holder");
        in.rnd = 3;
        in.iat = NOW_S;
        in.exp = NOW_S + 20;
        for (int i = 0; i < 50; i++) { /* signatures with and without leading zeros */
                assert_int_equal(jwt_sign(gateway, JWT_TYP_PASS, &in, token, sizeof(token), &len),
                                 0);
                assert_int_equal(jwt_verify(origin, (struct span){token, len}, &pass, NOW_MS, &got),
                                 0);
        }
        assert_memory_equal(&in, &got, sizeof(in));
        assert_int_equal(jwt_verify(origin, (struct span){token, len}, &plain, NOW_MS, &got),
                         JWT_BAD_CLAIMS);
        assert_int_equal(jwt_verify(origin, (struct span){token, len}, &pass, NOW_MS + 20000, &got),
                         JWT_EXPIRED);
        assert_int_equal(jwt_sign(gateway, NULL, &in, token, sizeof(token), &len), 0);
        assert_int_equal(jwt_verify(origin, (struct span){token, len}, &pass, NOW_MS, &got),
                         JWT_BAD_CLAIMS);
        assert_int_equal(jwt_sign(origin, NULL, &in, token, sizeof(token), &len), -ENOKEY);
        assert_int_equal(jwt_sign(gateway, NULL, &in, token, 100, &len), -ENOBUFS);
        jwt_keys_free(&gateway);
        jwt_keys_free(&origin);
}

static void test_key_files_are_judged(void **state) {
        static const struct {
                const char *why, *text;
                size_t count; /* 0: refused */
        } rows[] = {
                {"a secret", SECRET_JWK, 1},
                {"a P-256 key", EC_JWK, 1},
                {"its public half", "{\"kty\":\"EC\",\"crv\":\"P-256\"," X "," Y "}", 1},
                {"an RSA key", RSA_JWK, 1},
                {"a private PEM", PRIVATE_PEM, 1},
                {"a public PEM", PUBLIC_PEM, 1},
                {"a set", "{\"keys\":[" SECRET_JWK "," EC_JWK "]}", 2},
                {"a set with keys of other kinds",
                 "{\"keys\":[{\"kty\":\"OKP\"},{\"kty\":\"RSA\",\"use\":\"enc\"}," EC_JWK "]}", 1},
                {"an empty set", "{\"keys\":[]}", 0},
                {"a set of other kinds only", "{\"keys\":[{\"kty\":\"OKP\"}]}", 0},
                {"two of one name", "{\"keys\":[" EC_JWK "," EC_JWK "]}", 0},
                {"a good and a broken one",
                 "{\"keys\":[" EC_JWK ",{\"kty\":\"oct\",\"kid\":\"b\",\"k\":\"!\"}]}", 0},
                {"a short secret", "{\"kty\":\"oct\",\"kid\":\"s\",\"k\":\"c2hvcnQ\"}", 0},
                {"a secret without a name",
                 "{\"kty\":\"oct\",\"k\":\"c2l4dGVlbiBieXRlcyB0d2ljZSBpcyBlbm91Z2ghISE\"}", 0},
                {"a secret for HS512",
                 "{\"kty\":\"oct\",\"kid\":\"s\",\"alg\":\"HS512\","
                 "\"k\":\"c2l4dGVlbiBieXRlcyB0d2ljZSBpcyBlbm91Z2ghISE\"}",
                 0},
                {"a point beside the curve",
                 "{\"kty\":\"EC\",\"crv\":\"P-256\"," X ","
                 "\"y\":\"KsE8ny0tocmF9OqUz3awohvd0vndpqOB7VhmaisnvfU\"}",
                 0},
                {"a private half of another key",
                 "{\"kty\":\"EC\",\"crv\":\"P-256\"," X "," Y ","
                 "\"d\":\"AAAANmbcym78_9khw1zIpZgBOEng_08Tt6dk-f6U5lE\"}",
                 0},
                {"another curve", "{\"kty\":\"EC\",\"crv\":\"P-384\"," X "," Y "}", 0},
                {"another curve, PEM", P384_PEM, 0},
                {"a small RSA key", "{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"AQAB\"}", 0},
                {"an RSA key with e = 1", "{\"kty\":\"RSA\",\"e\":\"AQ\",\"n\":\"" N "\"}", 0},
                {"nothing", "", 0},
                {"something else", "hello", 0},
                {"half a PEM", "-----BEGIN PRIVATE KEY-----\nMIGH\n", 0},
                {"JSON that is no key", "{}", 0},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct jwt_keys *keys = ring(NULL);
                int r;

                print_message("  %s\n", rows[i].why);
                why[0] = 0;
                r = jwt_keys_add_text(keys, span_of(rows[i].text), why, sizeof(why));
                assert_int_equal(r, rows[i].count ? 0 : 1);
                assert_int_equal(jwt_keys_count(keys), rows[i].count);
                assert_int_equal(strlen(why) > 10, rows[i].count == 0);
                jwt_keys_free(&keys);
        }
}

static void test_a_missing_key_file_is_an_errno(void **state) {
        struct jwt_keys *keys = ring(NULL);

        (void)state;
        assert_int_equal(jwt_keys_add_file(keys, "/nonexistent", why, sizeof(why)), -ENOENT);
        jwt_keys_free(&keys);
        assert_null(keys);
        jwt_keys_free(&keys);
}

static void test_the_cache_remembers_good_tokens_until_they_end(void **state) {
        struct jwt_keys *keys = full_ring();
        struct jwt_cache *cache;
        struct span good;

        (void)state;
        assert_int_equal(jwt_cache_new(&cache, 16), 0);
        good = craft(HS, GOOD, SECRET);
        assert_int_equal(jwt_cache_verify(cache, keys, good, &plain, NOW_MS, &claims), 0);
        assert_int_equal(jwt_cache_hits(cache), 0);
        assert_int_equal(jwt_cache_verify(cache, keys, good, &plain, NOW_MS, &claims), 0);
        assert_int_equal(jwt_cache_hits(cache), 1);
        assert_string_equal(claims.sub, "a");
        assert_int_equal(jwt_cache_verify(cache, keys, good, &plain, NOW_MS + 62000, &claims),
                         JWT_EXPIRED);
        assert_int_equal(jwt_cache_hits(cache), 2);
        assert_int_equal(jwt_cache_verify(cache, keys, good, &plain, NOW_MS, &claims), 0);
        assert_int_equal(jwt_cache_hits(cache), 2); /* it had left */
        jwt_cache_clear(cache);
        assert_int_equal(jwt_cache_verify(cache, keys, good, &plain, NOW_MS, &claims), 0);
        assert_int_equal(jwt_cache_hits(cache), 2);
        for (int i = 0; i < 2; i++)
                assert_int_equal(jwt_cache_verify(cache, keys, craft(HS, GOOD, "x"), &plain, NOW_MS,
                                                  &claims),
                                 JWT_BAD_SIGNATURE);
        assert_int_equal(jwt_cache_hits(cache), 2);
        jwt_cache_free(&cache);
        jwt_keys_free(&keys);
}

static void test_a_full_cache_still_answers(void **state) {
        struct jwt_keys *keys = full_ring();
        struct jwt_cache *cache;
        char payload[64], sub[16];

        (void)state;
        assert_int_equal(jwt_cache_new(&cache, 4), 0);
        for (int i = 0; i < 200; i++) {
                (void)snprintf(sub, sizeof(sub), "s%d", i % 7);
                (void)snprintf(payload, sizeof(payload), "{\"sub\":\"%s\",\"exp\":%d}", sub,
                               NOW_S + 60);
                assert_int_equal(jwt_cache_verify(cache, keys, craft(HS, payload, SECRET), &plain,
                                                  NOW_MS, &claims),
                                 0);
                assert_string_equal(claims.sub, sub);
        }
        jwt_cache_free(&cache);
        jwt_keys_free(&keys);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_key_decides_the_algorithm),
                cmocka_unit_test(test_claims_are_judged),
                cmocka_unit_test(test_subjects_of_the_contract),
                cmocka_unit_test(test_an_expired_token_still_tells_whose_it_was),
                cmocka_unit_test(test_every_cut_and_flip_is_refused),
                cmocka_unit_test(test_shapes_that_are_no_token),
                cmocka_unit_test(test_rs256_of_somebody_else_is_verified),
                cmocka_unit_test(test_a_pass_goes_round),
                cmocka_unit_test(test_key_files_are_judged),
                cmocka_unit_test(test_a_missing_key_file_is_an_errno),
                cmocka_unit_test(test_the_cache_remembers_good_tokens_until_they_end),
                cmocka_unit_test(test_a_full_cache_still_answers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
