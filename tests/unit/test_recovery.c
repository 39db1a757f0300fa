/* What a process leaves that was killed between two stores, and what the
 * next holder of the lock makes of it. The halls here lie in plain memory,
 * so that each half-done step can be written down exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admission/claim.h"
#include "admission/pass.h"
#include "admission/upkeep.h"
#include "adm_world.h"

#define CAPACITY 1024u
#define CELLS 2048u

struct place_of_test {
        struct adm_hall_head head;
        struct adm_hall hall;
        _Atomic int64_t alive_ms;
        _Atomic int64_t born_ms;
        int64_t now_ms;
        struct adm_stock stock;
};

static void *zeroed(size_t n, size_t size) {
        void *p = calloc(n, size);
        assert_non_null(p);
        return p;
}

static void tell(struct place_of_test *t, struct adm_sale_update *u) {
        atomic_store(&t->alive_ms, t->now_ms);
        u->facts.stock = t->stock;
        assert_int_equal(adm_hall_update(&t->hall, u, t->now_ms), 0);
}

static void hall_open(struct place_of_test *t, int64_t units) {
        *t = (struct place_of_test){.now_ms = WORLD_T0};
        t->hall = (struct adm_hall){
                .h = &t->head,
                .line = {.h = &t->head.line,
                         .marks = zeroed(2 * CAPACITY, sizeof(uint16_t)),
                         .live = zeroed(2 * CAPACITY / ADM_LINE_BLOCK, sizeof(uint32_t)),
                         .capacity = CAPACITY},
                .book = {.h = &t->head.book,
                         .recs = zeroed(CAPACITY, sizeof(struct adm_rec)),
                         .table = zeroed(CELLS, sizeof(uint32_t)),
                         .capacity = CAPACITY,
                         .mask = CELLS - 1},
                .turns = {.h = &t->head.turns,
                          .all = zeroed(CAPACITY, sizeof(struct adm_turn)),
                          .due = zeroed(CAPACITY, sizeof(int64_t)),
                          .who = zeroed(CAPACITY, sizeof(uint32_t)),
                          .capacity = CAPACITY,
                          .salt = 99},
                .before = zeroed(2 * CAPACITY / ADM_LINE_BLOCK, sizeof(uint32_t)),
                .alive_ms = &t->alive_ms,
                .born_ms = &t->born_ms,
                .tail_ms = 3000,
                .polls_per_s = 30000,
        };
        atomic_store(&t->born_ms, WORLD_T0 - 120000);
        t->head.in_use = 1;
        t->head.handle = 1024;
        t->head.generation = 500;
        t->head.now_ms = WORLD_T0;
        t->head.sale = adm_sale_hash("demo", 4);
        t->stock = (struct adm_stock){.timeline = 1, .n = 1, .available = units, .total = units};
        struct adm_sale_update u = {0};
        adm_sale_defaults(&u.facts);
        (void)snprintf(u.facts.id, sizeof(u.facts.id), "demo");
        u.facts.has_item = true;
        u.facts.round = 1;
        u.facts.opens_at_ms = WORLD_T0 - 60000;
        t->head.facts = u.facts;
        tell(t, &u);
}

static void hall_close(struct place_of_test *t) {
        free((void *)t->hall.line.marks);
        free(t->hall.line.live);
        free(t->hall.book.recs);
        free(t->hall.book.table);
        free(t->hall.turns.all);
        free(t->hall.turns.due);
        free(t->hall.turns.who);
        free((void *)t->hall.before);
}

static struct shopper join(struct place_of_test *t, uint32_t n, enum adm_place_state want) {
        struct shopper s = world_shopper(n, false);
        struct adm_join j = {.tag = s.tag};
        memset(j.jti, (int)n + 1, sizeof(j.jti));
        assert_int_equal(adm_claim_join(&t->hall, &j, t->now_ms, &s.place), 0);
        assert_int_equal(s.place.state, want);
        s.ticket = s.place.ticket;
        s.pass = s.place.pass;
        return s;
}

static int poll(struct place_of_test *t, struct shopper *s) {
        return adm_claim_poll(&t->hall, &s->ticket, 0, t->now_ms, &s->place);
}

static struct adm_rec *rec_of(struct place_of_test *t, const struct shopper *s) {
        uint32_t rec = adm_book_find(&t->hall.book, &s->tag);
        assert_int_not_equal(rec, ADM_BOOK_NONE);
        return &t->hall.book.recs[rec];
}

static struct adm_turn *turn_of(struct place_of_test *t, const struct shopper *s) {
        uint32_t turn = rec_of(t, s)->turn;
        assert_int_not_equal(turn, 0);
        return &t->hall.turns.all[turn - 1];
}

static void test_counters_are_those_of_the_entries(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 2);
        for (uint32_t i = 0; i < 6; i++)
                (void)join(&t, i, i < 2 ? ADM_ADMITTED : ADM_WAITING);
        struct adm_hall_head was = t.head;
        t.head.turns = (struct adm_turns_head){.high = 1, .outstanding = 77, .invited = 5};
        t.head.book.count = 4;
        memset(t.hall.book.table, 0xff, CELLS * sizeof(uint32_t));
        t.head.line.last = 5;
        t.head.line.gone = 9;
        t.head.board.seq = 7; /* killed while writing the notice */
        adm_hall_rebuild(&t.hall);
        assert_int_equal(t.head.turns.high, was.turns.high);
        assert_int_equal(t.head.turns.outstanding, 2);
        assert_int_equal(t.head.turns.slots, 2);
        assert_int_equal(t.head.turns.invited, 0);
        assert_int_equal(t.head.book.count, 6);
        assert_int_equal(t.head.line.last, 6);
        assert_int_equal(t.head.line.gone, 2);
        assert_int_equal(t.head.board.seq % 2, 0);
        for (uint32_t i = 0; i < 6; i++)
                (void)join(&t, i, i < 2 ? ADM_ADMITTED : ADM_WAITING);
        hall_close(&t);
}

