#include "loadgen/strategies/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/loop.h"

#define LOOK_US 500 /* between two looks at the others */
#define PATIENCE_US INT64_C(30000000)

struct tally {
        uint64_t sold, gave_up, retries, locks, held_us;
        int64_t last_us;
        struct lg_histogram took;
};

/* Mapped by all, so that what a killed buyer counted remains. */
struct board {
        _Atomic uint32_t ready, ended;
        _Atomic int64_t begin_us; /* 0: not yet */
        struct tally tallies[LG_CREW_MAX];
};

struct place {
        struct board *board;
        int64_t end_us;
        uint64_t most; /* sales; half of the stock is not touched */
};

static void nap(void) {
        (void)usleep(LOOK_US);
}

static void note(struct tally *t, struct lg_buyer *b, enum lg_sale_end end, int64_t asked_us) {
        uint32_t sales = b->way->sales ? b->way->sales : 1;
        int64_t now_us = loop_clock_us();
        if (end == LG_SALE_SOLD) {
                t->sold += sales;
                t->last_us = now_us;
                lg_histogram_add(&t->took, (uint64_t)(now_us - asked_us));
        }
        t->gave_up += end == LG_SALE_GAVE_UP;
        t->retries = b->retries;
        t->locks = b->locks;
        t->held_us = b->held_us;
}

/* Between the two steps of its last sale, which is where it ends. */
static void stay_if_over(struct lg_buyer *b) {
        struct place *p = b->owner;
        if (loop_clock_us() < p->end_us && b->serial < p->most)
                return;
        atomic_fetch_add(&p->board->ended, 1);
        for (;;)
                nap();
}

/* What a connection's process does; returns its exit code. */
static int serve(const struct lg_crew *crew, struct board *board, uint32_t number) {
        struct lg_buyer b = {.way = crew->way, .item = crew->item, .number = crew->first + number};
        struct place place = {.board = board,
                              .most = (uint64_t)crew->units / crew->connections / 2};
        enum lg_sale_end end = LG_SALE_SOLD;
        int64_t begin_us;
        if (lg_buyer_open(&b, crew->servers->postgres, crew->servers->redis) != 0)
                return 1;
        atomic_fetch_add(&board->ready, 1);
        while ((begin_us = atomic_load(&board->begin_us)) == 0)
                nap();
        place.end_us = begin_us + crew->seconds * 1000000;
        b.owner = &place;
        b.between = crew->is_killed ? stay_if_over : NULL;
        /* One at least, however late the machine lets us begin. */
        while ((b.serial == 0 || crew->is_killed || loop_clock_us() < place.end_us) &&
               end != LG_SALE_REFUSED && end != LG_SALE_BROKEN &&
               (crew->most == 0 || b.serial < crew->most)) {
                int64_t asked_us = loop_clock_us();
                b.serial++;
                end = crew->way->sell(&b);
                note(&board->tallies[number], &b, end, asked_us);
        }
        atomic_fetch_add(&board->ended, 1);
        lg_buyer_close(&b);
        return end == LG_SALE_BROKEN;
}

/* True once `count` is `n`; false when that takes too long. */
static bool comes_to(const _Atomic uint32_t *count, uint32_t n, int64_t patience_us) {
        int64_t until_us = loop_clock_us() + patience_us;
        while (atomic_load(count) < n && loop_clock_us() < until_us)
                nap();
        return atomic_load(count) == n;
}

/* The exit codes of all, added up; those that we killed count as 0. */
static int wait_all(const pid_t *pids, uint32_t n) {
        int bad = 0;
        for (uint32_t i = 0; i < n; i++) {
                int status = 0;
                while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
                        ;
                bad += WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        }
        return bad;
}

static void kill_all(const pid_t *pids, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                (void)kill(pids[i], SIGKILL);
}

static uint32_t start_all(const struct lg_crew *crew, struct board *board, pid_t *pids) {
        pid_t us = getpid();
        for (uint32_t i = 0; i < crew->connections; i++) {
                pids[i] = fork();
                if (pids[i] < 0)
                        return i;
                if (pids[i] == 0) {
                        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                        _exit(getppid() == us ? serve(crew, board, i) : 1);
                }
        }
        return crew->connections;
}

static void add_up(const struct lg_crew *crew, const struct board *board, struct lg_sales *out) {
        int64_t last_us = 0, begin_us = atomic_load(&board->begin_us);
        *out = (struct lg_sales){.sold = 0};
        for (uint32_t i = 0; i < crew->connections; i++) {
                const struct tally *t = &board->tallies[i];
                out->sold += t->sold;
                out->gave_up += t->gave_up;
                out->retries += t->retries;
                out->locks += t->locks;
                out->held_us += t->held_us;
                last_us = t->last_us > last_us ? t->last_us : last_us;
                lg_histogram_merge(&out->took, &t->took);
        }
        out->seconds = last_us > begin_us ? (double)(last_us - begin_us) / 1e6 : 0;
}

int lg_crew_run(const struct lg_crew *crew, struct lg_sales *out) {
        pid_t pids[LG_CREW_MAX];
        struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert(crew->connections >= 1 && crew->connections <= LG_CREW_MAX);
        if (board == MAP_FAILED) {
                fprintf(stderr, "sluice-load: out of memory\n");
                return 1;
        }
        (void)fflush(NULL);
        uint32_t n = start_all(crew, board, pids);
        bool good = n == crew->connections && comes_to(&board->ready, n, PATIENCE_US);
        atomic_store(&board->begin_us, loop_clock_us());
        if (good && crew->is_killed)
                good = comes_to(&board->ended, n, crew->seconds * 1000000 + PATIENCE_US);
        if (!good || crew->is_killed)
                kill_all(pids, n);
        int bad = wait_all(pids, n);
        add_up(crew, board, out);
        (void)munmap(board, sizeof(*board));
        if (!good && bad == 0)
                fprintf(stderr, "sluice-load: %s: not all buyers came in time\n", crew->way->name);
        return bad != 0 || !good;
}
