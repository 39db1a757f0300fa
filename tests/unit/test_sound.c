/* A map whose header is right and whose content is not: it is put aside, the
 * line begins anew and no place is lost. And whatever lies there, nobody falls
 * over it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "adm_world.h"
#include "admission/map.h"

#define SHOPPERS 8
#define UNITS 3

/* Three have a pass, the second of them a hold; five wait. */
static void fill(struct world *w, struct shopper s[SHOPPERS]) {
        world_open(w, UNITS);
        for (uint32_t i = 0; i < SHOPPERS; i++)
                s[i] = i < UNITS ? world_admitted(w, i) : world_waiting(w, i);
        assert_int_equal(world_use(w, &s[0]), 0);
        assert_int_equal(world_use(w, &s[1]), 0);
        assert_int_equal(world_hold(w, &s[1], 1, w->now_ms + 600000), 0);
        struct adm_told told = {.version = 7, .as_of_ms = w->now_ms, .state = ADM_SALE_OPEN};
        adm_store_tell(w->store, w->sale, &told);
        adm_store_tick(w->store, w->now_ms);
}

enum area { HEADER, SALE, HEAD, REC, TURN, MARK };

static void *area_of(struct adm_map *m, enum area a, uint32_t i) {
        struct adm_hall *l = &m->halls[0];
        switch (a) {
        case HEADER:
                return m->h;
        case SALE:
                return adm_map_sale_of(m, 0);
        case HEAD:
                return l->h;
        case REC:
                return &l->book.recs[i];
        case TURN:
                return &l->turns.all[i];
        case MARK:
                return (void *)(uintptr_t)&l->line.marks[i];
        }
        return NULL;
}

struct row {
        enum area area;
        uint32_t i;
        size_t at, bytes;
        uint64_t value;
        const char *fault;
};

#define OF(area, type, field) area, 0, offsetof(type, field), sizeof(((type *)0)->field)
#define NTH(area, i, type, field) area, i, offsetof(type, field), sizeof(((type *)0)->field)
#define HDR(field) OF(HEADER, struct adm_map_header, field)
#define SLE(field) OF(SALE, struct adm_map_sale, field)
#define HD(field) OF(HEAD, struct adm_hall_head, field)
#define RC(i, field) NTH(REC, i, struct adm_rec, field)
#define TN(i, field) NTH(TURN, i, struct adm_turn, field)

#define LATE (uint64_t)(WORLD_T0 + INT64_C(2) * 86400000)
#define FAR (uint64_t)(WORLD_T0 + INT64_C(400) * 86400000)
#define PAST_ALL (UINT64_C(1) << 60)
#define NEGATIVE UINT64_MAX

