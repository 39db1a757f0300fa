/* The shared map: what survives a restart, kill -9, a lost or foreign file,
 * and many threads at once. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "adm_world.h"

static void map_path(const struct world *w, const char *tail, char *out, size_t size) {
        (void)snprintf(out, size, "%s/admission.map%s", w->dir, tail);
}

static int open_second(const struct world *w, struct adm_store **out) {
        return adm_store_open(&w->conf, w->now_ms, out);
}

static void test_restart_loses_no_number_and_no_slot(void **state) {
        (void)state;
        struct world w = {0};
        struct shopper s[10];
        world_open(&w, 3);
        for (uint32_t i = 0; i < 10; i++) {
                s[i] = world_shopper(i, false);
                assert_int_equal(world_join(&w, &s[i]), 0);
        }
        assert_int_equal(world_use(&w, &s[0]), 0);
        assert_int_equal(world_hold(&w, &s[1], 1, w.now_ms + 60000), 0);
        struct adm_view before = world_view(&w);
        assert_int_equal(world_reopen(&w), 0);
        struct adm_view after = world_view(&w);
        assert_int_equal(after.passes_outstanding, before.passes_outstanding);
        assert_int_equal(after.passes_active, before.passes_active);
        assert_int_equal(after.passes_issued_total, 3);
        assert_int_equal(after.last_number, 10);
        assert_int_equal(after.line_waiting, before.line_waiting);
        for (uint32_t i = 3; i < 10; i++) {
                assert_int_equal(world_poll(&w, &s[i]), 0);
                assert_int_equal(s[i].place.position, i - 2);
        }
        struct shopper again = world_shopper(0, false);
        assert_int_equal(world_join(&w, &again), 0);
        assert_int_equal(again.place.state, ADM_ADMITTED);
        assert_memory_equal(again.pass.jti, s[0].pass.jti, ADM_JTI_LEN);
        struct shopper next = world_shopper(10, false);
        assert_int_equal(world_join(&w, &next), 0);
        assert_int_equal(next.ticket.key, s[9].ticket.key + 1);
        world_close(&w);
}

static void test_two_processes_share_one_truth(void **state) {
        (void)state;
        struct world w = {0};
        struct adm_store *second = NULL, *first;
        world_open(&w, 1);
        assert_int_equal(open_second(&w, &second), 0);
        uint32_t sale = 0;
        assert_int_equal(adm_store_find(second, "demo", &sale), 0);
        assert_int_equal(sale, w.sale);
        assert_int_equal(adm_store_find(second, "other", &sale), ADM_NO_SALE);
        struct shopper a = world_shopper(1, false), b = world_shopper(2, false);
        assert_int_equal(world_join(&w, &a), 0);
        assert_int_equal(a.place.state, ADM_ADMITTED);
        first = w.store;
        w.store = second;
        assert_int_equal(world_join(&w, &b), 0);
        assert_int_equal(b.place.state, ADM_WAITING);
        assert_int_equal(world_use(&w, &a), 0);
        /* The old process goes; the new one has everything. */
        adm_store_close(&first);
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(world_view(&w).passes_outstanding, 1);
        world_close(&w);
}

static void test_foreign_file_is_refused_and_left_alone(void **state) {
        (void)state;
        struct world w = {0};
        char path[128], text[32] = {0};
        world_open(&w, 1);
        adm_store_close(&w.store);
        map_path(&w, "", path, sizeof(path));
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs("somebody else's work", f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(adm_store_open(&w.conf, w.now_ms, &w.store), ADM_MAP_FOREIGN);
        f = fopen(path, "r");
        assert_non_null(f);
        assert_non_null(fgets(text, sizeof(text), f));
        assert_int_equal(fclose(f), 0);
        assert_string_equal(text, "somebody else's work");
        world_close(&w);
}

static void test_other_format_is_refused(void **state) {
        (void)state;
        struct world w = {0};
        char path[128];
        uint32_t odd = 9999;
        world_open(&w, 1);
        adm_store_close(&w.store);
        map_path(&w, "", path, sizeof(path));
        int fd = open(path, O_RDWR);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, &odd, sizeof(odd), 8), sizeof(odd));
        assert_int_equal(close(fd), 0);
        assert_int_equal(adm_store_open(&w.conf, w.now_ms, &w.store), ADM_MAP_FOREIGN);
        world_close(&w);
}

