/* net/random.h - bytes nobody can guess, and numbers nobody minds guessing.
 *
 * random_bytes is the kernel's generator: keys, ids, cookies. random_fast is
 * xoshiro256** seeded from one number: jitter and simulations, never secrets.
 *
 * Context    random_bytes: any thread. random_fast: one thread at a time.
 */
#ifndef NET_RANDOM_H
#define NET_RANDOM_H

#include "net/base.h"

/* Any length. A kernel without getrandom ends the program. */
void random_bytes(void *out, size_t len);

struct random_fast {
        uint64_t s[4];
};

/* Equal seeds give equal sequences. */
void random_fast_init(struct random_fast *r, uint64_t seed);
/* Seeded from the kernel. */
void random_fast_init_any(struct random_fast *r);
uint64_t random_fast_next(struct random_fast *r);
/* 0 .. below-1, evenly; 0 for below = 0. */
uint64_t random_fast_below(struct random_fast *r, uint64_t below);
/* [0, 1). */
double random_fast_unit(struct random_fast *r);
/* `value` moved by up to ± percent (0..100), evenly. */
uint64_t random_fast_jitter(struct random_fast *r, uint64_t value, uint32_t percent);

#endif
