/* admission/hall.h - all that the store knows of one sale.
 *
 * A hall joins the facts of a sale with its line (who waits), its book
 * (whose place is which), its turns (invitations and passes), its pace, and
 * keeps a notice of what a plain waiter has to be told. The notice is
 * written under the sale's lock and read without: words between two equal,
 * even values of `seq`.
 *
 * Invariants, after every call:
 *   outstanding = sum of units of all turns; a pass is issued only while
 *   outstanding < floor(overbook x available)
 *   an account has at most one turn that is not LINGER
 *   a number whose account has a pass is GONE
 *
 * Units      ms of sale time, units of stock.
 * Ownership  struct adm_hall_head and the arrays live in the shared map and
 *            hold no pointers; struct adm_hall is one process's view.
 * Context    under the sale's lock, except adm_notice_read.
 */
#ifndef ADMISSION_HALL_H
#define ADMISSION_HALL_H

#include "admission/book.h"
#include "admission/gate.h"
#include "admission/line.h"
#include "admission/notice.h"
#include "admission/pace.h"
#include "admission/store.h"
#include "admission/turn.h"

struct adm_hall_head {
        uint32_t in_use;
        uint32_t handle; /* slot and its generation */
        uint64_t sale;   /* adm_sale_hash of facts.id */
        uint32_t generation;
        uint32_t old_generation; /* of the lower half of the line; 0 none */
        uint32_t epoch;
        uint32_t known;              /* stock is known in this life of the counters */
        uint32_t wiping;             /* a reset is under way */
        uint32_t stop_stamp;         /* counts hard pauses */
        int64_t now_ms;              /* the latest instant seen */
        int64_t stopped_since_ms;    /* hard pause; 0 none */
        int64_t snap_available;      /* of the last snapshot taken */
        int64_t guessed_ahead;       /* units that the stock lacks, it seems, by answers to come */
        struct adm_sale_facts facts; /* facts.stock is the gate's */
        struct adm_sale_shown shown;
        struct adm_told told[2]; /* written in turns, so that one is always whole */
        uint32_t told_at;        /* which of them is the last */
        struct adm_frontier frontier;
        uint32_t live; /* at the last recount */
        uint64_t joins_total;
        uint64_t line_full_total;
        struct adm_pace pace;
        struct adm_line_head line;
        struct adm_book_head book;
        struct adm_turns_head turns;
        struct adm_board board;
};

struct adm_hall {
        struct adm_hall_head *h;
        struct adm_line line;
        struct adm_book book;
        struct adm_turns turns;
        _Atomic uint32_t *before;  /* a block each: live marks from the
                                    * frontier's end to the block's begin */
        _Atomic int64_t *alive_ms; /* last snapshot, for all sales */
        _Atomic int64_t *born_ms;  /* when this epoch began; 0 not yet */
        int64_t tail_ms;           /* a slot outlives its pass by this */
        uint32_t polls_per_s;
};

/* The later of `now_ms` and what the hall has seen; remembered. */
int64_t adm_hall_now(struct adm_hall *l, int64_t now_ms);

/* Facts, stock, conversions and revocations of one snapshot. 0 or
 * ADM_STALE. */
int adm_hall_update(struct adm_hall *l, const struct adm_sale_update *u, int64_t now_ms);

/* Units in flight that the known stock lacks already. */
int64_t adm_hall_ahead(const struct adm_hall *l);

/* Takes stock unless it is older than known; true when it was taken. It should
 * say that `expected` units are available; what it lacks was taken by holds whose
 * answers are on their way, as far as there are such. The next snapshot tells for
 * certain. */
bool adm_hall_stock(struct adm_hall *l, const struct adm_stock *k, int64_t expected);

bool adm_hall_is_away(const struct adm_hall *l, int64_t now_ms);
enum adm_sale_state adm_hall_state(struct adm_hall *l, int64_t now_ms);

struct adm_gate_in adm_hall_gate(const struct adm_hall *l, int64_t now_ms);

/* How a place stands, by the line as it is now and not as it was at the
 * last tick: so nobody enters before a live waiter with a lower key. */
struct adm_standing {
        bool may_enter;
        uint32_t ahead; /* live waiters between the frontier and it */
};

struct adm_standing adm_hall_standing(struct adm_hall *l, uint32_t at, int64_t now_ms);

/* The same where there is no line. */
bool adm_hall_is_open(struct adm_hall *l, int64_t now_ms);

/* The two clocks as they are used: the first an hour at most, for marks
 * wrap; the second never shorter than the first. */
uint32_t adm_hall_skip_seconds(const struct adm_hall *l);
uint32_t adm_hall_forget_seconds(const struct adm_hall *l);

struct adm_awake adm_hall_awake(const struct adm_hall *l, int64_t now_ms);

/* Empties line, book and turns; passes of the old round linger. */
void adm_hall_wipe(struct adm_hall *l, int64_t now_ms);

/* Counters from entries, after their last holder died. Stock that was being
 * written is unknown then, and nobody admitted until it is told again. False:
 * the accounts are none that a store wrote. */
bool adm_hall_rebuild(struct adm_hall *l);

void adm_hall_tell(struct adm_hall *l, const struct adm_told *told);

void adm_hall_view(struct adm_hall *l, int64_t now_ms, struct adm_view *out);

#endif
