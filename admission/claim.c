/* An order key, 64 bits, lower goes first:
 *
 *   63      1: arrival region (0 is the draw's)
 *   62..40  generation of the map that gave the number
 *   39..0   number, from 1
 */
#include "admission/claim.h"

#include <string.h>

#include "admission/pass.h"
#include "admission/poll.h"
#include "admission/position.h"
#include "admission/upkeep.h"

#define ARRIVAL (UINT64_C(1) << 63)
#define NUMBER_BITS 40
#define NUMBER_MASK ((UINT64_C(1) << NUMBER_BITS) - 1)
#define GENERATION_MASK UINT64_C(0x7fffff)

/* A notice this old says that upkeep stands still. */
#define NOTICE_STALE_MS 60000

/* A waiter at the front is promised to be back within a near poll's jitter. */
#define SOON_MS (ADM_POLL_NEAR_MS * 6 / 5)

uint64_t adm_key_make(uint32_t generation, uint64_t number) {
        return ARRIVAL | (generation & GENERATION_MASK) << NUMBER_BITS | (number & NUMBER_MASK);
}

static uint64_t key_generation(uint64_t key) {
        return key >> NUMBER_BITS & GENERATION_MASK;
}

/* One visit: what came, and what is found out on the way. */
struct visit {
        struct adm_hall *l;
        int64_t now_ms;
        uint32_t random;
        struct adm_notice notice;
        const struct adm_ticket *ticket; /* of this sale, round, account */
        uint32_t rec;
        enum adm_reason reason;
        bool first_contact; /* of a guest, just joined */
};

static struct visit visit_begin(struct adm_hall *l, uint32_t random, int64_t now_ms) {
        now_ms = adm_hall_now(l, now_ms);
        return (struct visit){
                .l = l,
                .now_ms = now_ms,
                .random = random,
                .notice = adm_notice_now(l, now_ms),
                .rec = ADM_BOOK_NONE,
        };
}

static struct adm_rec *rec_of(const struct visit *v) {
        return &v->l->book.recs[v->rec];
}

static uint64_t key_of_place(const struct adm_hall *l, uint32_t place) {
        uint32_t at = place - 1;
        if (at < l->line.capacity)
                return adm_key_make(l->h->old_generation, at + 1);
        return adm_key_make(l->h->generation, at - l->line.capacity + 1);
}

/* The index of a ticket's number; ADM_LINE_NONE when it is not of this map
 * or the one before. */
static uint32_t index_of_ticket(const struct adm_hall *l, const struct adm_ticket *t) {
        uint64_t number = t->key & NUMBER_MASK;
        uint64_t generation = key_generation(t->key);
        if ((t->key & ARRIVAL) == 0)
                return ADM_LINE_NONE;
        if (generation == l->h->generation)
                return adm_line_index(&l->line, number, false);
        if (l->h->old_generation != 0 && generation == l->h->old_generation)
                return adm_line_index(&l->line, number, true);
        return ADM_LINE_NONE;
}

static struct adm_asker asker_of(const struct visit *v) {
        return (struct adm_asker){
                .now_ms = v->now_ms,
                .random = v->random,
                .last_told = v->ticket ? v->ticket->ahead : ADM_AHEAD_UNTOLD,
                .away = adm_hall_is_away(v->l, v->now_ms),
                .first_contact = v->first_contact,
        };
}

/* The ticket that goes with an answer. */
static void give_ticket(const struct visit *v, struct adm_place *out) {
        const struct adm_rec *r = rec_of(v);
        uint64_t key = r->place ? key_of_place(v->l, r->place) : 0;
        out->has_ticket = true;
        out->ticket = (struct adm_ticket){
                .flags = (uint8_t)((r->guest ? ADM_TICKET_GUEST : 0) |
                                   (r->missed ? ADM_TICKET_MISSED : 0)),
                .round = v->l->h->facts.round,
                .sale = v->l->h->sale,
                .key = key,
                .tag = r->tag,
                .issued_at_ms = r->given_at_ms,
                .promised_at_ms = v->now_ms + out->poll_after_ms,
                .ahead = out->ahead >= 0 ? (uint32_t)out->ahead : ADM_AHEAD_UNTOLD,
        };
        if (v->ticket && v->ticket->key == key && v->ticket->ahead < out->ticket.ahead)
                out->ticket.ahead = v->ticket->ahead;
}

static enum adm_reason reason_of(const struct visit *v) {
        if (v->reason != ADM_REASON_NONE)
                return v->reason;
        return v->rec != ADM_BOOK_NONE && rec_of(v)->missed ? ADM_TURN_MISSED : ADM_REASON_NONE;
}

