#include "net/jwt.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "net/base64.h"
#include "net/json.h"
#include "net/jwt_key.h"

#define TIME_MAX_S 253402300799 /* the end of year 9999 */
#define WAYS 4                  /* places a token may have in the cache */

const char *jwt_outcome_text(int outcome) {
        static const char *const texts[JWT_OUTCOME_COUNT] = {
                "good",          "malformed", "unknown_key", "alg_mismatch",
                "bad_signature", "expired",   "not_yet",     "bad_claims",
        };

        return outcome >= 0 && outcome < JWT_OUTCOME_COUNT ? texts[outcome] : "unknown";
}

bool jwt_sub_is_good(struct span sub) {
        if (sub.len < 1 || sub.len > JWT_SUB_MAX)
                return false;
        for (size_t i = 0; i < sub.len; i++) {
                char c = sub.p[i];

                if (c < 0x21 || c > 0x7E || c == ',' || c == '"' || c == '\\')
                        return false;
        }
        return true;
}

void jwt_claims_init(struct jwt_claims *claims) {
        *claims = (struct jwt_claims){
                .exp = JWT_NO_TIME, .iat = JWT_NO_TIME, .nbf = JWT_NO_TIME, .rnd = -1};
}

/* ---- reading ---- */

struct parts {
        struct span header, payload, signature; /* base64url */
        struct span signed_text;                /* header, point, payload */
};

static bool split(struct span token, struct parts *out) {
        const char *end = token.p + token.len;
        const char *first, *second;

        if (token.len == 0 || token.len > JWT_MAX_BYTES)
                return false;
        first = memchr(token.p, '.', token.len);
        second = first ? memchr(first + 1, '.', (size_t)(end - first - 1)) : NULL;
        if (!second || memchr(second + 1, '.', (size_t)(end - second - 1)))
                return false;
        out->header = (struct span){token.p, (size_t)(first - token.p)};
        out->payload = (struct span){first + 1, (size_t)(second - first - 1)};
        out->signature = (struct span){second + 1, (size_t)(end - second - 1)};
        out->signed_text = (struct span){token.p, (size_t)(second - token.p)};
        return true;
}

/* The object behind one part; NULL when it is none. */
static json_t *decode_object(struct span part) {
        char text[BASE64_URL_BYTES(JWT_MAX_BYTES)];
        json_t *object;
        size_t len;

        if (base64_url_decode(text, sizeof(text), &len, part) != 0)
                return NULL;
        object = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(object)) {
                json_decref(object);
                return NULL;
        }
        return object;
}

static bool is_pass_type(struct span typ) {
        struct span media = SPAN("application/");

        if (typ.len > media.len && strncasecmp(typ.p, media.p, media.len) == 0) {
                typ.p += media.len;
                typ.len -= media.len;
        }
        return typ.len == strlen(JWT_TYP_PASS) && strncasecmp(typ.p, JWT_TYP_PASS, typ.len) == 0;
}

static bool typ_fits(const json_t *header, const struct jwt_rules *rules) {
        struct span typ = json_get_str(header, "typ");

        if (rules->typ)
                return typ.p && span_eq(typ, span_of(rules->typ));
        return !typ.p || !is_pass_type(typ);
}

/* The one key the header names, if it is for the header's algorithm. */
static int choose_key(const struct jwt_keys *keys, const json_t *header,
                      const struct jwt_key **out) {
        struct span kid = json_get_str(header, "kid");
        struct span alg = json_get_str(header, "alg");

        /* Extensions that must be understood (RFC 7515, 4.1.11): we know none. */
        if (!alg.p || json_object_get(header, "crit"))
                return JWT_MALFORMED;
        for (size_t i = 0; kid.p && i < keys->count; i++) {
                const struct jwt_key *key = &keys->at[i];

                if (!span_eq(kid, span_of(key->kid)))
                        continue;
                *out = key;
                return span_eq(alg, span_of(jwt_alg_name(key->alg))) ? 0 : JWT_ALG_MISMATCH;
        }
        return JWT_UNKNOWN_KEY;
}

