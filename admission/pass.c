#include "admission/pass.h"

#include <string.h>

#include "admission/upkeep.h"

#define SECOND_MS 1000

static int64_t second_floor(int64_t ms) {
        return ms / SECOND_MS * SECOND_MS;
}

static int64_t second_ceil(int64_t ms) {
        return second_floor(ms + SECOND_MS - 1);
}

static bool in_force(const struct adm_hall *l, const struct adm_turn *t, int64_t now_ms) {
        int64_t stopped = l->h->stopped_since_ms;
        if (!adm_turn_has_pass(t))
                return false;
        return now_ms < t->exp_ms ||
               (stopped != 0 && t->state != ADM_TURN_HOLDER && t->exp_ms > stopped);
}

static void fill(const struct adm_hall *l, const struct adm_turn *t, int64_t shown_exp_ms,
                 struct adm_pass *out) {
        *out = (struct adm_pass){
                .iat_ms = t->iat_ms,
                .exp_ms = t->exp_ms,
                .round = l->h->facts.round,
                .life = ADM_PASS_FIRST,
                .renewed = t->exp_ms != shown_exp_ms,
        };
        if (t->state == ADM_TURN_USED)
                out->life = ADM_PASS_USED;
        if (t->state == ADM_TURN_HOLDER)
                out->life = ADM_PASS_HOLDER;
        memcpy(out->jti, t->jti, sizeof(out->jti));
}

bool adm_pass_issue(struct adm_hall *l, uint32_t rec, const uint8_t jti[ADM_JTI_LEN],
                    int64_t now_ms) {
        struct adm_hall_head *h = l->h;
        struct adm_rec *r = &l->book.recs[rec];
        if (r->turn == 0) {
                uint32_t at = adm_turn_new(&l->turns, rec, now_ms);
                if (at == ADM_TURN_NONE)
                        return false;
                r->turn = at + 1;
        }
        uint32_t at = r->turn - 1;
        struct adm_turn *t = &l->turns.all[at];
        memcpy(t->jti, jti, ADM_JTI_LEN);
        adm_turn_name(&l->turns, at, t->jti);
        /* Never as old as a revocation: that one was of the pass before. */
        t->iat_ms = second_floor(now_ms);
        if (t->iat_ms <= r->void_before_ms)
                t->iat_ms = second_floor(r->void_before_ms) + SECOND_MS;
        t->exp_ms = t->iat_ms + (int64_t)h->facts.first_use_seconds * SECOND_MS;
        t->stop_stamp = 0;
        adm_turn_set(&l->turns, at, ADM_TURN_FIRST, h->facts.per_account, t->exp_ms);
        if (r->place != 0)
                adm_line_serve(&l->line, r->place - 1, adm_hall_awake(l, now_ms));
        h->turns.issued_total++;
        adm_pace_issued(&h->pace, now_ms);
        if (r->place != 0 && r->place - 1 >= h->frontier.end)
                adm_notice_move(l, now_ms);
        return true;
}

bool adm_pass_of(const struct adm_hall *l, uint32_t rec, int64_t now_ms, struct adm_pass *out) {
        const struct adm_rec *r = &l->book.recs[rec];
        if (r->turn == 0)
                return false;
        const struct adm_turn *t = &l->turns.all[r->turn - 1];
        if (!in_force(l, t, now_ms))
                return false;
        fill(l, t, t->exp_ms, out);
        return true;
}

/* A pass whose map was lost: it was issued before this epoch began, so it
 * takes its slot again. */
static uint32_t register_pass(struct adm_hall *l, const struct adm_shown *p, uint32_t rec,
                              int64_t now_ms) {
        if (rec == ADM_BOOK_NONE)
                rec = adm_book_add(&l->book, &p->tag, false);
        if (rec == ADM_BOOK_NONE)
                return ADM_TURN_NONE;
        struct adm_rec *r = &l->book.recs[rec];
        if (r->turn != 0 && adm_turn_has_pass(&l->turns.all[r->turn - 1]))
                return ADM_TURN_NONE;
        if (r->turn == 0) {
                uint32_t fresh = adm_turn_new(&l->turns, rec, now_ms);
                if (fresh == ADM_TURN_NONE)
                        return ADM_TURN_NONE;
                r->turn = fresh + 1;
        }
        uint32_t at = r->turn - 1;
        struct adm_turn *t = &l->turns.all[at];
        int64_t first = (int64_t)l->h->facts.first_use_seconds * SECOND_MS;
        memcpy(t->jti, p->jti, ADM_JTI_LEN);
        t->iat_ms = p->iat_ms;
        t->exp_ms = p->exp_ms;
        if (p->holder)
                adm_turn_set(&l->turns, at, ADM_TURN_HOLDER, 0, t->exp_ms);
        else
                adm_turn_set(&l->turns, at,
                             p->exp_ms - p->iat_ms == first ? ADM_TURN_FIRST : ADM_TURN_USED,
                             l->h->facts.per_account, t->exp_ms);
        if (r->place != 0)
                adm_line_serve(&l->line, r->place - 1, adm_hall_awake(l, now_ms));
        return at;
}

