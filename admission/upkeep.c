#include "admission/upkeep.h"

#include "admission/hall.h"
#include "admission/pass.h"

/* Just behind the promise and the skip: silent from this instant on. */
static int64_t silent_since(const struct adm_hall *l, int64_t now_ms) {
        return now_ms - (int64_t)adm_hall_skip_seconds(l) * 1000 - 500;
}

/* Once: the place is kept and served next. Twice: it is given up. */
static void miss_turn(struct adm_hall *l, struct adm_rec *r, int64_t now_ms) {
        l->h->turns.missed_total++;
        if (r->place != 0)
                adm_line_serve(&l->line, r->place - 1, adm_hall_awake(l, now_ms));
        if (r->missed > 0) {
                r->place = 0;
                r->missed = 0;
                r->why = ADM_TURN_MISSED;
                return;
        }
        r->missed = 1;
        if (r->place != 0)
                adm_line_restore(&l->line, r->place - 1, silent_since(l, now_ms));
}

static void settle_holder(struct adm_hall *l, uint32_t at, struct adm_rec *r, int64_t now_ms) {
        struct adm_turn *t = &l->turns.all[at];
        if (now_ms >= t->exp_ms) {
                r->place = 0;
                r->why = ADM_REASON_NONE;
                adm_turn_set(&l->turns, at, ADM_TURN_FREE, 0, 0);
                r->turn = 0;
                return;
        }
        /* A hold that was never answered: its units are nobody's. */
        adm_turn_fly(&l->turns, at, 0, 0, false);
        adm_turn_set(&l->turns, at, ADM_TURN_HOLDER, 0, t->exp_ms);
}

/* The turn of an account ends by time. Steps stand in an order that leaves
 * the account no worse off when we are killed between two of them. */
static void settle_attached(struct adm_hall *l, uint32_t at, int64_t now_ms) {
        struct adm_turn *t = &l->turns.all[at];
        struct adm_rec *r = &l->book.recs[t->rec];
        bool used = t->state == ADM_TURN_USED;
        if (used) {
                r->place = 0;
                r->missed = 0;
                r->why = ADM_REASON_NONE;
        }
        if (t->state == ADM_TURN_INVITED)
                adm_turn_set(&l->turns, at, ADM_TURN_FREE, 0, 0);
        else
                adm_turn_set(&l->turns, at, ADM_TURN_LINGER, t->units, t->exp_ms + l->tail_ms);
        r->turn = 0;
        if (!used)
                miss_turn(l, r, now_ms);
}

void adm_upkeep_settle(struct adm_hall *l, uint32_t turn, int64_t now_ms) {
        struct adm_turn *t = &l->turns.all[turn];
        if (now_ms < t->due_at_ms)
                return;
        /* What was alive when the sale was stopped hard stays so. */
        int64_t stopped = l->h->stopped_since_ms;
        switch ((enum adm_turn_state)t->state) {
        case ADM_TURN_FREE:
                return;
        case ADM_TURN_FIRST:
        case ADM_TURN_USED:
                if (stopped == 0 || t->exp_ms <= stopped)
                        settle_attached(l, turn, now_ms);
                return;
        case ADM_TURN_INVITED:
                settle_attached(l, turn, now_ms);
                return;
        case ADM_TURN_HOLDER:
                settle_holder(l, turn, &l->book.recs[t->rec], now_ms);
                return;
        case ADM_TURN_LINGER:
                adm_turn_set(&l->turns, turn, ADM_TURN_FREE, 0, 0);
                return;
        }
}

void adm_upkeep_void_invitations(struct adm_hall *l, uint32_t from) {
        struct adm_turns *t = &l->turns;
        for (uint32_t i = 0; i < t->h->active && t->h->invited > 0;) {
                struct adm_turn *turn = &t->all[t->who[i]];
                struct adm_rec *r = &l->book.recs[turn->rec];
                if (turn->state == ADM_TURN_INVITED && (r->place == 0 || r->place - 1 >= from)) {
                        adm_turn_set(t, t->who[i], ADM_TURN_FREE, 0, 0);
                        r->turn = 0;
                } else {
                        i++;
                }
        }
}