/* A NumericDate, fractions cut. False when it is there and is none. */
static bool take_date(const json_t *payload, const char *name, int64_t *out) {
        const json_t *value = json_object_get(payload, name);
        double number = json_number_value(value);

        if (!value)
                return true;
        if (!json_is_number(value) || !(number >= 0 && number <= (double)TIME_MAX_S))
                return false;
        *out = (int64_t)floor(number);
        return true;
}

/* Text that fits is kept; longer, and none, is "". False for another type. */
static bool take_text(const json_t *payload, const char *name, char *out, size_t cap) {
        struct span text = json_get_str(payload, name);

        if (!text.p)
                return !json_object_get(payload, name);
        if (text.len < cap)
                memcpy(out, text.p, text.len + 1);
        return true;
}

/* `aud` is a text or a list of texts (RFC 7519, 4.1.3). */
static bool take_audience(const json_t *payload, const struct jwt_rules *rules,
                          struct jwt_claims *claims) {
        const json_t *aud = json_object_get(payload, "aud");
        const json_t *one;
        bool found = false;
        size_t i;

        if (!json_is_array(aud)) {
                struct span whole = json_get_str(payload, "aud");

                if (!take_text(payload, "aud", claims->aud, sizeof(claims->aud)))
                        return false;
                return !rules->audience || (whole.p && span_eq(whole, span_of(rules->audience)));
        }
        json_array_foreach(aud, i, one) {
                if (!json_is_string(one))
                        return false;
                if (rules->audience && strcmp(json_string_value(one), rules->audience) == 0)
                        found = true;
        }
        if (found && strlen(rules->audience) < sizeof(claims->aud))
                memcpy(claims->aud, rules->audience, strlen(rules->audience) + 1);
        return found || !rules->audience;
}

static bool take_issuer(const json_t *payload, const struct jwt_rules *rules,
                        struct jwt_claims *claims) {
        struct span whole = json_get_str(payload, "iss");

        return take_text(payload, "iss", claims->iss, sizeof(claims->iss)) &&
               (!rules->issuer || (whole.p && span_eq(whole, span_of(rules->issuer))));
}

static bool take_claims(const json_t *payload, const struct jwt_rules *rules,
                        struct jwt_claims *claims) {
        struct span sub = json_get_str(payload, "sub");
        const json_t *round = json_object_get(payload, "rnd");

        if (!sub.p || !jwt_sub_is_good(sub))
                return false;
        memcpy(claims->sub, sub.p, sub.len + 1);
        if (!take_date(payload, "exp", &claims->exp) || claims->exp == JWT_NO_TIME ||
            !take_date(payload, "iat", &claims->iat) || !take_date(payload, "nbf", &claims->nbf))
                return false;
        if (round && (!json_is_integer(round) || json_integer_value(round) < 0))
                return false;
        if (round)
                claims->rnd = json_integer_value(round);
        return take_text(payload, "jti", claims->jti, sizeof(claims->jti)) &&
               take_text(payload, "use", claims->use, sizeof(claims->use)) &&
               take_issuer(payload, rules, claims) && take_audience(payload, rules, claims);
}

static int check_times(const struct jwt_claims *claims, const struct jwt_rules *rules,
                       int64_t now_ms) {
        if (now_ms >= claims->exp * 1000 + rules->leeway_ms)
                return JWT_EXPIRED;
        if (claims->nbf != JWT_NO_TIME && now_ms < claims->nbf * 1000 - rules->leeway_ms)
                return JWT_NOT_YET;
        if (claims->iat != JWT_NO_TIME && now_ms < claims->iat * 1000 - rules->leeway_ms)
                return JWT_NOT_YET;
        return 0;
}