static void test_reader_of_a_notice_cut_short_takes_the_lock(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 1);
        (void)join(&t, 0, ADM_ADMITTED);
        struct shopper s = join(&t, 1, ADM_WAITING);
        adm_notice_write(&t.hall, t.now_ms);
        struct adm_asker a = {.now_ms = t.now_ms};
        assert_true(adm_claim_poll_free(&t.hall, 1024, &s.ticket, &a, &s.place));
        assert_int_equal(s.place.position, 1);
        assert_false(adm_claim_poll_free(&t.hall, 1025, &s.ticket, &a, &s.place));
        a.now_ms = t.now_ms - 5000; /* behind the notice: taken as its time */
        assert_true(adm_claim_poll_free(&t.hall, 1024, &s.ticket, &a, &s.place));
        assert_true(s.place.ticket.promised_at_ms > t.now_ms);
        a.now_ms = t.now_ms + 61000; /* upkeep stands still */
        assert_false(adm_claim_poll_free(&t.hall, 1024, &s.ticket, &a, &s.place));
        a.now_ms = t.now_ms;
        t.head.board.seq |= 1;
        assert_false(adm_claim_poll_free(&t.hall, 1024, &s.ticket, &a, &s.place));
        hall_close(&t);
}

static void test_half_moved_turns_are_mended(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 3);
        struct shopper invited = join(&t, 0, ADM_ADMITTED), holder = join(&t, 1, ADM_ADMITTED);
        struct shopper first = join(&t, 2, ADM_ADMITTED);
        /* From INVITED to FIRST: units and due written, state not yet. */
        turn_of(&t, &invited)->state = ADM_TURN_INVITED;
        t.head.turns.invited = 1;
        /* From USED to HOLDER: state written, units not yet taken away. */
        turn_of(&t, &holder)->state = ADM_TURN_HOLDER;
        turn_of(&t, &holder)->due_at_ms = 1;
        turn_of(&t, &first)->due_at_ms = 1;
        adm_hall_rebuild(&t.hall);
        assert_int_equal(t.head.turns.outstanding, 1);
        assert_int_equal(t.head.turns.invited, 1);
        assert_int_equal(turn_of(&t, &holder)->units, 0);
        assert_int_equal(turn_of(&t, &holder)->due_at_ms, holder.pass.exp_ms);
        assert_int_equal(turn_of(&t, &first)->due_at_ms, first.pass.exp_ms);
        /* The invited one stands in line again and claims. */
        assert_int_equal(poll(&t, &invited), 0);
        assert_int_equal(invited.place.state, ADM_READY);
        (void)join(&t, 0, ADM_ADMITTED);
        hall_close(&t);
}

static void test_accounts_and_turns_find_each_other(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 3);
        struct shopper a = join(&t, 0, ADM_ADMITTED), b = join(&t, 1, ADM_ADMITTED);
        struct shopper c = join(&t, 2, ADM_ADMITTED);
        /* The turn was written, the account did not name it yet, and its
         * number was not served. */
        rec_of(&t, &a)->turn = 0;
        adm_line_restore(&t.hall.line, rec_of(&t, &a)->place - 1, t.now_ms);
        /* The turn lingers already, the account still names it. */
        turn_of(&t, &b)->state = ADM_TURN_LINGER;
        /* The turn is free already. */
        turn_of(&t, &c)->state = ADM_TURN_FREE;
        adm_hall_rebuild(&t.hall);
        (void)join(&t, 0, ADM_ADMITTED);
        assert_int_equal(rec_of(&t, &b)->turn, 0);
        assert_int_equal(rec_of(&t, &c)->turn, 0);
        assert_int_equal(t.head.turns.outstanding, 2);
        assert_int_equal(t.head.line.gone, 1);
        assert_int_equal(poll(&t, &b), 0);
        assert_int_equal(b.place.state, ADM_READY);
        hall_close(&t);
}

