/* tests/unit/test_certs.h - certificate files made for one run: a self-signed
 * P-256 certificate for localhost and 127.0.0.1, its key, and a key that
 * belongs to nothing.
 */
#ifndef TESTS_UNIT_TEST_CERTS_H
#define TESTS_UNIT_TEST_CERTS_H

struct test_certs {
        char folder[64];
        char certificate[96];
        char key[96];
        char other_key[96];
};

void test_certs_make(struct test_certs *c);
void test_certs_remove(struct test_certs *c);

#endif
