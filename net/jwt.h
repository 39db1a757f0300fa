/* net/jwt.h - JSON Web Tokens (RFC 7515, 7519): ES256, HS256, RS256.
 *
 * One module for accounts, passes and the load generator. A token names its
 * key with `kid`; that picks exactly one key of the ring, and the key says
 * which algorithm it is for. If the token's `alg` is another one, it is
 * refused before any signature is looked at: so `none` and an HS256 token
 * signed with somebody's public key have no chance.
 *
 * It decides authenticity and time. What a pass allows, whether a jti was
 * seen, belongs to others.
 *
 * Units      NumericDate seconds in claims, milliseconds for `now_ms`.
 * Ownership  rings and caches are heap objects; claims are plain values.
 * Context    a ring is immutable after loading and may be shared by threads;
 *            a cache belongs to one thread.
 */
#ifndef NET_JWT_H
#define NET_JWT_H

#include "net/base.h"
#include "net/jwk.h"

#define JWT_MAX_BYTES 4096
#define JWT_SUB_MAX 128
#define JWT_TEXT_MAX 128
#define JWT_JTI_MAX 64
#define JWT_NO_TIME INT64_MIN

#define JWT_TYP_PASS "sluice-pass+jwt"

enum jwt_outcome {
        JWT_MALFORMED = 1,    /* not three parts of strict base64url and JSON, too long */
        JWT_UNKNOWN_KEY = 2,  /* no `kid`, or none of ours */
        JWT_ALG_MISMATCH = 3, /* `alg` is not the one of that key */
        JWT_BAD_SIGNATURE = 4,
        JWT_EXPIRED = 5,    /* authentic, but past `exp`; claims are filled */
        JWT_NOT_YET = 6,    /* authentic, but before `nbf` or `iat`; claims are filled */
        JWT_BAD_CLAIMS = 7, /* typ, exp, sub, iss or aud missing or not as asked */
        JWT_OUTCOME_COUNT
};

struct jwt_claims {
        char sub[JWT_SUB_MAX + 1];  /* 1..128 bytes of 0x21-0x7E without , " \ */
        char iss[JWT_TEXT_MAX + 1]; /* "" when absent or longer */
        char aud[JWT_TEXT_MAX + 1]; /* the audience asked for, else the only one */
        char jti[JWT_JTI_MAX + 1];
        char use[16];
        int64_t exp; /* seconds; always present in what was verified */
        int64_t iat; /* seconds or JWT_NO_TIME */
        int64_t nbf;
        int64_t rnd; /* round of a pass; -1 when absent */
};

struct jwt_rules {
        const char *typ;      /* required `typ`; NULL: any but JWT_TYP_PASS */
        const char *issuer;   /* required `iss`; NULL: not looked at */
        const char *audience; /* required among `aud`; NULL: not looked at */
        int64_t leeway_ms;    /* for exp, nbf and iat, 0.. */
};

/* 0 with *claims, or an enum jwt_outcome. No allocation of ours besides the
 * parsed JSON of at most JWT_MAX_BYTES. */
NET_MUST int jwt_verify(const struct jwt_keys *keys, struct span token,
                        const struct jwt_rules *rules, int64_t now_ms, struct jwt_claims *claims);

/* For logs and counters: "bad_signature". */
const char *jwt_outcome_text(int outcome);

/* The subject rule alone, for names that come from elsewhere. */
bool jwt_sub_is_good(struct span sub);

/* Signs with the ring's first key that can sign. `typ` NULL: "JWT". Claims
 * that are "", JWT_NO_TIME or rnd -1 are left out. Writes the token without a
 * terminating zero. 0, -ENOKEY (none can sign), -ENOBUFS, -EIO (crypto). */
NET_MUST int jwt_sign(const struct jwt_keys *keys, const char *typ, const struct jwt_claims *claims,
                      char *out, size_t cap, size_t *len);
/* The same for a payload that is JSON already. */
NET_MUST int jwt_sign_json(const struct jwt_keys *keys, const char *typ, struct span payload,
                           char *out, size_t cap, size_t *len);

/* Empty claims: all absent. */
void jwt_claims_init(struct jwt_claims *claims);

/* ---- verified tokens remembered ---- */

/* Fixed number of entries, keyed by the SHA-256 of the token, each until its
 * exp. A newer token takes the place of an older one. Only one set of rules
 * and keys may ever be used with one cache: clear it when they change. */
struct jwt_cache;

NET_MUST int jwt_cache_new(struct jwt_cache **cache, size_t entries);
void jwt_cache_free(struct jwt_cache **cache);
void jwt_cache_clear(struct jwt_cache *cache);

/* As jwt_verify; a hit costs one hash and no allocation. Only good tokens
 * are remembered. */
NET_MUST int jwt_cache_verify(struct jwt_cache *cache, const struct jwt_keys *keys,
                              struct span token, const struct jwt_rules *rules, int64_t now_ms,
                              struct jwt_claims *claims);
uint64_t jwt_cache_hits(const struct jwt_cache *cache);

#endif
