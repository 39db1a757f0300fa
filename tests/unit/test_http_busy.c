/* A loop that is asked more than it can answer. Each request to /toil takes a
 * millisecond of work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/h2_frames.h"
#include "tests/unit/server_world.h"

#define CLIENTS 8
#define REQUESTS 100 /* of each client */

static struct world world;

struct client {
        size_t len;
        int fd;
        unsigned good, shed, goaways;
        char bytes[65536];
};

static struct client clients[CLIENTS];

static int setup(void **state) {
        (void)state;
        memset(clients, 0, sizeof clients);
        world_init(&world);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        world_stop(&world);
        return 0;
}

/* Somebody who is closed at once may see that while still sending. */
static void say(const struct client *c, const void *data, size_t n) {
        (void)send(c->fd, data, n, MSG_NOSIGNAL);
}

static void client_knock(struct client *c) {
        static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        struct frames out = {.len = 0};
        c->fd = client_open(&world);
        say(c, preface, sizeof preface - 1);
        frame_settings(&out, 0, 0);
        frame_settings_ack(&out);
        say(c, out.data, out.len);
}

/* The server has taken it: it has said its settings. */
static void client_start(struct client *c) {
        client_knock(c);
        if (recv(c->fd, c->bytes, 1, MSG_PEEK) != 1)
                fail_msg("not taken");
}

/* GETs of one path on the streams from `first` on. */
static void ask(struct client *c, const char *path, int32_t first, int n) {
        static struct frames out;
        char block[128];
        int len = snprintf(block, sizeof block, "\x82\x86\x01\x01%c\x04%c%s", 'a',
                           (int)strlen(path), path);
        out.len = 0;
        for (int i = 0; i < n; i++)
                frame_put(&out, FRAME_HEADERS, FRAME_END_HEADERS | FRAME_END, first + 2 * i,
                          (struct span){block, (size_t)len});
        say(c, out.data, out.len);
}

static void look(struct client *c, const struct frame *f) {
        static const char word[] = "unavailable"; /* of the body of a 503 */
        if (f->type == FRAME_GOAWAY)
                c->goaways++;
        else if (f->type == FRAME_HEADERS && (unsigned char)f->payload.p[0] == 0x88)
                c->good++;
        else if (f->type == FRAME_DATA && memmem(f->payload.p, f->payload.len, word, 11))
                c->shed++;
}

/* Reads until so many answers have come. False: until it was closed. */
static bool answers_take(struct client *c, unsigned n) {
        while (c->good + c->shed < n) {
                ssize_t r = recv(c->fd, c->bytes + c->len, sizeof c->bytes - c->len, 0);
                if (r <= 0)
                        return false;
                c->len += (size_t)r;
                struct span rest = {c->bytes, c->len};
                struct frame f;
                while (frame_take(&rest, &f))
                        look(c, &f);
                memmove(c->bytes, rest.p, rest.len);
                c->len = rest.len;
        }
        return true;
}

static void answers_read(struct client *c, unsigned n) {
        if (!answers_take(c, n))
                fail_msg("closed after %u answers of %u", c->good + c->shed, n);
}

/* The first keeps the loop at work while the others ask. */
static void crowd_asks(void) {
        for (int i = 0; i < CLIENTS; i++)
                client_start(&clients[i]);
        for (int i = 0; i < CLIENTS; i++)
                ask(&clients[i], "/toil", 1, REQUESTS);
        for (int i = 0; i < CLIENTS; i++)
                answers_read(&clients[i], REQUESTS);
}

static void crowd_leaves(void) {
        for (int i = 0; i < CLIENTS; i++)
                close(clients[i].fd);
}

static struct http_server_stats stats_now(void) {
        struct http_server_stats s;
        http_server_stats(world.server, &s);
        return s;
}

