/* gateway/guest.h - shoppers without an account.
 *
 * A guest is 128 random bits. They are the guest's tag in the line as they
 * are, so whoever holds a ticket is known again by it; the name that origin
 * and applications see is `guest:` and the bits in hex. The cookie is the bits
 * and a MAC over them:
 *
 *   base64url(16 bytes of bits, 16 bytes of HMAC-SHA256) = 43 characters
 *
 * Ownership  plain values.
 * Context    any thread; no state.
 */
#ifndef GATEWAY_GUEST_H
#define GATEWAY_GUEST_H

#include "admission/account.h"
#include "net/base.h"

#define GW_GUEST_KEY_LEN 32
#define GW_GUEST_TEXT_LEN 43
#define GW_GUEST_NAME_LEN 38

/* The key of guest cookies, derived from a ticket secret. */
void gw_guest_key(const void *secret, size_t len, uint8_t out[GW_GUEST_KEY_LEN]);

struct adm_tag gw_guest_new(void);
void gw_guest_encode(const uint8_t key[GW_GUEST_KEY_LEN], const struct adm_tag *guest,
                     char out[GW_GUEST_TEXT_LEN]);
/* False for anything that we did not write. */
bool gw_guest_decode(const uint8_t key[GW_GUEST_KEY_LEN], struct span text, struct adm_tag *out);

/* No terminating zero. */
void gw_guest_name(const struct adm_tag *guest, char out[GW_GUEST_NAME_LEN]);
/* True if `name` is a guest's, with their bits. */
bool gw_guest_of_name(struct span name, struct adm_tag *out);

#endif
