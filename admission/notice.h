/* admission/notice.h - what a plain waiter is told, without a lock.
 *
 * Once a tick the holder of the sale's lock writes a notice: some words and,
 * for each block of the line, how many live waiters stand between the
 * frontier and it. A poll reads both between two equal, even values of
 * `seq` and needs nothing else but its own ticket and mark.
 *
 * Units      ms of sale time, units of stock.
 * Ownership  the board lives in the shared map.
 * Context    adm_notice_read: any thread, no lock; the rest under the
 *            sale's lock.
 */
#ifndef ADMISSION_NOTICE_H
#define ADMISSION_NOTICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Words of 64 bits only, so that it can be copied word by word. */
struct adm_notice {
        uint64_t sale; /* adm_sale_hash; 0: no sale here */
        uint64_t handle;
        int64_t now_ms;
        int64_t opens_at_ms;
        int64_t prequeue_at_ms; /* 0 none */
        int64_t obtainable;     /* available + held; -1: no stock limits */
        int64_t doomed_from;    /* this many ahead is hopeless; -1: unknown */
        int64_t speed_milli;    /* passes a second x 1000; 0 unknown */
        uint64_t round;
        uint64_t generation;
        uint64_t old_generation;
        uint64_t state; /* enum adm_sale_state */
        uint64_t frontier_end;
        uint64_t line_end; /* indices from here on came after the count */
        uint64_t live;
        uint64_t skip_seconds;
        uint64_t rate_per_minute;
        uint64_t polls_per_s;
};

#define ADM_NOTICE_WORDS (sizeof(struct adm_notice) / sizeof(uint64_t))

struct adm_board {
        _Atomic uint32_t seq; /* odd while it is written */
        uint32_t unused;
        _Atomic uint64_t word[ADM_NOTICE_WORDS];
};

struct adm_hall;

/* Recounts, moves the frontier and writes the notice. */
void adm_notice_write(struct adm_hall *l, int64_t now_ms);

/* The same by the counts as they stand: between two ticks, when somebody was
 * let in from behind the frontier that is written. Who stands before them
 * must not read an older one. */
void adm_notice_move(struct adm_hall *l, int64_t now_ms);

/* The notice as it would be written now; frontier and live as last counted. */
struct adm_notice adm_notice_now(struct adm_hall *l, int64_t now_ms);

/* False when a writer was in the way: take the lock instead. `before` is
 * the count of the block of `at`; ADM_LINE_NONE asks for none. */
bool adm_notice_read(const struct adm_hall *l, uint32_t at, struct adm_notice *out,
                     uint32_t *before);

#endif
