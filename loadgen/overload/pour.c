/* loadgen/overload/pour.c - requests at a rate of our own choice, whatever the
 * server makes of them.
 *
 *   pour PORT CA PATH CONNECTIONS NEWCOMERS PHASE...
 *
 * A phase is RATE:SECONDS, so many requests a second spread evenly over the
 * connections, ten at a time, or mN:SECONDS, N under way on each connection at all times. Each
 * request is due at an instant fixed beforehand, and its time runs from then on:
 * a server that makes others wait pays for it, and so does this program when it
 * is late itself (`lag_ms`). What is due on a connection that is not open is
 * `unsent`. A connection that was refused or sent away is tried again after
 * 1 to 2 s, as Retry-After says, with a ticket if it ever was open. NEWCOMERS a
 * second come with a handshake, one request, and go; their time runs from the
 * first SYN.
 *
 * Standard output: one line {"begin": i} when phase i begins, and one more at
 * the end, then one with {"phases": […]}: times in ms. Exit 0 when done,
 * 1 when the connections could not be opened, 2 for wrong words.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/overload/pipe.h"
#include "loadgen/overload/tally.h"

#define TICK_MS 2
#define AROUND 40u /* connections that are looked after in a tick */
#define TICKS_NEWCOMERS 5
#define BURST 10u /* requests that a connection asks at once */
#define SECOND_US 1000000
#define PATIENCE_US SECOND_US /* for a free stream */
#define NEWCOMER_PATIENCE_US (3 * SECOND_US)
#define OPENING_US (30 * (int64_t)SECOND_US)
#define NEWCOMERS 512u         /* at a time */
#define NEWCOMERS_RATE_MAX 128 /* a second */
#define PHASES 8
#define CONNECTIONS_MAX 20000

struct phase {
        double rate;        /* 0: closed */
        uint32_t in_flight; /* of a closed one */
        int64_t seconds;
};

struct shopper {
        struct pipe pipe;
        uint64_t asked;  /* requests of this phase that were sent or given up */
        uint64_t wanted; /* that are due */
        int64_t due_us;  /* a newcomer: began; a resident: tries again */
};

static struct {
        struct pipe_shared shared;
        struct shopper *residents, *newcomers;
        uint32_t n_residents, n_open, n_phases;
        double newcomers_per_s;
        uint64_t n_newcomers, n_bursts; /* of this phase */
        struct phase phases[PHASES];
        struct tally tallies[PHASES];
        uint32_t now; /* the phase */
        uint32_t ticks, next_around;
        bool is_begun;
        int64_t ticked_us, opening_us;
        struct loop_timer tick;
        uint32_t seed;
        int result;
} all;

static struct shopper *shopper_of(struct pipe *p) {
        return NET_CONTAINER_OF(p, struct shopper, pipe);
}

static bool is_newcomer(const struct shopper *s) {
        return s >= all.newcomers && s < all.newcomers + NEWCOMERS;
}

static struct tally *tally_now(void) {
        return &all.tallies[all.now];
}

/* The phase in which it was due. */
static struct tally *tally_of(int64_t due_us) {
        uint32_t i = all.now;
        while (i > 0 && due_us < all.tallies[i].base_us)
                i--;
        return &all.tallies[i];
}

static struct tally_doors *doors_of(const struct shopper *s) {
        return is_newcomer(s) ? &tally_now()->newcomers : &tally_now()->residents;
}

static int64_t backoff_us(void) {
        all.seed = all.seed * 1664525u + 1013904223u;
        return SECOND_US + (int64_t)(all.seed >> 8) % SECOND_US;
}

/* ---- the schedule ---- */

static int64_t burst_due_at(uint64_t burst) {
        double nth = (double)(burst * BURST);
        return tally_now()->base_us + (int64_t)(nth * SECOND_US / all.phases[all.now].rate);
}

/* Sends what is due, as far as there is room; what has waited for too long, or has
 * no connection, is given up. */
static void ask_due(struct shopper *s, int64_t now_us) {
        struct tally *t = tally_now();
        for (; s->asked < s->wanted; s->asked++) {
                uint64_t burst = s->asked / BURST * all.n_residents + (uint64_t)(s - all.residents);
                int64_t due_us = burst_due_at(burst);
                if (s->pipe.state == PIPE_OPEN && !pipe_ask(&s->pipe, due_us)) {
                        if (now_us - due_us <= PATIENCE_US)
                                break;
                        t->given_up++;
                } else if (s->pipe.state != PIPE_OPEN) {
                        t->unsent++;
                }
                t->offered++;
        }
}

/* ---- what the pipes tell ---- */

static void on_answer(struct pipe *p, int status, int64_t due_us) {
        struct tally *t = tally_of(due_us);
        int64_t now_us = loop_clock_us(), took_us = now_us - due_us;
        bool is_good = status != 0 && status != 503;
        if (is_good)
                lg_histogram_add(is_newcomer(shopper_of(p)) ? &t->newcomers_us : &t->good_us,
                                 (uint64_t)took_us);
        else if (status == 503)
                lg_histogram_add(&t->shed_us, (uint64_t)took_us);
        t->shed += status == 503;
        t->reset += status == 0;
        if (!is_good)
                tally_refused(tally_now(), now_us);
        else if (took_us > TALLY_LATE_US && !is_newcomer(shopper_of(p)))
                tally_late(tally_now(), now_us);
        else
                tally_good(tally_now(), now_us);
}

