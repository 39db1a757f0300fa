/* admission/line.h - the numbers of one sale's line, and who is awake.
 *
 * A number given out is an index into an array of 16-bit marks: the instant
 * the shopper promised to be back, in quarter seconds modulo 65,536, or one
 * of two words, NEVER (no poll yet) and GONE (served, left, given up). Lower
 * index goes first. The first half of the array is for numbers of the
 * generation before (a map that was lost), the second for this one's: old
 * numbers keep their order and come first.
 *
 *   live       promise + skip >= now
 *   silent     neither live nor GONE: stepped over, costs nothing
 *   fresh      NEVER, and given less than 2 s ago: takes no room, but the
 *              frontier does not pass it
 *
 * live[b] counts the live marks of block b. Between two recounts it may
 * only be too high (a promise ran out), never too low: whoever becomes live
 * is added under the lock. So a rank is never told too small, and nobody
 * overtakes a live waiter.
 *
 * Units      ms of sale time; marks in quarter seconds.
 * Ownership  the struct borrows arrays that live in the shared map.
 * Context    under the sale's lock, except adm_line_mark, _refresh and
 *            _in_block, which any thread may call at any time.
 */
#ifndef ADMISSION_LINE_H
#define ADMISSION_LINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ADM_LINE_BLOCK 1024u
#define ADM_LINE_NONE UINT32_MAX
#define ADM_LINE_JOINS 64 /* power of two; one record per 50 ms for 2 s */

#define ADM_MARK_NEVER ((uint16_t)0)
#define ADM_MARK_GONE ((uint16_t)65535)

struct adm_line_head {
        uint32_t last;     /* numbers given in this generation */
        uint32_t old_high; /* indices used of the older half */
        uint32_t gone;     /* marks that are GONE */
        uint32_t fresh_at; /* no index below it is fresh */
        uint32_t fresh_lo; /* the first index young enough to be fresh */
        uint32_t join_tail;
        uint32_t join_head;
        struct {
                int64_t at_ms;
                uint32_t first; /* index */
                uint32_t unused;
        } joins[ADM_LINE_JOINS]; /* which index was next at which instant */
        uint32_t swept;          /* next block to sweep */
        uint32_t old_known;      /* numbers of the older half that came */
};

struct adm_line {
        struct adm_line_head *h;
        _Atomic uint16_t *marks; /* 2 x capacity */
        uint32_t *live;          /* a block each */
        uint32_t capacity;       /* numbers; a multiple of ADM_LINE_BLOCK */
};

/* Which marks are live at one instant: those with (mark - lo) <= span. */
struct adm_awake {
        uint16_t lo;
        uint16_t span;
};

struct adm_frontier {
        uint32_t end;  /* indices below it may enter; ADM_LINE_NONE: all may */
        uint32_t live; /* live marks below `end` */
};

/* `skip_seconds` is 3600 at most: marks wrap. */
struct adm_awake adm_line_awake(int64_t now_ms, uint32_t skip_seconds);
bool adm_awake_is(struct adm_awake a, uint16_t mark);

/* ms that `mark` lies ahead of now (negative: behind), within +-2.2 h. */
int64_t adm_mark_ahead_ms(uint16_t mark, int64_t now_ms);

uint16_t adm_line_mark(const struct adm_line *l, uint32_t at);

/* Lock-free: renews the promise of a live mark. False, and nothing changed,
 * when it is not live (any more). */
bool adm_line_refresh(const struct adm_line *l, uint32_t at, int64_t promised_at_ms,
                      struct adm_awake a);

/* The number -> index, or ADM_LINE_NONE when the array has no such place. */
uint32_t adm_line_index(const struct adm_line *l, uint64_t number, bool old);

bool adm_line_is_full(const struct adm_line *l);

/* The index the next number will have. */
uint32_t adm_line_next(const struct adm_line *l);

/* Writes the mark of the next number: live with a promise, or NEVER
 * (promised_at_ms 0). The number exists once adm_line_give has counted it;
 * in between the caller writes the entry that names it. */
void adm_line_prepare(struct adm_line *l, int64_t promised_at_ms);
void adm_line_give(struct adm_line *l, int64_t now_ms);

/* A number of the older generation has come forward. */
void adm_line_admit_old(struct adm_line *l, uint32_t at);

void adm_line_touch(struct adm_line *l, uint32_t at, int64_t promised_at_ms, struct adm_awake a);
void adm_line_serve(struct adm_line *l, uint32_t at, struct adm_awake a);

/* A served number stands in line again, silent until its owner is back. */
void adm_line_restore(struct adm_line *l, uint32_t at, int64_t silent_since_ms);

/* Live marks below `at`. */
uint32_t adm_line_rank(const struct adm_line *l, uint32_t at, struct adm_awake a);

/* Lock-free: live marks of the block of `at`, below it and not below `from`. */
uint32_t adm_line_in_block(const struct adm_line *l, uint32_t from, uint32_t at,
                           struct adm_awake a);

/* The lowest fresh index, or ADM_LINE_NONE. */
uint32_t adm_line_fresh(struct adm_line *l, int64_t now_ms);

/* Counts every block anew; returns all live marks. */
uint32_t adm_line_recount(struct adm_line *l, struct adm_awake a);

/* The frontier for `room` keys, as of the counts. */
struct adm_frontier adm_line_frontier(struct adm_line *l, int64_t room, int64_t now_ms,
                                      struct adm_awake a);

/* After a long standstill, in which marks may have wrapped around: all who
 * wait are silent, as if they had never polled. */
void adm_line_silence(struct adm_line *l);

/* Turns marks so old that they would soon look young into NEVER; a few
 * blocks a call. */
void adm_line_sweep(struct adm_line *l, int64_t now_ms);

/* After a crash: `last` is at least this, fresh ones are fresh again, and
 * every GONE is counted; old numbers that still wait come forward anew. */
void adm_line_rebuild(struct adm_line *l, uint32_t last_at_least, int64_t now_ms);

#endif
