/* A pass: three lives, slots that outlive it, and who may end it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "adm_world.h"

static void test_three_lives_one_jti(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 3);
        struct shopper s = world_admitted(&w, 1);
        uint8_t jti[ADM_JTI_LEN];
        memcpy(jti, s.pass.jti, sizeof(jti));
        assert_int_equal(s.pass.life, ADM_PASS_FIRST);
        assert_int_equal(s.pass.exp_ms - s.pass.iat_ms, 20000);
        assert_int_equal(world_look(&w, &s), 0);
        assert_int_equal(s.pass.life, ADM_PASS_FIRST);
        assert_false(s.pass.renewed);
        world_pass(&w, 5000);
        assert_int_equal(world_use(&w, &s), 0);
        assert_int_equal(s.pass.life, ADM_PASS_USED);
        assert_true(s.pass.renewed);
        assert_int_equal(s.pass.exp_ms, w.now_ms + 300000);
        assert_int_equal(world_use(&w, &s), 0);
        assert_false(s.pass.renewed);
        assert_int_equal(world_outstanding(&w), 1);
        assert_int_equal(world_hold(&w, &s, 1, w.now_ms + 600500), 0);
        assert_int_equal(s.pass.life, ADM_PASS_HOLDER);
        assert_int_equal(s.pass.exp_ms, w.now_ms + 601000); /* whole seconds */
        assert_memory_equal(s.pass.jti, jti, sizeof(jti));
        assert_int_equal(world_outstanding(&w), 0);
        assert_int_equal(world_view(&w).passes_active, 0);
        world_pass(&w, 600900);
        assert_int_equal(world_look(&w, &s), 0);
        world_pass(&w, 200);
        assert_int_equal(world_look(&w, &s), ADM_PASS_EXPIRED);
        world_close(&w);
}

static void test_a_pass_shown_late_by_its_first_exp_is_the_renewed_one(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 3);
        struct shopper s = world_admitted(&w, 1);
        struct adm_shown first = world_shown(&s);
        assert_int_equal(world_use(&w, &s), 0);
        world_pass(&w, 60000);
        struct adm_pass p;
        assert_int_equal(adm_store_pass_look(w.store, w.sale, &first, w.now_ms, &p), 0);
        assert_true(p.renewed);
        world_close(&w);
}

static void test_slot_outlives_its_pass(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        struct shopper a = world_admitted(&w, 1);
        assert_int_equal(world_use(&w, &a), 0);
        struct shopper b = world_waiting(&w, 2);
        int64_t exp = a.pass.exp_ms;
        while (w.now_ms + 5000 < exp) {
                world_pass(&w, 5000);
                assert_int_equal(world_poll(&w, &b), 0);
                assert_int_equal(b.place.state, ADM_WAITING);
        }
        world_pass(&w, exp - w.now_ms);
        assert_int_equal(world_look(&w, &a), ADM_PASS_EXPIRED);
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_WAITING);
        world_pass(&w, 2900); /* skew 2 s, forward timeout 1 s */
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_WAITING);
        world_pass(&w, 200);
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_READY);
        world_close(&w);
}

static void test_unused_pass_once_then_twice(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        struct shopper a = world_admitted(&w, 1);
        uint64_t key = a.ticket.key;
        struct shopper b = world_waiting(&w, 2);
        world_pass(&w, 15000);
        assert_int_equal(world_poll(&w, &b), 0);
        world_pass(&w, 5100);
        /* Its slot lingers for three seconds; then it is next. */
        assert_int_equal(world_poll(&w, &a), 0);
        assert_int_equal(a.place.state, ADM_WAITING);
        assert_int_equal(a.place.reason, ADM_TURN_MISSED);
        assert_int_equal(a.place.position, 1);
        world_pass(&w, 3000);
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_WAITING);
        assert_int_equal(world_join(&w, &a), 0);
        assert_int_equal(a.place.state, ADM_ADMITTED);
        assert_int_equal(a.place.reason, ADM_TURN_MISSED);
        assert_int_equal(a.ticket.key, key);
        world_pass(&w, 15000);
        assert_int_equal(world_poll(&w, &b), 0);
        world_pass(&w, 8100);
        assert_int_equal(world_poll(&w, &a), ADM_NO_PLACE);
        assert_int_equal(a.place.reason, ADM_TURN_MISSED);
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_READY);
        assert_int_equal(world_join(&w, &a), 0);
        assert_int_equal(a.place.state, ADM_WAITING);
        assert_true(a.ticket.key > b.ticket.key);
        world_close(&w);
}

