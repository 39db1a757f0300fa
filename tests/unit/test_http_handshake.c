/* Handshakes of many, seen from outside: 127.0.1.x and 127.0.2.x are networks
 * of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls.h"
#include "tests/unit/server_world.h"
#include "tests/unit/test_certs.h"

static struct world world;
static struct test_certs certs;
static struct tls_context *client_tls;

#define CROWD 64

struct client {
        int fd;
        int outcome; /* of its handshake so far */
        struct tls *tls;
};

static int setup(void **state) {
        (void)state;
        char why[256];
        test_certs_make(&certs);
        struct tls_server_conf sc = {.certificate_file = certs.certificate,
                                     .key_file = certs.key,
                                     .alpn = TLS_ALPN_H2 | TLS_ALPN_HTTP11};
        struct tls_client_conf cc = {certs.certificate, TLS_ALPN_HTTP11, false};
        world_init(&world);
        assert_int_equal(tls_server_new(&sc, &world.conf.tls, why, sizeof why), 0);
        assert_int_equal(tls_client_new(&cc, &client_tls, why, sizeof why), 0);
        world.conf.limits.network_strikes = 20;
        world.conf.limits.network_closed_ms = 10000;
        world.conf.limits.handshake_slow_ms = 200;
        return 0;
}

static int teardown(void **state) {
        (void)state;
        world_stop(&world);
        tls_context_free(&world.conf.tls);
        tls_context_free(&client_tls);
        test_certs_remove(&certs);
        return 0;
}

static struct http_server_stats stats_now(void) {
        struct http_server_stats s;
        http_server_stats(world.server, &s);
        return s;
}

#define WAIT_STATS(condition)                                                                      \
        do {                                                                                       \
                struct http_server_stats s = stats_now();                                          \
                for (int n_ = 0; n_ < 10000 && !(condition); n_++, s = stats_now())                \
                        usleep(1000);                                                              \
                assert_true(condition);                                                            \
        } while (0)

/* ---- clients ---- */

/* The ClientHello is on its way; no more than that. */
static struct client half_open(const char *from) {
        struct client c = {.fd = client_open_from(&world, from)};
        c.tls = tls_connect_new(client_tls, c.fd, "127.0.0.1");
        assert_non_null(c.tls);
        int flags = fcntl(c.fd, F_GETFL);
        fcntl(c.fd, F_SETFL, flags | O_NONBLOCK);
        c.outcome = tls_handshake(c.tls);
        fcntl(c.fd, F_SETFL, flags);
        return c;
}

/* Waits until its handshake is done, or the end comes. */
static int client_wait(struct client *c) {
        if (c->outcome == TLS_WANT_READ)
                c->outcome = tls_handshake(c->tls);
        return c->outcome;
}

static void client_close(struct client *c) {
        tls_free(&c->tls);
        close(c->fd);
}

/* One request and its whole answer. */
static void expect_page(struct client *c) {
        const char text[] = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
        char got[4096];
        size_t n;
        assert_int_equal(client_wait(c), TLS_DONE);
        assert_int_equal(tls_write(c->tls, text, sizeof text - 1, &n), TLS_DONE);
        assert_int_equal(tls_read(c->tls, got, sizeof got - 1, &n), TLS_DONE);
        got[n] = '\0';
        assert_non_null(strstr(got, "hello"));
}

static void page_from(const char *from) {
        struct client c = half_open(from);
        expect_page(&c);
        client_close(&c);
}

/* The beginning of a ClientHello, and no more. */
static int dawdle_from(const char *from) {
        int fd = client_open_from(&world, from);
        client_say(fd, "\x16\x03\x01");
        return fd;
}

static void fail_from(const char *from) {
        int fd = client_open_from(&world, from);
        client_say(fd, "no TLS at all");
        assert_true(client_is_closed(fd));
        close(fd);
}

/* ---- networks ---- */

static void test_a_network_that_only_opens_is_closed_to(void **state) {
        (void)state;
        int fds[CROWD];
        world_start(&world);
        for (int i = 0; i < 20; i++)
                fds[i] = dawdle_from("127.0.1.1");
        WAIT_STATS(s.networks_closed == 1);
        for (int i = 20; i < CROWD; i++) {
                fds[i] = dawdle_from("127.0.1.77"); /* another of the same */
                assert_true(client_is_closed(fds[i]));
        }
        assert_int_equal(stats_now().refused_network, CROWD - 20);
        WAIT_STATS(s.connections_open == 20);
        page_from("127.0.2.1");
        page_from("127.0.0.1");
        for (int i = 0; i < CROWD; i++)
                close(fds[i]);
}

