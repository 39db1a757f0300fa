/* tests/fuzz/fuzz.h - what every fuzz target is to its driver: libFuzzer's, or
 * tests/fuzz/replay.c, which only runs files. Targets keep nothing from one
 * input to the next but what is expensive to make and cannot change. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "net/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The target's own mutator, and the one of the driver that it may use. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* Says what is wrong and ends the program, so that the driver keeps the input. */
NET_PRINTF(1, 2) __attribute__((noreturn)) void fuzz_fail(const char *format, ...);

#define FUZZ_CHECK(is_true)                                                                        \
        ((is_true) ? (void)0 : fuzz_fail("%s:%d: not so: %s", __FILE__, __LINE__, #is_true))

/* Small numbers out of a seed, the same each time (xorshift). */
struct dice {
        uint64_t state;
};

static inline struct dice dice_of(uint64_t seed) {
        return (struct dice){seed * 0x9E3779B97F4A7C15u + 0x1234567u};
}

/* 0 .. sides - 1 */
static inline uint32_t dice_roll(struct dice *d, uint32_t sides) {
        d->state ^= d->state << 13;
        d->state ^= d->state >> 7;
        d->state ^= d->state << 17;
        return (uint32_t)(d->state >> 32) % sides;
}

/* A copy in memory of exactly its size, so that a byte too much is seen. The
 * caller frees it. Never NULL. */
struct span fuzz_copy(const uint8_t *data, size_t size);

#endif