static void tell_none(const struct visit *v, struct adm_place *out) {
        struct adm_asker a = asker_of(v);
        adm_position_none(&v->notice, &a, out);
        out->reason = reason_of(v);
}

static void tell_front(const struct visit *v, const struct adm_pass *pass, struct adm_place *out) {
        struct adm_asker a = asker_of(v);
        adm_position_front(&v->notice, &a, pass, out);
        out->reason = reason_of(v);
        give_ticket(v, out);
}

/* Tells a waiter and keeps the promise that this makes. A guest's first
 * contact leaves the number fresh. */
static void tell_waiting(const struct visit *v, uint32_t ahead, struct adm_place *out) {
        struct adm_asker a = asker_of(v);
        const struct adm_rec *r = rec_of(v);
        a.ahead = ahead;
        adm_position_waiting(&v->notice, &a, out);
        out->reason = reason_of(v);
        give_ticket(v, out);
        if (r->place != 0 && !v->first_contact)
                adm_line_touch(&v->l->line, r->place - 1, v->now_ms + out->poll_after_ms,
                               adm_hall_awake(v->l, v->now_ms));
}

static bool has_ended(const struct visit *v) {
        return v->notice.state == ADM_SALE_CLOSED || v->notice.state == ADM_SALE_SOLD_OUT;
}

/* Longer away than the second clock allows: by the later of ticket and
 * mark; a number that never polled was promised a second after it was
 * given. */
static bool is_forgotten(const struct visit *v, uint32_t ticket_at) {
        const struct adm_rec *r = rec_of(v);
        uint32_t at = r->place - 1;
        uint16_t mark = adm_line_mark(&v->l->line, at);
        int64_t promised = r->given_at_ms + ADM_POLL_GUEST_MS;
        if (mark != ADM_MARK_NEVER)
                promised = v->now_ms + adm_mark_ahead_ms(mark, v->now_ms);
        if (v->ticket && ticket_at == at && v->ticket->promised_at_ms > promised)
                promised = v->ticket->promised_at_ms;
        return v->now_ms > promised + (int64_t)adm_hall_forget_seconds(v->l) * 1000;
}

static void forget(struct visit *v) {
        struct adm_rec *r = rec_of(v);
        if (r->turn != 0)
                adm_turn_set(&v->l->turns, r->turn - 1, ADM_TURN_FREE, 0, 0);
        r->turn = 0;
        adm_line_serve(&v->l->line, r->place - 1, adm_hall_awake(v->l, v->now_ms));
        r->place = 0;
        r->missed = 0;
        r->why = ADM_FORGOTTEN;
}

/* A ticket of the map before this one comes forward. Its number is lower
 * than any of this map's, so it is the place to stand at. */
static void adopt_old(struct visit *v, uint32_t at) {
        struct adm_hall *l = v->l;
        if (at >= l->line.capacity || adm_line_mark(&l->line, at) == ADM_MARK_GONE)
                return;
        if (v->rec == ADM_BOOK_NONE) {
                bool guest = v->ticket->flags & ADM_TICKET_GUEST;
                v->rec = adm_book_add(&l->book, &v->ticket->tag, guest);
                if (v->rec == ADM_BOOK_NONE)
                        return;
        }
        struct adm_rec *r = rec_of(v);
        if (r->turn != 0 || (r->place != 0 && r->place - 1 <= at))
                return;
        if (r->place != 0)
                adm_line_serve(&l->line, r->place - 1, adm_hall_awake(l, v->now_ms));
        adm_line_admit_old(&l->line, at);
        r->given_at_ms = v->ticket->issued_at_ms;
        r->place = at + 1;
}

/* A ticket of the generation before: which one that was may be learnt from
 * the first of them. */
static void learn_generation(struct adm_hall *l, const struct adm_ticket *t) {
        uint64_t generation = key_generation(t->key);
        if (l->h->old_generation == 0 && generation != 0 && generation < l->h->generation)
                l->h->old_generation = (uint32_t)generation;
}

/* A new number at the end of the line. The mark is written first, then the
 * record that names it, then the count that makes it exist. */
static bool give_place(struct visit *v, bool live) {
        struct adm_hall *l = v->l;
        if (adm_line_is_full(&l->line))
                return false;
        struct adm_rec *r = rec_of(v);
        adm_line_prepare(&l->line, live ? v->now_ms + SOON_MS : 0);
        r->given_at_ms = v->now_ms;
        r->missed = 0;
        r->why = ADM_REASON_NONE;
        atomic_signal_fence(memory_order_seq_cst);
        r->place = adm_line_next(&l->line) + 1;
        atomic_signal_fence(memory_order_seq_cst);
        adm_line_give(&l->line, v->now_ms);
        l->h->joins_total++;
        return true;
}

