/* net/jwk.h - a ring of keys for tokens, parsed once.
 *
 * A file is a JWK (RFC 7517: `oct` for HS256, `EC` P-256 for ES256, `RSA` for
 * RS256), a JWK Set, or a PEM: a private or public P-256 key (ES256), or an
 * RSA public key of 2048 bits or more (RS256). A JWK needs a `kid`, save an
 * EC or RSA key, which like a PEM is called by its RFC 7638 thumbprint
 * (SHA-256, base64url). Two keys of one name are refused. In a set, keys of
 * other kinds and for other uses are passed over, but one must be ours.
 *
 * Ownership  jwt_keys_new/free; secrets are wiped by free.
 * Context    filled by one thread at start, then immutable and shared.
 */
#ifndef NET_JWK_H
#define NET_JWK_H

#include "net/base.h"
#include "net/json.h"

#define JWK_KID_MAX 128
#define JWK_FILE_MAX 65536 /* bytes of a key file */
#define JWK_KEYS_MAX 64    /* keys of a ring */
#define JWK_SECRET_MIN 32  /* bytes of an `oct` key, at least (RFC 7518, 3.2) */

enum jwt_alg { JWT_ES256, JWT_HS256, JWT_RS256 };

struct jwt_keys;

NET_MUST int jwt_keys_new(struct jwt_keys **keys);
void jwt_keys_free(struct jwt_keys **keys);

/* Adds the file's keys in order. 0; 1 with a sentence in `why` when the file
 * is not what it should be (nothing of it was added); -errno. */
NET_MUST int jwt_keys_add_file(struct jwt_keys *keys, const char *path, char *why, size_t why_cap);
NET_MUST int jwt_keys_add_text(struct jwt_keys *keys, struct span text, char *why, size_t why_cap);

size_t jwt_keys_count(const struct jwt_keys *keys);
const char *jwt_keys_kid(const struct jwt_keys *keys, size_t index);
enum jwt_alg jwt_keys_alg(const struct jwt_keys *keys, size_t index);
bool jwt_keys_can_sign(const struct jwt_keys *keys, size_t index);
const char *jwt_alg_name(enum jwt_alg alg);

/* The public halves as a JWK Set; symmetric keys are left out. */
void jwt_keys_export(const struct jwt_keys *keys, struct json_out *o);

#endif