static void fill(struct pipe *p) {
        const struct phase *ph = &all.phases[all.now];
        int64_t now_us = loop_clock_us();
        while (ph->rate == 0 && all.is_begun && p->in_flight < ph->in_flight && pipe_ask(p, now_us))
                tally_now()->offered++;
}

static void on_read(struct pipe *p) {
        struct shopper *s = shopper_of(p);
        if (is_newcomer(s) && p->in_flight == 0)
                pipe_close(p);
        else if (!is_newcomer(s) && all.phases[all.now].rate == 0)
                fill(p);
        else if (!is_newcomer(s))
                ask_due(s, loop_clock_us());
}

static void on_open(struct pipe *p) {
        struct shopper *s = shopper_of(p);
        doors_of(s)->opened++;
        if (is_newcomer(s))
                (void)pipe_ask(p, s->due_us);
        else
                all.n_open++;
}

static void on_end(struct pipe *p, enum pipe_end how) {
        struct shopper *s = shopper_of(p);
        struct tally_doors *d = doors_of(s);
        int64_t now_us = loop_clock_us();
        d->refused += how == PIPE_REFUSED;
        d->left += how == PIPE_LEFT;
        d->lost += how == PIPE_LOST;
        if (how != PIPE_LEFT)
                tally_refused(tally_now(), now_us);
        if (!is_newcomer(s))
                s->due_us = now_us + backoff_us();
}

/* ---- the ticks ---- */

static void reopen(struct shopper *s, int64_t now_us) {
        if (s->pipe.state != PIPE_CLOSED || now_us < s->due_us)
                return;
        tally_now()->residents.tried++;
        if (pipe_open(&s->pipe, &all.shared) != 0)
                s->due_us = now_us + backoff_us();
}

/* What has become due, to whose turn it is. */
static void bursts_ask(int64_t now_us, int64_t until_us) {
        while (burst_due_at(all.n_bursts) < until_us) {
                struct shopper *s = &all.residents[all.n_bursts++ % all.n_residents];
                s->wanted += BURST;
                ask_due(s, now_us);
                pipe_flush(&s->pipe);
        }
}

static void newcomer_comes(struct shopper *s, int64_t now_us) {
        struct tally_doors *d = &tally_now()->newcomers;
        d->tried++;
        s->due_us = now_us;
        if (pipe_open(&s->pipe, &all.shared) != 0)
                d->lost++;
}

static void newcomers_tick(int64_t now_us) {
        struct tally *t = tally_now();
        uint64_t due = (uint64_t)((double)(now_us - t->base_us) * all.newcomers_per_s / SECOND_US);
        for (uint32_t i = 0; i < NEWCOMERS; i++) {
                struct shopper *s = &all.newcomers[i];
                if (s->pipe.state != PIPE_CLOSED && now_us - s->due_us > NEWCOMER_PATIENCE_US) {
                        t->newcomers.waiting++;
                        tally_refused(t, now_us);
                        pipe_close(&s->pipe);
                } else if (s->pipe.state == PIPE_CLOSED && all.n_newcomers < due) {
                        all.n_newcomers++;
                        newcomer_comes(s, now_us);
                }
        }
}

/* ---- phases ---- */

/* The one after the last is the end. */
static void phase_begin(uint32_t i, int64_t now_us) {
        printf("{\"begin\":%u}\n", i);
        (void)fflush(stdout);
        if (i == all.n_phases) {
                loop_stop(all.shared.loop);
                return;
        }
        all.now = i;
        all.is_begun = true;
        all.n_newcomers = all.n_bursts = 0;
        tally_now()->base_us = now_us;
        for (uint32_t k = 0; k < all.n_residents; k++) {
                all.residents[k].asked = all.residents[k].wanted = 0;
                fill(&all.residents[k].pipe);
        }
}

/* What is due and still not sent has been refused its turn. */
static void phase_end(void) {
        struct tally *t = tally_now();
        for (uint32_t i = 0; i < all.n_residents; i++) {
                t->given_up += all.residents[i].wanted - all.residents[i].asked;
                t->offered += all.residents[i].wanted - all.residents[i].asked;
        }
}

static void all_open(int64_t now_us) {
        if (all.n_open == all.n_residents) {
                phase_begin(0, now_us);
                all.ticked_us = now_us;
        } else if (now_us > all.opening_us) {
                fprintf(stderr, "pour: %u of %u connections opened\n", all.n_open, all.n_residents);
                all.result = 1;
                loop_stop(all.shared.loop);
        }
}

/* Some of them: closing and opening takes a while, and must not make this late. */
static void go_around(int64_t now_us) {
        for (uint32_t i = 0; i < all.n_residents && i < AROUND; i++) {
                struct shopper *s = &all.residents[all.next_around++ % all.n_residents];
                (void)pipe_leave(&s->pipe);
                reopen(s, now_us);
                ask_due(s, now_us);
                pipe_flush(&s->pipe);
        }
        if (all.ticks++ % TICKS_NEWCOMERS == 0)
                newcomers_tick(now_us);
}

