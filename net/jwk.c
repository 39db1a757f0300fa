#include "net/jwk.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/base64.h"
#include "net/jwt_key.h"

#define COORDINATE 32
#define RSA_MAX_BYTES 1024
#define RSA_MIN_BITS 2048

struct why {
        char *text;
        size_t cap;
};

/* Says what is wrong and is the outcome 1. */
NET_PRINTF(2, 3) static int wrong(struct why *why, const char *format, ...) {
        va_list args;

        va_start(args, format);
        (void)vsnprintf(why->text, why->cap, format, args);
        va_end(args);
        return 1;
}

int jwt_keys_new(struct jwt_keys **keys) {
        *keys = calloc(1, sizeof(**keys));
        return *keys ? 0 : -ENOMEM;
}

static void cut_to(struct jwt_keys *keys, size_t count) {
        while (keys->count > count)
                jwt_key_wipe(&keys->at[--keys->count]);
}

void jwt_keys_free(struct jwt_keys **keys) {
        if (*keys) {
                cut_to(*keys, 0);
                free(*keys);
        }
        *keys = NULL;
}

size_t jwt_keys_count(const struct jwt_keys *keys) {
        return keys->count;
}

const char *jwt_keys_kid(const struct jwt_keys *keys, size_t index) {
        assert(index < keys->count);
        return keys->at[index].kid;
}

enum jwt_alg jwt_keys_alg(const struct jwt_keys *keys, size_t index) {
        assert(index < keys->count);
        return keys->at[index].alg;
}

bool jwt_keys_can_sign(const struct jwt_keys *keys, size_t index) {
        assert(index < keys->count);
        return keys->at[index].can_sign;
}

const char *jwt_alg_name(enum jwt_alg alg) {
        switch (alg) {
        case JWT_ES256:
                return "ES256";
        case JWT_HS256:
                return "HS256";
        case JWT_RS256:
                return "RS256";
        }
        return "?";
}

/* ---- the public half as JSON: for names and for export ---- */

/* A number of the key as base64url; `width` 0 means without leading zeros. */
static void put_number(struct json_out *o, const char *name, const EVP_PKEY *pkey,
                       const char *param, int width) {
        char text[BASE64_URL_LEN(RSA_MAX_BYTES)];
        uint8_t bytes[RSA_MAX_BYTES];
        BIGNUM *bn = NULL;
        int n = -1;

        if (EVP_PKEY_get_bn_param(pkey, param, &bn) == 1 && BN_num_bytes(bn) <= RSA_MAX_BYTES)
                n = width ? BN_bn2binpad(bn, bytes, width) : BN_bn2bin(bn, bytes);
        BN_free(bn);
        assert(n > 0); /* the key was checked when it was made */
        json_out_str(o, name,
                     (struct span){text, base64_url_encode(text, sizeof(text), bytes, (size_t)n)});
}

/* The members of RFC 7638, in its order, which is also good for export. */
static void put_public(struct json_out *o, const struct jwt_key *key) {
        if (key->alg == JWT_ES256) {
                json_out_text(o, "crv", "P-256");
                json_out_text(o, "kty", "EC");
                put_number(o, "x", key->pkey, OSSL_PKEY_PARAM_EC_PUB_X, COORDINATE);
                put_number(o, "y", key->pkey, OSSL_PKEY_PARAM_EC_PUB_Y, COORDINATE);
        } else {
                put_number(o, "e", key->pkey, OSSL_PKEY_PARAM_RSA_E, 0);
                json_out_text(o, "kty", "RSA");
                put_number(o, "n", key->pkey, OSSL_PKEY_PARAM_RSA_N, 0);
        }
}

/* The key's name where nobody gave one: its thumbprint. */
static void name_by_thumbprint(struct jwt_key *key) {
        char text[2048];
        uint8_t digest[32];
        struct json_out o;
        struct span done;
        size_t n;
        int ok;

        json_out_init(&o, text, sizeof(text));
        json_out_object(&o, NULL);
        put_public(&o, key);
        json_out_object_end(&o);
        done = json_out_done(&o);
        assert(done.p);
        ok = EVP_Digest(done.p, done.len, digest, NULL, jwt_sha256(), NULL);
        assert(ok == 1);
        n = base64_url_encode(key->kid, JWK_KID_MAX, digest, sizeof(digest));
        key->kid[n] = 0;
}