/* An account that was never here. */
static const struct adm_rec nobody;

/* The turn of an authentic pass, living or lingering. */
static int locate(struct adm_hall *l, const struct adm_shown *p, int64_t now_ms, uint32_t *turn) {
        if (p->round != l->h->facts.round)
                return ADM_PASS_OLD_ROUND;
        uint32_t rec = adm_book_find(&l->book, &p->tag);
        const struct adm_rec *r = rec == ADM_BOOK_NONE ? &nobody : &l->book.recs[rec];
        uint32_t at = adm_turn_find(&l->turns, p->jti);
        if (at == ADM_TURN_NONE && r->turn != 0) {
                const struct adm_turn *t = &l->turns.all[r->turn - 1];
                if (t->state > ADM_TURN_INVITED && memcmp(t->jti, p->jti, ADM_JTI_LEN) == 0)
                        at = r->turn - 1;
        }
        if (at != ADM_TURN_NONE) {
                *turn = at;
                return l->turns.all[at].rec == rec && rec != ADM_BOOK_NONE ? 0 : ADM_PASS_OTHER;
        }
        if (p->iat_ms <= r->void_before_ms)
                return ADM_PASS_REVOKED;
        if (p->exp_ms <= now_ms)
                return ADM_PASS_EXPIRED;
        if (p->iat_ms >= atomic_load_explicit(l->born_ms, memory_order_relaxed))
                return ADM_PASS_UNKNOWN;
        *turn = register_pass(l, p, rec, now_ms);
        return *turn == ADM_TURN_NONE ? ADM_PASS_UNKNOWN : 0;
}

/* The same, in force. */
static int living(struct adm_hall *l, const struct adm_shown *p, int64_t now_ms, uint32_t *turn) {
        int rc = locate(l, p, now_ms, turn);
        if (rc != 0)
                return rc;
        adm_upkeep_settle(l, *turn, now_ms);
        const struct adm_turn *t = &l->turns.all[*turn];
        if (t->state == ADM_TURN_LINGER && t->is_void)
                return ADM_PASS_REVOKED;
        return in_force(l, t, now_ms) ? 0 : ADM_PASS_EXPIRED;
}

int adm_pass_show(struct adm_hall *l, const struct adm_shown *p, bool use, int64_t now_ms,
                  struct adm_pass *out) {
        uint32_t at;
        int rc = living(l, p, now_ms, &at);
        if (rc != 0)
                return rc;
        struct adm_turn *t = &l->turns.all[at];
        bool stopped = l->h->stopped_since_ms != 0;
        if (use && !stopped && t->state == ADM_TURN_FIRST) {
                int64_t life = (int64_t)l->h->facts.pass_seconds * SECOND_MS;
                t->exp_ms = second_ceil(now_ms + life);
                adm_turn_set(&l->turns, at, ADM_TURN_USED, t->units, t->exp_ms);
                l->book.recs[t->rec].missed = 0;
        }
        fill(l, t, p->exp_ms, out);
        return stopped ? ADM_PASS_STOPPED : 0;
}

int adm_pass_hold_begin(struct adm_hall *l, const struct adm_shown *p, uint32_t qty,
                        int64_t now_ms) {
        uint32_t at;
        int rc = living(l, p, now_ms, &at);
        if (rc != 0)
                return rc;
        if (l->h->stopped_since_ms != 0)
                return ADM_PASS_STOPPED;
        struct adm_turn *t = &l->turns.all[at];
        uint32_t units = t->units;
        if (t->state == ADM_TURN_HOLDER) {
                struct adm_gate_in in = adm_hall_gate(l, now_ms);
                if (adm_gate_room_units(&in) < (int64_t)qty)
                        return ADM_NO_ROOM;
                units += qty;
        }
        adm_turn_fly(&l->turns, at, t->in_flight + qty, now_ms + l->tail_ms, false);
        adm_turn_set(&l->turns, at, (enum adm_turn_state)t->state, units, adm_turn_due(t));
        return 0;
}