static void test_conf_out_of_range(void **state) {
        (void)state;
        struct adm_store *s = NULL;
        struct adm_store_conf c = {
                .dir = "/tmp", .max_sales = 1, .max_numbers = 1, .max_accounts = 1};
        struct adm_store_conf bad = c;
        bad.dir = NULL;
        assert_int_equal(adm_store_open(&bad, 0, &s), -EINVAL);
        bad = c;
        bad.max_sales = 1025;
        assert_int_equal(adm_store_open(&bad, 0, &s), -EINVAL);
        bad = c;
        bad.max_numbers = 16000001;
        assert_int_equal(adm_store_open(&bad, 0, &s), -EINVAL);
        bad = c;
        bad.max_accounts = 0;
        assert_int_equal(adm_store_open(&bad, 0, &s), -EINVAL);
        bad = c;
        bad.dir = "/tmp/adm-there-is-no-such-folder";
        assert_int_equal(adm_store_open(&bad, 0, &s), -ENOENT);
        assert_null(s);
        adm_store_close(&s);
}

static void test_other_sizes_wait_for_the_last_user(void **state) {
        (void)state;
        struct world w = {0};
        struct adm_store *second = NULL;
        world_open(&w, 1);
        struct adm_store_conf bigger = w.conf;
        bigger.max_numbers *= 2;
        assert_int_equal(adm_store_open(&bigger, w.now_ms, &second), ADM_MAP_SHAPE);
        w.conf = bigger;
        assert_int_equal(world_reopen(&w), 0);
        assert_int_equal(world_view(&w).epoch, 2);
        char path[128];
        struct stat st;
        map_path(&w, ".old", path, sizeof(path));
        assert_int_equal(stat(path, &st), 0);
        world_close(&w);
}

/* Tickets and passes of a map that is gone, by `how`. */
static void lose_map(struct world *w, int how) {
        char path[128];
        struct stat st;
        map_path(w, "", path, sizeof(path));
        adm_store_close(&w->store);
        assert_int_equal(stat(path, &st), 0);
        assert_true((int64_t)st.st_blocks * 512 < st.st_size);
        if (how == 0)
                assert_int_equal(truncate(path, st.st_size / 2), 0);
        else if (how == 1)
                assert_int_equal(truncate(path, 5), 0);
        else
                assert_int_equal(unlink(path), 0);
        w->now_ms += 60000;
        assert_int_equal(adm_store_open(&w->conf, w->now_ms, &w->store), 0);
        world_tell(w);
}

