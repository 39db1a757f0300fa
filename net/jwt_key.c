#include "net/jwt_key.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <pthread.h>

#define HALF 32 /* bytes of r and of s, P-256 */

static pthread_once_t fetched = PTHREAD_ONCE_INIT;
static EVP_MD *sha256;

static void fetch(void) {
        sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
        assert(sha256);
}

const EVP_MD *jwt_sha256(void) {
        (void)pthread_once(&fetched, fetch);
        return sha256;
}

void jwt_key_wipe(struct jwt_key *key) {
        EVP_PKEY_free(key->pkey);
        OPENSSL_clear_free(key->secret, key->secret_len);
        *key = (struct jwt_key){0};
}

static bool hmac(const struct jwt_key *key, struct span text, uint8_t out[32]) {
        unsigned len = 0;

        return HMAC(jwt_sha256(), key->secret, (int)key->secret_len, (const uint8_t *)text.p,
                    text.len, out, &len) != NULL &&
               len == 32;
}

/* One half as a DER INTEGER: no leading zeros, none negative. */
static size_t put_integer(uint8_t *out, const uint8_t half[HALF]) {
        size_t skip = 0, n = 2;

        while (skip < HALF - 1 && half[skip] == 0)
                skip++;
        out[0] = 0x02;
        if (half[skip] & 0x80)
                out[n++] = 0;
        memcpy(out + n, half + skip, HALF - skip);
        n += HALF - skip;
        out[1] = (uint8_t)(n - 2);
        return n;
}

/* Tokens carry r and s side by side (RFC 7518, 3.4), OpenSSL wants DER. */
static size_t to_der(uint8_t out[2 + 2 * (HALF + 3)], const uint8_t raw[2 * HALF]) {
        size_t n = 2;

        n += put_integer(out + n, raw);
        n += put_integer(out + n, raw + HALF);
        out[0] = 0x30;
        out[1] = (uint8_t)(n - 2);
        return n;
}

static bool verify_with(EVP_PKEY *pkey, struct span text, const uint8_t *signature, size_t len) {
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        bool ok;

        ERR_clear_error();
        ok = ctx && EVP_DigestVerifyInit(ctx, NULL, jwt_sha256(), NULL, pkey) == 1 &&
             EVP_DigestVerify(ctx, signature, len, (const uint8_t *)text.p, text.len) == 1;
        EVP_MD_CTX_free(ctx);
        ERR_clear_error();
        return ok;
}

bool jwt_key_verify(const struct jwt_key *key, struct span text, struct span signature) {
        const uint8_t *given = (const uint8_t *)signature.p;
        uint8_t own[32], der[2 + 2 * (HALF + 3)];

        switch (key->alg) {
        case JWT_HS256:
                return signature.len == sizeof(own) && hmac(key, text, own) &&
                       CRYPTO_memcmp(own, given, sizeof(own)) == 0;
        case JWT_ES256:
                return signature.len == 2 * HALF &&
                       verify_with(key->pkey, text, der, to_der(der, given));
        case JWT_RS256:
                return signature.len == (size_t)EVP_PKEY_get_size(key->pkey) &&
                       verify_with(key->pkey, text, given, signature.len);
        }
        return false;
}

static bool from_der(uint8_t out[2 * HALF], const uint8_t *der, size_t len) {
        ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)len);
        bool ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), out, HALF) == HALF &&
                  BN_bn2binpad(ECDSA_SIG_get0_s(sig), out + HALF, HALF) == HALF;

        ECDSA_SIG_free(sig);
        return ok;
}

static bool sign_es256(EVP_PKEY *pkey, struct span text, uint8_t out[2 * HALF]) {
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        uint8_t der[128];
        size_t len = sizeof(der);
        bool ok;

        ERR_clear_error();
        ok = ctx && EVP_DigestSignInit(ctx, NULL, jwt_sha256(), NULL, pkey) == 1 &&
             EVP_DigestSign(ctx, der, &len, (const uint8_t *)text.p, text.len) == 1 &&
             from_der(out, der, len);
        EVP_MD_CTX_free(ctx);
        ERR_clear_error();
        return ok;
}

int jwt_key_sign(const struct jwt_key *key, struct span text, uint8_t out[64], size_t *len) {
        bool ok = false;

        assert(key->can_sign);
        switch (key->alg) {
        case JWT_HS256:
                *len = 32;
                ok = hmac(key, text, out);
                break;
        case JWT_ES256:
                *len = 2 * HALF;
                ok = sign_es256(key->pkey, text, out);
                break;
        case JWT_RS256:
                break; /* RSA keys only verify: jwk.c never lets them sign */
        }
        return ok ? 0 : -EIO;
}