static void phases_tick(int64_t now_us) {
        const struct phase *ph = &all.phases[all.now];
        int64_t end_us = tally_now()->base_us + ph->seconds * SECOND_US;
        lg_histogram_add(&tally_now()->lag_us, (uint64_t)(now_us - all.ticked_us));
        all.ticked_us = now_us;
        if (ph->rate > 0)
                bursts_ask(now_us, now_us < end_us ? now_us : end_us);
        go_around(now_us);
        if (now_us >= end_us) {
                phase_end();
                phase_begin(all.now + 1, end_us);
        }
}

static void on_tick(struct loop_timer *timer) {
        int64_t now_us = loop_clock_us();
        if (all.is_begun)
                phases_tick(now_us);
        else
                for (uint32_t i = 0; i < all.n_residents; i++)
                        reopen(&all.residents[i], now_us);
        if (!all.is_begun)
                all_open(now_us);
        loop_timer_start(timer, TICK_MS);
}

/* ---- words ---- */

static bool number_read(const char *text, double most, char end, double *out) {
        char *rest;
        *out = strtod(text, &rest);
        return rest != text && *rest == end && *out >= 0 && *out <= most;
}

static bool phase_read(const char *word, struct phase *ph) {
        double first, seconds;
        const char *colon = strchr(word, ':');
        bool is_closed = *word == 'm';
        if (!colon || !number_read(word + is_closed, is_closed ? PIPE_STREAMS : 1e8, ':', &first) ||
            !number_read(colon + 1, 60, '\0', &seconds) || first < 1 || seconds < 1)
                return false;
        *ph = (struct phase){.rate = is_closed ? 0 : first,
                             .in_flight = is_closed ? (uint32_t)first : 0,
                             .seconds = (int64_t)seconds};
        return true;
}

static bool words_read(int argc, char **argv) {
        double port, connections;
        if (argc < 7 || argc > 6 + PHASES || !number_read(argv[1], 65535, '\0', &port) ||
            strlen(argv[3]) > 126 || !number_read(argv[4], CONNECTIONS_MAX, '\0', &connections) ||
            connections < 1 ||
            !number_read(argv[5], NEWCOMERS_RATE_MAX, '\0', &all.newcomers_per_s))
                return false;
        for (; all.n_phases < (uint32_t)argc - 6; all.n_phases++)
                if (!phase_read(argv[6 + all.n_phases], &all.phases[all.n_phases]))
                        return false;
        all.n_residents = (uint32_t)connections;
        all.shared.server = (struct sockaddr_in){.sin_family = AF_INET,
                                                 .sin_port = htons((uint16_t)port),
                                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        pipe_request(&all.shared, argv[3]);
        return true;
}

static bool all_made(const char *ca) {
        char why[256] = "";
        const struct tls_client_conf tls = {.ca_file = ca, .alpn = TLS_ALPN_H2, .resume = true};
        if (tls_client_new(&tls, &all.shared.tls, why, sizeof why) != 0)
                fprintf(stderr, "pour: %s\n", why);
        all.shared.loop = loop_new();
        all.residents = calloc(all.n_residents, sizeof *all.residents);
        all.newcomers = calloc(NEWCOMERS, sizeof *all.newcomers);
        all.shared.on_answer = on_answer;
        all.shared.on_read = on_read;
        all.shared.on_open = on_open;
        all.shared.on_end = on_end;
        return all.shared.tls && all.shared.loop && all.residents && all.newcomers;
}

static void all_ended(void) {
        for (uint32_t i = 0; i < all.n_residents; i++)
                pipe_close(&all.residents[i].pipe);
        for (uint32_t i = 0; i < NEWCOMERS; i++)
                pipe_close(&all.newcomers[i].pipe);
        loop_timer_cancel(&all.tick);
        loop_free(&all.shared.loop);
        tls_context_free(&all.shared.tls);
        free(all.residents);
        free(all.newcomers);
}

int main(int argc, char **argv) {
        if (!words_read(argc, argv)) {
                fprintf(stderr, "usage: pour PORT CA PATH CONNECTIONS NEWCOMERS "
                                "RATE:SECONDS|mN:SECONDS...\n");
                return 2;
        }
        (void)signal(SIGPIPE, SIG_IGN);
        if (!all_made(argv[2]))
                return 1;
        all.seed = (uint32_t)loop_clock_us();
        all.opening_us = loop_clock_us() + OPENING_US;
        loop_timer_init(all.shared.loop, &all.tick, on_tick);
        loop_timer_start(&all.tick, 0);
        loop_run(all.shared.loop);
        for (uint32_t i = 0; i < all.n_phases && all.result == 0; i++) {
                printf(i == 0 ? "{\"phases\":[" : ",");
                tally_print(&all.tallies[i], all.phases[i].rate, all.phases[i].seconds);
        }
        if (all.result == 0)
                printf("]}\n");
        all_ended();
        return all.result;
}