void jwt_keys_export(const struct jwt_keys *keys, struct json_out *o) {
        json_out_object(o, NULL);
        json_out_array(o, "keys");
        for (size_t i = 0; i < keys->count; i++) {
                const struct jwt_key *key = &keys->at[i];

                if (key->alg == JWT_HS256)
                        continue;
                json_out_object(o, NULL);
                put_public(o, key);
                json_out_text(o, "kid", key->kid);
                json_out_text(o, "alg", jwt_alg_name(key->alg));
                json_out_text(o, "use", "sig");
                json_out_object_end(o);
        }
        json_out_array_end(o);
        json_out_object_end(o);
}

/* ---- making keys ---- */

static int take_bytes(const json_t *jwk, const char *name, uint8_t *out, size_t cap, size_t *len,
                      struct why *why) {
        struct span text = json_get_str(jwk, name);

        if (!text.p || base64_url_decode(out, cap, len, text) != 0 || *len == 0)
                return wrong(why, "`%s`: expected 1..%zu bytes as base64url without padding", name,
                             cap);
        return 0;
}

static int take_oct(const json_t *jwk, struct jwt_key *key, struct why *why) {
        uint8_t bytes[JWT_SECRET_MAX];
        size_t len = 0;
        int r = take_bytes(jwk, "k", bytes, sizeof(bytes), &len, why);

        if (r == 0 && len < JWK_SECRET_MIN)
                r = wrong(why, "`k`: expected %d bytes or more for HS256", JWK_SECRET_MIN);
        if (r == 0) {
                key->secret = OPENSSL_memdup(bytes, len);
                key->secret_len = len;
                key->alg = JWT_HS256;
                key->can_sign = true;
                r = key->secret ? 0 : -ENOMEM;
        }
        OPENSSL_cleanse(bytes, sizeof(bytes));
        return r;
}

/* Makes a key of `type` from parameters and takes the builder. */
static EVP_PKEY *make(const char *type, int selection, OSSL_PARAM_BLD *builder) {
        OSSL_PARAM *params = builder ? OSSL_PARAM_BLD_to_param(builder) : NULL;
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
        EVP_PKEY *pkey = NULL;

        if (!params || !ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
            EVP_PKEY_fromdata(ctx, &pkey, selection, params) != 1)
                pkey = NULL;
        EVP_PKEY_CTX_free(ctx);
        OSSL_PARAM_free(params);
        OSSL_PARAM_BLD_free(builder);
        return pkey;
}

/* The point is on its curve and, with a private half, belongs to it. */
static bool is_sound(EVP_PKEY *pkey, bool has_private) {
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
        bool ok = ctx && EVP_PKEY_public_check(ctx) == 1 &&
                  (!has_private || EVP_PKEY_pairwise_check(ctx) == 1);

        EVP_PKEY_CTX_free(ctx);
        return ok;
}

static EVP_PKEY *make_ec(const uint8_t point[1 + 2 * COORDINATE], const uint8_t *d) {
        OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
        BIGNUM *private = d ? BN_secure_new() : NULL;
        EVP_PKEY *pkey = NULL;
        bool ok = builder && (!d || (private && BN_bin2bn(d, COORDINATE, private)));

        ok = ok && OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0);
        ok = ok && OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point,
                                                    1 + 2 * COORDINATE);
        ok = ok && (!d || OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, private));
        if (ok)
                pkey = make("EC", d ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY, builder);
        else
                OSSL_PARAM_BLD_free(builder);
        BN_clear_free(private);
        return pkey;
}

static int take_ec(const json_t *jwk, struct jwt_key *key, struct why *why) {
        uint8_t point[1 + 2 * COORDINATE] = {0x04}, d[COORDINATE];
        size_t x = 0, y = 0, len = 0;
        bool has_private = json_object_get(jwk, "d") != NULL;

        if (take_bytes(jwk, "x", point + 1, COORDINATE, &x, why) != 0 ||
            take_bytes(jwk, "y", point + 1 + COORDINATE, COORDINATE, &y, why) != 0 ||
            (has_private && take_bytes(jwk, "d", d, COORDINATE, &len, why) != 0))
                return 1;
        if (x != COORDINATE || y != COORDINATE || (has_private && len != COORDINATE))
                return wrong(why, "`x`, `y`, `d`: expected %d bytes each", COORDINATE);
        key->pkey = make_ec(point, has_private ? d : NULL);
        OPENSSL_cleanse(d, sizeof(d));
        if (!key->pkey || !is_sound(key->pkey, has_private))
                return wrong(why, "`x`, `y`%s: not a key of P-256", has_private ? ", `d`" : "");
        key->alg = JWT_ES256;
        key->can_sign = has_private;
        return 0;
}