static bool signature_is_good(const struct jwt_key *key, const struct parts *p) {
        uint8_t bytes[JWT_SIGNATURE_MAX];
        size_t len;

        return base64_url_decode(bytes, sizeof(bytes), &len, p->signature) == 0 &&
               jwt_key_verify(key, p->signed_text, (struct span){(const char *)bytes, len});
}

/* All but the times. */
static int check(const struct jwt_keys *keys, struct span token, const struct jwt_rules *rules,
                 struct jwt_claims *claims) {
        const struct jwt_key *key = NULL;
        json_t *header, *payload;
        struct parts p;
        bool good_typ;
        int r;

        if (!split(token, &p))
                return JWT_MALFORMED;
        header = decode_object(p.header);
        if (!header)
                return JWT_MALFORMED;
        r = choose_key(keys, header, &key);
        good_typ = typ_fits(header, rules);
        json_decref(header);
        if (r != 0)
                return r;
        if (!signature_is_good(key, &p))
                return JWT_BAD_SIGNATURE;
        payload = decode_object(p.payload);
        if (!payload)
                return JWT_MALFORMED;
        r = good_typ && take_claims(payload, rules, claims) ? 0 : JWT_BAD_CLAIMS;
        json_decref(payload);
        return r;
}

int jwt_verify(const struct jwt_keys *keys, struct span token, const struct jwt_rules *rules,
               int64_t now_ms, struct jwt_claims *claims) {
        int r;

        jwt_claims_init(claims);
        r = check(keys, token, rules, claims);
        if (r == 0)
                return check_times(claims, rules, now_ms);
        jwt_claims_init(claims); /* nothing of a token that is not good */
        return r;
}

/* ---- signing ---- */

struct text_out {
        char *p;
        size_t len, cap;
};

static bool add_base64(struct text_out *o, const void *bytes, size_t len) {
        size_t n = base64_url_encode(o->p + o->len, o->cap - o->len, bytes, len);

        o->len += n;
        return n > 0;
}

static bool add_point(struct text_out *o) {
        if (o->len == o->cap)
                return false;
        o->p[o->len++] = '.';
        return true;
}

static const struct jwt_key *first_signer(const struct jwt_keys *keys) {
        for (size_t i = 0; i < keys->count; i++)
                if (keys->at[i].can_sign)
                        return &keys->at[i];
        return NULL;
}

int jwt_sign_json(const struct jwt_keys *keys, const char *typ, struct span payload, char *out,
                  size_t cap, size_t *len) {
        const struct jwt_key *key = first_signer(keys);
        struct text_out to = {out, 0, cap};
        char header[1024];
        uint8_t signature[64];
        struct json_out o;
        struct span head;
        size_t n;
        int r;

        if (!key)
                return -ENOKEY;
        json_out_init(&o, header, sizeof(header));
        json_out_object(&o, NULL);
        json_out_text(&o, "alg", jwt_alg_name(key->alg));
        json_out_text(&o, "kid", key->kid);
        json_out_text(&o, "typ", typ ? typ : "JWT");
        json_out_object_end(&o);
        head = json_out_done(&o);
        if (!head.p || !add_base64(&to, head.p, head.len) || !add_point(&to) ||
            !add_base64(&to, payload.p, payload.len))
                return -ENOBUFS;
        r = jwt_key_sign(key, (struct span){out, to.len}, signature, &n);
        if (r != 0)
                return r;
        if (!add_point(&to) || !add_base64(&to, signature, n))
                return -ENOBUFS;
        *len = to.len;
        return 0;
}

static void put_text(struct json_out *o, const char *name, const char *text) {
        if (text[0])
                json_out_text(o, name, text);
}

static void put_time(struct json_out *o, const char *name, int64_t at) {
        if (at != JWT_NO_TIME)
                json_out_int(o, name, at);
}

