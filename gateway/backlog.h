/* gateway/backlog.h - answers that their clients do not read: each keeps a place
 * among the requests that are open with an upstream, or memory, and who reads
 * nothing must not keep what others would use.
 *
 * An answer is *unread* while more of it waits for its client than may be read
 * ahead. When places are short, one is taken back: from a client (address, or
 * /64 of IPv6) with more unread answers than its share, the longest unread
 * first; else from whoever has taken nothing for GW_BACKLOG_STALL_MS.
 *
 * Clients share counts where their hashes meet; a share is then smaller.
 *
 * Units      milliseconds of the loop.
 * Ownership  items are embedded by their owner, who removes them first.
 * Context    the worker's thread.
 */
#ifndef GATEWAY_BACKLOG_H
#define GATEWAY_BACKLOG_H

#include "net/base.h"

#define GW_BACKLOG_STALL_MS 1000
#define GW_BACKLOG_CLIENTS 1024

struct gw_unread {
        struct gw_unread *prev, *next;
        int64_t since_ms;
        uint32_t client; /* where it is counted */
        bool is_in;
};

/* In order of `since_ms`. */
struct gw_backlog {
        struct gw_unread *first, *last;
        uint32_t count;
        uint16_t of_client[GW_BACKLOG_CLIENTS];
};

/* `client` is a hash. Idempotent; one that is in keeps its instant. */
void gw_backlog_add(struct gw_backlog *b, struct gw_unread *u, uint64_t client, int64_t now_ms);
void gw_backlog_remove(struct gw_backlog *b, struct gw_unread *u);

/* Whose place to take back; NULL: nobody's yet. It stays in. */
struct gw_unread *gw_backlog_victim(const struct gw_backlog *b, uint32_t share, int64_t now_ms);

#endif
