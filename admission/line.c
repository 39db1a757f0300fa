#include "admission/line.h"

#include <assert.h>

#define QUARTERS_PER_S 4
#define QUARTER_MS 250

/* Promises reach at most this far ahead: poll.h's horizon and some slack. */
#define AHEAD_QUARTERS 1000

/* A mark this far behind is silent by any setting and wiped well before it
 * wraps around (4.5 hours). */
#define OLD_QUARTERS (4000 * QUARTERS_PER_S)
#define SWEEP_BLOCKS 2

#define FRESH_MS 2000
#define JOIN_STEP_MS 50

/* The scans read marks that other threads change one at a time; each may be
 * seen before or after its change, and either is right. A vector loop needs
 * plain loads, so the race detector is told to look away here. */
#define RACY __attribute__((no_sanitize("thread")))

static uint16_t encode(int64_t at_ms) {
        uint16_t m = (uint16_t)((uint64_t)(at_ms + QUARTER_MS - 1) / QUARTER_MS);
        return m == ADM_MARK_NEVER || m == ADM_MARK_GONE ? 1 : m;
}

static uint16_t quarter_of(int64_t now_ms) {
        return (uint16_t)((uint64_t)now_ms / QUARTER_MS);
}

struct adm_awake adm_line_awake(int64_t now_ms, uint32_t skip_seconds) {
        uint16_t skip = (uint16_t)(skip_seconds * QUARTERS_PER_S);
        return (struct adm_awake){.lo = (uint16_t)(quarter_of(now_ms) - skip),
                                  .span = (uint16_t)(skip + AHEAD_QUARTERS)};
}

bool adm_awake_is(struct adm_awake a, uint16_t mark) {
        return (uint16_t)(mark - a.lo) <= a.span && mark != ADM_MARK_NEVER && mark != ADM_MARK_GONE;
}

int64_t adm_mark_ahead_ms(uint16_t mark, int64_t now_ms) {
        return (int64_t)(int16_t)(uint16_t)(mark - quarter_of(now_ms)) * QUARTER_MS;
}

uint16_t adm_line_mark(const struct adm_line *l, uint32_t at) {
        return atomic_load_explicit(&l->marks[at], memory_order_relaxed);
}

static void mark_set(const struct adm_line *l, uint32_t at, uint16_t mark) {
        atomic_store_explicit(&l->marks[at], mark, memory_order_relaxed);
}

bool adm_line_refresh(const struct adm_line *l, uint32_t at, int64_t promised_at_ms,
                      struct adm_awake a) {
        uint16_t seen = adm_line_mark(l, at);
        uint16_t next = encode(promised_at_ms);
        while (adm_awake_is(a, seen))
                if (atomic_compare_exchange_weak_explicit(
                            &l->marks[at], &seen, next, memory_order_relaxed, memory_order_relaxed))
                        return true;
        return false;
}

uint32_t adm_line_index(const struct adm_line *l, uint64_t number, bool old) {
        if (number == 0 || number > l->capacity)
                return ADM_LINE_NONE;
        if (!old && number > l->h->last)
                return ADM_LINE_NONE;
        return (uint32_t)(number - 1) + (old ? 0 : l->capacity);
}

bool adm_line_is_full(const struct adm_line *l) {
        return l->h->last >= l->capacity;
}

uint32_t adm_line_next(const struct adm_line *l) {
        return l->capacity + l->h->last;
}

void adm_line_prepare(struct adm_line *l, int64_t promised_at_ms) {
        assert(!adm_line_is_full(l));
        mark_set(l, adm_line_next(l), promised_at_ms ? encode(promised_at_ms) : ADM_MARK_NEVER);
}

/* Remembers which index was next at this instant, at most once a step. */
static void join_note(struct adm_line_head *h, uint32_t at, int64_t now_ms) {
        uint32_t newest = (h->join_head - 1) % ADM_LINE_JOINS;
        bool none = h->join_head == h->join_tail;
        if (!none && now_ms < h->joins[newest].at_ms + JOIN_STEP_MS)
                return;
        if (h->join_head - h->join_tail == ADM_LINE_JOINS)
                h->join_tail++;
        uint32_t slot = h->join_head % ADM_LINE_JOINS;
        h->joins[slot].at_ms = now_ms;
        h->joins[slot].first = at;
        h->join_head++;
        if (none)
                h->fresh_lo = at;
}

void adm_line_give(struct adm_line *l, int64_t now_ms) {
        uint32_t at = adm_line_next(l);
        join_note(l->h, at, now_ms);
        if (adm_line_mark(l, at) != ADM_MARK_NEVER)
                l->live[at / ADM_LINE_BLOCK]++;
        l->h->last++;
}