/* Judges the ticket that came with a join; leaves in the visit only one of
 * this sale, round and account. */
static void judge_ticket(struct visit *v, const struct adm_join *j) {
        const struct adm_ticket *t = j->ticket;
        if (j->ticket_bad || (t && t->sale != v->l->h->sale))
                v->reason = ADM_TICKET_INVALID;
        else if (t && !adm_tag_equal(&t->tag, &j->tag))
                v->reason = ADM_OTHER_ACCOUNT;
        else if (t && t->round != v->l->h->facts.round)
                v->reason = ADM_ROUND_OVER;
        else
                v->ticket = t;
}

static bool pass_in_force(struct visit *v, struct adm_pass *pass) {
        if (v->rec == ADM_BOOK_NONE)
                return false;
        if (rec_of(v)->turn != 0)
                adm_upkeep_settle(v->l, rec_of(v)->turn - 1, v->now_ms);
        return adm_pass_of(v->l, v->rec, v->now_ms, pass);
}

/* Finds the place of a join or makes one; false: the line is full. */
static bool find_place(struct visit *v, const struct adm_join *j) {
        struct adm_hall *l = v->l;
        uint32_t at = v->ticket ? index_of_ticket(l, v->ticket) : ADM_LINE_NONE;
        if (at != ADM_LINE_NONE && at < l->line.capacity)
                adopt_old(v, at);
        if (v->rec == ADM_BOOK_NONE)
                v->rec = adm_book_add(&l->book, &j->tag, j->guest);
        if (v->rec == ADM_BOOK_NONE)
                return false;
        struct adm_rec *r = rec_of(v);
        if (l->h->facts.queue == ADM_QUEUE_PASSTHROUGH)
                return true;
        if (r->place != 0 && is_forgotten(v, at))
                forget(v);
        if (r->place != 0) {
                if (v->ticket && at != r->place - 1)
                        v->ticket = NULL;
                return true;
        }
        if (v->reason == ADM_REASON_NONE)
                v->reason = (enum adm_reason)r->why;
        v->ticket = NULL;
        v->first_contact = j->guest;
        return give_place(v, !j->guest);
}

/* Whoever asks is awake and counted so before the line is judged; a guest's
 * first contact leaves the number fresh. */
static struct adm_standing stand(struct visit *v) {
        const struct adm_rec *r = rec_of(v);
        struct adm_hall *l = v->l;
        if (r->place == 0)
                return (struct adm_standing){.may_enter = adm_hall_is_open(l, v->now_ms)};
        if (!v->first_contact)
                adm_line_touch(&l->line, r->place - 1, v->now_ms + SOON_MS,
                               adm_hall_awake(l, v->now_ms));
        struct adm_standing s = adm_hall_standing(l, r->place - 1, v->now_ms);
        s.may_enter = s.may_enter && !v->first_contact;
        return s;
}

static int claim_or_wait(struct visit *v, const struct adm_join *j, struct adm_place *out) {
        struct adm_pass pass;
        struct adm_standing s = stand(v);
        if (s.may_enter && adm_pass_issue(v->l, v->rec, j->jti, v->now_ms) &&
            adm_pass_of(v->l, v->rec, v->now_ms, &pass)) {
                tell_front(v, &pass, out);
                out->issued = true;
                return 0;
        }
        tell_waiting(v, s.ahead, out);
        return 0;
}

int adm_claim_join(struct adm_hall *l, const struct adm_join *j, int64_t now_ms,
                   struct adm_place *out) {
        struct visit v = visit_begin(l, j->random, now_ms);
        struct adm_pass pass;
        judge_ticket(&v, j);
        v.rec = adm_book_find(&l->book, &j->tag);
        if (pass_in_force(&v, &pass)) {
                tell_front(&v, &pass, out);
                return 0;
        }
        if (has_ended(&v) || v.notice.state == ADM_SALE_SCHEDULED) {
                tell_none(&v, out);
                return 0;
        }
        if (v.ticket)
                learn_generation(l, v.ticket);
        if (!find_place(&v, j)) {
                l->h->line_full_total++;
                tell_none(&v, out);
                out->state = ADM_LINE_FULL;
                return 0;
        }
        return claim_or_wait(&v, j, out);
}

/* It is this waiter's turn: the invitation runs from the first time they
 * are told so. */
static bool invite(struct visit *v) {
        struct adm_rec *r = rec_of(v);
        if (r->turn != 0)
                return true;
        int64_t ends = v->now_ms + (int64_t)v->l->h->facts.first_use_seconds * 1000;
        uint32_t at = adm_turn_new(&v->l->turns, v->rec, ends);
        if (at == ADM_TURN_NONE)
                return false;
        r->turn = at + 1;
        return true;
}

