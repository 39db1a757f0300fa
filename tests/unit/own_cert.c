#include "tests/unit/own_cert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

static FILE *open_temporary(char *name, size_t size) {
        int fd;

        (void)snprintf(name, size, "/tmp/own-cert-XXXXXX");
        fd = mkstemp(name);
        return fd < 0 ? NULL : fdopen(fd, "w");
}

static int add_extension(X509 *x, int nid, const char *value) {
        X509V3_CTX ctx;
        X509_EXTENSION *e;
        int ok;

        X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
        e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
        ok = e && X509_add_ext(x, e, -1);
        X509_EXTENSION_free(e);
        return ok;
}

static X509 *self_signed(EVP_PKEY *key) {
        X509 *x = X509_new();
        X509_NAME *name = X509_get_subject_name(x);

        X509_set_version(x, 2);
        ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
        X509_gmtime_adj(X509_getm_notBefore(x), -3600);
        X509_gmtime_adj(X509_getm_notAfter(x), 86400);
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1,
                                   -1, 0);
        X509_set_issuer_name(x, name);
        X509_set_pubkey(x, key);
        if (!add_extension(x, NID_basic_constraints, "critical,CA:TRUE") ||
            !add_extension(x, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1") ||
            X509_sign(x, key, EVP_sha256()) == 0) {
                X509_free(x);
                return NULL;
        }
        return x;
}

int own_cert_init(struct own_cert *c) {
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509 *x = key ? self_signed(key) : NULL;
        FILE *cert_out = open_temporary(c->certificate_file, sizeof(c->certificate_file));
        FILE *key_out = open_temporary(c->key_file, sizeof(c->key_file));
        int ok = x && cert_out && key_out && PEM_write_X509(cert_out, x) == 1 &&
                 PEM_write_PrivateKey(key_out, key, NULL, NULL, 0, NULL, NULL) == 1;

        if (cert_out)
                ok &= fclose(cert_out) == 0;
        if (key_out)
                ok &= fclose(key_out) == 0;
        X509_free(x);
        EVP_PKEY_free(key);
        return ok ? 0 : -1;
}

void own_cert_fini(struct own_cert *c) {
        unlink(c->certificate_file);
        unlink(c->key_file);
}
