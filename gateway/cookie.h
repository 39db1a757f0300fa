/* gateway/cookie.h - the cookies the gateway gives, and none of it leaving for
 * an application behind.
 *
 *   __Host-sluice-S        ticket of sale S
 *   __Host-sluice-pass-S   pass of sale S
 *   __Host-sluice_guest    who a guest is (no sale id has an underscore)
 *
 * All are Secure, HttpOnly, SameSite=Lax, Path=/.
 *
 * Ownership  writes into the caller's memory.
 * Context    any thread; no state.
 */
#ifndef GATEWAY_COOKIE_H
#define GATEWAY_COOKIE_H

#include "net/base.h"

enum gw_cookie { GW_COOKIE_TICKET, GW_COOKIE_PASS, GW_COOKIE_GUEST };

#define GW_COOKIE_NAME_MAX 96
#define GW_COOKIE_SET_MAX 64 /* beyond name and value */

/* Writes the name, without a closing zero; returns its length. */
size_t gw_cookie_name(enum gw_cookie kind, struct span sale, char out[GW_COOKIE_NAME_MAX]);

/* The value in a merged Cookie field; p NULL when there is none. An empty
 * value counts as none: it is what a deleted cookie leaves behind. */
struct span gw_cookie_get(struct span cookies, enum gw_cookie kind, struct span sale);

/* The Set-Cookie value; an empty `value` deletes the cookie. Needs
 * GW_COOKIE_NAME_MAX + GW_COOKIE_SET_MAX + value.len bytes; returns its length. */
size_t gw_cookie_set(enum gw_cookie kind, struct span sale, struct span value, char *out,
                     size_t cap);

/* Copies `cookies` without ours to `out` (twice cookies.len bytes are
 * enough) and returns the length; 0 when nothing is left. */
size_t gw_cookie_strip(struct span cookies, char *out);

/* True when a Set-Cookie value of an application names one of ours. */
bool gw_cookie_is_ours(struct span set_cookie);

#endif
