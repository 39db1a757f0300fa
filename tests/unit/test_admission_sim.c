/* Random sales, seed by seed: shoppers join, poll, claim, hold, sleep and
 * leave while an operator pauses and changes stock, and after each step what
 * must be true is checked. A failure names its seed and step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adm_world.h"

#define SEEDS 20
#define STEPS 3000
#define CROWD 120
#define HOLDS 400
#define FORWARD_MS 1000

struct hold {
        int64_t end_ms;
        uint32_t qty;
        uint8_t jti[ADM_JTI_LEN]; /* of the pass it was taken with */
        bool stands;
        bool is_told; /* its answer has arrived */
};

struct buyer {
        struct shopper s;
        int64_t live_until_ms;  /* promise + skip; 0: never counted */
        int64_t fresh_until_ms; /* a guest's first two seconds */
        uint32_t qty;           /* of a hold under way; 0 none */
        struct adm_shown shown; /* the pass it went with */
        struct adm_hold_end answer;
        struct hold *granted; /* by the answer; NULL: refused */
        bool is_decided;      /* the answer is on its way */
        bool has_held;        /* with its pass, all that the sale allows */
        int64_t patience_ms;  /* until then */
        bool gone;            /* left or revoked since the last ticket */
};

struct sim {
        struct world w;
        struct buyer b[CROWD];
        struct hold holds[HOLDS];
        struct adm_converted converted[HOLDS];
        int n_decided; /* answers on their way, in any order */
        uint64_t seed;
        int step;
        uint64_t issued;
        bool can_invert; /* room fell for another reason: no judgement now */
};

static uint64_t dice(struct sim *m, uint64_t n) {
        return world_random(&m->w) % n;
}

