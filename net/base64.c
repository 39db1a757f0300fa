#include "net/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t base64_url_encode(char *out, size_t cap, const void *in, size_t len) {
        const uint8_t *p = in;
        size_t n = 0;

        if (BASE64_URL_LEN(len) > cap)
                return 0;
        while (len > 0) {
                size_t take = len < 3 ? len : 3;
                uint32_t group = (uint32_t)p[0] << 16;

                if (take > 1)
                        group |= (uint32_t)p[1] << 8;
                if (take > 2)
                        group |= p[2];
                for (size_t i = 0; i <= take; i++)
                        out[n++] = alphabet[(group >> (18 - 6 * i)) & 63];
                p += take;
                len -= take;
        }
        return n;
}

/* 0..63, or 64 for a foreign character. */
static uint32_t value_of(char c) {
        if (c >= 'A' && c <= 'Z')
                return (uint32_t)(c - 'A');
        if (c >= 'a' && c <= 'z')
                return (uint32_t)(c - 'a') + 26;
        if (c >= '0' && c <= '9')
                return (uint32_t)(c - '0') + 52;
        if (c == '-')
                return 62;
        return c == '_' ? 63 : 64;
}

int base64_url_decode(void *out, size_t cap, size_t *len, struct span text) {
        uint8_t *to = out;
        uint32_t bits = 0;
        unsigned held = 0;
        size_t n = 0;

        if (text.len % 4 == 1)
                return BASE64_MALFORMED;
        if (BASE64_URL_BYTES(text.len) > cap)
                return BASE64_TOO_LONG;
        for (size_t i = 0; i < text.len; i++) {
                uint32_t v = value_of(text.p[i]);

                if (v > 63)
                        return BASE64_MALFORMED;
                bits = bits << 6 | v;
                held += 6;
                if (held >= 8) {
                        held -= 8;
                        to[n++] = (uint8_t)(bits >> held);
                        bits &= (1u << held) - 1;
                }
        }
        if (bits != 0)
                return BASE64_MALFORMED; /* a second spelling of the same bytes */
        *len = n;
        return 0;
}
