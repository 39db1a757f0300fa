#include "net/random.h"

#include <errno.h>
#include <sys/random.h>

void random_bytes(void *out, size_t len) {
        uint8_t *p = out;

        while (len > 0) {
                ssize_t n = getrandom(p, len, 0);

                if (n < 0 && errno == EINTR)
                        continue;
                /* Without it there are no keys and no ids: going on would be worse. */
                assert(n > 0);
                p += n;
                len -= (size_t)n;
        }
}

static uint64_t rotate(uint64_t x, unsigned by) {
        return x << by | x >> (64 - by);
}

/* SplitMix64, which spreads one number over a whole state. */
static uint64_t spread(uint64_t *x) {
        uint64_t z = (*x += 0x9e3779b97f4a7c15u);

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

void random_fast_init(struct random_fast *r, uint64_t seed) {
        for (size_t i = 0; i < NET_COUNT_OF(r->s); i++)
                r->s[i] = spread(&seed);
}

void random_fast_init_any(struct random_fast *r) {
        uint64_t seed;

        random_bytes(&seed, sizeof(seed));
        random_fast_init(r, seed);
}

uint64_t random_fast_next(struct random_fast *r) {
        uint64_t *s = r->s;
        uint64_t result = rotate(s[1] * 5, 7) * 9;
        uint64_t t = s[1] << 17;

        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotate(s[3], 45);
        return result;
}

uint64_t random_fast_below(struct random_fast *r, uint64_t below) {
        uint64_t reject, x;

        if (below == 0)
                return 0;
        reject = (0 - below) % below; /* 2^64 mod below: the uneven rest */
        do {
                x = random_fast_next(r);
        } while (x < reject);
        return x % below;
}

double random_fast_unit(struct random_fast *r) {
        return (double)(random_fast_next(r) >> 11) * 0x1.0p-53;
}

uint64_t random_fast_jitter(struct random_fast *r, uint64_t value, uint32_t percent) {
        uint64_t reach;

        assert(percent <= 100);
        reach = value / 100 * percent + value % 100 * percent / 100;
        return value - reach + random_fast_below(r, 2 * reach + 1);
}
