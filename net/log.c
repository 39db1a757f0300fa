#include "net/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "net/clock.h"

/* Room kept for what ends a line: ,"cut":true} and the newline. */
#define TAIL_BYTES 16

static _Atomic int log_fd = STDERR_FILENO;
static _Atomic int log_lowest = LOG_INFO;
static _Atomic(const char *) log_program = NULL;
static _Atomic uint64_t log_dropped_lines;

struct line {
        char *p;
        size_t len;
        bool cut;
};

static bool line_put(struct line *l, const char *p, size_t n) {
        if (n > LOG_LINE_MAX - TAIL_BYTES - l->len)
                return false;
        memcpy(l->p + l->len, p, n);
        l->len += n;
        return true;
}

/* One byte as it may stand in the line. */
static size_t escape(char out[8], uint8_t c) {
        if (c == '"' || c == '\\') {
                out[0] = '\\';
                out[1] = (char)c;
                return 2;
        }
        if (c >= 0x20 && c < 0x7F) {
                out[0] = (char)c;
                return 1;
        }
        /* Bytes, not characters: what arrived is what is shown. */
        (void)snprintf(out, 8, "\\u%04x", c);
        return 6;
}

static bool line_put_quoted(struct line *l, struct span s) {
        char one[8];

        if (!line_put(l, "\"", 1))
                return false;
        for (size_t i = 0; i < s.len; i++)
                if (!line_put(l, one, escape(one, (uint8_t)s.p[i])))
                        return false;
        return line_put(l, "\"", 1);
}

static bool line_put_value(struct line *l, const struct log_field *f) {
        char text[24];
        int n = 0;

        switch (f->type) {
        case LOG_TYPE_STR:
                return f->s.p ? line_put_quoted(l, f->s) : line_put(l, "null", 4);
        case LOG_TYPE_INT:
                n = snprintf(text, sizeof(text), "%lld", (long long)f->i);
                break;
        case LOG_TYPE_UINT:
                n = snprintf(text, sizeof(text), "%llu", (unsigned long long)f->u);
                break;
        case LOG_TYPE_BOOL:
                n = snprintf(text, sizeof(text), "%s", f->b ? "true" : "false");
                break;
        case LOG_TYPE_END:
                return false;
        }
        return line_put(l, text, (size_t)n);
}

/* A field stands whole or not at all. */
static void line_field(struct line *l, const struct log_field *f) {
        size_t before = l->len;

        if (line_put(l, l->len > 1 ? "," : "", l->len > 1 ? 1 : 0) &&
            line_put_quoted(l, span_of(f->name)) && line_put(l, ":", 1) && line_put_value(l, f))
                return;
        l->len = before;
        l->cut = true;
}

static const char *level_name(enum log_level level) {
        switch (level) {
        case LOG_DEBUG:
                return "debug";
        case LOG_INFO:
                return "info";
        case LOG_WARN:
                return "warn";
        case LOG_ERROR:
                return "error";
        }
        return "error";
}

size_t log_format(char out[LOG_LINE_MAX], enum log_level level, const char *area, const char *event,
                  const struct log_field *fields) {
        struct line l = {.p = out};
        char at[CLOCK_TEXT_MAX];
        const char *program = atomic_load_explicit(&log_program, memory_order_relaxed);

        (void)clock_format_rfc3339(at, clock_wall_ms());
        (void)line_put(&l, "{", 1);
        line_field(&l, &LOG_S("at", at));
        line_field(&l, &LOG_S("level", level_name(level)));
        if (program)
                line_field(&l, &LOG_S("program", program));
        line_field(&l, &LOG_S("area", area));
        line_field(&l, &LOG_S("event", event));
        for (const struct log_field *f = fields; f && f->type != LOG_TYPE_END; f++)
                line_field(&l, f);
        if (l.cut) {
                memcpy(l.p + l.len, ",\"cut\":true", 11);
                l.len += 11;
        }
        memcpy(l.p + l.len, "}\n", 2);
        return l.len + 2;
}

void log_write(enum log_level level, const char *area, const char *event,
               const struct log_field *fields) {
        char line[LOG_LINE_MAX];
        size_t len = log_format(line, level, area, event, fields);
        int saved = errno;
        int fd = atomic_load_explicit(&log_fd, memory_order_relaxed);
        ssize_t n;

        do {
                n = write(fd, line, len);
        } while (n < 0 && errno == EINTR);
        /* A line written in part is of no use to anybody either. */
        if (n != (ssize_t)len)
                atomic_fetch_add_explicit(&log_dropped_lines, 1, memory_order_relaxed);
        errno = saved;
}

int log_init(enum log_level lowest, const char *file) {
        int fd, old;

        log_level_set(lowest);
        if (!file)
                return 0;
        /* O_NONBLOCK matters when the file is a pipe: a reader that stands
         * still costs lines, never the loop. */
        fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
        if (fd < 0)
                return -errno;
        old = atomic_load(&log_fd);
        if (old == STDERR_FILENO) {
                atomic_store(&log_fd, fd);
                return 0;
        }
        /* Reopened under the same number: threads that are writing go on. */
        if (dup3(fd, old, O_CLOEXEC) < 0) {
                int r = -errno;

                (void)close(fd);
                return r;
        }
        (void)close(fd);
        return 0;
}

void log_level_set(enum log_level lowest) {
        atomic_store_explicit(&log_lowest, (int)lowest, memory_order_relaxed);
}

void log_program_set(const char *name) {
        atomic_store_explicit(&log_program, name, memory_order_relaxed);
}

bool log_is_on(enum log_level level) {
        return (int)level >= atomic_load_explicit(&log_lowest, memory_order_relaxed);
}

/* The window packs the second (high 32 bits) and the lines in it. */
bool log_rate_allows(struct log_rate *rate, uint32_t per_s, uint64_t *skipped) {
        struct timespec ts;
        uint64_t now, seen, next;

        (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
        now = (uint64_t)(uint32_t)ts.tv_sec << 32;
        seen = atomic_load_explicit(&rate->window, memory_order_relaxed);
        do {
                uint64_t lines = (seen & ~0xFFFFFFFFull) == now ? seen & 0xFFFFFFFF : 0;

                if (lines >= per_s) {
                        atomic_fetch_add_explicit(&rate->skipped, 1, memory_order_relaxed);
                        return false;
                }
                next = now | (lines + 1);
        } while (!atomic_compare_exchange_weak_explicit(
                &rate->window, &seen, next, memory_order_relaxed, memory_order_relaxed));
        *skipped = atomic_exchange_explicit(&rate->skipped, 0, memory_order_relaxed);
        return true;
}

uint64_t log_dropped(void) {
        return atomic_load_explicit(&log_dropped_lines, memory_order_relaxed);
}

const char *log_errno_name(int negative) {
        const char *name = strerrorname_np(negative < 0 ? -negative : negative);

        return name ? name : "unknown";
}
