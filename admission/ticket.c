/* A ticket, byte by byte (numbers big-endian):
 *
 *    0  version, 1
 *    1  key id
 *    2  flags
 *    3  round          4
 *    7  sale           8
 *   15  order key      8
 *   23  account tag   16
 *   39  issued at      6   ms
 *   45  promised at    6   ms
 *   51  ahead          4
 *   55  MAC           20   the first bytes of HMAC-SHA256 over 0..54
 *
 * HMAC hashes the padded key before anything else. Those two compressions
 * are done once for each key of the ring and their states are kept, so one
 * MAC is two compressions on the stack: 55 bytes and SHA-256's own 9 bytes
 * of padding are exactly one block, and the outer hash is one more.
 */
#include "admission/ticket.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* EVP_MAC in OpenSSL 3.0 allocates when a keyed context starts again; the
 * plain SHA-256 functions let a state be copied like any struct. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>

#define FACTS_LEN 55
#define MAC_LEN (ADM_TICKET_LEN - FACTS_LEN)
#define VERSION 1
#define NO_LETTER 64

struct key {
        uint8_t id;
        SHA256_CTX inner; /* after key ^ 0x36.. */
        SHA256_CTX outer; /* after key ^ 0x5c.. */
};

struct adm_ticket_keys {
        size_t n;
        struct key keys[ADM_TICKET_KEYS_MAX];
        uint8_t value[256]; /* of a letter, 0..63, or NO_LETTER */
};

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void key_init(struct key *k, const struct adm_ticket_secret *s) {
        uint8_t block[SHA256_CBLOCK] = {0};
        if (s->len > sizeof(block)) {
                SHA256_CTX c;
                SHA256_Init(&c);
                SHA256_Update(&c, s->bytes, s->len);
                SHA256_Final(block, &c);
                OPENSSL_cleanse(&c, sizeof(c));
        } else {
                memcpy(block, s->bytes, s->len);
        }
        for (size_t i = 0; i < sizeof(block); i++)
                block[i] ^= 0x36;
        k->id = s->id;
        SHA256_Init(&k->inner);
        SHA256_Update(&k->inner, block, sizeof(block));
        for (size_t i = 0; i < sizeof(block); i++)
                block[i] ^= 0x36 ^ 0x5c;
        SHA256_Init(&k->outer);
        SHA256_Update(&k->outer, block, sizeof(block));
        OPENSSL_cleanse(block, sizeof(block));
}

static bool ring_is_good(const struct adm_ticket_secret *secrets, size_t n) {
        if (n == 0 || n > ADM_TICKET_KEYS_MAX)
                return false;
        for (size_t i = 0; i < n; i++) {
                if (!secrets[i].bytes || secrets[i].len < ADM_TICKET_SECRET_MIN)
                        return false;
                for (size_t j = 0; j < i; j++)
                        if (secrets[i].id == secrets[j].id)
                                return false;
        }
        return true;
}

int adm_ticket_keys_new(const struct adm_ticket_secret *secrets, size_t n,
                        struct adm_ticket_keys **out) {
        if (!ring_is_good(secrets, n))
                return ADM_TICKET_BAD_RING;
        struct adm_ticket_keys *r = calloc(1, sizeof(*r));
        if (!r)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                key_init(&r->keys[i], &secrets[i]);
        r->n = n;
        memset(r->value, NO_LETTER, sizeof(r->value));
        for (uint8_t i = 0; i < 64; i++)
                r->value[(uint8_t)alphabet[i]] = i;
        *out = r;
        return 0;
}

void adm_ticket_keys_free(struct adm_ticket_keys **keys) {
        if (!*keys)
                return;
        OPENSSL_cleanse(*keys, sizeof(**keys));
        free(*keys);
        *keys = NULL;
}

static void mac(const struct key *k, const uint8_t facts[FACTS_LEN],
                uint8_t md[SHA256_DIGEST_LENGTH]) {
        SHA256_CTX c = k->inner;
        SHA256_Update(&c, facts, FACTS_LEN);
        SHA256_Final(md, &c);
        c = k->outer;
        SHA256_Update(&c, md, SHA256_DIGEST_LENGTH);
        SHA256_Final(md, &c);
}

