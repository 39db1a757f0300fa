/* A loop that is asked more than it can answer. Each request to /toil takes a
 * millisecond, in which the whole loop stands still. */
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
        int fd;
        size_t len;
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

static void client_start(struct client *c) {
        struct frames out = {.len = 0};
        c->fd = client_open(&world);
        client_say(c->fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        frame_settings(&out, 0, 0);
        frame_settings_ack(&out);
        client_send(c->fd, out.data, out.len);
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
        client_send(c->fd, out.data, out.len);
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

/* Reads until so many answers have come. */
static void answers_read(struct client *c, unsigned n) {
        while (c->good + c->shed < n) {
                ssize_t r = recv(c->fd, c->bytes + c->len, sizeof c->bytes - c->len, 0);
                if (r <= 0)
                        fail_msg("closed after %u answers of %u", c->good + c->shed, n);
                c->len += (size_t)r;
                struct span rest = {c->bytes, c->len};
                struct frame f;
                while (frame_take(&rest, &f))
                        look(c, &f);
                memmove(c->bytes, rest.p, rest.len);
                c->len = rest.len;
        }
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
        unsigned good = 0, shed = 0, away = 0;
        world.conf.limits.turn_ms = 20;
        world_start(&world);
        crowd_asks();
        for (int i = 0; i < CLIENTS; i++) {
                good += clients[i].good;
                shed += clients[i].shed;
                away += clients[i].goaways > 0;
        }
        assert_int_equal(good + shed, CLIENTS * REQUESTS);
        assert_int_equal(good, atomic_load(&world.requests)); /* nobody was asked for the rest */
        assert_true(good >= 255);
        assert_true(shed >= 100);
        struct http_server_stats s = stats_now();
        assert_int_equal(s.requests_shed, shed);
        assert_true(s.connections_sent_away > 0 && away <= s.connections_sent_away);
        crowd_leaves();
}

static void test_once_the_crowd_is_answered_all_is_well(void **state) {
        (void)state;
        world.conf.limits.turn_ms = 20;
        world_start(&world);
        crowd_asks();
        uint64_t shed = stats_now().requests_shed;
        assert_true(shed > 0);
        struct client *late = &clients[0]; /* a connection made after it */
        int before = late->fd;
        memset(late, 0, sizeof *late);
        client_start(late);
        ask(late, "/page", 1, 10);
        answers_read(late, 10);
        assert_int_equal(late->good, 10);
        assert_int_equal(stats_now().requests_shed, shed);
        assert_int_equal(stats_now().refused_overload, 0);
        close(before);
        crowd_leaves();
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
                T(test_once_the_crowd_is_answered_all_is_well),
                T(test_a_turn_within_its_time_refuses_nobody),
                T(test_a_machine_that_was_away_refuses_nobody),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