static int accept_rsa(struct jwt_key *key, struct why *why) {
        int bits = EVP_PKEY_get_bits(key->pkey);

        if (bits < RSA_MIN_BITS || bits > RSA_MAX_BYTES * 8)
                return wrong(why, "expected an RSA key of %d..%d bits, this one has %d",
                             RSA_MIN_BITS, RSA_MAX_BYTES * 8, bits);
        key->alg = JWT_RS256;
        return 0;
}

static int take_rsa(const json_t *jwk, struct jwt_key *key, struct why *why) {
        uint8_t n[RSA_MAX_BYTES], e[8];
        size_t n_len = 0, e_len = 0;
        OSSL_PARAM_BLD *builder;
        BIGNUM *n_bn, *e_bn;

        if (take_bytes(jwk, "n", n, sizeof(n), &n_len, why) != 0 ||
            take_bytes(jwk, "e", e, sizeof(e), &e_len, why) != 0)
                return 1;
        builder = OSSL_PARAM_BLD_new();
        n_bn = BN_bin2bn(n, (int)n_len, NULL);
        e_bn = BN_bin2bn(e, (int)e_len, NULL);
        if (builder && n_bn && e_bn && BN_is_odd(e_bn) && !BN_is_one(e_bn) &&
            OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n_bn) &&
            OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e_bn))
                key->pkey = make("RSA", EVP_PKEY_PUBLIC_KEY, builder);
        else
                OSSL_PARAM_BLD_free(builder);
        BN_free(n_bn);
        BN_free(e_bn);
        if (!key->pkey)
                return wrong(why, "`n`, `e`: not an RSA key");
        return accept_rsa(key, why);
}

/* For sets: is this a key that we could use at all? */
static bool is_ours(const json_t *jwk) {
        struct span kty = json_get_str(jwk, "kty"), crv = json_get_str(jwk, "crv");
        struct span use = json_get_str(jwk, "use"), alg = json_get_str(jwk, "alg");

        if (use.p && !span_eq(use, SPAN("sig")))
                return false;
        if (span_eq(kty, SPAN("EC")))
                return span_eq(crv, SPAN("P-256")) && (!alg.p || span_eq(alg, SPAN("ES256")));
        if (span_eq(kty, SPAN("RSA")))
                return !alg.p || span_eq(alg, SPAN("RS256"));
        return span_eq(kty, SPAN("oct")) && (!alg.p || span_eq(alg, SPAN("HS256")));
}

static int take_kid(const json_t *jwk, struct jwt_key *key, struct why *why) {
        struct span kid = json_get_str(jwk, "kid");

        if (!kid.p && key->alg == JWT_HS256)
                return wrong(why, "`kid`: expected a name of 1..%d bytes", JWK_KID_MAX);
        if (!kid.p) {
                name_by_thumbprint(key);
                return 0;
        }
        if (kid.len == 0 || kid.len > JWK_KID_MAX)
                return wrong(why, "`kid`: expected a name of 1..%d bytes", JWK_KID_MAX);
        memcpy(key->kid, kid.p, kid.len);
        return 0;
}

/* Puts a finished key into the ring, or wipes it. */
static int keep(struct jwt_keys *keys, struct jwt_key *key, int r, struct why *why) {
        for (size_t i = 0; r == 0 && i < keys->count; i++)
                if (strcmp(keys->at[i].kid, key->kid) == 0)
                        r = wrong(why, "`kid`: there are two keys named `%.64s`", key->kid);
        if (r == 0 && keys->count == JWK_KEYS_MAX)
                r = wrong(why, "expected at most %d keys", JWK_KEYS_MAX);
        if (r == 0)
                keys->at[keys->count++] = *key;
        else
                jwt_key_wipe(key);
        return r;
}

static int add_jwk(struct jwt_keys *keys, const json_t *jwk, struct why *why) {
        struct span kty = json_get_str(jwk, "kty");
        struct jwt_key key = {0};
        int r;

        if (!json_is_object(jwk) || !is_ours(jwk))
                return wrong(why, "expected a key for signatures: `oct` (HS256), `EC` P-256 "
                                  "(ES256) or `RSA` (RS256)");
        if (span_eq(kty, SPAN("oct")))
                r = take_oct(jwk, &key, why);
        else
                r = span_eq(kty, SPAN("EC")) ? take_ec(jwk, &key, why) : take_rsa(jwk, &key, why);
        if (r == 0)
                r = take_kid(jwk, &key, why);
        return keep(keys, &key, r, why);
}

