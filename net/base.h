/* net/base.h - the few words every file of sluice shares.
 *
 * A span is a borrowed run of bytes: not terminated, not owned. Who lends it
 * says until when it lives.
 *
 * Errors     int results: 0 done, > 0 a named outcome of that function,
 *            < 0 a negative errno.
 */
#ifndef NET_BASE_H
#define NET_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NET_MUST __attribute__((warn_unused_result))
#define NET_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define NET_COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define NET_CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

struct span {
        const char *p;
        size_t len;
};

#define SPAN(literal) ((struct span){"" literal, sizeof(literal) - 1})

static inline struct span span_of(const char *text) {
        return (struct span){text, text ? strlen(text) : 0};
}

static inline bool span_eq(struct span a, struct span b) {
        return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static inline bool span_starts(struct span a, struct span prefix) {
        return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.p, prefix.p, prefix.len) == 0);
}

/* Whether all bytes are from `lowest` (0x20 or 0x21) to 0x7E, eight at a time:
 * the answer for nearly every value that comes. */
static inline bool span_is_visible(struct span s, uint8_t lowest) {
        const uint64_t ones = UINT64_C(0x0101010101010101);
        uint64_t odd = 0;
        size_t i = 0;
        for (; i + 8 <= s.len; i += 8) {
                uint64_t w;
                memcpy(&w, s.p + i, 8);
                odd |= (w - ones * lowest) | (w + ones) | w;
        }
        for (; i < s.len; i++) {
                uint8_t c = (uint8_t)s.p[i];
                if (c < lowest || c > 0x7E)
                        return false;
        }
        return (odd & ones * 0x80) == 0;
}

/* Equality of secrets: its time depends on the lengths alone. */
static inline bool span_eq_secret(struct span a, struct span b) {
        unsigned char diff = a.len == b.len ? 0 : 1;
        for (size_t i = 0; i < a.len && i < b.len; i++)
                diff = (unsigned char)(diff | ((unsigned char)a.p[i] ^ (unsigned char)b.p[i]));
        return *(volatile unsigned char *)&diff == 0;
}

#endif
