#include "gateway/guest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "net/base64.h"
#include "net/random.h"

#define MAC_LEN 16
#define RAW_LEN (ADM_TAG_LEN + MAC_LEN)

static const struct span name_prefix = SPAN("guest:");
static const struct span mac_prefix = SPAN("sluice guest\n");

static_assert(BASE64_URL_LEN(RAW_LEN) == GW_GUEST_TEXT_LEN, "the cookie's length");

void gw_guest_key(const void *secret, size_t len, uint8_t out[GW_GUEST_KEY_LEN]) {
        static const struct span label = SPAN("sluice guest cookies");
        uint8_t mac[EVP_MAX_MD_SIZE];
        unsigned n = 0;
        assert(len <= INT32_MAX);
        unsigned char *done =
                HMAC(EVP_sha256(), secret, (int)len, (const uint8_t *)label.p, label.len, mac, &n);
        assert(done && n == GW_GUEST_KEY_LEN);
        memcpy(out, mac, GW_GUEST_KEY_LEN);
        OPENSSL_cleanse(mac, sizeof mac);
}

struct adm_tag gw_guest_new(void) {
        struct adm_tag t;
        random_bytes(t.b, sizeof t.b);
        return t;
}

static void mac_of(const uint8_t *key, const struct adm_tag *guest, uint8_t out[MAC_LEN]) {
        uint8_t text[32], mac[EVP_MAX_MD_SIZE];
        unsigned len = 0;
        memcpy(text, mac_prefix.p, mac_prefix.len);
        memcpy(text + mac_prefix.len, guest->b, sizeof guest->b);
        unsigned char *done = HMAC(EVP_sha256(), key, GW_GUEST_KEY_LEN, text,
                                   mac_prefix.len + sizeof guest->b, mac, &len);
        assert(done && len >= MAC_LEN);
        memcpy(out, mac, MAC_LEN);
}

void gw_guest_encode(const uint8_t key[GW_GUEST_KEY_LEN], const struct adm_tag *guest,
                     char out[GW_GUEST_TEXT_LEN]) {
        uint8_t raw[RAW_LEN];
        memcpy(raw, guest->b, sizeof guest->b);
        mac_of(key, guest, raw + ADM_TAG_LEN);
        size_t n = base64_url_encode(out, GW_GUEST_TEXT_LEN, raw, sizeof raw);
        assert(n == GW_GUEST_TEXT_LEN);
}

bool gw_guest_decode(const uint8_t key[GW_GUEST_KEY_LEN], struct span text, struct adm_tag *out) {
        uint8_t raw[RAW_LEN], mac[MAC_LEN];
        size_t len = 0;
        if (text.len != GW_GUEST_TEXT_LEN || base64_url_decode(raw, sizeof raw, &len, text) != 0 ||
            len != sizeof raw)
                return false;
        memcpy(out->b, raw, sizeof out->b);
        mac_of(key, out, mac);
        return CRYPTO_memcmp(mac, raw + ADM_TAG_LEN, MAC_LEN) == 0;
}

void gw_guest_name(const struct adm_tag *guest, char out[GW_GUEST_NAME_LEN]) {
        static const char hex[] = "0123456789abcdef";
        memcpy(out, name_prefix.p, name_prefix.len);
        for (size_t i = 0; i < ADM_TAG_LEN; i++) {
                out[name_prefix.len + 2 * i] = hex[guest->b[i] >> 4];
                out[name_prefix.len + 2 * i + 1] = hex[guest->b[i] & 15];
        }
}

static int hex_of(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool gw_guest_of_name(struct span name, struct adm_tag *out) {
        if (name.len != GW_GUEST_NAME_LEN || !span_starts(name, name_prefix))
                return false;
        for (size_t i = 0; i < ADM_TAG_LEN; i++) {
                int high = hex_of(name.p[name_prefix.len + 2 * i]);
                int low = hex_of(name.p[name_prefix.len + 2 * i + 1]);
                if (high < 0 || low < 0)
                        return false;
                out->b[i] = (uint8_t)(high * 16 + low);
        }
        return true;
}
