#include "admission/sound.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)

/* A pass, a hold, and the hard pauses that lengthened them. */
#define FAR_MS (366 * DAY_MS)

/* The last instant of the year 9999: none later can be told. */
#define INSTANT_MAX INT64_C(253402300799999)

/* No shop has more, and no sum of such numbers overflows. */
#define UNITS_MAX (INT64_C(1) << 53)
#define TURN_UNITS_MAX 1000000000u

#define CHECK(good, text)                                                                          \
        do {                                                                                       \
                if (!(good))                                                                       \
                        return (text);                                                             \
        } while (0)

static bool within(int64_t v, int64_t low, int64_t high) {
        return v >= low && v <= high;
}

const char *adm_sound_header(const struct adm_map_header *h, int64_t now_ms) {
        CHECK(within(h->generation, 1, ADM_MAP_GENERATION_MAX), "the map's generation");
        CHECK(h->old_generation <= h->generation, "the generation before the map's");
        CHECK(h->epoch >= 1, "the map's epoch");
        CHECK(within(atomic_load(&h->born_ms), 0, now_ms + DAY_MS), "when the map began");
        return NULL;
}

/* ---- the head ---- */

static const char *flags_fault(const struct adm_sale_facts *f) {
        const bool *flag[] = {&f->has_item, &f->paused, &f->hard_pause, &f->closed};
        for (size_t i = 0; i < sizeof(flag) / sizeof(flag[0]); i++) {
                uint8_t byte; /* as a bool it must not even be read */
                memcpy(&byte, flag[i], 1);
                CHECK(byte <= 1, "a sale's flags");
        }
        return NULL;
}

static const char *stock_fault(const struct adm_stock *k) {
        const int64_t number[] = {k->db_now_ms, k->available, k->held, k->sold, k->total};
        for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++)
                CHECK(within(number[i], -UNITS_MAX, UNITS_MAX), "a sale's stock");
        return NULL;
}

static const char *facts_fault(const struct adm_hall_head *h) {
        const struct adm_sale_facts *f = &h->facts;
        const char *fault = flags_fault(f);
        CHECK(!fault, fault);
        CHECK(adm_sale_check(f) == ADM_SALE_GOOD && f->identity <= ADM_IDENTITY_GUEST,
              "a sale's fields");
        CHECK(memchr(f->tenant, 0, sizeof(f->tenant)) && memchr(f->item, 0, sizeof(f->item)),
              "a sale's item");
        CHECK(adm_sale_hash(f->id, strlen(f->id)) == h->sale, "a sale's id");
        CHECK(f->opens_at_ms <= INSTANT_MAX && f->prequeue_at_ms <= INSTANT_MAX &&
                      f->closes_at_ms <= INSTANT_MAX,
              "a sale's window");
        return stock_fault(&f->stock);
}

static const char *told_fault(const struct adm_hall_head *h) {
        CHECK(h->told_at <= 1, "which flag is the last");
        for (size_t i = 0; i < 2; i++) {
                const struct adm_told *t = &h->told[i];
                CHECK(t->state <= ADM_SALE_CLOSED && t->version <= UNITS_MAX &&
                              within(t->left, -UNITS_MAX, UNITS_MAX) &&
                              within(t->as_of_ms, 0, INSTANT_MAX) &&
                              within(t->opens_at_ms, 0, INSTANT_MAX) &&
                              within(t->closes_at_ms, 0, INSTANT_MAX),
                      "what a flag told");
        }
        return NULL;
}

/* Instants that come from hall->now_ms are never ahead of it. */
static const char *clocks_fault(const struct adm_hall_head *h, int64_t now_ms) {
        CHECK(within(h->now_ms, 0, now_ms + DAY_MS), "a sale's time");
        CHECK(within(h->stopped_since_ms, 0, h->now_ms), "when a sale was stopped");
        CHECK(h->shown.raw_all_held <= 1 && h->shown.shown_all_held <= 1 &&
                      within(h->shown.raw_since_ms, 0, h->now_ms),
              "what a sale showed");
        CHECK(within(h->pace.seen_ms, 0, h->now_ms) &&
                      within(h->pace.second, 0, h->now_ms / 1000) &&
                      within(h->pace.allowance_micro, 0, UNITS_MAX),
              "a sale's pace");
        return NULL;
}

static const char *head_fault(const struct adm_hall *l, const struct adm_map_header *m,
                              int64_t now_ms) {
        const struct adm_hall_head *h = l->h;
        CHECK(h->generation == m->generation && h->epoch == m->epoch &&
                      h->old_generation <= h->generation,
              "a sale's generation");
        CHECK(h->known <= 1 && h->wiping <= 1, "a sale's marks of work under way");
        CHECK(within(h->snap_available, -UNITS_MAX, UNITS_MAX) &&
                      within(h->guessed_ahead, 0, UNITS_MAX),
              "a sale's stock");
        CHECK(h->line.last <= l->line.capacity && h->line.old_high <= l->line.capacity &&
                      h->line.fresh_lo <= l->line.capacity + h->line.last,
              "a line's numbers");
        CHECK(h->turns.high <= l->turns.capacity, "a sale's turns");
        const char *fault = facts_fault(h);
        if (!fault)
                fault = told_fault(h);
        return fault ? fault : clocks_fault(h, now_ms);
}

/* ---- the arrays ---- */

/* Beyond the numbers that were given nobody has a mark; one is given at the
 * very moment of a kill. */