static void test_what_is_asked_too_late_in_a_turn_is_503(void **state) {
        (void)state;
        unsigned good = 0, shed = 0;
        world.conf.limits.turn_ms = 20;
        world_start(&world);
        crowd_asks();
        for (int i = 0; i < CLIENTS; i++) {
                good += clients[i].good;
                shed += clients[i].shed;
        }
        assert_int_equal(good + shed, CLIENTS * REQUESTS);
        assert_int_equal(good, atomic_load(&world.requests)); /* nobody was asked for the rest */
        assert_true(good >= 255);
        assert_true(shed >= 100);
        struct http_server_stats s = stats_now();
        assert_int_equal(s.requests_shed, shed);
        crowd_leaves();
}

/* One wave after the other, on the same connections, until one is told to go. */
static void test_who_goes_on_asking_is_sent_away(void **state) {
        (void)state;
        world.conf.limits.turn_ms = 20;
        world_start(&world);
        for (int i = 0; i < CLIENTS; i++)
                client_start(&clients[i]);
        unsigned away = 0;
        for (unsigned wave = 1; wave <= 20 && away == 0; wave++) {
                for (int i = 0; i < CLIENTS; i++)
                        ask(&clients[i], "/toil", (int32_t)(2 * REQUESTS * (wave - 1) + 1),
                            REQUESTS);
                for (int i = 0; i < CLIENTS; i++) {
                        bool is_open = answers_take(&clients[i], REQUESTS * wave);
                        assert_true(is_open || clients[i].goaways > 0);
                        away += clients[i].goaways > 0;
                }
        }
        assert_true(away > 0);
        /* At most half in one turn, and there may have been two. */
        assert_true(stats_now().connections_sent_away >= away);
        crowd_leaves();
}

/* A connection; the server may close it without having read anything. */
static bool is_served(struct client *c) {
        memset(c, 0, sizeof *c);
        client_knock(c);
        ask(c, "/page", 1, 10);
        bool is_good = answers_take(c, 10);
        assert_true(is_good ? c->good + c->shed == 10 : c->good + c->shed + c->goaways == 0);
        return is_good;
}

/* What is asked keeps the loop for a quarter of a second: then whoever knocks is
 * closed at once, and taken again when that is over. */
static void test_newcomers_are_closed_and_then_taken(void **state) {
        (void)state;
        struct client late;
        unsigned closed = 0;
        world.conf.limits.turn_ms = 20;
        world_start(&world);
        for (int wave = 0; wave < 20 && closed == 0; wave++) {
                crowd_asks();
                while (!is_served(&late)) {
                        closed++;
                        close(late.fd);
                }
                close(late.fd);
                crowd_leaves();
                memset(clients, 0, sizeof clients);
        }
        assert_true(closed > 0);
        uint64_t shed = stats_now().requests_shed;
        assert_true(shed > 0);
        assert_true(is_served(&late));
        assert_int_equal(late.good, 10);
        assert_int_equal(stats_now().requests_shed, shed);
        assert_int_equal(stats_now().refused_overload, closed);
        close(late.fd);
}

static void test_a_turn_within_its_time_refuses_nobody(void **state) {
        (void)state;
        world.conf.limits.turn_ms = 60000;
        world_start(&world);
        crowd_asks();
        assert_int_equal(stats_now().requests_shed, 0);
        crowd_leaves();
}

static void test_a_machine_that_was_away_refuses_nobody(void **state) {
        (void)state;
        world.conf.limits.turn_ms = 20;
        world_start(&world);
        for (int i = 0; i < 2; i++)
                client_start(&clients[i]);
        ask(&clients[0], "/nap", 1, 1);
        ask(&clients[0], "/page", 3, 50); /* in the turn that was so long */
        ask(&clients[1], "/page", 1, 50);
        answers_read(&clients[0], 51);
        answers_read(&clients[1], 50);
        assert_int_equal(clients[0].good + clients[1].good, 101);
        assert_int_equal(stats_now().requests_shed, 0);
        for (int i = 0; i < 2; i++)
                close(clients[i].fd);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_what_is_asked_too_late_in_a_turn_is_503),
                T(test_who_goes_on_asking_is_sent_away),
                T(test_newcomers_are_closed_and_then_taken),
                T(test_a_turn_within_its_time_refuses_nobody),
                T(test_a_machine_that_was_away_refuses_nobody),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