static int add_set(struct jwt_keys *keys, const json_t *set, struct why *why) {
        size_t before = keys->count, i;
        const json_t *jwk;

        json_array_foreach(set, i, jwk) {
                int r = is_ours(jwk) ? add_jwk(keys, jwk, why) : 0;

                if (r != 0)
                        return r;
        }
        if (keys->count == before)
                return wrong(why, "`keys`: expected at least one for ES256, HS256 or RS256");
        return 0;
}

/* A key file that asks for a passphrase is refused rather than prompted for. */
static int no_passphrase(char *buffer, int size, int writing, void *user) {
        (void)buffer, (void)size, (void)writing, (void)user;
        return -1;
}

static EVP_PKEY *read_pem(struct span text, bool *has_private) {
        BIO *in = BIO_new_mem_buf(text.p, (int)text.len);
        EVP_PKEY *pkey = in ? PEM_read_bio_PrivateKey(in, NULL, no_passphrase, NULL) : NULL;

        *has_private = pkey != NULL;
        if (in && !pkey) {
                BIO_free(in);
                in = BIO_new_mem_buf(text.p, (int)text.len);
                pkey = in ? PEM_read_bio_PUBKEY(in, NULL, no_passphrase, NULL) : NULL;
        }
        BIO_free(in);
        return pkey;
}

static int add_pem(struct jwt_keys *keys, struct span text, struct why *why) {
        struct jwt_key key = {0};
        char group[32] = "";
        bool has_private;
        int r = 0;

        key.pkey = read_pem(text, &has_private);
        if (!key.pkey)
                return wrong(why, "expected a PEM with a private or public key, no passphrase");
        if (EVP_PKEY_is_a(key.pkey, "RSA")) {
                r = accept_rsa(&key, why);
        } else if (EVP_PKEY_is_a(key.pkey, "EC") &&
                   EVP_PKEY_get_group_name(key.pkey, group, sizeof(group), NULL) == 1 &&
                   strcmp(group, "prime256v1") == 0 && is_sound(key.pkey, has_private)) {
                key.alg = JWT_ES256;
                key.can_sign = has_private;
        } else {
                r = wrong(why, "expected a key of P-256, or an RSA key");
        }
        if (r == 0)
                name_by_thumbprint(&key);
        return keep(keys, &key, r, why);
}

static int add_json(struct jwt_keys *keys, struct span text, struct why *why) {
        struct json_body body;
        const json_t *set;
        int r = json_body_open(&body, text);

        if (r != 0) {
                r = wrong(why, "%s", body.error);
        } else {
                set = json_object_get(body.root, "keys");
                r = json_is_array(set) ? add_set(keys, set, why) : add_jwk(keys, body.root, why);
        }
        json_body_close(&body);
        return r;
}

int jwt_keys_add_text(struct jwt_keys *keys, struct span text, char *why, size_t why_cap) {
        struct why to = {why, why_cap};
        size_t before = keys->count, skip = 0;
        int r;

        while (skip < text.len && strchr(" \t\r\n", text.p[skip]))
                skip++;
        ERR_clear_error();
        if (skip < text.len && text.p[skip] == '{')
                r = add_json(keys, text, &to);
        else
                r = add_pem(keys, text, &to);
        ERR_clear_error();
        if (r != 0)
                cut_to(keys, before);
        return r;
}

int jwt_keys_add_file(struct jwt_keys *keys, const char *path, char *why, size_t why_cap) {
        char text[JWK_FILE_MAX];
        size_t len = 0;
        ssize_t n = 1;
        int r, fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        while (n > 0 && len < sizeof(text)) {
                n = read(fd, text + len, sizeof(text) - len);
                if (n > 0)
                        len += (size_t)n;
        }
        r = n < 0 ? -errno : 0;
        (void)close(fd);
        if (r == 0 && len == sizeof(text))
                r = wrong(&(struct why){why, why_cap}, "expected a file below %zu bytes",
                          sizeof(text));
        if (r == 0)
                r = jwt_keys_add_text(keys, (struct span){text, len}, why, why_cap);
        OPENSSL_cleanse(text, sizeof(text));
        return r;
}