int jwt_sign(const struct jwt_keys *keys, const char *typ, const struct jwt_claims *claims,
             char *out, size_t cap, size_t *len) {
        char payload[JWT_MAX_BYTES];
        struct json_out o;
        struct span text;

        json_out_init(&o, payload, sizeof(payload));
        json_out_object(&o, NULL);
        put_text(&o, "iss", claims->iss);
        put_text(&o, "sub", claims->sub);
        put_text(&o, "aud", claims->aud);
        if (claims->rnd >= 0)
                json_out_int(&o, "rnd", claims->rnd);
        put_text(&o, "jti", claims->jti);
        put_time(&o, "iat", claims->iat);
        put_time(&o, "nbf", claims->nbf);
        put_time(&o, "exp", claims->exp);
        put_text(&o, "use", claims->use);
        json_out_object_end(&o);
        text = json_out_done(&o);
        return text.p ? jwt_sign_json(keys, typ, text, out, cap, len) : -ENOBUFS;
}

/* ---- the cache ---- */

struct entry {
        uint8_t digest[32];
        bool used;
        struct jwt_claims claims;
};

struct jwt_cache {
        EVP_MD_CTX *hasher;
        size_t sets; /* a power of two */
        uint64_t hits;
        struct entry at[]; /* WAYS a set */
};

int jwt_cache_new(struct jwt_cache **cache, size_t entries) {
        size_t sets = 1;

        while (sets * WAYS < entries)
                sets *= 2;
        *cache = calloc(1, sizeof(**cache) + sets * WAYS * sizeof(struct entry));
        if (!*cache)
                return -ENOMEM;
        (*cache)->sets = sets;
        (*cache)->hasher = EVP_MD_CTX_new();
        if (!(*cache)->hasher) {
                jwt_cache_free(cache);
                return -ENOMEM;
        }
        return 0;
}

void jwt_cache_free(struct jwt_cache **cache) {
        if (*cache)
                EVP_MD_CTX_free((*cache)->hasher);
        free(*cache);
        *cache = NULL;
}

void jwt_cache_clear(struct jwt_cache *cache) {
        for (size_t i = 0; i < cache->sets * WAYS; i++)
                cache->at[i].used = false;
}

uint64_t jwt_cache_hits(const struct jwt_cache *cache) {
        return cache->hits;
}

static struct entry *set_of(struct jwt_cache *cache, const uint8_t digest[32]) {
        uint64_t word;

        memcpy(&word, digest, sizeof(word));
        return &cache->at[(word & (cache->sets - 1)) * WAYS];
}

/* The place for a new token: a free one, else the one that ends first. */
static struct entry *victim(struct entry *set) {
        struct entry *best = &set[0];

        for (size_t i = 0; i < WAYS; i++) {
                if (!set[i].used)
                        return &set[i];
                if (set[i].claims.exp < best->claims.exp)
                        best = &set[i];
        }
        return best;
}

int jwt_cache_verify(struct jwt_cache *cache, const struct jwt_keys *keys, struct span token,
                     const struct jwt_rules *rules, int64_t now_ms, struct jwt_claims *claims) {
        uint8_t digest[32];
        struct entry *set, *e;
        int r;

        if (token.len == 0 || token.len > JWT_MAX_BYTES ||
            EVP_DigestInit_ex(cache->hasher, jwt_sha256(), NULL) != 1 ||
            EVP_DigestUpdate(cache->hasher, token.p, token.len) != 1 ||
            EVP_DigestFinal_ex(cache->hasher, digest, NULL) != 1)
                return jwt_verify(keys, token, rules, now_ms, claims);
        set = set_of(cache, digest);
        for (e = set; e < set + WAYS; e++) {
                if (!e->used || memcmp(e->digest, digest, sizeof(digest)) != 0)
                        continue;
                cache->hits++;
                *claims = e->claims;
                r = check_times(claims, rules, now_ms);
                e->used = r == 0;
                return r;
        }
        r = jwt_verify(keys, token, rules, now_ms, claims);
        if (r == 0) {
                e = victim(set);
                memcpy(e->digest, digest, sizeof(digest));
                e->claims = *claims;
                e->used = true;
        }
        return r;
}