static void test_a_network_that_only_fails_is_closed_to(void **state) {
        (void)state;
        world.conf.limits.network_closed_ms = 2000;
        world_start(&world);
        int n = 0; /* a slow machine forgives some meanwhile */
        for (; n < 200 && stats_now().networks_closed == 0; n++)
                fail_from("127.0.1.1");
        assert_in_range(n, 20, 199);
        fail_from("127.0.1.1");
        WAIT_STATS(s.refused_network == 1);
        page_from("127.0.2.1");
        uint64_t done = stats_now().handshakes_full;
        while (stats_now().handshakes_full == done) { /* until it is open again */
                struct client c = half_open("127.0.1.1");
                if (client_wait(&c) == TLS_DONE)
                        expect_page(&c);
                client_close(&c);
        }
}

static void test_a_crowd_with_failures_in_it_is_never_closed_to(void **state) {
        (void)state;
        world_start(&world);
        for (int i = 0; i < 100; i++) {
                fail_from("127.0.1.1");
                page_from("127.0.1.2");
        }
        assert_int_equal(stats_now().networks_closed, 0);
        assert_int_equal(stats_now().refused_network, 0);
}

/* ---- shares ---- */

static void test_a_network_has_half_and_others_the_rest(void **state) {
        (void)state;
        int fds[16];
        world.conf.limits.handshakes = 10;
        world.conf.limits.handshake_slow_ms = 60000;
        world.conf.limits.handshake_ms = 60000;
        world_start(&world);
        for (int i = 0; i < 15; i++) /* 5 under way, 10 parked */
                fds[i] = dawdle_from("127.0.1.1");
        fds[15] = dawdle_from("127.0.1.1");
        assert_true(client_is_closed(fds[15])); /* as many as handshakes are parked */
        page_from("127.0.2.1");
        WAIT_STATS(s.connections_open == 15);
        for (int i = 0; i < 16; i++)
                close(fds[i]);
        WAIT_STATS(s.connections_open == 0);
        page_from("127.0.1.1");
}

static void test_the_parked_are_served_in_their_turn(void **state) {
        (void)state;
        struct client crowd[CROWD];
        world.conf.limits.handshakes = CROWD;
        world.conf.limits.handshake_slow_ms = 60000;
        world_start(&world);
        int slow[CROWD / 2];
        for (int i = 0; i < CROWD / 2; i++)
                slow[i] = dawdle_from("127.0.1.1");
        WAIT_STATS(s.connections_open == CROWD / 2);
        for (int i = 0; i < CROWD / 2; i++)
                crowd[i] = half_open("127.0.1.2");
        WAIT_STATS(s.connections_open == CROWD);
        for (int i = 0; i < CROWD / 2; i++) {
                close(slow[i]);
                expect_page(&crowd[i]);
                client_close(&crowd[i]);
        }
}

/* ---- turns ---- */

static void test_one_step_a_turn_serves_all(void **state) {
        (void)state;
        struct client crowd[CROWD];
        world.conf.limits.handshakes = 1000;
        world.conf.limits.handshakes_per_turn = 1;
        world.conf.limits.handshake_slow_ms = 60000;
        world.conf.limits.handshake_ms = 60000; /* the first in line is the last one read */
        world_start(&world);
        for (int i = 0; i < CROWD; i++)
                crowd[i] = half_open("127.0.1.1");
        for (int i = CROWD - 1; i >= 0; i--)
                expect_page(&crowd[i]);
        for (int i = 0; i < CROWD; i++)
                client_close(&crowd[i]);
        WAIT_STATS(s.handshakes_full == CROWD);
        assert_int_equal(stats_now().refused_overload, 0);
}

static void test_who_waited_too_long_is_closed_before_the_handshake(void **state) {
        (void)state;
        static const char nap[] = "GET /nap HTTP/1.1\r\nHost: a\r\n\r\n";
        struct client crowd[CROWD];
        size_t n;
        uint64_t done = 0;
        world.conf.limits.handshakes_per_turn = 1;
        world.conf.limits.accept_wait_ms = 1;
        world_start(&world);
        struct client first = half_open("127.0.2.1");
        expect_page(&first);
        assert_int_equal(tls_write(first.tls, nap, sizeof nap - 1, &n), TLS_DONE);
        world_wait(&world.requests, 2); /* the loop stands still now */
        for (int i = 0; i < CROWD; i++)
                crowd[i] = half_open("127.0.1.1");
        for (int i = 0; i < CROWD; i++)
                done += client_wait(&crowd[i]) == TLS_DONE;
        WAIT_STATS(s.handshakes_full == done + 1);
        struct http_server_stats s = stats_now();
        assert_true(s.refused_overload > 0);
        assert_true(done > 0);
        assert_int_equal(s.refused_overload + done, CROWD);
        assert_int_equal(s.networks_closed, 0); /* it was not their fault */
        for (int i = 0; i < CROWD; i++)
                client_close(&crowd[i]);
        client_close(&first);
        page_from("127.0.1.1");
}