static void test_done_frees_the_slot_a_second_later(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        struct shopper a = world_admitted(&w, 1), b = world_waiting(&w, 2);
        assert_int_equal(world_use(&w, &a), 0);
        struct adm_shown p = world_shown(&a);
        adm_store_pass_done(w.store, w.sale, &p, w.now_ms);
        adm_store_pass_done(w.store, w.sale, &p, w.now_ms);
        assert_int_equal(world_look(&w, &a), ADM_PASS_REVOKED);
        world_pass(&w, 900);
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_WAITING);
        world_pass(&w, 200);
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_READY);
        assert_int_equal(world_look(&w, &a), ADM_PASS_REVOKED);
        /* The account may come again, with a pass that is not revoked. */
        adm_store_leave(w.store, w.sale, &b.tag, w.now_ms);
        assert_int_equal(world_join(&w, &a), 0);
        assert_int_equal(a.place.state, ADM_ADMITTED);
        assert_int_equal(world_look(&w, &a), 0);
        world_close(&w);
}

static void test_leaving_gives_up_pass_and_place_but_not_a_hold(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 2);
        struct shopper a = world_admitted(&w, 1), h = world_admitted(&w, 2),
                       b = world_waiting(&w, 3);
        assert_int_equal(world_use(&w, &h), 0);
        assert_int_equal(world_hold(&w, &h, 1, w.now_ms + 60000), 0);
        adm_store_leave(w.store, w.sale, &h.tag, w.now_ms);
        assert_int_equal(world_look(&w, &h), 0);
        adm_store_leave(w.store, w.sale, &a.tag, w.now_ms);
        assert_int_equal(world_look(&w, &a), ADM_PASS_REVOKED);
        world_pass(&w, 1100);
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_READY);
        adm_store_leave(w.store, w.sale, &b.tag, w.now_ms);
        assert_int_equal(world_poll(&w, &b), ADM_NO_PLACE);
        struct adm_tag nobody = world_shopper(77, false).tag;
        adm_store_leave(w.store, w.sale, &nobody, w.now_ms);
        assert_int_equal(world_view(&w).line_invited, 0);
        world_close(&w);
}

static void test_revocation_is_idempotent_by_its_time(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 3);
        struct shopper a = world_admitted(&w, 1), b = world_admitted(&w, 2),
                       c = world_admitted(&w, 3);
        struct shopper d = world_waiting(&w, 4), e = world_waiting(&w, 5);
        (void)b;
        (void)c;
        struct adm_revoked r[3] = {{.tag = a.tag, .at_ms = w.now_ms},
                                   {.tag = d.tag, .at_ms = w.now_ms},
                                   {.tag = world_shopper(9, false).tag, .at_ms = w.now_ms}};
        w.update.revoked = r;
        w.update.n_revoked = 3;
        world_tell(&w);
        assert_int_equal(world_look(&w, &a), ADM_PASS_REVOKED);
        assert_int_equal(world_poll(&w, &d), ADM_NO_PLACE);
        world_pass(&w, 1100);
        assert_int_equal(world_poll(&w, &e), 0);
        assert_int_equal(e.place.state, ADM_READY);
        /* Back in line after it: the repeated list does not touch it. */
        assert_int_equal(world_join(&w, &d), 0);
        world_tell(&w);
        assert_int_equal(world_poll(&w, &d), 0);
        struct adm_revoked inv = {.tag = e.tag, .at_ms = w.now_ms};
        adm_store_revoke(w.store, w.sale, &inv, w.now_ms);
        assert_int_equal(world_poll(&w, &e), ADM_NO_PLACE);
        world_close(&w);
}