void adm_line_admit_old(struct adm_line *l, uint32_t at) {
        assert(at < l->capacity);
        l->h->old_known++;
        if (at >= l->h->old_high)
                l->h->old_high = at + 1;
}

void adm_line_touch(struct adm_line *l, uint32_t at, int64_t promised_at_ms, struct adm_awake a) {
        uint16_t seen = adm_line_mark(l, at);
        assert(seen != ADM_MARK_GONE);
        if (!adm_awake_is(a, seen))
                l->live[at / ADM_LINE_BLOCK]++;
        mark_set(l, at, encode(promised_at_ms));
}

void adm_line_serve(struct adm_line *l, uint32_t at, struct adm_awake a) {
        uint16_t seen =
                atomic_exchange_explicit(&l->marks[at], ADM_MARK_GONE, memory_order_relaxed);
        if (seen == ADM_MARK_GONE)
                return;
        l->h->gone++;
        uint32_t *live = &l->live[at / ADM_LINE_BLOCK];
        if (adm_awake_is(a, seen) && *live > 0)
                (*live)--;
}

void adm_line_restore(struct adm_line *l, uint32_t at, int64_t silent_since_ms) {
        if (adm_line_mark(l, at) != ADM_MARK_GONE)
                return;
        mark_set(l, at, encode(silent_since_ms));
        l->h->gone--;
}

/* `n` is a constant at both places of call, so the loop becomes vectors. */
RACY static inline uint32_t count_run(const uint16_t *p, uint32_t n, struct adm_awake a) {
        uint16_t sum = 0;
        for (uint32_t i = 0; i < n; i++) {
                uint16_t past = (uint16_t)(p[i] - a.lo);
                uint16_t word = (uint16_t)(p[i] - 1);
                sum = (uint16_t)(sum + ((past <= a.span) & (word < 65534)));
        }
        return sum;
}

RACY static uint32_t count_block(const struct adm_line *l, uint32_t block, struct adm_awake a) {
        const uint16_t *p = (const uint16_t *)(const void *)l->marks + block * ADM_LINE_BLOCK;
        return count_run(p, ADM_LINE_BLOCK, a);
}

RACY uint32_t adm_line_in_block(const struct adm_line *l, uint32_t from, uint32_t at,
                                struct adm_awake a) {
        const uint16_t *p = (const uint16_t *)(const void *)l->marks;
        uint32_t begin = at / ADM_LINE_BLOCK * ADM_LINE_BLOCK;
        uint32_t i = from > begin ? from : begin;
        uint32_t sum = 0;
        for (; i + 64 <= at; i += 64)
                sum += count_run(p + i, 64, a);
        for (; i < at; i++)
                sum += adm_awake_is(a, p[i]);
        return sum;
}

/* The blocks in use: [0, old_end) and [now_begin, now_end). */
struct blocks {
        uint32_t old_end;
        uint32_t now_begin;
        uint32_t now_end;
};

static struct blocks blocks_of(const struct adm_line *l) {
        return (struct blocks){
                .old_end = (l->h->old_high + ADM_LINE_BLOCK - 1) / ADM_LINE_BLOCK,
                .now_begin = l->capacity / ADM_LINE_BLOCK,
                .now_end = (adm_line_next(l) + ADM_LINE_BLOCK - 1) / ADM_LINE_BLOCK,
        };
}

/* The block after `b`, stepping over the unused gap; b.now_end at the end. */
static uint32_t block_after(struct blocks b, uint32_t block) {
        block++;
        return block >= b.old_end && block < b.now_begin ? b.now_begin : block;
}

static uint32_t block_first(struct blocks b) {
        return b.old_end > 0 ? 0 : b.now_begin;
}

uint32_t adm_line_rank(const struct adm_line *l, uint32_t at, struct adm_awake a) {
        struct blocks b = blocks_of(l);
        uint32_t mine = at / ADM_LINE_BLOCK;
        uint32_t sum = 0;
        for (uint32_t i = 0; i < b.old_end && i < mine; i++)
                sum += l->live[i];
        for (uint32_t i = b.now_begin; i < b.now_end && i < mine; i++)
                sum += l->live[i];
        return sum + adm_line_in_block(l, 0, at, a);
}

uint32_t adm_line_fresh(struct adm_line *l, int64_t now_ms) {
        struct adm_line_head *h = l->h;
        uint32_t end = adm_line_next(l);
        while (h->join_tail != h->join_head) {
                uint32_t slot = h->join_tail % ADM_LINE_JOINS;
                if (h->joins[slot].at_ms + JOIN_STEP_MS + FRESH_MS > now_ms)
                        break;
                h->join_tail++;
                slot = h->join_tail % ADM_LINE_JOINS;
                h->fresh_lo = h->join_tail == h->join_head ? end : h->joins[slot].first;
        }
        if (h->fresh_at < h->fresh_lo)
                h->fresh_at = h->fresh_lo;
        if (h->fresh_at < l->capacity)
                h->fresh_at = l->capacity;
        while (h->fresh_at < end && adm_line_mark(l, h->fresh_at) != ADM_MARK_NEVER)
                h->fresh_at++;
        return h->fresh_at < end ? h->fresh_at : ADM_LINE_NONE;
}