static const struct row rows[] = {
        {HDR(generation), 0, "the map's generation"},
        {HDR(generation), 0x800000, "the map's generation"},
        {HDR(generation), 77, "a sale's generation"},
        {HDR(old_generation), 0x7fffffff, "the generation before the map's"},
        {HDR(epoch), 0, "the map's epoch"},
        {HDR(epoch), 9, "a sale's generation"},
        {HDR(born_ms), LATE, "when the map began"},
        {HDR(born_ms), NEGATIVE, "when the map began"},
        {SLE(recs_backed), 7, "what disk a sale has"},
        {SLE(recs_backed), 0xffffff00, "what disk a sale has"},
        {SLE(turns_backed), 7, "what disk a sale has"},
        {SLE(turns_backed), 0xffffff00, "what disk a sale has"},
        {HD(in_use), 2, "whether a sale is there"},
        {HD(in_use), 0, "a sale's handle"},
        {HD(handle), 1u << ADM_MAP_SLOT_BITS | 3, "a sale's handle"},
        {HD(sale), 5, "a sale's id"},
        {HD(facts.id[1]), 'x', "a sale's id"},
        {HD(facts.id[0]), 0, "a sale's fields"},
        {HD(facts.id[0]), '/', "a sale's fields"},
        {HD(generation), 3, "a sale's generation"},
        {HD(old_generation), 0x7fffffff, "a sale's generation"},
        {HD(epoch), 3, "a sale's generation"},
        {HD(known), 2, "a sale's marks of work under way"},
        {HD(wiping), 2, "a sale's marks of work under way"},
        {HD(now_ms), LATE, "a sale's time"},
        {HD(now_ms), NEGATIVE, "a sale's time"},
        {HD(stopped_since_ms), LATE, "when a sale was stopped"},
        {HD(snap_available), PAST_ALL, "a sale's stock"},
        {HD(guessed_ahead), PAST_ALL, "a sale's stock"},
        {HD(guessed_ahead), NEGATIVE, "a sale's stock"},
        {HD(facts.has_item), 2, "a sale's flags"},
        {HD(facts.paused), 0xff, "a sale's flags"},
        {HD(facts.hard_pause), 2, "a sale's flags"},
        {HD(facts.closed), 2, "a sale's flags"},
        {HD(facts.opens_at_ms), PAST_ALL, "a sale's window"},
        {HD(facts.opens_at_ms), NEGATIVE, "a sale's fields"},
        {HD(facts.prequeue_at_ms), PAST_ALL, "a sale's window"},
        {HD(facts.closes_at_ms), PAST_ALL, "a sale's window"},
        {HD(facts.queue), 99, "a sale's fields"},
        {HD(facts.identity), 99, "a sale's fields"},
        {HD(facts.overbook_milli), 0, "a sale's fields"},
        {HD(facts.per_account), 0, "a sale's fields"},
        {HD(facts.hold_seconds), 0, "a sale's fields"},
        {HD(facts.extend_seconds), 0xffffffff, "a sale's fields"},
        {HD(facts.first_use_seconds), 0xffffffff, "a sale's fields"},
        {HD(facts.pass_seconds), 0, "a sale's fields"},
        {HD(facts.skip_seconds), 0xffffffff, "a sale's fields"},
        {HD(facts.forget_seconds), 0, "a sale's fields"},
        {HD(facts.stock.available), PAST_ALL, "a sale's stock"},
        {HD(facts.stock.held), PAST_ALL, "a sale's stock"},
        {HD(facts.stock.sold), PAST_ALL, "a sale's stock"},
        {HD(facts.stock.total), PAST_ALL, "a sale's stock"},
        {HD(facts.stock.db_now_ms), PAST_ALL, "a sale's stock"},
        {HD(shown.raw_all_held), 2, "what a sale showed"},
        {HD(shown.shown_all_held), 2, "what a sale showed"},
        {HD(shown.raw_since_ms), LATE, "what a sale showed"},
        {HD(told_at), 2, "which flag is the last"},
        {HD(told[1].state), 7, "what a flag told"},
        {HD(told[1].version), PAST_ALL, "what a flag told"},
        {HD(told[1].left), PAST_ALL, "what a flag told"},
        {HD(told[1].as_of_ms), PAST_ALL, "what a flag told"},
        {HD(told[1].opens_at_ms), PAST_ALL, "what a flag told"},
        {HD(told[1].closes_at_ms), NEGATIVE, "what a flag told"},
        {HD(pace.seen_ms), LATE, "a sale's pace"},
        {HD(pace.second), LATE, "a sale's pace"},
        {HD(pace.allowance_micro), NEGATIVE, "a sale's pace"},
        {HD(line.last), 0xffffffff, "a line's numbers"},
        {HD(line.last), SHOPPERS - 2, "a mark of nobody"},
        {HD(line.old_high), 0xffffffff, "a line's numbers"},
        {HD(line.fresh_lo), 0xffffffff, "a line's numbers"},
        {HD(turns.high), 0xffffffff, "a sale's turns"},
        {RC(0, used), 0, "an account behind the last"},
        {RC(0, used), 2, "an account's marks"},
        {RC(0, guest), 2, "an account's marks"},
        {RC(0, missed), 9, "an account's marks"},
        {RC(0, why), 99, "an account's marks"},
        {RC(4, given_at_ms), FAR, "an account's instants"},
        {RC(4, void_before_ms), NEGATIVE, "an account's instants"},
        {RC(4, place), 0xffffffff, "an account's place"},
        {RC(4, place), 4096 + 1 + 0, "an account's place"}, /* the first one's */
        {RC(4, place), 4096 + 1 + 5, "an account's place"}, /* another waiter's */
        {RC(4, turn), 0xffffffff, "an account's turn"},
        {RC(0, turn), 2, "a turn and its account"},
        {TN(0, state), 6, "a turn's state"},
        {TN(0, is_void), 2, "a turn's state"},
        {TN(UNITS + 2, state), ADM_TURN_USED, "a turn behind the last"},
        {TN(0, rec), 4095, "a turn and its account"},
        {TN(0, rec), 0xfffffff0, "a turn's account"},
        {TN(0, rec), ADM_BOOK_NONE, "a turn's account"},
        {TN(0, units), 0, "a turn's units"},
        {TN(0, units), 0xffffffff, "a turn's units"},
        {TN(1, in_flight), 0xffffffff, "a turn's units"},
        {TN(0, iat_ms), NEGATIVE, "a turn's instants"},
        {TN(0, exp_ms), FAR, "a turn's instants"},
        {TN(0, due_at_ms), FAR, "a turn's instants"},
        {TN(1, in_flight_end_ms), FAR, "a turn's instants"},
        {MARK, 17, 0, 2, 5, "a mark of nobody"},
        {MARK, 4096 + SHOPPERS + 1, 0, 2, 5, "a mark of nobody"},
        {MARK, 2 * 4096 - 1, 0, 2, ADM_MARK_GONE, "a mark of nobody"},
};

