/* net/jwt_key.h - one key of a ring and what OpenSSL does with it. For
 * net/jwk.c, which makes keys, and net/jwt.c, which uses them.
 *
 * Ownership  a key owns its EVP_PKEY and its secret.
 * Context    any thread; a key does not change once it is in a ring.
 */
#ifndef NET_JWT_KEY_H
#define NET_JWT_KEY_H

#include <openssl/evp.h>

#include "net/jwk.h"

#define JWT_SIGNATURE_MAX 1024 /* RSA of 8192 bits */
#define JWT_SECRET_MAX 1024

struct jwt_key {
        char kid[JWK_KID_MAX + 1];
        enum jwt_alg alg;
        bool can_sign;
        EVP_PKEY *pkey; /* NULL for HS256 */
        uint8_t *secret;
        size_t secret_len;
};

struct jwt_keys {
        size_t count;
        struct jwt_key at[JWK_KEYS_MAX];
};

void jwt_key_wipe(struct jwt_key *key);

/* True when `signature`, as in a token, is the key's own over `text`. */
bool jwt_key_verify(const struct jwt_key *key, struct span text, struct span signature);

/* Writes the signature as in a token: HS256 32 bytes, ES256 64. 0 or -EIO. */
NET_MUST int jwt_key_sign(const struct jwt_key *key, struct span text, uint8_t out[64],
                          size_t *len);

/* SHA-256, fetched once for the life of the process. */
const EVP_MD *jwt_sha256(void);

#endif
