/* gateway/hash.h - 64-bit hashes for tables and limiter keys.
 *
 * Keyed, well mixed, not cryptographic: an outsider who does not know the seed
 * cannot aim at a cell, and nothing worse than a shared cell can happen.
 */
#ifndef GATEWAY_HASH_H
#define GATEWAY_HASH_H

#include "net/base.h"

static inline uint64_t gw_hash_mix(uint64_t h) {
        h ^= h >> 30;
        h *= UINT64_C(0xbf58476d1ce4e5b9);
        h ^= h >> 27;
        h *= UINT64_C(0x94d049bb133111eb);
        return h ^ (h >> 31);
}

static inline uint64_t gw_hash(uint64_t seed, const void *bytes, size_t len) {
        const unsigned char *p = bytes;
        uint64_t h = gw_hash_mix(seed ^ (len * UINT64_C(0x9e3779b97f4a7c15)));
        while (len > 0) {
                uint64_t word = 0;
                size_t n = len < 8 ? len : 8;
                memcpy(&word, p, n);
                h = gw_hash_mix(h ^ word);
                p += n;
                len -= n;
        }
        return h;
}

#endif
