/* origin/converted.h - the passes whose accounts took a hold, as gateways are
 * told them: each with the number of the snapshot it first came with.
 *
 * Entries stay ten minutes past the end of their hold, at most
 * ORG_CONVERTED_MAX of them; the oldest go first.
 *
 * Units      milliseconds of the database's clock.
 * Context    one thread.
 */
#ifndef ORIGIN_CONVERTED_H
#define ORIGIN_CONVERTED_H

#include "net/buf.h"

#define ORG_CONVERTED_MAX 100000
#define ORG_CONVERTED_KEEP_MS 600000
#define ORG_CONVERTED_BUCKETS 16384

struct converted;

struct org_converted {
        struct converted *first, **last;
        struct converted **buckets;
        size_t count;
};

NET_MUST int org_converted_init(struct org_converted *c);
void org_converted_fini(struct org_converted *c);

/* True when `json` says something new of `hold`; it then belongs to snapshot
 * `number`. Out of memory counts as nothing new. */
bool org_converted_add(struct org_converted *c, struct span hold, struct span json,
                       uint64_t number);
void org_converted_forget(struct org_converted *c, int64_t now_ms);
/* Appends what came after snapshot `after`, parted by commas. */
NET_MUST int org_converted_write(const struct org_converted *c, uint64_t after, struct buf *out);

#endif