static void test_a_wipe_cut_short_is_done_again(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 1);
        struct shopper a = join(&t, 0, ADM_ADMITTED);
        (void)join(&t, 1, ADM_WAITING);
        t.head.wiping = 1;
        adm_hall_rebuild(&t.hall);
        assert_int_equal(t.head.wiping, 0);
        assert_int_equal(t.head.line.last, 0);
        assert_int_equal(t.head.book.count, 0);
        assert_int_equal(t.head.turns.outstanding, 1); /* for a second */
        (void)a;
        t.now_ms += 1100;
        atomic_store(&t.alive_ms, t.now_ms);
        adm_upkeep_tick(&t.hall, adm_hall_now(&t.hall, t.now_ms));
        assert_int_equal(t.head.turns.outstanding, 0);
        (void)join(&t, 1, ADM_ADMITTED);
        hall_close(&t);
}

static void test_places_of_the_map_before_survive_a_rebuild(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 1);
        (void)join(&t, 0, ADM_ADMITTED);
        struct shopper old[3];
        for (uint32_t i = 0; i < 3; i++) {
                old[i] = world_shopper(100 + i, false);
                old[i].ticket = (struct adm_ticket){.round = 1,
                                                    .sale = t.head.sale,
                                                    .key = adm_key_make(400, 10 + i),
                                                    .tag = old[i].tag,
                                                    .issued_at_ms = t.now_ms - 5000,
                                                    .promised_at_ms = t.now_ms,
                                                    .ahead = ADM_AHEAD_UNTOLD};
                assert_int_equal(poll(&t, &old[i]), 0);
                assert_int_equal(old[i].place.position, i + 1);
        }
        adm_claim_leave(&t.hall, &old[1].tag, t.now_ms);
        struct adm_view was, is;
        adm_hall_view(&t.hall, t.now_ms, &was);
        assert_int_equal(was.line_waiting, 2);
        t.head.line.old_high = 0;
        t.head.line.old_known = 55;
        adm_hall_rebuild(&t.hall);
        adm_hall_view(&t.hall, t.now_ms, &is);
        assert_int_equal(is.line_waiting, was.line_waiting);
        assert_int_equal(poll(&t, &old[2]), 0);
        assert_int_equal(old[2].place.position, 2);
        assert_int_equal(old[2].place.ticket.key, adm_key_make(400, 12));
        /* Its leaver is not let back by the ticket. */
        assert_int_equal(poll(&t, &old[1]), ADM_NO_PLACE);
        /* A map before that one is forgotten. */
        struct adm_ticket older = old[0].ticket;
        older.key = adm_key_make(300, 5);
        older.tag = world_shopper(999, false).tag;
        struct adm_place p;
        assert_int_equal(adm_claim_poll(&t.hall, &older, 0, t.now_ms, &p), ADM_NO_PLACE);
        assert_int_equal(p.reason, ADM_FORGOTTEN);
        adm_hall_wipe(&t.hall, t.now_ms);
        assert_int_equal(adm_line_mark(&t.hall.line, 11), ADM_MARK_NEVER);
        hall_close(&t);
}

static void test_torn_stock_admits_nobody_until_it_is_told_again(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 5);
        t.head.known = 0; /* killed while the numbers were written */
        (void)join(&t, 0, ADM_WAITING);
        struct adm_stock k = t.head.facts.stock;
        assert_true(adm_hall_stock(&t.hall, &k, k.available));
        (void)join(&t, 0, ADM_ADMITTED);
        hall_close(&t);
}

static void test_long_standstill_silences_old_marks(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 1);
        (void)join(&t, 0, ADM_ADMITTED);
        struct shopper s = join(&t, 1, ADM_WAITING);
        /* 4.5 hours: the mark of then would look like one of now. */
        t.now_ms += 65536 * 250;
        atomic_store(&t.alive_ms, t.now_ms);
        adm_upkeep_tick(&t.hall, adm_hall_now(&t.hall, t.now_ms));
        assert_int_equal(t.head.live, 0);
        assert_int_equal(poll(&t, &s), ADM_NO_PLACE);
        assert_int_equal(s.place.reason, ADM_FORGOTTEN);
        hall_close(&t);
}

