/* tests/unit/own_cert.h - a fresh self-signed certificate for "localhost" and
 * 127.0.0.1, in files of their own that fini removes.
 */
#ifndef TESTS_UNIT_OWN_CERT_H
#define TESTS_UNIT_OWN_CERT_H

struct own_cert {
        char certificate_file[64]; /* its own authority */
        char key_file[64];
};

/* 0, or -1 when it could not be made. */
int own_cert_init(struct own_cert *c);
void own_cert_fini(struct own_cert *c);

#endif
