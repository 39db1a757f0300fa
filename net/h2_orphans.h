/* net/h2_orphans.h - streams of a client whose caller has gone: their short
 * answers run out unread instead of being reset.
 *
 * To a peer that counts them, resets are an attack, and all calls of a
 * connection would pay for it. So a stream may end by itself for H2_ORPHAN_MS;
 * then it is reset, but no more often than the bucket says. Where too many are
 * left over, the connection has to go.
 *
 * Units      milliseconds.
 * Ownership  a plain value to embed; starts as zero bytes.
 */
#ifndef NET_H2_ORPHANS_H
#define NET_H2_ORPHANS_H

#include "net/h2_limits.h"

#define H2_ORPHANS_MAX 32
#define H2_ORPHAN_MS 2000
/* Resets, a connection: servers that count allow several times that. */
#define H2_ORPHAN_RESET_BURST 20
#define H2_ORPHAN_RESETS_PER_S 5

struct h2_orphans {
        int32_t stream[H2_ORPHANS_MAX]; /* the longest left over first */
        int64_t since_ms[H2_ORPHANS_MAX];
        uint32_t n;
        struct h2_bucket resets;
};

/* False when there is no room for one more. */
bool h2_orphans_add(struct h2_orphans *o, int32_t stream, int64_t now_ms);
/* It ended by itself. Idempotent. */
void h2_orphans_remove(struct h2_orphans *o, int32_t stream);
/* Takes one out that is to be reset now; 0: none. */
int32_t h2_orphans_expire(struct h2_orphans *o, int64_t now_ms);
/* When to ask again; INT64_MAX: never. */
int64_t h2_orphans_due_ms(const struct h2_orphans *o, int64_t now_ms);

#endif