static void put(uint8_t *p, uint64_t v, size_t n) {
        for (size_t i = n; i-- > 0; v >>= 8)
                p[i] = (uint8_t)v;
}

static uint64_t get(const uint8_t *p, size_t n) {
        uint64_t v = 0;
        for (size_t i = 0; i < n; i++)
                v = v << 8 | p[i];
        return v;
}

static void text_from(const uint8_t raw[ADM_TICKET_LEN], char *text) {
        for (size_t i = 0; i < ADM_TICKET_LEN; i += 3, text += 4) {
                uint32_t v = (uint32_t)raw[i] << 16 | (uint32_t)raw[i + 1] << 8 | raw[i + 2];
                text[0] = alphabet[v >> 18];
                text[1] = alphabet[v >> 12 & 63];
                text[2] = alphabet[v >> 6 & 63];
                text[3] = alphabet[v & 63];
        }
}

static bool raw_from(const uint8_t value[256], const char *text, uint8_t raw[ADM_TICKET_LEN]) {
        uint32_t bad = 0;
        for (size_t i = 0; i < ADM_TICKET_LEN; i += 3, text += 4) {
                uint32_t a = value[(uint8_t)text[0]], b = value[(uint8_t)text[1]];
                uint32_t c = value[(uint8_t)text[2]], d = value[(uint8_t)text[3]];
                bad |= (a | b | c | d) & NO_LETTER;
                uint32_t v = a << 18 | b << 12 | c << 6 | d;
                raw[i] = (uint8_t)(v >> 16);
                raw[i + 1] = (uint8_t)(v >> 8);
                raw[i + 2] = (uint8_t)v;
        }
        return bad == 0;
}

void adm_ticket_encode(const struct adm_ticket_keys *keys, const struct adm_ticket *t, char *text) {
        uint8_t raw[FACTS_LEN + SHA256_DIGEST_LENGTH];
        assert(keys->n > 0);
        raw[0] = VERSION;
        raw[1] = keys->keys[0].id;
        raw[2] = t->flags;
        put(raw + 3, t->round, 4);
        put(raw + 7, t->sale, 8);
        put(raw + 15, t->key, 8);
        memcpy(raw + 23, t->tag.b, ADM_TAG_LEN);
        put(raw + 39, (uint64_t)t->issued_at_ms, 6);
        put(raw + 45, (uint64_t)t->promised_at_ms, 6);
        put(raw + 51, t->ahead, 4);
        mac(&keys->keys[0], raw, raw + FACTS_LEN);
        text_from(raw, text);
}

static const struct key *key_find(const struct adm_ticket_keys *keys, uint8_t id) {
        for (size_t i = 0; i < keys->n; i++)
                if (keys->keys[i].id == id)
                        return &keys->keys[i];
        return NULL;
}

int adm_ticket_decode(const struct adm_ticket_keys *keys, const char *text, size_t len,
                      struct adm_ticket *out) {
        uint8_t raw[ADM_TICKET_LEN];
        uint8_t md[SHA256_DIGEST_LENGTH];
        if (len != ADM_TICKET_TEXT_LEN || !raw_from(keys->value, text, raw) || raw[0] != VERSION)
                return ADM_TICKET_MALFORMED;
        const struct key *k = key_find(keys, raw[1]);
        if (!k)
                return ADM_TICKET_FORGED;
        mac(k, raw, md);
        if (CRYPTO_memcmp(md, raw + FACTS_LEN, MAC_LEN) != 0)
                return ADM_TICKET_FORGED;
        *out = (struct adm_ticket){
                .flags = raw[2],
                .round = (uint32_t)get(raw + 3, 4),
                .sale = get(raw + 7, 8),
                .key = get(raw + 15, 8),
                .issued_at_ms = (int64_t)get(raw + 39, 6),
                .promised_at_ms = (int64_t)get(raw + 45, 6),
                .ahead = (uint32_t)get(raw + 51, 4),
        };
        memcpy(out->tag.b, raw + 23, ADM_TAG_LEN);
        return ADM_TICKET_GOOD;
}