static const char *marks_fault(const struct adm_hall *l) {
        const struct adm_line *line = &l->line;
        for (uint32_t at = line->h->old_high; at < line->capacity; at++)
                CHECK(adm_line_mark(line, at) == ADM_MARK_NEVER, "a mark of nobody");
        for (uint32_t at = line->capacity + line->h->last + 1; at < 2 * line->capacity; at++)
                CHECK(adm_line_mark(line, at) == ADM_MARK_NEVER, "a mark of nobody");
        return NULL;
}

static const char *rec_fault(const struct adm_hall *l, const struct adm_rec *r, int64_t far_ms) {
        const struct adm_line *line = &l->line;
        CHECK(r->used == 1 && r->guest <= 1 && r->missed <= 1 && r->why <= ADM_ROUND_OVER,
              "an account's marks");
        CHECK(within(r->given_at_ms, 0, far_ms) && within(r->void_before_ms, 0, far_ms),
              "an account's instants");
        CHECK(r->place <= line->capacity + line->h->last + 1 && r->place <= 2 * line->capacity,
              "an account's place");
        CHECK(r->turn <= l->turns.capacity, "an account's turn");
        return NULL;
}

static uint32_t smaller(uint32_t a, uint32_t b) {
        return a < b ? a : b;
}

static const char *recs_fault(const struct adm_hall *l, uint32_t backed, int64_t far_ms) {
        uint32_t n = 0;
        const struct adm_book *b = &l->book;
        for (; n < b->capacity && b->recs[n].used; n++) {
                const char *fault = rec_fault(l, &b->recs[n], far_ms);
                CHECK(!fault, fault);
        }
        for (; n < smaller(backed, b->capacity); n++)
                CHECK(!b->recs[n].used, "an account behind the last");
        return NULL;
}

static const char *turn_fault(const struct adm_hall *l, const struct adm_turn *t, int64_t far_ms) {
        CHECK(t->state <= ADM_TURN_LINGER && t->is_void <= 1, "a turn's state");
        if (t->state == ADM_TURN_FREE)
                return NULL;
        CHECK(within(t->iat_ms, 0, far_ms) && within(t->exp_ms, 0, far_ms) &&
                      within(t->due_at_ms, 0, far_ms) && within(t->in_flight_end_ms, 0, far_ms),
              "a turn's instants");
        CHECK(t->units <= TURN_UNITS_MAX && t->in_flight <= TURN_UNITS_MAX, "a turn's units");
        CHECK(t->units > 0 || (t->state != ADM_TURN_FIRST && t->state != ADM_TURN_USED),
              "a turn's units");
        CHECK(t->rec < l->book.capacity || (t->state == ADM_TURN_LINGER && t->rec == ADM_BOOK_NONE),
              "a turn's account");
        return NULL;
}

static const char *turns_fault(const struct adm_hall *l, uint32_t backed, int64_t far_ms) {
        const struct adm_turns *t = &l->turns;
        uint32_t n = 0;
        for (; n < t->capacity && (n < t->h->high || t->all[n].state != ADM_TURN_FREE); n++) {
                const char *fault = turn_fault(l, &t->all[n], far_ms);
                CHECK(!fault, fault);
        }
        for (; n < smaller(backed, t->capacity); n++)
                CHECK(t->all[n].state == ADM_TURN_FREE, "a turn behind the last");
        return NULL;
}

const char *adm_sound_sale(const struct adm_map *m, uint32_t slot, int64_t now_ms) {
        const struct adm_map_sale *s = adm_map_sale_of(m, slot);
        const struct adm_hall *l = &m->halls[slot];
        int64_t far_ms = now_ms + FAR_MS;
        CHECK(l->h->in_use <= 1, "whether a sale is there");
        CHECK(l->h->in_use || !adm_map_is_used(l->h->handle), "a sale's handle");
        if (!l->h->in_use)
                return NULL;
        CHECK(adm_map_slot_of(l->h->handle) == slot, "a sale's handle");
        CHECK(adm_map_backed_is_good(m, s), "what disk a sale has");
        const char *fault = head_fault(l, m->h, now_ms);
        if (!fault)
                fault = marks_fault(l);
        if (!fault)
                fault = recs_fault(l, s->recs_backed, far_ms);
        return fault ? fault : turns_fault(l, s->turns_backed, far_ms);
}

/* A place is one account's, and GONE exactly when the account has a pass. */
static const char *places_fault(const struct adm_hall *l) {
        uint8_t *taken = calloc(2 * (size_t)l->line.capacity, 1);
        const char *fault = NULL;
        assert(taken); /* nothing was begun yet */
        for (uint32_t i = 0; i < l->book.h->count && !fault; i++) {
                const struct adm_rec *r = &l->book.recs[i];
                if (r->place == 0)
                        continue;
                bool gone = adm_line_mark(&l->line, r->place - 1) == ADM_MARK_GONE;
                bool pass = r->turn != 0 && adm_turn_has_pass(&l->turns.all[r->turn - 1]);
                if (taken[r->place - 1] || gone != pass)
                        fault = "an account's place";
                taken[r->place - 1] = 1;
        }
        free(taken);
        return fault;
}

const char *adm_sound_links(const struct adm_hall *l) {
        const struct adm_book *b = &l->book;
        for (uint32_t i = 0; i < l->h->turns.active; i++) {
                uint32_t at = l->turns.who[i];
                const struct adm_turn *t = &l->turns.all[at];
                if (t->state == ADM_TURN_LINGER)
                        continue;
                CHECK(t->rec < b->h->count && b->recs[t->rec].turn == at + 1,
                      "a turn and its account");
        }
        return places_fault(l);
}