static void test_lost_map_keeps_places_and_registers_passes(void **state) {
        (void)state;
        for (int how = 0; how < 3; how++) {
                struct world w = {0};
                struct shopper s[8];
                world_open(&w, 2);
                for (uint32_t i = 0; i < 8; i++) {
                        s[i] = world_shopper(i, false);
                        assert_int_equal(world_join(&w, &s[i]), 0);
                }
                assert_int_equal(world_use(&w, &s[0]), 0);
                assert_int_equal(world_use(&w, &s[1]), 0);
                assert_int_equal(world_hold(&w, &s[1], 1, w.now_ms + 600000), 0);
                lose_map(&w, how);
                struct shopper late = world_shopper(50, false);
                assert_int_equal(world_join(&w, &late), 0);
                assert_int_equal(late.place.state, ADM_WAITING); /* 4 s */
                assert_true(late.ticket.key > s[7].ticket.key);
                /* The live passes come forward and take their slots. */
                assert_int_equal(world_use(&w, &s[0]), 0);
                assert_int_equal(world_use(&w, &s[1]), 0);
                assert_int_equal(s[1].pass.life, ADM_PASS_HOLDER);
                assert_int_equal(world_view(&w).passes_outstanding, 1);
                world_pass(&w, 4100);
                for (uint32_t i = 7; i >= 4; i--)
                        assert_int_equal(world_poll(&w, &s[i]), 0);
                world_pass(&w, 100);
                assert_int_equal(world_poll(&w, &late), 0);
                assert_int_equal(late.place.position, 5 < late.ticket.ahead + 1 ? 5 : 1);
                struct adm_shown p = world_shown(&s[0]);
                struct adm_hold_end e = {.qty = 1};
                assert_int_equal(adm_store_hold_begin(w.store, w.sale, &p, 1, w.now_ms), 0);
                assert_int_equal(adm_store_hold_end(w.store, w.sale, &p, &e, w.now_ms, &s[0].pass),
                                 0);
                world_stock(&w, 3, 1, 0); /* one slot taken: two free */
                world_pass(&w, 100);
                assert_int_equal(world_poll(&w, &s[6]), 0);
                assert_int_equal(s[6].place.state, ADM_WAITING);
                assert_int_equal(world_poll(&w, &s[4]), 0);
                assert_int_equal(s[4].place.state, ADM_READY);
                assert_int_equal(world_join(&w, &s[5]), 0);
                assert_int_equal(s[5].place.state, ADM_ADMITTED);
                world_close(&w);
        }
}

static void test_old_ticket_beats_a_new_place_of_the_same_account(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        struct shopper first = world_shopper(1, false), a = world_shopper(2, false);
        assert_int_equal(world_join(&w, &first), 0);
        assert_int_equal(world_join(&w, &a), 0);
        uint64_t old = a.ticket.key;
        lose_map(&w, 2);
        struct shopper elsewhere = world_shopper(2, false);
        assert_int_equal(world_join(&w, &elsewhere), 0);
        assert_int_not_equal(elsewhere.ticket.key, old);
        assert_int_equal(world_join(&w, &a), 0);
        assert_int_equal(a.ticket.key, old);
        assert_int_equal(world_poll(&w, &elsewhere), 0);
        assert_int_equal(elsewhere.ticket.key, old);
        assert_int_equal(world_view(&w).line_waiting, 1);
        world_close(&w);
}

static void test_sales_come_and_go(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        struct shopper a = world_shopper(1, false);
        assert_int_equal(world_join(&w, &a), 0);
        uint32_t old = w.sale, sale[4];
        struct adm_sale_update u = w.update;
        for (int i = 0; i < 3; i++) {
                (void)snprintf(u.facts.id, sizeof(u.facts.id), "sale-%d", i);
                assert_int_equal(adm_store_sale(w.store, &u, w.now_ms, &sale[i]), 0);
        }
        (void)snprintf(u.facts.id, sizeof(u.facts.id), "one-too-many");
        assert_int_equal(adm_store_sale(w.store, &u, w.now_ms, &sale[3]), ADM_SALES_FULL);
        (void)snprintf(u.facts.id, sizeof(u.facts.id), "Bad");
        assert_int_equal(adm_store_sale(w.store, &u, w.now_ms, &sale[3]), ADM_BAD_SALE);
        adm_store_forget_sale(w.store, w.sale);
        adm_store_forget_sale(w.store, w.sale);
        struct adm_place p;
        assert_int_equal(world_join(&w, &a), ADM_NO_SALE);
        assert_int_equal(world_poll(&w, &a), ADM_NO_SALE);
        assert_int_equal(world_use(&w, &a), ADM_NO_SALE);
        assert_int_equal(adm_store_look(w.store, w.sale, 0, w.now_ms, &p), ADM_NO_SALE);
        assert_int_equal(adm_store_look(w.store, 0, 0, w.now_ms, &p), ADM_NO_SALE);
        assert_int_equal(adm_store_look(w.store, UINT32_MAX, 0, w.now_ms, &p), ADM_NO_SALE);
        adm_store_leave(w.store, w.sale, &a.tag, w.now_ms);
        (void)snprintf(u.facts.id, sizeof(u.facts.id), "fresh");
        assert_int_equal(adm_store_sale(w.store, &u, w.now_ms, &sale[3]), 0);
        assert_int_not_equal(sale[3], old);
        assert_int_equal(world_join(&w, &a), ADM_NO_SALE); /* the old handle */
        w.sale = sale[3];
        assert_int_equal(world_poll(&w, &a), ADM_NO_PLACE); /* the old ticket */
        a.has_ticket = false;
        assert_int_equal(world_join(&w, &a), 0);
        assert_int_equal(a.place.state, ADM_ADMITTED);
        assert_int_equal(world_view(&w).last_number, 1);
        world_close(&w);
}