static void test_one_who_did_not_wait_is_not_taken_for_one_who_did(void **state) {
        (void)state;
        world.conf.limits.handshakes_per_turn = 1; /* each fills its turn */
        world.conf.limits.accept_wait_ms = 500;
        world_start(&world);
        page_from("127.0.1.1");
        usleep(600000); /* the time itself is what is tried here */
        struct client crowd[4];
        for (int i = 0; i < 4; i++)
                crowd[i] = half_open("127.0.1.1");
        for (int i = 0; i < 4; i++) {
                expect_page(&crowd[i]);
                client_close(&crowd[i]);
        }
        assert_int_equal(stats_now().refused_overload, 0);
}

static void test_who_left_while_waiting_is_nobodys_fault(void **state) {
        (void)state;
        static const char nap[] = "GET /nap HTTP/1.1\r\nHost: a\r\n\r\n";
        size_t n;
        world.conf.limits.handshakes_per_turn = 1;
        world_start(&world);
        struct client first = half_open("127.0.2.1");
        expect_page(&first);
        assert_int_equal(tls_write(first.tls, nap, sizeof nap - 1, &n), TLS_DONE);
        world_wait(&world.requests, 2); /* the loop stands still now */
        for (int i = 0; i < CROWD; i++) {
                struct client c = half_open("127.0.1.1");
                client_close(&c);
        }
        WAIT_STATS(s.connections_total == CROWD + 1 && s.connections_open == 1);
        struct http_server_stats s = stats_now();
        assert_int_equal(s.abandoned, CROWD);
        assert_int_equal(s.handshakes_failed, 0);
        client_close(&first);
}

static void test_above_the_ceiling_no_handshake_is_begun(void **state) {
        (void)state;
        world.conf.limits.connections = 1;
        world_start(&world);
        struct client first = half_open("127.0.1.1");
        expect_page(&first);
        struct client second = half_open("127.0.1.1");
        assert_true(client_wait(&second) != TLS_DONE);
        assert_int_equal(stats_now().connections_refused, 1);
        assert_int_equal(stats_now().handshakes_failed, 0);
        expect_page(&first);
        client_close(&first);
        client_close(&second);
}

/* ---- afterwards ---- */

/* Its last word of the handshake is the server's, and no answer follows yet. */
static void test_tls_12_and_http_11_do_not_wait_for_each_other(void **state) {
        (void)state;
        world.conf.limits.header_ms = 60000; /* its end must not be what helps */
        world_start(&world);
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        SSL *ssl = SSL_new(ctx);
        int fd = client_open(&world);
        SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
        SSL_set_alpn_protos(ssl, (const unsigned char *)"\x08http/1.1", 9);
        SSL_set_fd(ssl, fd);
        assert_int_equal(SSL_connect(ssl), 1);
        SSL_free(ssl);
        SSL_CTX_free(ctx);
        close(fd);
}

static void test_a_flood_of_key_updates_is_cut_and_hurts_nobody(void **state) {
        (void)state;
        char got[64];
        world_start(&world);
        struct client good = half_open("127.0.2.1");
        expect_page(&good);
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        SSL *bad = SSL_new(ctx);
        int fd = client_open_from(&world, "127.0.1.1");
        int n = 0;
        SSL_set_alpn_protos(bad, (const unsigned char *)"\x08http/1.1", 9);
        SSL_set_fd(bad, fd);
        assert_int_equal(SSL_connect(bad), 1);
        while (n < 100000 && SSL_key_update(bad, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
               SSL_do_handshake(bad) == 1)
                n++;
        assert_true(SSL_read(bad, got, sizeof got) <= 0);
        assert_in_range(n, 100, 99999);
        assert_int_equal(stats_now().closed_glitches, 1);
        expect_page(&good);
        client_close(&good);
        SSL_free(bad);
        SSL_CTX_free(ctx);
        close(fd);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_a_network_that_only_opens_is_closed_to),
                T(test_a_network_that_only_fails_is_closed_to),
                T(test_a_crowd_with_failures_in_it_is_never_closed_to),
                T(test_a_network_has_half_and_others_the_rest),
                T(test_the_parked_are_served_in_their_turn),
                T(test_one_step_a_turn_serves_all),
                T(test_who_waited_too_long_is_closed_before_the_handshake),
                T(test_one_who_did_not_wait_is_not_taken_for_one_who_did),
                T(test_who_left_while_waiting_is_nobodys_fault),
                T(test_above_the_ceiling_no_handshake_is_begun),
                T(test_tls_12_and_http_11_do_not_wait_for_each_other),
                T(test_a_flood_of_key_updates_is_cut_and_hurts_nobody),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