static void corrupt(struct world *w, const struct row *r) {
        struct adm_map m;
        assert_int_equal(adm_map_open(&w->conf, w->now_ms, &m), 0);
        assert_null(m.fault);
        char *at = (char *)area_of(&m, r->area, r->i) + r->at;
        assert_true(r->bytes <= sizeof(r->value));
        memcpy(at, &r->value, r->bytes);
        adm_map_close(&m);
}

static bool exists(const struct world *w, const char *tail) {
        char path[128];
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s/admission.map%s", w->dir, tail);
        return stat(path, &st) == 0;
}

/* The rules of a lost map: nobody enters before the live passes had their time
 * to come forward; who waits keeps the order; nobody new comes before them. */
static void line_goes_on(struct world *w, struct shopper s[SHOPPERS], const char *why) {
        struct shopper late = world_waiting(w, 50);
        if (late.ticket.key <= s[SHOPPERS - 1].ticket.key)
                fail_msg("%s: the new line begins below the old one", why);
        assert_int_equal(world_use(w, &s[0]), 0);
        assert_int_equal(world_look(w, &s[1]), 0);
        assert_int_equal(s[1].pass.life, ADM_PASS_HOLDER);
        for (uint32_t i = UNITS; i < SHOPPERS; i++)
                assert_int_equal(world_poll(w, &s[i]), 0);
        world_pass(w, 4100);
        for (uint32_t i = UNITS; i < SHOPPERS; i++) {
                assert_int_equal(world_poll(w, &s[i]), 0);
                if (s[i].place.state != (i == UNITS ? ADM_READY : ADM_WAITING))
                        fail_msg("%s: shopper %u is %s", why, i,
                                 adm_place_state_name(s[i].place.state));
        }
        assert_int_equal(world_poll(w, &late), 0);
        assert_int_equal(late.place.state, ADM_WAITING);
}

static void test_each_broken_field_is_found_out_and_the_line_goes_on(void **state) {
        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct world w = {0};
                struct shopper s[SHOPPERS];
                const char *fault;
                fill(&w, s);
                adm_store_close(&w.store);
                corrupt(&w, &rows[i]);
                w.now_ms += 2000;
                assert_int_equal(adm_store_open(&w.conf, w.now_ms, &w.store), 0);
                enum adm_found found = adm_store_found(w.store, &fault);
                if (found != ADM_FOUND_BROKEN || !fault || strcmp(fault, rows[i].fault) != 0)
                        fail_msg("row %zu, wanted: %s, found %d: %s", i, rows[i].fault, found,
                                 fault ? fault : "nothing");
                assert_true(exists(&w, ".broken"));
                world_tell(&w);
                line_goes_on(&w, s, rows[i].fault);
                assert_int_equal(world_reopen(&w), 0);
                world_close(&w);
        }
}