static int no_place(struct visit *v, enum adm_reason reason, struct adm_place *out) {
        v->reason = reason;
        v->rec = ADM_BOOK_NONE;
        tell_none(v, out);
        return ADM_NO_PLACE;
}

static int poll_placed(struct visit *v, uint32_t at, struct adm_place *out) {
        struct adm_hall *l = v->l;
        struct adm_rec *r = rec_of(v);
        bool line = l->h->facts.queue != ADM_QUEUE_PASSTHROUGH;
        if (r->place == 0 && line)
                return no_place(v, (enum adm_reason)r->why, out);
        if (line && is_forgotten(v, at)) {
                forget(v);
                return no_place(v, ADM_FORGOTTEN, out);
        }
        if (at != r->place - 1)
                v->ticket = NULL;
        struct adm_standing s = stand(v);
        if (!has_ended(v) && s.may_enter && (!line || invite(v)))
                tell_front(v, NULL, out);
        else
                tell_waiting(v, s.ahead, out);
        return 0;
}

int adm_claim_poll(struct adm_hall *l, const struct adm_ticket *t, uint32_t random, int64_t now_ms,
                   struct adm_place *out) {
        struct visit v = visit_begin(l, random, now_ms);
        struct adm_pass pass;
        if (t->sale != l->h->sale)
                return no_place(&v, ADM_TICKET_INVALID, out);
        if (t->round != l->h->facts.round)
                return no_place(&v, ADM_ROUND_OVER, out);
        v.ticket = t;
        v.rec = adm_book_find(&l->book, &t->tag);
        if (pass_in_force(&v, &pass)) {
                tell_front(&v, &pass, out);
                return 0;
        }
        learn_generation(l, t);
        uint32_t at = index_of_ticket(l, t);
        if (at != ADM_LINE_NONE && at < l->line.capacity)
                adopt_old(&v, at);
        if (v.rec == ADM_BOOK_NONE)
                return no_place(&v, ADM_FORGOTTEN, out);
        return poll_placed(&v, at, out);
}

static bool poll_told(const struct adm_notice *n, const struct adm_ticket *t,
                      const struct adm_asker *a, struct adm_place *out) {
        adm_position_waiting(n, a, out);
        out->reason = t->flags & ADM_TICKET_MISSED ? ADM_TURN_MISSED : ADM_REASON_NONE;
        out->has_ticket = true;
        out->ticket = *t;
        out->ticket.promised_at_ms = a->now_ms + out->poll_after_ms;
        if (out->ahead >= 0)
                out->ticket.ahead = (uint32_t)out->ahead;
        return true;
}

bool adm_claim_poll_free(const struct adm_hall *l, uint32_t handle, const struct adm_ticket *t,
                         const struct adm_asker *asker, struct adm_place *out) {
        struct adm_asker a = *asker;
        struct adm_notice n;
        uint32_t before;
        uint64_t generation = key_generation(t->key);
        uint64_t number = t->key & NUMBER_MASK;
        if ((t->key & ARRIVAL) == 0 || number == 0 || number > l->line.capacity)
                return false;
        /* Most tickets are of this generation; the others take the lock. */
        uint32_t at = l->line.capacity + (uint32_t)(number - 1);
        if (!adm_notice_read(l, at, &n, &before) || n.handle != handle || n.sale != t->sale ||
            n.round != t->round || n.generation != generation || at < n.frontier_end ||
            at >= n.line_end)
                return false;
        if (a.now_ms > n.now_ms + NOTICE_STALE_MS)
                return false;
        if (a.now_ms < n.now_ms)
                a.now_ms = n.now_ms;
        struct adm_awake awake = adm_line_awake(a.now_ms, (uint32_t)n.skip_seconds);
        if (!adm_awake_is(awake, adm_line_mark(&l->line, at)))
                return false;
        a.ahead = before + adm_line_in_block(&l->line, (uint32_t)n.frontier_end, at, awake);
        a.last_told = t->ahead;
        poll_told(&n, t, &a, out);
        return adm_line_refresh(&l->line, at, out->ticket.promised_at_ms, awake);
}

void adm_claim_look(struct adm_hall *l, uint32_t random, int64_t now_ms, struct adm_place *out) {
        struct visit v = visit_begin(l, random, now_ms);
        tell_none(&v, out);
}

void adm_claim_leave(struct adm_hall *l, const struct adm_tag *tag, int64_t now_ms) {
        now_ms = adm_hall_now(l, now_ms);
        uint32_t rec = adm_book_find(&l->book, tag);
        if (rec != ADM_BOOK_NONE)
                adm_pass_leave(l, rec, now_ms);
}