/* The pass has a hold that ends at `end_ms`: it becomes, or stays, a holder
 * pass. What is still in flight keeps its units. */
static void convert(struct adm_hall *l, uint32_t at, int64_t end_ms) {
        struct adm_turn *t = &l->turns.all[at];
        int64_t exp = second_ceil(end_ms);
        if (t->state == ADM_TURN_HOLDER && t->exp_ms > exp)
                exp = t->exp_ms;
        uint32_t units = t->in_flight < t->units ? t->in_flight : t->units;
        bool early = t->in_flight > 0 && t->in_flight_end_ms < exp;
        t->exp_ms = exp;
        adm_turn_set(&l->turns, at, ADM_TURN_HOLDER, units, early ? t->in_flight_end_ms : exp);
}

/* A pass that ended while its hold was on the way comes back to life as a
 * holder pass, unless its account has gone on to something else. */
static void convert_lingering(struct adm_hall *l, uint32_t at, int64_t end_ms) {
        struct adm_turn *t = &l->turns.all[at];
        struct adm_rec *r = t->rec < l->book.h->count ? &l->book.recs[t->rec] : NULL;
        if (!r || r->turn != 0 || t->is_void) {
                adm_turn_set(&l->turns, at, ADM_TURN_FREE, 0, 0);
                return;
        }
        convert(l, at, end_ms);
        r->turn = at + 1;
        r->missed = 0;
        if (r->place != 0)
                adm_line_serve(&l->line, r->place - 1, adm_hall_awake(l, l->h->now_ms));
}

static void guess_less(struct adm_hall *l, uint32_t units) {
        int64_t *guessed = &l->h->guessed_ahead;
        *guessed = *guessed > units ? *guessed - units : 0;
}

/* The numbers of an answer. Newer ones tell of other holds too, whose answers it
 * overtook; older ones were told by an answer that overtook this one. */
static void take_stock(struct adm_hall *l, const struct adm_hold_end *e, int64_t expected,
                       uint32_t guessed) {
        const struct adm_stock *was = &l->h->facts.stock;
        struct adm_stock k = *was;
        k.timeline = e->timeline;
        k.n = e->n;
        k.db_now_ms = 0; /* a snapshot of the same version says more */
        k.available = e->available;
        /* Whatever is neither free nor known as sold may still be held. */
        k.held = k.total - k.sold - k.available;
        if (k.held < 0)
                k.held = 0;
        if (e->timeline > was->timeline || (e->timeline == was->timeline && e->n > was->n))
                (void)adm_hall_stock(l, &k, expected);
        else
                guess_less(l, guessed);
}

/* Ends the flight of an answered hold. */
static void land(struct adm_hall *l, uint32_t at, uint32_t qty) {
        const struct adm_turn *t = &l->turns.all[at];
        uint32_t left = qty < t->in_flight ? t->in_flight - qty : 0;
        adm_turn_fly(&l->turns, at, left, t->in_flight_end_ms, t->is_counted);
}

int adm_pass_hold_end(struct adm_hall *l, const struct adm_shown *p, const struct adm_hold_end *e,
                      int64_t now_ms, struct adm_pass *out) {
        uint32_t at;
        int rc = locate(l, p, now_ms, &at);
        bool was_counted = rc == 0 && l->turns.all[at].is_counted;
        int64_t expected = l->h->facts.stock.available + adm_hall_ahead(l);
        uint32_t taken = e->held ? e->qty : 0;
        if (rc == 0)
                land(l, at, e->qty);
        if (e->has_stock && l->h->facts.has_item)
                take_stock(l, e, expected - taken, was_counted ? 0 : taken);
        if (rc != 0)
                return rc;
        struct adm_turn *t = &l->turns.all[at];
        if (t->state == ADM_TURN_LINGER && e->held)
                convert_lingering(l, at, e->hold_end_ms);
        else if (t->state != ADM_TURN_LINGER && e->held)
                convert(l, at, e->hold_end_ms);
        else if (t->state == ADM_TURN_HOLDER)
                adm_turn_set(&l->turns, at, ADM_TURN_HOLDER, t->in_flight, adm_turn_due(t));
        if (!in_force(l, t, now_ms))
                return t->state == ADM_TURN_LINGER && t->is_void ? ADM_PASS_REVOKED
                                                                 : ADM_PASS_EXPIRED;
        fill(l, t, p->exp_ms, out);
        return 0;
}

