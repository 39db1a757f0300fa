#include "admission/turn.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

static bool move_is_good(enum adm_turn_state from, enum adm_turn_state to) {
        switch (from) {
        case ADM_TURN_FREE:
                return to == ADM_TURN_INVITED;
        case ADM_TURN_INVITED:
                return to != ADM_TURN_LINGER; /* or a registered pass */
        case ADM_TURN_FIRST:
                return to == ADM_TURN_USED || to == ADM_TURN_HOLDER || to == ADM_TURN_LINGER ||
                       to == ADM_TURN_FIRST;
        case ADM_TURN_USED:
                return to == ADM_TURN_USED || to == ADM_TURN_HOLDER || to == ADM_TURN_LINGER;
        case ADM_TURN_HOLDER:
                return to == ADM_TURN_HOLDER || to == ADM_TURN_LINGER || to == ADM_TURN_FREE;
        case ADM_TURN_LINGER:
                return to == ADM_TURN_LINGER || to == ADM_TURN_HOLDER || to == ADM_TURN_FREE;
        }
        return false;
}

bool adm_turn_has_pass(const struct adm_turn *t) {
        return t->state == ADM_TURN_FIRST || t->state == ADM_TURN_USED ||
               t->state == ADM_TURN_HOLDER;
}

int64_t adm_turn_due(const struct adm_turn *t) {
        if (t->state == ADM_TURN_LINGER)
                return t->due_at_ms;
        bool early =
                t->state == ADM_TURN_HOLDER && t->in_flight > 0 && t->in_flight_end_ms < t->exp_ms;
        return early ? t->in_flight_end_ms : t->exp_ms;
}

static bool takes_slot(uint8_t state) {
        return state == ADM_TURN_FIRST || state == ADM_TURN_USED || state == ADM_TURN_LINGER;
}

/* Adds (or takes away) one turn's share of the counters. */
static void count(struct adm_turns_head *h, const struct adm_turn *t, bool add) {
        uint32_t one = add ? 1 : UINT32_MAX;
        h->invited += t->state == ADM_TURN_INVITED ? one : 0;
        h->slots += takes_slot(t->state) ? one : 0;
        h->outstanding += add ? (int64_t)t->units : -(int64_t)t->units;
}

static void count_flight(struct adm_turns_head *h, const struct adm_turn *t, bool add) {
        int64_t counted = t->is_counted ? t->in_flight : 0;
        h->in_flight += add ? t->in_flight : -t->in_flight;
        h->counted += add ? counted : -counted;
}

void adm_turn_fly(struct adm_turns *t, uint32_t at, uint32_t units, int64_t end_ms,
                  bool is_counted) {
        struct adm_turn *turn = &t->all[at];
        count_flight(t->h, turn, false);
        turn->in_flight = units;
        turn->in_flight_end_ms = end_ms;
        turn->is_counted = is_counted && units > 0;
        count_flight(t->h, turn, true);
}

static void activate(struct adm_turns *t, uint32_t at) {
        uint32_t slot = t->h->active;
        t->due[slot] = t->all[at].due_at_ms;
        t->who[slot] = at;
        t->all[at].slot = slot;
        t->h->active = slot + 1;
}

static void retire(struct adm_turns *t, uint32_t at) {
        uint32_t slot = t->all[at].slot;
        uint32_t last = --t->h->active;
        t->due[slot] = t->due[last];
        t->who[slot] = t->who[last];
        t->all[t->who[slot]].slot = slot;
}

uint32_t adm_turn_new(struct adm_turns *t, uint32_t rec, int64_t due_at_ms) {
        struct adm_turns_head *h = t->h;
        uint32_t at;
        if (h->free_head != 0) {
                at = h->free_head - 1;
                h->free_head = t->all[at].rec;
        } else if (h->high < t->capacity) {
                at = h->high++;
        } else {
                return ADM_TURN_NONE;
        }
        t->all[at] = (struct adm_turn){.rec = rec, .exp_ms = due_at_ms, .due_at_ms = due_at_ms};
        atomic_signal_fence(memory_order_seq_cst);
        t->all[at].state = ADM_TURN_INVITED;
        activate(t, at);
        count(h, &t->all[at], true);
        return at;
}

void adm_turn_set(struct adm_turns *t, uint32_t at, enum adm_turn_state state, uint32_t units,
                  int64_t due_at_ms) {
        struct adm_turn *turn = &t->all[at];
        assert(move_is_good((enum adm_turn_state)turn->state, state));
        count(t->h, turn, false);
        /* Killed between these lines we have taken too much, never too
         * little, and for too long, never too short; a rebuild knows. */
        if (units > turn->units)
                turn->units = units;
        turn->due_at_ms = due_at_ms;
        atomic_signal_fence(memory_order_seq_cst);
        turn->state = (uint8_t)state;
        atomic_signal_fence(memory_order_seq_cst);
        turn->units = units;
        count(t->h, turn, true);
        if (state == ADM_TURN_FREE) {
                adm_turn_fly(t, at, 0, 0, false);
                retire(t, at);
                turn->rec = t->h->free_head;
                t->h->free_head = at + 1;
        } else {
                t->due[turn->slot] = due_at_ms;
        }
}

static uint32_t mask_of(const struct adm_turns *t, const uint8_t jti[ADM_JTI_LEN]) {
        uint64_t v;
        memcpy(&v, jti + 4, sizeof(v));
        v = (v ^ t->salt) * UINT64_C(0xff51afd7ed558ccd);
        v = (v ^ v >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
        return (uint32_t)(v >> 32);
}

void adm_turn_name(const struct adm_turns *t, uint32_t at, uint8_t jti[ADM_JTI_LEN]) {
        uint32_t word = at ^ mask_of(t, jti);
        memcpy(jti, &word, sizeof(word));
}

uint32_t adm_turn_find(const struct adm_turns *t, const uint8_t jti[ADM_JTI_LEN]) {
        uint32_t word;
        memcpy(&word, jti, sizeof(word));
        uint32_t at = word ^ mask_of(t, jti);
        if (at >= t->h->high || t->all[at].state <= ADM_TURN_INVITED ||
            memcmp(t->all[at].jti, jti, ADM_JTI_LEN) != 0)
                return ADM_TURN_NONE;
        return at;
}

/* What a killed adm_turn_set may have left. */
static void mend(struct adm_turn *t) {
        if (t->state == ADM_TURN_INVITED || t->state == ADM_TURN_FREE)
                t->units = 0;
        if (t->state == ADM_TURN_HOLDER && t->units > t->in_flight)
                t->units = t->in_flight;
        t->due_at_ms = adm_turn_due(t);
}

void adm_turns_rebuild(struct adm_turns *t) {
        struct adm_turns_head *h = t->h;
        while (h->high < t->capacity && t->all[h->high].state != ADM_TURN_FREE)
                h->high++;
        h->free_head = 0;
        h->active = 0;
        h->invited = 0;
        h->slots = 0;
        h->outstanding = 0;
        h->in_flight = 0;
        h->counted = 0;
        for (uint32_t at = h->high; at-- > 0;) {
                struct adm_turn *turn = &t->all[at];
                mend(turn);
                if (turn->state == ADM_TURN_FREE) {
                        turn->in_flight = 0;
                        turn->rec = h->free_head;
                        h->free_head = at + 1;
                        continue;
                }
                activate(t, at);
                count(h, turn, true);
                count_flight(h, turn, true);
        }
}
