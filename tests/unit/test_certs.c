#include "tests/unit/test_certs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

static void key_write(EVP_PKEY *key, const char *file) {
        FILE *f = fopen(file, "w");
        assert(f);
        int ok = PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
        assert(ok == 1);
        fclose(f);
}

static void name_add(X509 *x, int nid, const char *value) {
        X509V3_CTX ctx;
        X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
        X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
        assert(e);
        X509_add_ext(x, e, -1);
        X509_EXTENSION_free(e);
}

static void certificate_write(EVP_PKEY *key, const char *file) {
        X509 *x = X509_new();
        assert(x);
        X509_set_version(x, X509_VERSION_3);
        ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
        X509_gmtime_adj(X509_getm_notBefore(x), -3600);
        X509_gmtime_adj(X509_getm_notAfter(x), 86400);
        X509_set_pubkey(x, key);
        X509_NAME *name = X509_get_subject_name(x);
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1,
                                   0);
        X509_set_issuer_name(x, name);
        name_add(x, NID_basic_constraints, "critical,CA:TRUE");
        name_add(x, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
        int ok = X509_sign(x, key, EVP_sha256());
        assert(ok > 0);
        FILE *f = fopen(file, "w");
        assert(f);
        ok = PEM_write_X509(f, x);
        assert(ok == 1);
        fclose(f);
        X509_free(x);
}

void test_certs_make(struct test_certs *c) {
        snprintf(c->folder, sizeof c->folder, "/tmp/sluice-certs-XXXXXX");
        char *made = mkdtemp(c->folder);
        assert(made);
        snprintf(c->certificate, sizeof c->certificate, "%s/cert.pem", c->folder);
        snprintf(c->key, sizeof c->key, "%s/key.pem", c->folder);
        snprintf(c->other_key, sizeof c->other_key, "%s/other.pem", c->folder);
        EVP_PKEY *key = EVP_EC_gen("P-256");
        EVP_PKEY *other = EVP_EC_gen("P-256");
        assert(key && other);
        key_write(key, c->key);
        key_write(other, c->other_key);
        certificate_write(key, c->certificate);
        EVP_PKEY_free(key);
        EVP_PKEY_free(other);
}

void test_certs_remove(struct test_certs *c) {
        (void)unlink(c->certificate);
        (void)unlink(c->key);
        (void)unlink(c->other_key);
        (void)rmdir(c->folder);
}