int adm_pass_hold_extended(struct adm_hall *l, const struct adm_shown *p, int64_t hold_end_ms,
                           int64_t now_ms, struct adm_pass *out) {
        uint32_t at;
        int rc = living(l, p, now_ms, &at);
        if (rc != 0)
                return rc;
        convert(l, at, hold_end_ms);
        fill(l, &l->turns.all[at], p->exp_ms, out);
        return 0;
}

void adm_pass_converted(struct adm_hall *l, const struct adm_converted *c, int64_t now_ms) {
        uint32_t at = adm_turn_find(&l->turns, c->jti);
        if (at == ADM_TURN_NONE || c->hold_end_ms <= now_ms)
                return;
        struct adm_turn *t = &l->turns.all[at];
        /* What a pass without a hold has in flight is this very hold. */
        if (t->state != ADM_TURN_HOLDER && !t->is_counted) {
                adm_turn_fly(&l->turns, at, t->in_flight, t->in_flight_end_ms, true);
                guess_less(l, t->in_flight);
        }
        if (t->state == ADM_TURN_LINGER)
                convert_lingering(l, at, c->hold_end_ms);
        else
                convert(l, at, c->hold_end_ms);
}

/* The pass is void from now on and its slot free a second later. */
static void end_pass(struct adm_hall *l, uint32_t at, int64_t now_ms) {
        struct adm_turn *t = &l->turns.all[at];
        struct adm_rec *r = &l->book.recs[t->rec];
        if (r->void_before_ms < t->iat_ms)
                r->void_before_ms = t->iat_ms;
        t->is_void = 1;
        r->place = 0;
        r->missed = 0;
        r->why = ADM_REASON_NONE;
        adm_turn_set(&l->turns, at, ADM_TURN_LINGER, t->units, now_ms + ADM_PASS_VOID_MS);
        r->turn = 0;
}

static void give_up_place(struct adm_hall *l, struct adm_rec *r, int64_t now_ms) {
        if (r->place != 0)
                adm_line_serve(&l->line, r->place - 1, adm_hall_awake(l, now_ms));
        r->place = 0;
        r->missed = 0;
        r->why = ADM_REASON_NONE;
}

void adm_pass_done(struct adm_hall *l, const struct adm_shown *p, int64_t now_ms) {
        uint32_t at;
        if (locate(l, p, now_ms, &at) != 0)
                return;
        if (adm_turn_has_pass(&l->turns.all[at]))
                end_pass(l, at, now_ms);
}

void adm_pass_revoke(struct adm_hall *l, const struct adm_revoked *v, int64_t now_ms) {
        uint32_t rec = adm_book_find(&l->book, &v->tag);
        if (rec == ADM_BOOK_NONE)
                rec = adm_book_add(&l->book, &v->tag, false);
        if (rec == ADM_BOOK_NONE || l->book.recs[rec].void_before_ms >= v->at_ms)
                return;
        struct adm_rec *r = &l->book.recs[rec];
        r->void_before_ms = v->at_ms;
        struct adm_turn *t = r->turn ? &l->turns.all[r->turn - 1] : NULL;
        if (t && adm_turn_has_pass(t)) {
                if (t->iat_ms <= v->at_ms)
                        end_pass(l, r->turn - 1, now_ms);
                return;
        }
        if (r->given_at_ms > v->at_ms)
                return;
        if (t)
                adm_turn_set(&l->turns, r->turn - 1, ADM_TURN_FREE, 0, 0);
        r->turn = 0;
        give_up_place(l, r, now_ms);
}

void adm_pass_leave(struct adm_hall *l, uint32_t rec, int64_t now_ms) {
        struct adm_rec *r = &l->book.recs[rec];
        struct adm_turn *t = r->turn ? &l->turns.all[r->turn - 1] : NULL;
        if (t && t->state == ADM_TURN_HOLDER)
                return;
        if (t && adm_turn_has_pass(t)) {
                end_pass(l, r->turn - 1, now_ms);
                return;
        }
        if (t)
                adm_turn_set(&l->turns, r->turn - 1, ADM_TURN_FREE, 0, 0);
        r->turn = 0;
        give_up_place(l, r, now_ms);
}
