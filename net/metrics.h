/* net/metrics.h - counters, a histogram, and the Prometheus text format 0.0.4.
 *
 * A counter or histogram has one writer, the thread it belongs to; any thread
 * may read it at any time. Sums over threads are made when they are rendered.
 *
 * Units      histograms take microseconds and are rendered in seconds.
 * Ownership  plain values to embed, zero-initialised; the text is a heap
 *            buffer that grows up to its ceiling.
 * Context    add and observe: the one writer. The rest: any thread.
 */
#ifndef NET_METRICS_H
#define NET_METRICS_H

#include <stdatomic.h>

#include "net/base.h"

#define METRICS_MEDIA_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics_counter {
        _Atomic uint64_t n;
};

/* One writer: a load and a store, no locked instruction. */
static inline void metrics_add(struct metrics_counter *c, uint64_t by) {
        atomic_store_explicit(&c->n, atomic_load_explicit(&c->n, memory_order_relaxed) + by,
                              memory_order_relaxed);
}

/* Several writers. */
static inline void metrics_add_shared(struct metrics_counter *c, uint64_t by) {
        atomic_fetch_add_explicit(&c->n, by, memory_order_relaxed);
}

/* For gauges: the counter as a plain number. */
static inline void metrics_set(struct metrics_counter *c, uint64_t to) {
        atomic_store_explicit(&c->n, to, memory_order_relaxed);
}

static inline uint64_t metrics_read(const struct metrics_counter *c) {
        return atomic_load_explicit(&c->n, memory_order_relaxed);
}

/* Upper ends: 10 20 50 µs, 100 … 500 µs, … 10 s, and beyond. */
#define METRICS_BUCKETS 19

struct metrics_histogram {
        _Atomic uint64_t bucket[METRICS_BUCKETS + 1]; /* not cumulative; the last is "beyond" */
        _Atomic uint64_t sum_us;
};

void metrics_observe(struct metrics_histogram *h, uint64_t us);
uint64_t metrics_histogram_count(const struct metrics_histogram *h);

struct metrics_out {
        char *p;
        size_t len;
        size_t cap;
        size_t ceiling; /* bytes the text may reach */
        bool overflow;  /* it wanted more, or memory ran out: unusable */
};

void metrics_out_init(struct metrics_out *o, size_t ceiling_bytes);
void metrics_out_fini(struct metrics_out *o);
/* The text, or NULL and 0 after an overflow. Lives until fini. */
struct span metrics_out_done(const struct metrics_out *o);

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM };

struct metrics_label {
        const char *name;  /* a literal */
        struct span value; /* any bytes; escaped */
};

/* HELP and TYPE, once, before the samples of `name`. */
void metrics_family(struct metrics_out *o, const char *name, enum metrics_type type,
                    const char *help);
/* `labels` may be NULL with 0. */
void metrics_sample(struct metrics_out *o, const char *name, const struct metrics_label *labels,
                    size_t label_count, uint64_t value);
void metrics_sample_int(struct metrics_out *o, const char *name, const struct metrics_label *labels,
                        size_t label_count, int64_t value);
void metrics_sample_real(struct metrics_out *o, const char *name,
                         const struct metrics_label *labels, size_t label_count, double value);
/* _bucket, _sum and _count of the sum of `part_count` histograms. */
void metrics_sample_histogram(struct metrics_out *o, const char *name,
                              const struct metrics_label *label_or_null,
                              const struct metrics_histogram *const *parts, size_t part_count);

#endif