static void test_turns_are_a_ceiling_and_are_used_again(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 5);
        t.hall.turns.capacity = 2;
        struct shopper a = join(&t, 0, ADM_ADMITTED);
        (void)join(&t, 1, ADM_ADMITTED);
        struct shopper c = join(&t, 2, ADM_WAITING);
        assert_int_equal(poll(&t, &c), 0);
        assert_int_equal(c.place.state, ADM_WAITING);
        adm_claim_leave(&t.hall, &a.tag, t.now_ms);
        t.now_ms += 1100;
        adm_upkeep_tick(&t.hall, adm_hall_now(&t.hall, t.now_ms));
        (void)join(&t, 2, ADM_ADMITTED);
        assert_int_equal(t.head.turns.high, 2);
        hall_close(&t);
}

static void test_a_new_pass_is_younger_than_the_revocation(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 5);
        struct shopper a = join(&t, 0, ADM_ADMITTED);
        adm_claim_leave(&t.hall, &a.tag, t.now_ms);
        struct shopper again = join(&t, 0, ADM_ADMITTED);
        assert_true(again.pass.iat_ms > a.pass.iat_ms);
        struct adm_shown p = world_shown(&again), old = world_shown(&a);
        struct adm_pass out;
        assert_int_equal(adm_pass_show(&t.hall, &p, true, t.now_ms, &out), 0);
        assert_int_equal(adm_pass_show(&t.hall, &old, true, t.now_ms, &out), ADM_PASS_REVOKED);
        /* A revocation older than the pass leaves it alone. */
        struct adm_revoked r = {.tag = a.tag, .at_ms = again.pass.iat_ms - 1};
        adm_pass_revoke(&t.hall, &r, t.now_ms);
        assert_int_equal(adm_pass_show(&t.hall, &p, true, t.now_ms, &out), 0);
        hall_close(&t);
}

static void test_a_void_pass_is_not_brought_back_by_its_hold(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 1);
        struct shopper a = join(&t, 0, ADM_ADMITTED);
        struct adm_shown p = world_shown(&a);
        struct adm_hold_end e = {.qty = 1,
                                 .held = true,
                                 .hold_end_ms = t.now_ms + 60000,
                                 .has_stock = true,
                                 .timeline = 1,
                                 .n = 2,
                                 .available = 0};
        struct adm_pass out;
        assert_int_equal(adm_pass_hold_begin(&t.hall, &p, 1, t.now_ms), 0);
        adm_pass_done(&t.hall, &p, t.now_ms);
        assert_int_equal(t.head.turns.outstanding, 1);
        assert_int_equal(adm_pass_hold_end(&t.hall, &p, &e, t.now_ms, &out), ADM_PASS_EXPIRED);
        assert_int_equal(t.head.turns.outstanding, 0);
        hall_close(&t);
}

static void test_a_hold_the_shop_made_after_the_pass_ended(void **state) {
        (void)state;
        struct place_of_test t;
        hall_open(&t, 1);
        struct shopper a = join(&t, 0, ADM_ADMITTED);
        t.now_ms = a.pass.exp_ms + 100;
        atomic_store(&t.alive_ms, t.now_ms);
        adm_upkeep_tick(&t.hall, adm_hall_now(&t.hall, t.now_ms));
        assert_int_equal(t.head.turns.slots, 1); /* lingers; its place is back */
        struct adm_converted c = {.qty = 1, .hold_end_ms = t.now_ms + 60000};
        memcpy(c.jti, a.pass.jti, sizeof(c.jti));
        adm_pass_converted(&t.hall, &c, t.now_ms);
        assert_int_equal(t.head.turns.slots, 0);
        assert_int_equal(t.head.turns.outstanding, 0);
        struct adm_shown p = world_shown(&a);
        struct adm_pass out;
        assert_int_equal(adm_pass_show(&t.hall, &p, true, t.now_ms, &out), 0);
        assert_int_equal(out.life, ADM_PASS_HOLDER);
        assert_int_equal(t.head.line.gone, 1);
        hall_close(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_counters_are_those_of_the_entries),
                cmocka_unit_test(test_reader_of_a_notice_cut_short_takes_the_lock),
                cmocka_unit_test(test_half_moved_turns_are_mended),
                cmocka_unit_test(test_accounts_and_turns_find_each_other),
                cmocka_unit_test(test_a_wipe_cut_short_is_done_again),
                cmocka_unit_test(test_places_of_the_map_before_survive_a_rebuild),
                cmocka_unit_test(test_torn_stock_admits_nobody_until_it_is_told_again),
                cmocka_unit_test(test_long_standstill_silences_old_marks),
                cmocka_unit_test(test_turns_are_a_ceiling_and_are_used_again),
                cmocka_unit_test(test_a_new_pass_is_younger_than_the_revocation),
                cmocka_unit_test(test_a_void_pass_is_not_brought_back_by_its_hold),
                cmocka_unit_test(test_a_hold_the_shop_made_after_the_pass_ended),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
