/* loadgen/link.h - connections that are kept: opened when needed, opened
 * again after a loss, and asks that wait for them.
 *
 * A link is one HTTP/2 connection to one endpoint. When a connection attempt
 * fails, the asks that wait for it end as lost and unsent; their owners come
 * back when they like. Attempts on one link are at least LG_LINK_GAP_MS apart,
 * and of all links of a set at most LG_LINKS_CONNECTING connect at a time, so
 * that thousands of handshakes do not starve each other into timeouts.
 *
 * Units      milliseconds.
 * Ownership  the set owns its links; asks are their owners'.
 * Context    the loop's thread.
 */
#ifndef LOADGEN_LINK_H
#define LOADGEN_LINK_H

#include "loadgen/addresses.h"
#include "loadgen/ask.h"
#include "net/loop.h"
#include "net/tls.h"

#define LG_LINK_GAP_MS 200
#define LG_LINKS_CONNECTING 48

struct lg_links;

/* `n` links, the i-th to endpoints[i % n_endpoints]. `tls` may be NULL where
 * no endpoint wants it. -ENOMEM. */
NET_MUST int lg_links_new(struct loop *l, const struct lg_endpoint *endpoints, size_t n_endpoints,
                          size_t n, struct tls_context *tls, struct lg_links **out);
/* Asks still under way are forgotten: on_answer does not run. */
void lg_links_free(struct lg_links **links);

size_t lg_links_count(const struct lg_links *links);
struct lg_link *lg_links_at(struct lg_links *links, size_t i);
size_t lg_links_ready(const struct lg_links *links);

/* Opens every link now; runs `on_all` once each has connected or failed. */
void lg_links_open(struct lg_links *links, void (*on_all)(void *owner), void *owner);

/* Puts the ask in line. It must be idle. on_answer never runs inside. */
void lg_link_ask(struct lg_link *link, struct lg_ask *ask);
/* Forgets it: on_answer will not run. Idle is fine. */
void lg_ask_cancel(struct lg_ask *ask);

#endif