static void test_a_sound_map_is_kept(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[SHOPPERS];
        const char *fault;
        fill(&w, s);
        adm_store_close(&w.store);
        assert_int_equal(adm_store_open(&w.conf, w.now_ms, &w.store), 0);
        assert_int_equal(adm_store_found(w.store, &fault), ADM_FOUND_MAP);
        assert_null(fault);
        assert_false(exists(&w, ".broken"));
        struct adm_view v = world_view(&w);
        assert_int_equal(v.told.version, 7);
        assert_int_equal(v.facts.version, 1);
        assert_int_equal(v.epoch, 1);
        world_close(&w);
}

static void test_a_forgetting_cut_short_is_finished(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[SHOPPERS];
        fill(&w, s);
        adm_store_close(&w.store);
        struct adm_map m;
        assert_int_equal(adm_map_open(&w.conf, w.now_ms, &m), 0);
        m.halls[0].h->handle += 1u << ADM_MAP_SLOT_BITS;
        adm_map_close(&m);
        assert_int_equal(world_reopen(&w), 0);
        assert_int_equal(world_view(&w).last_number, 0);
        world_close(&w);
}

static void test_a_map_that_others_use_is_not_judged(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[SHOPPERS];
        struct adm_store *second = NULL;
        const char *fault;
        fill(&w, s);
        assert_int_equal(adm_store_open(&w.conf, w.now_ms, &second), 0);
        assert_int_equal(adm_store_found(second, &fault), ADM_FOUND_MAP);
        adm_store_close(&second);
        assert_int_equal(world_view(&w).last_number, SHOPPERS);
        world_close(&w);
}

/* ---- anything ---- */

struct image {
        char *bytes;
        size_t size;
        off_t used[4096]; /* pages that hold something */
        size_t n_used;
};

static void map_path(const struct world *w, char *out, size_t cap) {
        (void)snprintf(out, cap, "%s/admission.map", w->dir);
}

static void image_read(const struct world *w, struct image *im) {
        char path[128];
        struct stat st;
        map_path(w, path, sizeof(path));
        int fd = open(path, O_RDONLY);
        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        im->size = (size_t)st.st_size;
        im->bytes = malloc(im->size);
        assert_non_null(im->bytes);
        assert_int_equal(pread(fd, im->bytes, im->size, 0), st.st_size);
        assert_int_equal(close(fd), 0);
        static const char nothing[4096];
        im->n_used = 0;
        for (size_t at = 0; at + 4096 <= im->size; at += 4096)
                if (memcmp(im->bytes + at, nothing, 4096) != 0 && im->n_used < 4096)
                        im->used[im->n_used++] = (off_t)at;
        assert_true(im->n_used > 6);
}

/* A fresh file with the image's used pages, as a disk would have left it. */
static int image_write(const struct world *w, const struct image *im) {
        char path[128];
        map_path(w, path, sizeof(path));
        (void)unlink(path);
        int fd = open(path, O_RDWR | O_CREAT, 0600);
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, (off_t)im->size), 0);
        for (size_t i = 0; i < im->n_used; i++)
                assert_int_equal(pwrite(fd, im->bytes + im->used[i], 4096, im->used[i]), 4096);
        return fd;
}

#define HEADER_KEPT 48 /* magic, format, sizes: what the shape is judged by */

static void harm(struct world *w, int fd, const struct image *im) {
        static const uint64_t odd[] = {0, 1, UINT64_MAX, INT64_MAX, 0x8080808080808080, 4096};
        char page[4096];
        off_t at = im->used[world_random(w) % im->n_used];
        size_t in = world_random(w) % 512 * 8, more = world_random(w) % 3;
        uint64_t word = more ? world_random(w) : odd[world_random(w) % 6];
        size_t bytes = 1u << world_random(w) % 4;
        if (at == 0 && in < HEADER_KEPT)
                in = HEADER_KEPT;
        switch (world_random(w) % 6) {
        case 0: /* a page that was never written */
                memset(page, 0, sizeof(page));
                break;
        case 1: /* another page in its place */
                memcpy(page, im->bytes + im->used[world_random(w) % im->n_used], sizeof(page));
                break;
        case 2: /* noise */
                for (size_t i = 0; i < sizeof(page); i += 8) {
                        uint64_t noise = world_random(w);
                        memcpy(page + i, &noise, 8);
                }
                break;
        default: /* a field */
                assert_int_equal(pwrite(fd, &word, bytes, at + (off_t)in), (ssize_t)bytes);
                return;
        }
        if (at == 0)
                memcpy(page, im->bytes, HEADER_KEPT);
        assert_int_equal(pwrite(fd, page, sizeof(page), at), sizeof(page));
}