static void test_pass_of_another_account_or_nobody(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 3);
        struct shopper a = world_admitted(&w, 1);
        struct shopper thief = world_shopper(2, false);
        thief.pass = a.pass;
        assert_int_equal(world_use(&w, &thief), ADM_PASS_OTHER);
        struct shopper known = world_admitted(&w, 3);
        known.pass = a.pass;
        assert_int_equal(world_use(&w, &known), ADM_PASS_OTHER);
        assert_int_equal(world_look(&w, &a), 0);
        struct shopper made_up = a;
        made_up.pass.jti[15] ^= 1;
        assert_int_equal(world_use(&w, &made_up), ADM_PASS_UNKNOWN);
        made_up.pass.exp_ms = w.now_ms;
        assert_int_equal(world_use(&w, &made_up), ADM_PASS_EXPIRED);
        world_close(&w);
}

static void test_hard_pause_stops_passes_and_gives_the_time_back_once(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 3);
        struct shopper used = world_admitted(&w, 1), first = world_admitted(&w, 2),
                       holder = world_admitted(&w, 3);
        assert_int_equal(world_use(&w, &used), 0);
        assert_int_equal(world_use(&w, &holder), 0);
        assert_int_equal(world_hold(&w, &holder, 1, w.now_ms + 600000), 0);
        int64_t used_exp = used.pass.exp_ms, first_exp = first.pass.exp_ms;
        int64_t holder_exp = holder.pass.exp_ms;
        world_pass(&w, 10000);
        w.update.facts.paused = w.update.facts.hard_pause = true;
        w.update.facts.version++;
        world_tell(&w);
        assert_int_equal(world_use(&w, &used), ADM_PASS_STOPPED);
        struct adm_shown p = world_shown(&used);
        assert_int_equal(adm_store_hold_begin(w.store, w.sale, &p, 1, w.now_ms), ADM_PASS_STOPPED);
        world_pass(&w, 60000);
        assert_int_equal(world_look(&w, &first), ADM_PASS_STOPPED);
        w.update.facts.paused = w.update.facts.hard_pause = false;
        w.update.facts.version++;
        world_tell(&w);
        world_tell(&w);
        world_pass(&w, 100);
        assert_int_equal(world_look(&w, &used), 0);
        assert_int_equal(used.pass.exp_ms, used_exp + 60000);
        assert_true(used.pass.renewed);
        assert_int_equal(world_look(&w, &first), 0);
        assert_int_equal(first.pass.exp_ms, first_exp + 60000);
        assert_int_equal(world_look(&w, &holder), 0);
        assert_int_equal(holder.pass.exp_ms, holder_exp);
        world_close(&w);
}

static void test_extension_lengthens_the_holder_pass(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        struct shopper a = world_admitted(&w, 1);
        assert_int_equal(world_use(&w, &a), 0);
        assert_int_equal(world_hold(&w, &a, 1, w.now_ms + 60000), 0);
        struct adm_shown p = world_shown(&a);
        assert_int_equal(
                adm_store_hold_extended(w.store, w.sale, &p, w.now_ms + 90000, w.now_ms, &a.pass),
                0);
        assert_int_equal(a.pass.exp_ms, w.now_ms + 90000);
        assert_int_equal(
                adm_store_hold_extended(w.store, w.sale, &p, w.now_ms + 80000, w.now_ms, &a.pass),
                0);
        assert_int_equal(a.pass.exp_ms, w.now_ms + 90000);
        world_close(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_three_lives_one_jti),
                cmocka_unit_test(test_a_pass_shown_late_by_its_first_exp_is_the_renewed_one),
                cmocka_unit_test(test_slot_outlives_its_pass),
                cmocka_unit_test(test_unused_pass_once_then_twice),
                cmocka_unit_test(test_done_frees_the_slot_a_second_later),
                cmocka_unit_test(test_leaving_gives_up_pass_and_place_but_not_a_hold),
                cmocka_unit_test(test_revocation_is_idempotent_by_its_time),
                cmocka_unit_test(test_pass_of_another_account_or_nobody),
                cmocka_unit_test(test_hard_pause_stops_passes_and_gives_the_time_back_once),
                cmocka_unit_test(test_extension_lengthens_the_holder_pass),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
