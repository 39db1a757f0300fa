/* The generic cell rate algorithm: a key has one number, its theoretical
 * arrival time (TAT): when the key would be idle again if it now kept
 * exactly its rate. An event is allowed while TAT <= now + period - step,
 * and moves TAT to max(TAT, now) + step, with step = period / burst.
 *
 * A cell is 24 bits of fingerprint over 40 bits of TAT in units of 1/16 ms
 * above the table's first instant (2.1 years; steps below a millisecond
 * stay exact enough for 16,000 events a second). TAT at or before now means
 * idle: the cell is anybody's. 0 is an empty cell.
 */
#include "admission/limiter.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define NEAR 8
#define CELLS_MIN 64
#define TAT_BITS 40
#define TAT_MASK ((UINT64_C(1) << TAT_BITS) - 1)
#define UNITS_PER_MS 16
#define TRIES 16

struct adm_limiter {
        size_t mask;
        _Atomic int64_t first_ms; /* 0 until the first check */
        _Atomic uint64_t shared_total;
        _Atomic uint64_t cells[];
};

int adm_limiter_new(size_t cells, struct adm_limiter **out) {
        size_t n = CELLS_MIN;
        while (n < cells && n < SIZE_MAX / 32)
                n *= 2;
        struct adm_limiter *l = calloc(1, sizeof(*l) + n * sizeof(l->cells[0]));
        if (!l)
                return -ENOMEM;
        l->mask = n - 1;
        *out = l;
        return 0;
}

void adm_limiter_free(struct adm_limiter **l) {
        free(*l);
        *l = NULL;
}

uint64_t adm_limiter_shared_total(const struct adm_limiter *l) {
        return atomic_load_explicit(&l->shared_total, memory_order_relaxed);
}

/* Now in the table's units, at least 1. */
static uint64_t table_time(struct adm_limiter *l, int64_t now_ms) {
        int64_t first = atomic_load_explicit(&l->first_ms, memory_order_relaxed);
        if (first == 0) {
                int64_t none = 0;
                int64_t mine = now_ms > 1 ? now_ms - 1 : 1;
                bool won = atomic_compare_exchange_strong(&l->first_ms, &none, mine);
                first = won ? mine : none;
        }
        int64_t t = now_ms > first ? now_ms - first : 1;
        return ((uint64_t)t * UNITS_PER_MS) & TAT_MASK;
}

struct hit {
        size_t at;
        uint64_t cell;
        bool ours;
};

/* The key's own cell; else an idle one; else the one that is idle soonest. */
static struct hit find(struct adm_limiter *l, uint64_t key, uint64_t now) {
        uint64_t print = key >> TAT_BITS;
        struct hit best = {.at = 0, .cell = UINT64_MAX, .ours = false};
        for (size_t i = 0; i < NEAR; i++) {
                size_t at = ((size_t)key + i) & l->mask;
                uint64_t cell = atomic_load_explicit(&l->cells[at], memory_order_relaxed);
                uint64_t tat = cell & TAT_MASK;
                if (tat != 0 && cell >> TAT_BITS == print)
                        return (struct hit){.at = at, .cell = cell, .ours = true};
                if (best.cell == UINT64_MAX ||
                    (tat < (best.cell & TAT_MASK) && (best.cell & TAT_MASK) > now))
                        best = (struct hit){.at = at, .cell = cell, .ours = false};
        }
        return best;
}

static int64_t check(struct adm_limiter *l, uint64_t key, struct adm_limit limit, int64_t now_ms,
                     bool take) {
        uint64_t now = table_time(l, now_ms);
        uint64_t period = (uint64_t)limit.period_ms * UNITS_PER_MS;
        uint64_t step = period / (limit.burst ? limit.burst : 1);
        uint64_t slack = period - step;
        if (step == 0)
                step = 1;
        for (int tries = 0; tries < TRIES; tries++) {
                struct hit h = find(l, key, now);
                uint64_t tat = h.cell & TAT_MASK;
                if (!h.ours && tat > now && take)
                        atomic_fetch_add_explicit(&l->shared_total, 1, memory_order_relaxed);
                uint64_t from = tat > now ? tat : now;
                if (from > now + slack)
                        return (int64_t)((from - now - slack + UNITS_PER_MS - 1) / UNITS_PER_MS);
                if (!take)
                        return 0;
                /* A shared cell keeps its first owner, who is found by it. */
                uint64_t print = h.ours || tat <= now ? key >> TAT_BITS : h.cell >> TAT_BITS;
                uint64_t next = print << TAT_BITS | ((from + step) & TAT_MASK);
                if (atomic_compare_exchange_weak_explicit(&l->cells[h.at], &h.cell, next,
                                                          memory_order_relaxed,
                                                          memory_order_relaxed))
                        return 0;
        }
        return 1;
}

int64_t adm_limiter_take(struct adm_limiter *l, uint64_t key, struct adm_limit limit,
                         int64_t now_ms) {
        return check(l, key, limit, now_ms, true);
}

int64_t adm_limiter_look(struct adm_limiter *l, uint64_t key, struct adm_limit limit,
                         int64_t now_ms) {
        return check(l, key, limit, now_ms, false);
}
