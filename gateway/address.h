/* gateway/address.h - whose address a request comes from.
 *
 * The peer's, unless the peer is a trusted proxy: then X-Forwarded-For is read
 * from right to left, past further trusted proxies, and the first address that
 * is not one of ours is the client's. Whatever stands left of it is hearsay.
 *
 * Units      16 bytes, IPv4 mapped into ::ffff:0:0/96.
 * Context    any thread; no state.
 */
#ifndef GATEWAY_ADDRESS_H
#define GATEWAY_ADDRESS_H

#include "conf/conf.h"
#include "net/address.h"
#include "net/http.h"

#define GW_ADDRESS_TEXT_MAX 48

struct gw_address {
        uint8_t b[16];
};

/* All zero for a peer that is neither IPv4 nor IPv6. */
struct gw_address gw_address_of_peer(const union net_address *peer);

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]:80". */
bool gw_address_parse(struct span text, struct gw_address *out);

struct gw_address gw_address_of_client(const union net_address *peer,
                                       const struct http_request *request,
                                       const struct conf_networks *trusted);

bool gw_address_is_ipv4(const struct gw_address *a);

/* What limits are counted by: the address, or the /64 of an IPv6 one. */
uint64_t gw_address_key(const struct gw_address *a, uint64_t seed);

/* As a person writes it. Returns the length; terminated. */
size_t gw_address_text(const struct gw_address *a, char out[GW_ADDRESS_TEXT_MAX]);

#endif
