/* The notice: one small record that a tick writes and every poll reads. The
 * writer makes `seq` odd, stores the words, makes it even; each store is a
 * release and each load an acquire, so a reader that saw the same even
 * number on both sides saw one notice and nothing of another. */
#include "admission/notice.h"

#include <string.h>

#include "admission/hall.h"

_Static_assert(sizeof(struct adm_notice) % sizeof(uint64_t) == 0, "a notice is words");

#define READS 3

static void write_words(struct adm_hall *l, const struct adm_notice *n) {
        struct adm_board *b = &l->h->board;
        uint64_t word[ADM_NOTICE_WORDS];
        memcpy(word, n, sizeof(word));
        for (size_t i = 0; i < ADM_NOTICE_WORDS; i++)
                atomic_store_explicit(&b->word[i], word[i], memory_order_release);
}

/* before[b] = live marks in [frontier.end, begin of b). */
static void write_before(struct adm_hall *l, struct adm_awake a) {
        const struct adm_line *line = &l->line;
        uint32_t from = l->h->frontier.end;
        uint32_t gap_begin = (line->h->old_high + ADM_LINE_BLOCK - 1) / ADM_LINE_BLOCK;
        uint32_t gap_end = line->capacity / ADM_LINE_BLOCK;
        uint32_t end = (adm_line_next(line) + ADM_LINE_BLOCK - 1) / ADM_LINE_BLOCK;
        uint32_t sum = 0;
        for (uint32_t b = gap_begin > 0 ? 0 : gap_end; b < end; b++) {
                if (b >= gap_begin && b < gap_end)
                        b = gap_end;
                atomic_store_explicit(&l->before[b], sum, memory_order_release);
                uint32_t begin = b * ADM_LINE_BLOCK;
                if (from <= begin)
                        sum += line->live[b];
                else if (from - begin < ADM_LINE_BLOCK) {
                        uint32_t in = adm_line_in_block(line, 0, from, a);
                        sum += line->live[b] > in ? line->live[b] - in : 0;
                }
        }
}

struct adm_notice adm_notice_now(struct adm_hall *l, int64_t now_ms) {
        struct adm_hall_head *h = l->h;
        const struct adm_sale_facts *f = &h->facts;
        enum adm_sale_state s = adm_hall_state(l, now_ms);
        bool moving = s == ADM_SALE_OPEN && !adm_hall_is_away(l, now_ms);
        int64_t obtainable = f->stock.available + f->stock.held;
        return (struct adm_notice){
                .sale = h->in_use ? h->sale : 0,
                .now_ms = now_ms,
                .opens_at_ms = f->opens_at_ms,
                .prequeue_at_ms = f->prequeue_at_ms,
                .obtainable = f->has_item ? obtainable : -1,
                .doomed_from = f->has_item && h->known ? obtainable + h->turns.outstanding : -1,
                .speed_milli = moving ? adm_pace_measured_milli(&h->pace, now_ms) : 0,
                .round = f->round,
                .generation = h->generation,
                .old_generation = h->old_generation,
                .state = s,
                .frontier_end = h->frontier.end,
                .line_end = adm_line_next(&l->line),
                .live = h->live,
                .skip_seconds = adm_hall_skip_seconds(l),
                .rate_per_minute = f->rate_per_minute,
                .polls_per_s = l->polls_per_s,
                .handle = h->handle,
        };
}

void adm_notice_write(struct adm_hall *l, int64_t now_ms) {
        l->h->live = adm_line_recount(&l->line, adm_hall_awake(l, now_ms));
        adm_notice_move(l, now_ms);
}

void adm_notice_move(struct adm_hall *l, int64_t now_ms) {
        struct adm_hall_head *h = l->h;
        struct adm_board *b = &h->board;
        struct adm_awake a = adm_hall_awake(l, now_ms);
        struct adm_gate_in in = adm_hall_gate(l, now_ms);
        int64_t room = h->in_use ? adm_gate_room_keys(&in) : 0;
        h->frontier = adm_line_frontier(&l->line, room, now_ms, a);
        struct adm_notice n = adm_notice_now(l, now_ms);
        uint32_t seq = atomic_load_explicit(&b->seq, memory_order_relaxed) | 1;
        atomic_store_explicit(&b->seq, seq, memory_order_relaxed);
        write_words(l, &n);
        write_before(l, a);
        atomic_store_explicit(&b->seq, seq + 1, memory_order_release);
}

bool adm_notice_read(const struct adm_hall *l, uint32_t at, struct adm_notice *out,
                     uint32_t *before) {
        const struct adm_board *b = &l->h->board;
        uint64_t word[ADM_NOTICE_WORDS];
        for (int i = 0; i < READS; i++) {
                uint32_t seq = atomic_load_explicit(&b->seq, memory_order_acquire);
                if (seq & 1)
                        continue;
                for (size_t w = 0; w < ADM_NOTICE_WORDS; w++)
                        word[w] = atomic_load_explicit(&b->word[w], memory_order_acquire);
                *before = at == ADM_LINE_NONE
                                  ? 0
                                  : atomic_load_explicit(&l->before[at / ADM_LINE_BLOCK],
                                                         memory_order_acquire);
                if (atomic_load_explicit(&b->seq, memory_order_relaxed) == seq) {
                        memcpy(out, word, sizeof(word));
                        return true;
                }
        }
        return false;
}