void adm_upkeep_lengthen(struct adm_hall *l, int64_t now_ms) {
        struct adm_turns *t = &l->turns;
        for (uint32_t i = 0; i < t->h->active; i++) {
                uint32_t at = t->who[i];
                struct adm_turn *turn = &t->all[at];
                bool lives = turn->state == ADM_TURN_FIRST || turn->state == ADM_TURN_USED;
                if (!lives || turn->stop_stamp == l->h->stop_stamp)
                        continue;
                int64_t since = l->h->stopped_since_ms;
                if (turn->iat_ms > since)
                        since = turn->iat_ms;
                turn->stop_stamp = l->h->stop_stamp;
                if (now_ms > since)
                        turn->exp_ms += (now_ms - since + 999) / 1000 * 1000;
                adm_turn_set(t, at, (enum adm_turn_state)turn->state, turn->units, turn->exp_ms);
        }
}

void adm_upkeep_orphan_turns(struct adm_hall *l, int64_t now_ms) {
        struct adm_turns *t = &l->turns;
        for (uint32_t i = 0; i < t->h->active;) {
                uint32_t at = t->who[i];
                struct adm_turn *turn = &t->all[at];
                bool slot = turn->units > 0 && turn->state != ADM_TURN_LINGER;
                if (turn->state == ADM_TURN_INVITED || turn->units == 0) {
                        adm_turn_set(t, at, ADM_TURN_FREE, 0, 0);
                        continue;
                }
                turn->rec = ADM_BOOK_NONE;
                turn->is_void = 1;
                if (slot)
                        adm_turn_set(t, at, ADM_TURN_LINGER, turn->units,
                                     now_ms + ADM_PASS_VOID_MS);
                i++;
        }
}

static void relink_rec(struct adm_hall *l, uint32_t rec) {
        struct adm_rec *r = &l->book.recs[rec];
        if (r->turn != 0) {
                const struct adm_turn *t = &l->turns.all[r->turn - 1];
                bool attached = t->state != ADM_TURN_FREE && t->state != ADM_TURN_LINGER;
                if (!attached || t->rec != rec)
                        r->turn = 0;
        }
        if (r->place == 0)
                return;
        bool pass = r->turn != 0 && adm_turn_has_pass(&l->turns.all[r->turn - 1]);
        if (pass)
                adm_line_serve(&l->line, r->place - 1, adm_hall_awake(l, l->h->now_ms));
        else
                adm_line_restore(&l->line, r->place - 1, silent_since(l, l->h->now_ms));
}

void adm_upkeep_relink(struct adm_hall *l) {
        struct adm_turns *t = &l->turns;
        for (uint32_t i = 0; i < t->h->active; i++) {
                uint32_t at = t->who[i];
                const struct adm_turn *turn = &t->all[at];
                if (turn->state == ADM_TURN_LINGER || turn->rec >= l->book.h->count)
                        continue;
                struct adm_rec *r = &l->book.recs[turn->rec];
                if (r->turn == 0)
                        r->turn = at + 1;
        }
        for (uint32_t rec = 0; rec < l->book.h->count; rec++)
                relink_rec(l, rec);
}

void adm_upkeep_tick(struct adm_hall *l, int64_t now_ms) {
        struct adm_turns *t = &l->turns;
        for (uint32_t i = 0; i < t->h->active;) {
                uint32_t at = t->who[i];
                if (t->due[i] <= now_ms)
                        adm_upkeep_settle(l, at, now_ms);
                /* A turn that became free gave its place to another one. */
                if (i < t->h->active && t->who[i] == at)
                        i++;
        }
        uint32_t was = l->h->frontier.end;
        adm_pace_advance(&l->h->pace, l->h->facts.rate_per_minute, l->h->frontier.live, now_ms);
        adm_line_sweep(&l->line, now_ms);
        adm_notice_write(l, now_ms);
        if (l->h->frontier.end < was && t->h->invited > 0)
                adm_upkeep_void_invitations(l, l->h->frontier.end);
}
