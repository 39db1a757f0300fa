/* net/clock.h - civil time: RFC 3339 and the HTTP date, to and from
 * milliseconds since the Unix epoch.
 *
 * It leaves the monotonic clock to net/loop.h. Local time zones do not exist
 * here: a time without an offset is refused, never guessed.
 *
 * Units      milliseconds since 1970-01-01T00:00:00Z, may be negative.
 * Context    any thread; no allocation.
 */
#ifndef NET_CLOCK_H
#define NET_CLOCK_H

#include "net/base.h"

/* Room for any formatted time with its terminating zero. */
#define CLOCK_TEXT_MAX 32

enum clock_outcome {
        CLOCK_MALFORMED = 1, /* not a date-time of RFC 3339 */
        CLOCK_NO_OFFSET = 2, /* well formed, but neither `Z` nor +hh:mm */
        CLOCK_RANGE = 3,     /* no such day, hour, minute, second or offset */
};

/* Years 1970 to 9999. A fraction is cut to milliseconds; second 60 is taken
 * as the first instant of the next minute. 0 or an enum clock_outcome. */
NET_MUST int clock_parse_rfc3339(struct span text, int64_t *at_ms);

/* What was wrong, for a person: "expected a time with an offset, …". */
const char *clock_outcome_text(int outcome);

/* `2026-11-29T09:00:00Z`, with `.123` before the Z when the milliseconds are
 * not zero. Terminated; returns the length. Instants outside years 0..9999
 * are clamped to them. */
size_t clock_format_rfc3339(char out[CLOCK_TEXT_MAX], int64_t at_ms);

/* `Sun, 29 Nov 2026 09:00:00 GMT` (RFC 9110 section 5.6.7). */
size_t clock_format_http(char out[CLOCK_TEXT_MAX], int64_t at_ms);

/* The machine's wall clock. It may jump; never use it for a wait. */
int64_t clock_wall_ms(void);

#endif
