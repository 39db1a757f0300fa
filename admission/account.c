#include "admission/account.h"

#include <string.h>

/* The one-shot SHA256() fetches an algorithm and allocates on every call in
 * OpenSSL 3; the older three functions work on the stack. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

static void digest(uint8_t kind, const char *p, size_t len, uint8_t out[SHA256_DIGEST_LENGTH]) {
        SHA256_CTX c;
        SHA256_Init(&c);
        SHA256_Update(&c, &kind, 1);
        if (len > 0)
                SHA256_Update(&c, p, len);
        SHA256_Final(out, &c);
}

struct adm_tag adm_account_tag(const char *name, size_t len, bool guest) {
        uint8_t md[SHA256_DIGEST_LENGTH];
        digest(guest ? 'g' : 'a', name, len, md);
        struct adm_tag t;
        memcpy(t.b, md, sizeof(t.b));
        return t;
}

bool adm_tag_equal(const struct adm_tag *a, const struct adm_tag *b) {
        return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

uint64_t adm_sale_hash(const char *id, size_t len) {
        uint8_t md[SHA256_DIGEST_LENGTH];
        digest('s', id, len, md);
        uint64_t h;
        memcpy(&h, md, sizeof(h));
        return h ? h : 1;
}
