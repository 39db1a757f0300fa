/* net/log.h - structured logs: one JSON object a line, one write(2) a line.
 *
 *   log_event(LOG_WARN, "snapshot", "origin away",
 *             LOG_S("addr", text), LOG_I("silent_ms", ms));
 *
 * A line is at most LOG_LINE_MAX bytes and holds only printable ASCII: every
 * other byte, the quote and the backslash are escaped, so that foreign bytes
 * can neither break a line nor a terminal. Fields that do not fit are left
 * out and `"cut":true` ends the line.
 *
 * A line that cannot be written (disk full, pipe full) is dropped and
 * counted. Logging never waits on a lock and never ends the program.
 *
 * Context    any thread, once log_init has run; before it, to stderr.
 */
#ifndef NET_LOG_H
#define NET_LOG_H

#include "net/base.h"

#define LOG_LINE_MAX 2048

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

enum log_type { LOG_TYPE_END, LOG_TYPE_STR, LOG_TYPE_INT, LOG_TYPE_UINT, LOG_TYPE_BOOL };

struct log_field {
        const char *name; /* a literal of letters, digits and _ */
        enum log_type type;
        union {
                struct span s;
                int64_t i;
                uint64_t u;
                bool b;
        };
};

#define LOG_END ((struct log_field){.type = LOG_TYPE_END})
#define LOG_SPAN(n, v) ((struct log_field){.name = (n), .type = LOG_TYPE_STR, .s = (v)})
#define LOG_S(n, v) LOG_SPAN(n, span_of(v))
#define LOG_I(n, v) ((struct log_field){.name = (n), .type = LOG_TYPE_INT, .i = (int64_t)(v)})
#define LOG_U(n, v) ((struct log_field){.name = (n), .type = LOG_TYPE_UINT, .u = (uint64_t)(v)})
#define LOG_B(n, v) ((struct log_field){.name = (n), .type = LOG_TYPE_BOOL, .b = (v)})
/* A negative errno as its name: LOG_E("error", r). */
#define LOG_E(n, negative) LOG_S(n, log_errno_name(negative))

/* Fields may be none; a LOG_END at their end is allowed and not needed. */
#define log_event(level, area, event, ...)                                                         \
        do {                                                                                       \
                if (log_is_on(level))                                                              \
                        log_write((level), (area), (event),                                        \
                                  (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ) LOG_END}); \
        } while (0)

/* The same, at most `per_s` lines a second from this place in the source;
 * the next line that passes says how many were left out ("skipped"). */
#define log_event_limited(per_s, level, area, event, ...)                                          \
        do {                                                                                       \
                static struct log_rate log_rate_;                                                  \
                uint64_t log_skipped_ = 0;                                                         \
                if (log_is_on(level) && log_rate_allows(&log_rate_, (per_s), &log_skipped_))       \
                        log_write((level), (area), (event),                                        \
                                  (const struct log_field[]){LOG_U("skipped", log_skipped_),       \
                                                             ##__VA_ARGS__, LOG_END});             \
        } while (0)

struct log_rate {
        _Atomic uint64_t window; /* second and lines in it, packed */
        _Atomic uint64_t skipped;
};

/* `file` NULL: stderr. Appends; the file is made with mode 0640. 0 or -errno,
 * after which logs go on where they went before. Again: reopens (rotation). */
NET_MUST int log_init(enum log_level lowest, const char *file);
void log_level_set(enum log_level lowest);
/* Put into every line as "program"; a literal. */
void log_program_set(const char *name);

bool log_is_on(enum log_level level);
bool log_rate_allows(struct log_rate *rate, uint32_t per_s, uint64_t *skipped);
void log_write(enum log_level level, const char *area, const char *event,
               const struct log_field *fields);

/* Renders a line as log_write would, newline included. Returns its length,
 * 0..LOG_LINE_MAX. */
size_t log_format(char out[LOG_LINE_MAX], enum log_level level, const char *area, const char *event,
                  const struct log_field *fields);

/* Lines dropped since the start because they could not be written. */
uint64_t log_dropped(void);

/* "ECONNREFUSED" for -ECONNREFUSED; "0" for 0. */
const char *log_errno_name(int negative);

#endif