static void test_older_facts_change_nothing(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 5);
        w.update.facts.version = 5;
        w.update.facts.paused = true;
        world_tell(&w);
        struct adm_sale_update old = w.update;
        uint32_t sale = 0;
        old.facts.version = 4;
        old.facts.paused = false;
        assert_int_equal(adm_store_sale(w.store, &old, w.now_ms, &sale), ADM_STALE);
        assert_int_equal(sale, w.sale);
        assert_int_equal(world_view(&w).state, ADM_SALE_PAUSED);
        /* A failover lost the change: what the new primary says is true. */
        old.facts.stock.timeline++;
        assert_int_equal(adm_store_sale(w.store, &old, w.now_ms, &sale), 0);
        assert_int_equal(world_view(&w).state, ADM_SALE_OPEN);
        world_close(&w);
}

static void test_time_never_runs_backwards(void **state) {
        (void)state;
        struct world w = {0};
        world_open(&w, 1);
        struct shopper a = world_shopper(1, false), b = world_shopper(2, false);
        assert_int_equal(world_join(&w, &a), 0);
        assert_int_equal(world_join(&w, &b), 0);
        w.now_ms -= 3600000;
        assert_int_equal(world_poll(&w, &b), 0);
        assert_int_equal(b.place.position, 1);
        assert_int_equal(world_use(&w, &a), 0);
        assert_int_equal(a.pass.exp_ms, WORLD_T0 + 300000);
        w.now_ms += 3600000;
        world_close(&w);
}

/* ---- kill -9 ---- */

/* The race detector makes a fork dear. */
#ifdef __SANITIZE_THREAD__
#define KILLS 30
#else
#define KILLS 150
#endif
#define CROWD 400

struct told {
        struct shopper s[CROWD]; /* what each was told last */
        uint32_t pending;        /* in whose name something is under way */
        uint64_t n;              /* version of the stock */
        int64_t available;
        int64_t cut_short;
        _Atomic uint64_t calls;
};

static void act(struct world *w, struct told *t, uint32_t who) {
        struct shopper s = t->s[who];
        uint64_t dice = world_random(w) % 100;
        t->pending = who;
        atomic_signal_fence(memory_order_seq_cst);
        if (dice < 40 || !s.has_ticket) {
                assert_int_equal(world_join(w, &s), 0);
        } else if (dice < 60) {
                assert_int_equal(world_poll(w, &s), 0);
        } else if (dice < 70 && s.has_pass) {
                assert_int_equal(world_use(w, &s), 0);
        } else if (dice < 80 && s.has_pass && s.pass.life == ADM_PASS_USED) {
                struct adm_shown p = world_shown(&s);
                struct adm_hold_end e = {.qty = 1,
                                         .held = true,
                                         .hold_end_ms = w->now_ms + 6000000,
                                         .has_stock = true,
                                         .timeline = 1,
                                         .n = ++t->n,
                                         .available = --t->available};
                assert_int_equal(adm_store_hold_begin(w->store, w->sale, &p, 1, w->now_ms), 0);
                assert_int_equal(adm_store_hold_end(w->store, w->sale, &p, &e, w->now_ms, &s.pass),
                                 0);
        } else if (dice < 85) {
                adm_store_tick(w->store, w->now_ms);
        }
        t->s[who] = s;
        atomic_signal_fence(memory_order_seq_cst);
        t->pending = UINT32_MAX;
        t->calls++;
}