uint32_t adm_line_recount(struct adm_line *l, struct adm_awake a) {
        struct blocks b = blocks_of(l);
        uint32_t sum = 0;
        for (uint32_t i = block_first(b); i < b.now_end; i = block_after(b, i)) {
                l->live[i] = count_block(l, i, a);
                sum += l->live[i];
        }
        return sum;
}

/* The index in `block` of its live mark number `nth`, counted from 0. */
static uint32_t nth_live(const struct adm_line *l, uint32_t block, uint32_t nth,
                         struct adm_awake a) {
        uint32_t at = block * ADM_LINE_BLOCK;
        uint32_t end = at + ADM_LINE_BLOCK;
        for (; at < end; at++)
                if (adm_awake_is(a, adm_line_mark(l, at)) && nth-- == 0)
                        break;
        return at;
}

struct adm_frontier adm_line_frontier(struct adm_line *l, int64_t room, int64_t now_ms,
                                      struct adm_awake a) {
        struct blocks b = blocks_of(l);
        struct adm_frontier f = {.end = ADM_LINE_NONE, .live = 0};
        for (uint32_t i = block_first(b); i < b.now_end; i = block_after(b, i)) {
                if ((int64_t)f.live + l->live[i] > room) {
                        f.end = nth_live(l, i, (uint32_t)(room - f.live), a);
                        f.live = (uint32_t)room;
                        break;
                }
                f.live += l->live[i];
        }
        /* Room that is just used up ends where the line ends today: who
         * joins later is not in. */
        if (f.end == ADM_LINE_NONE && f.live >= room)
                f.end = adm_line_next(l);
        uint32_t fresh = adm_line_fresh(l, now_ms);
        if (fresh < f.end) {
                f.end = fresh;
                f.live = adm_line_rank(l, fresh, a);
        }
        return f;
}

void adm_line_silence(struct adm_line *l) {
        struct blocks b = blocks_of(l);
        for (uint32_t i = block_first(b); i < b.now_end; i = block_after(b, i)) {
                for (uint32_t at = i * ADM_LINE_BLOCK; at < (i + 1) * ADM_LINE_BLOCK; at++)
                        if (adm_line_mark(l, at) != ADM_MARK_GONE)
                                mark_set(l, at, ADM_MARK_NEVER);
                l->live[i] = 0;
        }
}

void adm_line_sweep(struct adm_line *l, int64_t now_ms) {
        struct blocks b = blocks_of(l);
        uint16_t now = quarter_of(now_ms);
        for (int n = 0; n < SWEEP_BLOCKS; n++) {
                if (l->h->swept >= b.now_end)
                        l->h->swept = block_first(b);
                uint32_t at = l->h->swept * ADM_LINE_BLOCK;
                uint32_t end = at + ADM_LINE_BLOCK;
                for (; at < end; at++) {
                        uint16_t m = adm_line_mark(l, at);
                        uint16_t behind = (uint16_t)(now - m);
                        if (m != ADM_MARK_GONE && m != ADM_MARK_NEVER && behind >= OLD_QUARTERS &&
                            behind < UINT16_MAX - 2 * AHEAD_QUARTERS)
                                (void)atomic_compare_exchange_strong(&l->marks[at], &m,
                                                                     ADM_MARK_NEVER);
                }
                l->h->swept = block_after(b, l->h->swept);
        }
}

void adm_line_rebuild(struct adm_line *l, uint32_t last_at_least, int64_t now_ms) {
        struct adm_line_head *h = l->h;
        if (h->last < last_at_least)
                h->last = last_at_least;
        uint32_t fresh_lo = h->fresh_lo < l->capacity ? l->capacity : h->fresh_lo;
        h->fresh_at = fresh_lo;
        h->fresh_lo = fresh_lo;
        h->join_tail = 0;
        h->join_head = 0;
        if (fresh_lo < adm_line_next(l))
                join_note(h, fresh_lo, now_ms);
        h->gone = 0;
        for (uint32_t at = 0; at < h->old_high; at++)
                h->gone += adm_line_mark(l, at) == ADM_MARK_GONE;
        h->old_known = h->gone;
        for (uint32_t at = l->capacity; at < adm_line_next(l); at++)
                h->gone += adm_line_mark(l, at) == ADM_MARK_GONE;
}
