#include "net/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_BYTES 4096

static const uint64_t bucket_us[METRICS_BUCKETS] = {
        10,    20,    50,     100,    200,    500,     1000,    2000,    5000,     10000,
        20000, 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000,
};

void metrics_observe(struct metrics_histogram *h, uint64_t us) {
        size_t i = 0;

        while (i < METRICS_BUCKETS && us > bucket_us[i])
                i++;
        atomic_store_explicit(&h->bucket[i],
                              atomic_load_explicit(&h->bucket[i], memory_order_relaxed) + 1,
                              memory_order_relaxed);
        atomic_store_explicit(&h->sum_us,
                              atomic_load_explicit(&h->sum_us, memory_order_relaxed) + us,
                              memory_order_relaxed);
}

uint64_t metrics_histogram_count(const struct metrics_histogram *h) {
        uint64_t n = 0;

        for (size_t i = 0; i <= METRICS_BUCKETS; i++)
                n += atomic_load_explicit(&h->bucket[i], memory_order_relaxed);
        return n;
}

void metrics_out_init(struct metrics_out *o, size_t ceiling_bytes) {
        *o = (struct metrics_out){.ceiling = ceiling_bytes};
}

void metrics_out_fini(struct metrics_out *o) {
        free(o->p);
        *o = (struct metrics_out){0};
}

struct span metrics_out_done(const struct metrics_out *o) {
        if (o->overflow)
                return (struct span){NULL, 0};
        return (struct span){o->p ? o->p : "", o->len};
}

static bool make_room(struct metrics_out *o, size_t n) {
        size_t cap = o->cap ? o->cap : FIRST_BYTES;
        char *p;

        if (n <= o->cap - o->len)
                return true;
        if (n > o->ceiling - o->len)
                return false;
        while (cap - o->len < n)
                cap *= 2;
        if (cap > o->ceiling)
                cap = o->ceiling;
        p = realloc(o->p, cap);
        if (!p)
                return false;
        o->p = p;
        o->cap = cap;
        return true;
}

static void put(struct metrics_out *o, const char *p, size_t n) {
        if (o->overflow || !make_room(o, n)) {
                o->overflow = true;
                return;
        }
        memcpy(o->p + o->len, p, n);
        o->len += n;
}

static void put_text(struct metrics_out *o, const char *text) {
        put(o, text, strlen(text));
}

NET_PRINTF(2, 3) static void put_format(struct metrics_out *o, const char *format, ...) {
        char text[64];
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        assert(n >= 0 && (size_t)n < sizeof(text));
        put(o, text, (size_t)n);
}

/* The format knows three escapes; other control bytes would only confuse. */
static void put_escaped(struct metrics_out *o, struct span s) {
        for (size_t i = 0; i < s.len; i++) {
                char c = s.p[i];

                if (c == '\n')
                        put(o, "\\n", 2);
                else if (c == '"' || c == '\\')
                        put(o, c == '"' ? "\\\"" : "\\\\", 2);
                else
                        put(o, (uint8_t)c < 0x20 || (uint8_t)c >= 0x7F ? "?" : &c, 1);
        }
}

void metrics_family(struct metrics_out *o, const char *name, enum metrics_type type,
                    const char *help) {
        static const char *const names[] = {
                [METRICS_COUNTER] = "counter",
                [METRICS_GAUGE] = "gauge",
                [METRICS_HISTOGRAM] = "histogram",
        };

        put_text(o, "# HELP ");
        put_text(o, name);
        put_text(o, " ");
        put_text(o, help);
        put_text(o, "\n# TYPE ");
        put_text(o, name);
        put_text(o, " ");
        put_text(o, names[type]);
        put_text(o, "\n");
}

static void put_head(struct metrics_out *o, const char *name, const struct metrics_label *labels,
                     size_t label_count) {
        put_text(o, name);
        for (size_t i = 0; i < label_count; i++) {
                put_text(o, i ? "," : "{");
                put_text(o, labels[i].name);
                put_text(o, "=\"");
                put_escaped(o, labels[i].value);
                put_text(o, "\"");
        }
        put_text(o, label_count ? "} " : " ");
}

void metrics_sample(struct metrics_out *o, const char *name, const struct metrics_label *labels,
                    size_t label_count, uint64_t value) {
        put_head(o, name, labels, label_count);
        put_format(o, "%llu\n", (unsigned long long)value);
}

void metrics_sample_int(struct metrics_out *o, const char *name, const struct metrics_label *labels,
                        size_t label_count, int64_t value) {
        put_head(o, name, labels, label_count);
        put_format(o, "%lld\n", (long long)value);
}

void metrics_sample_real(struct metrics_out *o, const char *name,
                         const struct metrics_label *labels, size_t label_count, double value) {
        put_head(o, name, labels, label_count);
        if (isnan(value))
                put_text(o, "NaN\n");
        else if (isinf(value))
                put_text(o, value > 0 ? "+Inf\n" : "-Inf\n");
        else
                put_format(o, "%.17g\n", value);
}

static uint64_t sum_bucket(const struct metrics_histogram *const *parts, size_t count, size_t i) {
        uint64_t n = 0;

        for (size_t k = 0; k < count; k++)
                n += atomic_load_explicit(&parts[k]->bucket[i], memory_order_relaxed);
        return n;
}

void metrics_sample_histogram(struct metrics_out *o, const char *name,
                              const struct metrics_label *label_or_null,
                              const struct metrics_histogram *const *parts, size_t part_count) {
        struct metrics_label labels[2] = {{.name = "le"}};
        size_t label_count = 1;
        char part[128], end[24];
        uint64_t seen = 0, sum_us = 0;

        if (label_or_null) {
                labels[1] = labels[0];
                labels[0] = *label_or_null;
                label_count = 2;
        }
        (void)snprintf(part, sizeof(part), "%s_bucket", name);
        for (size_t i = 0; i <= METRICS_BUCKETS; i++) {
                if (i < METRICS_BUCKETS)
                        (void)snprintf(end, sizeof(end), "%g", (double)bucket_us[i] / 1e6);
                else
                        (void)snprintf(end, sizeof(end), "+Inf");
                labels[label_count - 1].value = span_of(end);
                seen += sum_bucket(parts, part_count, i);
                metrics_sample(o, part, labels, label_count, seen);
        }
        for (size_t k = 0; k < part_count; k++)
                sum_us += atomic_load_explicit(&parts[k]->sum_us, memory_order_relaxed);
        (void)snprintf(part, sizeof(part), "%s_sum", name);
        metrics_sample_real(o, part, labels, label_count - 1, (double)sum_us / 1e6);
        (void)snprintf(part, sizeof(part), "%s_count", name);
        metrics_sample(o, part, labels, label_count - 1, seen);
}