/* All that a store is asked, by a crowd that was there before; whatever the
 * answers are, they are answers. */
static void ask_everything(struct world *w, struct shopper s[SHOPPERS]) {
        struct adm_view v;
        adm_store_alive(w->store, w->now_ms);
        w->update.facts.stock.db_now_ms = w->now_ms;
        (void)!adm_store_sale(w->store, &w->update, w->now_ms, &w->sale);
        for (int turn = 0; turn < 12; turn++) {
                struct shopper *x = &s[world_random(w) % SHOPPERS];
                struct adm_shown p = world_shown(x);
                struct adm_revoked revoked = {.tag = x->tag, .at_ms = w->now_ms - 1000};
                (void)!world_join(w, x);
                (void)!world_poll(w, x);
                (void)!world_use(w, x);
                if (turn % 3 == 0)
                        (void)!world_hold(w, x, 1, w->now_ms + 5000);
                if (turn % 4 == 0)
                        adm_store_pass_done(w->store, w->sale, &p, w->now_ms);
                if (turn % 5 == 0)
                        adm_store_leave(w->store, w->sale, &x->tag, w->now_ms);
                if (turn % 7 == 0)
                        adm_store_revoke(w->store, w->sale, &revoked, w->now_ms);
                (void)!adm_store_view(w->store, w->sale, w->now_ms, &v);
                world_pass(w, 100 + (int64_t)(world_random(w) % 400));
        }
        world_pass(w, 30000);
        w->update.facts.round++; /* a reset goes over everything */
        (void)!adm_store_sale(w->store, &w->update, w->now_ms, &w->sale);
        (void)!world_join(w, &s[0]);
        w->update.facts.round--;
        adm_store_forget_sale(w->store, w->sale);
        (void)!adm_store_sale(w->store, &w->update, w->now_ms, &w->sale);
        (void)!world_join(w, &s[0]);
}

#define ROUNDS 400

static void test_whatever_lies_there_nobody_falls_over_it(void **state) {
        (void)state;
        struct world w = {.seed = 20260};
        struct shopper s[SHOPPERS], now[SHOPPERS];
        struct image im;
        uint32_t broken = 0, kept = 0;
        fill(&w, s);
        adm_store_close(&w.store);
        image_read(&w, &im);
        struct world was = w;
        for (int i = 0; i < ROUNDS; i++) {
                const char *fault;
                int fd = image_write(&w, &im);
                for (uint64_t n = 1 + world_random(&w) % 3; n > 0; n--)
                        harm(&w, fd, &im);
                assert_int_equal(close(fd), 0);
                w.now_ms = was.now_ms;
                w.update = was.update;
                memcpy(now, s, sizeof(now));
                assert_int_equal(adm_store_open(&w.conf, w.now_ms, &w.store), 0);
                bool is_broken = adm_store_found(w.store, &fault) == ADM_FOUND_BROKEN;
                broken += is_broken;
                kept += !is_broken;
                ask_everything(&w, now);
                adm_store_close(&w.store);
                assert_int_equal(adm_store_open(&w.conf, w.now_ms, &w.store), 0);
                ask_everything(&w, now);
                adm_store_close(&w.store);
        }
        assert_true(broken > ROUNDS / 10);
        assert_true(kept > ROUNDS / 10);
        free(im.bytes);
        world_close(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_broken_field_is_found_out_and_the_line_goes_on),
                cmocka_unit_test(test_a_sound_map_is_kept),
                cmocka_unit_test(test_a_forgetting_cut_short_is_finished),
                cmocka_unit_test(test_a_map_that_others_use_is_not_judged),
                cmocka_unit_test(test_whatever_lies_there_nobody_falls_over_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
