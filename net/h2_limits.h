/* net/h2_limits.h - how much oddness one connection may show.
 *
 * A leaky bucket of weights: it fills by what a peer does and empties with
 * time. Honest peers never come near its rim; who reaches it is cut off.
 *
 * Units      weights; milliseconds.
 * Ownership  a plain value to embed.
 */
#ifndef NET_H2_LIMITS_H
#define NET_H2_LIMITS_H

#include "net/base.h"

struct h2_bucket {
        uint32_t level_milli;
        uint32_t seen_ms; /* of the clock, its lower half */
};

struct h2_bucket_conf {
        uint32_t burst; /* at most 1,000,000 */
        uint32_t per_s;
};

/* Weights of what a peer may send but rarely needs to. */
enum h2_glitch {
        H2_GLITCH_PING = 1,
        H2_GLITCH_PRIORITY = 1,
        H2_GLITCH_UNKNOWN = 1,
        H2_GLITCH_TINY_WINDOW = 1,
        H2_GLITCH_CLOSED = 1,  /* a frame for a stream that is over */
        H2_GLITCH_REFUSED = 1, /* a stream above the limit not yet acknowledged */
        H2_GLITCH_HEAD = 10,   /* a head above its budget */
        H2_GLITCH_GOAWAY = 10,
        H2_GLITCH_SETTINGS = 10,
        H2_GLITCH_EMPTY = 10, /* DATA or HEADERS with nothing in it */
};

/* A window update below this is tiny. */
#define H2_TINY_WINDOW 1024

/* Everything a peer sent, an eighth of it, may exceed what of it was of use
 * by this much (padding, empty frames, control frames). */
#define H2_USELESS_BYTES 262144

/* False once the level is above `burst`. A weight is at most 100,000. Starts
 * empty, as zero bytes. */
bool h2_bucket_add(struct h2_bucket *b, struct h2_bucket_conf conf, uint32_t weight,
                   int64_t now_ms);

#endif
