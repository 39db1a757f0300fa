/* net/http_networks.h - what the networks of clients have shown in their
 * handshakes with one loop.
 *
 * A network is an IPv4 /24 or an IPv6 /56. A handshake that fails, or is not
 * over after a while, is a strike. Each good one takes a strike back, and so
 * does time: as many as close a network are forgiven while one is closed. So a
 * crowd behind one address, most of it honest, never comes near the limit,
 * and who only opens connections does within a second or two. A network
 * with too many strikes is closed to for a time.
 *
 * Units      milliseconds of the loop; thousandths of a strike.
 * Limits     NETWORKS_MAX networks are known at once. Those that have nothing
 *            against them and nothing under way make room; when there is no
 *            room a network goes unknown, which is counted.
 * Ownership  init/fini. An entry stays where it is as long as it has a
 *            handshake under way or parked.
 * Context    one loop.
 */
#ifndef NET_HTTP_NETWORKS_H
#define NET_HTTP_NETWORKS_H

#include "net/address.h"
#include "net/base.h"

struct http_conn;

#define NETWORKS_MAX 2048

struct http_network {
        uint64_t name;       /* 0: free */
        uint32_t handshakes; /* begun, not over */
        uint32_t strikes_milli;
        int64_t seen_ms;         /* strikes_milli is of then */
        int64_t closed_until_ms; /* past: it is open */
        struct http_conn *first_parked, *last_parked;
};

struct http_networks {
        struct http_network *entries; /* NULL: nobody is judged */
        uint64_t seed;
        uint32_t strikes; /* that close a network */
        uint32_t closed_ms;
};

/* `strikes` 0: nobody is judged, and no entry is ever found. */
NET_MUST int http_networks_init(struct http_networks *n, uint32_t strikes, uint32_t closed_ms);
void http_networks_fini(struct http_networks *n);

/* The peer's entry, made if need be; NULL when nobody is judged, for peers
 * without an IP address, and (with `*is_full`) when there is no room. */
struct http_network *http_networks_find(struct http_networks *n, const union net_address *peer,
                                        int64_t now_ms, bool *is_full);
/* True if this strike closes the network. */
bool http_network_strike(const struct http_networks *n, struct http_network *w, int64_t now_ms);
void http_network_forgive(struct http_network *w);

static inline bool http_network_is_closed(const struct http_network *w, int64_t now_ms) {
        return w && now_ms < w->closed_until_ms;
}

#endif
