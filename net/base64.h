/* net/base64.h - base64url without padding (RFC 4648 section 5), strict.
 *
 * Decoding accepts exactly one spelling for each byte string: no padding, no
 * white space, no unused bits set. So a token cannot be respelled.
 *
 * Context    any thread; no state, no allocation.
 */
#ifndef NET_BASE64_H
#define NET_BASE64_H

#include "net/base.h"

/* Characters that `bytes` bytes need, without a terminating zero. */
#define BASE64_URL_LEN(bytes) (((bytes)*4 + 2) / 3)
/* Bytes that `chars` characters can hold at most. */
#define BASE64_URL_BYTES(chars) ((chars) / 4 * 3 + ((chars) % 4) * 3 / 4)

/* Writes BASE64_URL_LEN(len) characters and no terminating zero. Returns how
 * many, or 0 if they do not fit into `cap` (and for an empty input). */
size_t base64_url_encode(char *out, size_t cap, const void *in, size_t len);

enum base64_outcome {
        BASE64_MALFORMED = 1, /* foreign character, length, or unused bits set */
        BASE64_TOO_LONG = 2,  /* more than `cap` bytes */
};

/* 0 and the bytes in `out`, their number in `len`; or an enum base64_outcome,
 * after which `out` is undefined. */
NET_MUST int base64_url_decode(void *out, size_t cap, size_t *len, struct span text);

#endif