static void victim(struct world *w, struct told *t, uint64_t seed) {
        w->seed = seed;
        for (;;)
                act(w, t, (uint32_t)(world_random(w) % CROWD));
}

/* Kills it some microseconds after its `calls`th call, wherever it is. */
static void kill_after(pid_t pid, const struct told *t, uint64_t calls, uint64_t us) {
        struct timespec step = {.tv_nsec = 20000}, ts = {.tv_nsec = (long)us * 1000};
        while (atomic_load(&t->calls) < calls)
                (void)nanosleep(&step, NULL);
        (void)nanosleep(&ts, NULL);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Everything that was told before the kill is still so. */
static void check_told(struct world *w, struct told *t) {
        uint64_t slots = 0, keys[CROWD], n_keys = 0;
        for (uint32_t i = 0; i < CROWD; i++) {
                struct shopper *s = &t->s[i];
                if (!s->has_ticket || i == t->pending)
                        continue;
                uint64_t key = s->ticket.key;
                keys[n_keys++] = key;
                if (s->has_pass) {
                        struct adm_shown p = world_shown(s);
                        struct adm_pass now;
                        assert_int_equal(
                                adm_store_pass_look(w->store, w->sale, &p, w->now_ms, &now), 0);
                        assert_int_equal(now.life, s->pass.life);
                        slots += now.life != ADM_PASS_HOLDER;
                } else {
                        assert_int_equal(world_poll(w, s), 0);
                        assert_int_equal(s->ticket.key, key);
                }
        }
        for (uint64_t i = 0; i < n_keys; i++)
                for (uint64_t k = 0; k < i; k++)
                        assert_int_not_equal(keys[i], keys[k]);
        struct adm_view v = world_view(w);
        assert_in_range(v.passes_outstanding, slots, slots + 1);
        /* A hold cut short has its unit taken out and its slot still in:
         * too much is taken, never too little. */
        t->cut_short += t->pending < CROWD;
        assert_true((int64_t)v.passes_outstanding <= v.stock.available + t->cut_short);
        /* Whoever was interrupted asks again and finds one place. */
        if (t->pending < CROWD) {
                t->s[t->pending].has_ticket = false;
                assert_int_equal(world_join(w, &t->s[t->pending]), 0);
                for (uint64_t i = 0; i < n_keys; i++)
                        assert_int_not_equal(keys[i], t->s[t->pending].ticket.key);
        }
        t->pending = UINT32_MAX;
}

static void test_kill_9_anywhere_loses_nothing(void **state) {
        (void)state;
        struct world w = {.seed = 42};
        struct told *t =
                mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(t != MAP_FAILED);
        world_open(&w, 150);
        w.update.facts.first_use_seconds = 600;
        w.update.facts.pass_seconds = 7200;
        w.update.facts.version++;
        world_tell(&w);
        t->pending = UINT32_MAX;
        for (uint32_t i = 0; i < CROWD; i++)
                t->s[i] = world_shopper(i, false);
        for (int i = 0; i < KILLS; i++) {
                struct adm_view v = world_view(&w);
                t->n = v.stock.n;
                t->available = v.stock.available;
                uint64_t seed = world_random(&w);
                pid_t pid = fork();
                assert_true(pid >= 0);
                if (pid == 0)
                        victim(&w, t, seed);
                kill_after(pid, t, atomic_load(&t->calls) + world_random(&w) % 100,
                           world_random(&w) % 300);
                if (i % 3 == 0) /* what it left is judged by who comes alone */
                        assert_int_equal(world_reopen(&w), 0);
                world_pass(&w, 3100); /* nothing is in flight any more */
                check_told(&w, t);
                if (i % 10 == 9) {
                        struct adm_view was = world_view(&w);
                        w.update.facts.stock = was.stock;
                        assert_int_equal(world_reopen(&w), 0);
                        struct adm_view is = world_view(&w);
                        assert_int_equal(is.passes_outstanding, was.passes_outstanding);
                        assert_int_equal(is.last_number, was.last_number);
                        assert_int_equal(is.line_waiting, was.line_waiting);
                }
        }
        assert_true(t->calls > KILLS);
        world_close(&w);
        assert_int_equal(munmap(t, sizeof(*t)), 0);
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS 1500
#define EACH 100

struct worker {
        struct world w; /* shares the store, has its own dice */
        struct shopper s[EACH];
        uint32_t first;
        uint64_t issued;
        uint64_t risen; /* times that `ahead` rose */
};

static _Atomic bool workers_done;

static void *upkeep(void *arg) {
        struct world *w = arg;
        while (!atomic_load(&workers_done)) {
                adm_store_tick(w->store, w->now_ms);
                (void)world_view(w);
        }
        return NULL;
}

static void *work(void *arg) {
        struct worker *k = arg;
        for (uint32_t i = 0; i < EACH; i++)
                k->s[i] = world_shopper(k->first + i, i % 4 == 0);
        for (int i = 0; i < ROUNDS; i++) {
                struct shopper *s = &k->s[world_random(&k->w) % EACH];
                uint32_t was = s->has_ticket ? s->ticket.ahead : UINT32_MAX;
                int rc = s->has_ticket && i % 4 ? world_poll(&k->w, s) : world_join(&k->w, s);
                assert_int_equal(rc, 0);
                k->issued += s->place.issued;
                k->risen += s->place.has_ticket && s->ticket.ahead > was;
                if (s->has_pass && i % 8 == 0)
                        assert_int_equal(world_use(&k->w, s), 0);
        }
        return NULL;
}

static void test_threads_agree(void **state) {
        (void)state;
        struct world w = {0};
        static struct worker k[THREADS];
        pthread_t t[THREADS], u;
        uint64_t issued = 0, risen = 0;
        world_open(&w, 60);
        atomic_store(&workers_done, false);
        assert_int_equal(pthread_create(&u, NULL, upkeep, &w), 0);
        for (uint32_t i = 0; i < THREADS; i++) {
                k[i] = (struct worker){.w = w, .first = i * EACH};
                k[i].w.seed = 100 + i;
                assert_int_equal(pthread_create(&t[i], NULL, work, &k[i]), 0);
        }
        for (uint32_t i = 0; i < THREADS; i++) {
                assert_int_equal(pthread_join(t[i], NULL), 0);
                issued += k[i].issued;
                risen += k[i].risen;
        }
        atomic_store(&workers_done, true);
        assert_int_equal(pthread_join(u, NULL), 0);
        assert_int_equal(world_view(&w).passes_issued_total, issued);
        /* A guest who has not been back holds the line up: all come back. */
        for (uint32_t i = 0; i < 2 * THREADS * EACH; i++) {
                struct shopper *s = &k[i % THREADS].s[i / THREADS % EACH];
                assert_int_equal(world_join(&w, s), 0);
                issued += s->place.issued;
        }
        assert_int_equal(issued, 60);
        assert_int_equal(risen, 0);
        struct adm_view v = world_view(&w);
        assert_int_equal(v.passes_issued_total, 60);
        assert_int_equal(v.passes_outstanding, 60);
        assert_int_equal(v.line_waiting, THREADS * EACH - 60);
        world_close(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_restart_loses_no_number_and_no_slot),
                cmocka_unit_test(test_two_processes_share_one_truth),
                cmocka_unit_test(test_foreign_file_is_refused_and_left_alone),
                cmocka_unit_test(test_other_format_is_refused),
                cmocka_unit_test(test_conf_out_of_range),
                cmocka_unit_test(test_other_sizes_wait_for_the_last_user),
                cmocka_unit_test(test_lost_map_keeps_places_and_registers_passes),
                cmocka_unit_test(test_old_ticket_beats_a_new_place_of_the_same_account),
                cmocka_unit_test(test_sales_come_and_go),
                cmocka_unit_test(test_older_facts_change_nothing),
                cmocka_unit_test(test_time_never_runs_backwards),
                cmocka_unit_test(test_kill_9_anywhere_loses_nothing),
                cmocka_unit_test(test_threads_agree),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