#define MUST(m, cond)                                                                              \
        do {                                                                                       \
                if (!(cond))                                                                       \
                        fail_msg("seed %llu step %d: %s", (unsigned long long)(m)->seed,           \
                                 (m)->step, #cond);                                                \
        } while (0)

static void remember(struct sim *m, struct buyer *b) {
        if (!b->s.place.has_ticket)
                return;
        int64_t promise = m->w.now_ms + b->s.place.poll_after_ms;
        b->gone = false;
        b->live_until_ms = promise + m->w.update.facts.skip_seconds * 1000;
        b->fresh_until_ms = 0;
        if (b->s.guest && b->s.place.poll_after_ms == 1000) {
                b->live_until_ms = 0;
                b->fresh_until_ms = m->w.now_ms + 2000;
        }
}

/* Nobody who is awake and stands before `mine` may now be told to wait. One
 * is asked, picked by chance: the answer may wake up somebody who missed a
 * turn meanwhile, and then the next one is rightly pushed back. */
static void check_inversion(struct sim *m, const struct buyer *mine) {
        uint64_t from = dice(m, CROWD);
        for (uint64_t i = 0; i < CROWD; i++) {
                struct buyer *o = &m->b[(from + i) % CROWD];
                if (o == mine || !o->s.has_ticket || o->s.has_pass || o->gone ||
                    o->s.ticket.key >= mine->s.ticket.key || o->s.ticket.key == 0 ||
                    o->s.ticket.round != m->w.update.facts.round)
                        continue;
                MUST(m, o->fresh_until_ms <= m->w.now_ms);
                if (o->live_until_ms <= m->w.now_ms)
                        continue;
                uint64_t key = o->s.ticket.key;
                enum adm_reason was = o->s.place.reason;
                int rc = world_poll(&m->w, &o->s);
                if (rc != 0 || o->s.ticket.key != key)
                        return;
                remember(m, o);
                if (o->s.place.reason == was)
                        MUST(m, o->s.place.state != ADM_WAITING || m->can_invert);
                return;
        }
}

/* Units that the origin has granted by answers on their way: their passes still
 * take slots. */
static int64_t units_to_be_told(const struct sim *m) {
        int64_t units = 0;
        for (int i = 0; i < HOLDS; i++)
                units += m->holds[i].stands && !m->holds[i].is_told ? m->holds[i].qty : 0;
        return units;
}

static void ask(struct sim *m, struct buyer *b, bool join) {
        struct adm_view before = world_view(&m->w);
        uint32_t told = b->s.has_ticket ? b->s.ticket.ahead : UINT32_MAX;
        uint64_t key = b->s.has_ticket ? b->s.ticket.key : 0;
        uint32_t round = b->s.has_ticket ? b->s.ticket.round : 0;
        int rc = join ? world_join(&m->w, &b->s) : world_poll(&m->w, &b->s);
        MUST(m, rc == 0 || (rc == ADM_NO_PLACE && !join));
        if (rc == ADM_NO_PLACE) {
                MUST(m, b->s.place.position == -1);
                b->s.has_ticket = false;
                b->gone = true;
                return;
        }
        const struct adm_place *p = &b->s.place;
        MUST(m, (p->position == -1) == (p->ahead == -1));
        MUST(m, p->poll_after_ms > 0 && p->poll_after_ms <= 240000);
        MUST(m, (p->state == ADM_ADMITTED) == p->has_pass);
        MUST(m, p->state != ADM_READY || !join);
        if (p->has_ticket && b->s.ticket.key == key && b->s.ticket.round == round)
                MUST(m, b->s.ticket.ahead <= told);
        remember(m, b);
        if (!p->issued)
                return;
        int64_t free = m->w.update.facts.stock.available + units_to_be_told(m);
        int64_t room = free * m->w.update.facts.overbook_milli / 1000;
        MUST(m, (int64_t)before.passes_outstanding < room);
        m->issued++;
        b->has_held = false;
        check_inversion(m, b);
}

static void start_hold(struct sim *m, struct buyer *b) {
        if (!b->s.has_pass || b->qty != 0 || world_use(&m->w, &b->s) != 0)
                return;
        uint32_t qty = 1 + (uint32_t)dice(m, m->w.update.facts.per_account);
        struct adm_shown p = world_shown(&b->s);
        int rc = adm_store_hold_begin(m->w.store, m->w.sale, &p, qty, m->w.now_ms);
        MUST(m, rc == 0 || rc == ADM_NO_ROOM);
        if (rc == 0) {
                b->qty = qty;
                b->shown = p;
                b->patience_ms = m->w.now_ms + FORWARD_MS;
        }
}

/* A snapshot, with the passes that have holds. */
static void tell(struct sim *m) {
        size_t n = 0;
        for (int i = 0; i < HOLDS; i++) {
                const struct hold *h = &m->holds[i];
                if (!h->stands)
                        continue;
                m->converted[n] = (struct adm_converted){.qty = h->qty, .hold_end_ms = h->end_ms};
                memcpy(m->converted[n++].jti, h->jti, ADM_JTI_LEN);
        }
        m->w.update.converted = m->converted;
        m->w.update.n_converted = n;
        world_tell(&m->w);
}

/* The origin decides by the stock, which is the truth. */
static void decide_hold(struct sim *m, struct buyer *b) {
        if (b->qty == 0 || b->is_decided)
                return;
        struct adm_stock *k = &m->w.update.facts.stock;
        struct hold *h = NULL;
        for (int i = 0; i < HOLDS && !h; i++)
                if (!m->holds[i].stands)
                        h = &m->holds[i];
        MUST(m, h);
        b->answer = (struct adm_hold_end){.qty = b->qty};
        b->granted = NULL;
        b->is_decided = true;
        m->n_decided++;
        if (k->available < b->qty || !dice(m, 10))
                return;
        k->n++;
        k->available -= b->qty;
        k->held += b->qty;
        b->answer.held = b->answer.has_stock = true;
        b->answer.hold_end_ms = m->w.now_ms + 1000 + (int64_t)dice(m, 60000);
        b->answer.timeline = k->timeline;
        b->answer.n = k->n;
        b->answer.available = k->available;
        *h = (struct hold){.end_ms = b->answer.hold_end_ms, .qty = b->qty, .stands = true};
        memcpy(h->jti, b->shown.jti, ADM_JTI_LEN);
        b->granted = h;
}

/* The last of those whose turn it is, or NULL: asked twice, for the first time
 * may wake somebody before them. */
static struct buyer *last_in_front(struct sim *m) {
        struct buyer *last = NULL;
        for (uint64_t i = 0; i < 2 * CROWD; i++) {
                struct buyer *o = &m->b[i % CROWD];
                if (!o->s.has_ticket || o->s.has_pass || o->gone || o->s.ticket.key == 0 ||
                    o->live_until_ms <= m->w.now_ms || world_poll(&m->w, &o->s) != 0)
                        continue;
                remember(m, o);
                if (i >= CROWD && o->s.place.state == ADM_READY &&
                    (!last || o->s.ticket.key > last->s.ticket.key))
                        last = o;
        }
        return last;
}

/* In whatever order answers come, none of them takes the turn of one in front;
 * save where more are let in than there are units, or the answer was lost, or the pass
 * had ended before. */
static void answer_hold(struct sim *m, struct buyer *b) {
        if (!b->is_decided)
                return;
        struct buyer *front = last_in_front(m);
        if (b->granted)
                b->granted->is_told = true;
        bool is_lost = m->w.now_ms > b->patience_ms;
        if (is_lost)
                b->answer = (struct adm_hold_end){.qty = b->qty};
        b->is_decided = false;
        b->qty = 0;
        m->n_decided--;
        struct adm_pass out;
        int rc =
                adm_store_hold_end(m->w.store, m->w.sale, &b->shown, &b->answer, m->w.now_ms, &out);
        /* Unknown: all that the pass had ended while it was waited for. */
        MUST(m, rc == 0 || rc == ADM_PASS_EXPIRED || rc == ADM_PASS_REVOKED ||
                        rc == ADM_PASS_OLD_ROUND || rc == ADM_PASS_UNKNOWN);
        if (rc == 0)
                b->s.pass = out;
        b->has_held = b->granted && m->w.update.facts.per_account == 1;
        if (is_lost)
                tell(m);
        bool can_end =
                rc != 0 || is_lost || m->can_invert || m->w.update.facts.overbook_milli > 1000;
        if (front && front != b && world_poll(&m->w, &front->s) == 0)
                MUST(m, front->s.place.state != ADM_WAITING || can_end);
}

/* Holds end: paid, or back to stock. */
static void holds_end(struct sim *m) {
        struct adm_stock *k = &m->w.update.facts.stock;
        bool changed = false;
        for (int i = 0; i < HOLDS; i++) {
                struct hold *h = &m->holds[i];
                if (!h->stands || !h->is_told || (h->end_ms > m->w.now_ms && dice(m, 200)))
                        continue;
                h->stands = false;
                changed = true;
                k->held -= h->qty;
                if (dice(m, 2))
                        k->sold += h->qty;
                else
                        k->available += h->qty;
        }
        if (changed) {
                k->n++;
                tell(m);
        }
}

static void operate(struct sim *m) {
        struct adm_sale_facts *f = &m->w.update.facts;
        uint64_t what = dice(m, 8);
        f->version++;
        if (what == 0)
                f->paused = !f->paused;
        else if (what == 1)
                f->hard_pause = !f->hard_pause;
        else if (what == 2)
                f->stock.available += (int64_t)dice(m, 4);
        else if (what == 3 && f->stock.available > 1)
                f->stock.available--;
        else if (what == 4)
                f->rate_per_minute = dice(m, 2) ? 0 : 120 + (uint32_t)dice(m, 3000);
        else if (what == 5)
                f->max_active = dice(m, 2) ? 0 : 1 + (uint32_t)dice(m, 8);
        else if (what == 6 && dice(m, 10) == 0)
                f->round++;
        if (what < 7) {
                f->paused = f->paused && dice(m, 3);
                f->hard_pause = f->hard_pause && dice(m, 3);
        }
        f->stock.n++;
        tell(m);
}

static void restart(struct sim *m) {
        tell(m); /* so that what the reopened store is told changes nothing */
        struct adm_view was = world_view(&m->w);
        MUST(m, world_reopen(&m->w) == 0);
        struct adm_view is = world_view(&m->w);
        MUST(m, is.passes_outstanding == was.passes_outstanding);
        MUST(m, is.passes_active == was.passes_active);
        MUST(m, is.line_waiting == was.line_waiting);
        MUST(m, is.line_invited == was.line_invited);
        MUST(m, is.last_number == was.last_number);
        MUST(m, is.epoch == was.epoch);
}

static bool has_pass(const struct buyer *b) {
        return b->s.has_pass && b->qty == 0 && !b->has_held;
}

static bool has_begun(const struct buyer *b) {
        return b->qty != 0 && !b->is_decided;
}

static bool has_answer(const struct buyer *b) {
        return b->is_decided;
}

/* One of those, or anybody when there are none. */
static struct buyer *one_with(struct sim *m, bool (*is)(const struct buyer *b)) {
        uint64_t from = dice(m, CROWD);
        for (uint64_t i = 0; i < CROWD; i++)
                if (is(&m->b[(from + i) % CROWD]))
                        return &m->b[(from + i) % CROWD];
        return &m->b[from];
}

/* Most answers arrive before anybody loses patience. */
static void time_passes(struct sim *m, int64_t ms) {
        while (m->n_decided > 0 && dice(m, 10))
                answer_hold(m, one_with(m, has_answer));
        world_pass(&m->w, ms);
}

static void step(struct sim *m) {
        struct buyer *b = &m->b[dice(m, CROWD)];
        uint64_t d = dice(m, 1000);
        if (d < 350)
                ask(m, b, !b->s.has_ticket || dice(m, 4) == 0);
        else if (d < 550)
                ask(m, b, b->s.place.state == ADM_READY || !b->s.has_ticket);
        else if (d < 650)
                start_hold(m, one_with(m, has_pass));
        else if (d < 715)
                decide_hold(m, one_with(m, has_begun));
        else if (d < 780)
                answer_hold(m, one_with(m, has_answer));
        else if (d < 930)
                time_passes(m, (int64_t)dice(m, 2500));
        else if (d < 935)
                world_pass(&m->w, (int64_t)dice(m, 60000));
        else if (d < 975)
                holds_end(m);
        else if (d < 985)
                operate(m);
        else if (d < 990) {
                adm_store_leave(m->w.store, m->w.sale, &b->s.tag, m->w.now_ms);
                b->gone = true;
                b->s.has_pass = b->s.has_pass && b->s.pass.life == ADM_PASS_HOLDER;
        } else if (d < 993) {
                struct adm_revoked r = {.tag = b->s.tag, .at_ms = m->w.now_ms};
                adm_store_revoke(m->w.store, m->w.sale, &r, m->w.now_ms);
                b->gone = true;
        } else if (d < 996 && b->s.has_pass) {
                struct adm_shown p = world_shown(&b->s);
                adm_store_pass_done(m->w.store, m->w.sale, &p, m->w.now_ms);
        } else if (d < 998) {
                restart(m);
        } else {
                /* Lost cookies: the same shopper from another device. */
                decide_hold(m, b);
                answer_hold(m, b);
                b->s = world_shopper((uint32_t)(b - m->b), b->s.guest);
                b->live_until_ms = 0;
                b->has_held = false;
        }
}

static void check_always(struct sim *m) {
        struct adm_view v = world_view(&m->w);
        const struct adm_stock *k = &m->w.update.facts.stock;
        MUST(m, v.passes_issued_total == m->issued);
        MUST(m, m->n_decided > 0 || v.stock.available == k->available);
        MUST(m, v.line_live <= v.line_waiting);
        MUST(m, v.line_invited <= v.line_waiting);
}

/* When everything has stopped, every slot has come back. */
static void wind_down(struct sim *m) {
        struct adm_sale_facts *f = &m->w.update.facts;
        f->paused = true;
        f->hard_pause = false;
        f->version++;
        tell(m);
        world_pass(&m->w, 400000);
        struct adm_view v = world_view(&m->w);
        MUST(m, v.passes_outstanding == 0);
        MUST(m, v.passes_active == 0);
        MUST(m, v.line_invited == 0);
        MUST(m, v.line_live == 0);
}

static void play(uint64_t seed) {
        struct sim *m = calloc(1, sizeof(*m));
        assert_non_null(m);
        m->seed = seed;
        m->w.seed = seed * 1000003;
        world_open(&m->w, 5 + (int64_t)(seed % 30));
        struct adm_sale_facts *f = &m->w.update.facts;
        f->per_account = seed % 3 == 2 ? 1 + (uint32_t)(seed % 5) : 1;
        f->overbook_milli = seed % 4 == 1 ? 1000 + (uint32_t)(seed % 7) * 50 : 1000;
        f->first_use_seconds = 5 + (uint32_t)(seed % 20);
        f->pass_seconds = 10 + (uint32_t)(seed % 60);
        f->skip_seconds = 3 + (uint32_t)(seed % 15);
        f->identity = seed % 2 ? ADM_IDENTITY_GUEST : ADM_IDENTITY_ACCOUNT;
        f->version++;
        world_tell(&m->w);
        for (uint32_t i = 0; i < CROWD; i++)
                m->b[i].s = world_shopper(i, seed % 2 && i % 3 == 0);
        for (m->step = 0; m->step < STEPS; m->step++) {
                /* A rate, a ceiling or a pause may end the room for those in
                 * front too. */
                m->can_invert = f->rate_per_minute > 0 || f->max_active > 0 || f->paused ||
                                f->hard_pause || f->per_account > 1;
                step(m);
                check_always(m);
        }
        wind_down(m);
        world_close(&m->w);
        free(m);
}

static void test_seeded_sales_keep_every_rule(void **state) {
        (void)state;
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                play(seed);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_seeded_sales_keep_every_rule),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
