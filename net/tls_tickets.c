#include "net/tls_tickets.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#define NAME_BYTES 16
#define KEY_BYTES 32

struct ticket_key {
        unsigned char name[NAME_BYTES];
        unsigned char aes[KEY_BYTES];
        unsigned char mac[KEY_BYTES];
};

struct tls_tickets {
        atomic_uint refs;
        EVP_CIPHER *cipher;
        pthread_mutex_t lock;      /* guards the keys */
        struct ticket_key keys[2]; /* the one in use, the one before */
};

static void key_make(struct ticket_key *k) {
        int ok = RAND_bytes(k->name, sizeof k->name) == 1 &&
                 RAND_priv_bytes(k->aes, sizeof k->aes) == 1 &&
                 RAND_priv_bytes(k->mac, sizeof k->mac) == 1;
        assert(ok);
        (void)ok;
}

struct tls_tickets *tls_tickets_new(void) {
        struct tls_tickets *t = calloc(1, sizeof *t);
        if (!t)
                return NULL;
        t->cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
        if (!t->cipher) {
                free(t);
                return NULL;
        }
        atomic_init(&t->refs, 1);
        pthread_mutex_init(&t->lock, NULL);
        key_make(&t->keys[0]);
        key_make(&t->keys[1]);
        return t;
}

void tls_tickets_take(struct tls_tickets *t) {
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
}

void tls_tickets_free(struct tls_tickets **tp) {
        struct tls_tickets *t = *tp;
        *tp = NULL;
        if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
                return;
        EVP_CIPHER_free(t->cipher);
        pthread_mutex_destroy(&t->lock);
        OPENSSL_cleanse(t->keys, sizeof t->keys);
        free(t);
}

void tls_tickets_rotate(struct tls_tickets *t) {
        struct ticket_key fresh;
        key_make(&fresh);
        pthread_mutex_lock(&t->lock);
        t->keys[1] = t->keys[0];
        t->keys[0] = fresh;
        pthread_mutex_unlock(&t->lock);
        OPENSSL_cleanse(&fresh, sizeof fresh);
}

/* The key for sealing, or the one with that name; false if there is none. */
static bool key_find(struct tls_tickets *t, bool seal, const unsigned char *name,
                     struct ticket_key *out, bool *is_old) {
        bool found = seal;
        size_t at = 0;
        pthread_mutex_lock(&t->lock);
        if (!seal) {
                for (at = 0; at < NET_COUNT_OF(t->keys); at++) {
                        found = memcmp(t->keys[at].name, name, NAME_BYTES) == 0;
                        if (found)
                                break;
                }
        }
        if (found)
                *out = t->keys[at];
        pthread_mutex_unlock(&t->lock);
        *is_old = at != 0;
        return found;
}

static int set_index; /* of a context's ex data */
static pthread_once_t index_once = PTHREAD_ONCE_INIT;

static void index_make(void) {
        set_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
        assert(set_index >= 0);
}

static int on_ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                         EVP_MAC_CTX *mac, int seal) {
        struct tls_tickets *t = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), set_index);
        struct ticket_key key;
        bool is_old;
        if (!key_find(t, seal != 0, name, &key, &is_old))
                return 0;
        /* 2: usable, and a fresh one is sent. In TLS 1.3 a client should use each
         * but once (RFC 8446, C.4), so it needs one every time. */
        int result = is_old || SSL_version(ssl) >= TLS1_3_VERSION ? 2 : 1;
        if (seal) {
                result = 1;
                memcpy(name, key.name, NAME_BYTES);
                if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(t->cipher)) != 1)
                        result = -1;
        }
        OSSL_PARAM params[] = {
                OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.mac, sizeof key.mac),
                OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){"SHA256"}, 0),
                OSSL_PARAM_construct_end(),
        };
        if (EVP_CipherInit_ex2(cipher, t->cipher, key.aes, iv, seal, NULL) != 1 ||
            EVP_MAC_CTX_set_params(mac, params) != 1)
                result = -1;
        OPENSSL_cleanse(&key, sizeof key);
        return result;
}

int tls_tickets_attach(SSL_CTX *ctx, struct tls_tickets *t) {
        (void)pthread_once(&index_once, index_make);
        return SSL_CTX_set_ex_data(ctx, set_index, t) == 1 &&
               SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket_key) == 1;
}
