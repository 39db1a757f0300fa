#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls.h"
#include "tests/unit/test_certs.h"

static struct test_certs certs;

struct pair {
        int fds[2];
        struct tls *server;
        struct tls *client;
        int server_outcome;
        int client_outcome;
};

static int group_setup(void **state) {
        (void)state;
        test_certs_make(&certs);
        return 0;
}

static int group_teardown(void **state) {
        (void)state;
        test_certs_remove(&certs);
        return 0;
}

static struct tls_context *server_with(unsigned alpn, struct tls_tickets *tickets) {
        struct tls_server_conf conf = {.certificate_file = certs.certificate,
                                       .key_file = certs.key,
                                       .alpn = alpn,
                                       .tickets = tickets};
        struct tls_context *c;
        char why[256] = "";
        assert_int_equal(tls_server_new(&conf, &c, why, sizeof why), 0);
        return c;
}

static struct tls_context *server_new(unsigned alpn) {
        return server_with(alpn, NULL);
}

static struct tls_context *client_new(unsigned alpn, bool check, bool resume) {
        struct tls_client_conf conf = {check ? certs.certificate : NULL, alpn, resume};
        struct tls_context *c;
        char why[256] = "";
        assert_int_equal(tls_client_new(&conf, &c, why, sizeof why), 0);
        return c;
}

static void sockets_open(int fds[2]) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
}

static void handshake(struct pair *p) {
        p->server_outcome = p->client_outcome = TLS_WANT_READ;
        for (int i = 0; i < 20; i++) {
                if (p->client_outcome == TLS_WANT_READ)
                        p->client_outcome = tls_handshake(p->client);
                if (p->server_outcome == TLS_WANT_READ)
                        p->server_outcome = tls_handshake(p->server);
        }
}

static void pair_open(struct pair *p, struct tls_context *server, struct tls_context *client,
                      const char *name) {
        sockets_open(p->fds);
        p->server = tls_accept_new(server, p->fds[0]);
        p->client = tls_connect_new(client, p->fds[1], name);
        assert_non_null(p->server);
        assert_non_null(p->client);
        handshake(p);
}

static void pair_close(struct pair *p) {
        tls_free(&p->server);
        tls_free(&p->client);
        close(p->fds[0]);
        close(p->fds[1]);
}

static void say(struct tls *from, struct tls *to, const char *text) {
        char got[64];
        size_t n;
        assert_int_equal(tls_write(from, text, strlen(text), &n), TLS_DONE);
        assert_int_equal(n, strlen(text));
        assert_int_equal(tls_read(to, got, sizeof got, &n), TLS_DONE);
        assert_int_equal(n, strlen(text));
        assert_memory_equal(got, text, n);
}

static void test_both_sides_agree_and_talk(void **state) {
        (void)state;
        struct tls_context *s = server_new(TLS_ALPN_H2);
        struct tls_context *c = client_new(TLS_ALPN_H2, true, false);
        struct pair p;
        char got[8];
        size_t n;
        pair_open(&p, s, c, "localhost");
        assert_int_equal(p.server_outcome, TLS_DONE);
        assert_int_equal(p.client_outcome, TLS_DONE);
        assert_int_equal(tls_alpn(p.server), TLS_ALPN_H2);
        assert_int_equal(tls_alpn(p.client), TLS_ALPN_H2);
        assert_false(tls_is_resumed(p.server));
        say(p.client, p.server, "hello");
        say(p.server, p.client, "and back");
        assert_int_equal(tls_read(p.server, got, sizeof got, &n), TLS_WANT_READ);
        assert_false(tls_has_pending(p.server));
        tls_shutdown(p.client);
        assert_int_equal(tls_read(p.server, got, sizeof got, &n), TLS_CLOSED);
        pair_close(&p);
        tls_context_free(&s);
        tls_context_free(&c);
}

static void test_what_is_read_ahead_is_pending(void **state) {
        (void)state;
        struct tls_context *s = server_new(TLS_ALPN_H2);
        struct tls_context *c = client_new(TLS_ALPN_H2, false, false);
        struct pair p;
        char got[8];
        size_t n;
        pair_open(&p, s, c, NULL);
        assert_int_equal(tls_write(p.client, "one", 3, &n), TLS_DONE);
        assert_int_equal(tls_write(p.client, "two", 3, &n), TLS_DONE);
        assert_int_equal(tls_read(p.server, got, sizeof got, &n), TLS_DONE);
        assert_int_equal(n, 3);
        assert_true(tls_has_pending(p.server));
        assert_int_equal(tls_read(p.server, got, sizeof got, &n), TLS_DONE);
        assert_memory_equal(got, "two", 3);
        assert_false(tls_has_pending(p.server));
        pair_close(&p);
        tls_context_free(&s);
        tls_context_free(&c);
}

static void test_the_name_is_checked(void **state) {
        (void)state;
        static const struct {
                const char *name;
                bool good;
        } rows[] = {
                {"localhost", true}, {"127.0.0.1", true},      {"127.0.0.2", false},
                {"::1", false},      {"other.example", false}, {"LOCALHOST", true},
        };
        struct tls_context *s = server_new(TLS_ALPN_H2);
        struct tls_context *c = client_new(TLS_ALPN_H2, true, false);
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct pair p;
                pair_open(&p, s, c, rows[i].name);
                assert_int_equal(p.client_outcome, rows[i].good ? TLS_DONE : -EPROTO);
                pair_close(&p);
        }
        tls_context_free(&s);
        tls_context_free(&c);
}

static void test_alpn_is_required(void **state) {
        (void)state;
        static const struct {
                unsigned server, client;
                unsigned agreed; /* 0: refused */
        } rows[] = {
                {TLS_ALPN_H2, TLS_ALPN_H2, TLS_ALPN_H2},
                {TLS_ALPN_H2, TLS_ALPN_HTTP11, 0},
                {TLS_ALPN_H2, 0, 0},
                {TLS_ALPN_H2, TLS_ALPN_H2 | TLS_ALPN_HTTP11, TLS_ALPN_H2},
                {TLS_ALPN_H2 | TLS_ALPN_HTTP11, TLS_ALPN_HTTP11, TLS_ALPN_HTTP11},
                {TLS_ALPN_H2 | TLS_ALPN_HTTP11, TLS_ALPN_H2 | TLS_ALPN_HTTP11, TLS_ALPN_H2},
        };
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct tls_context *s = server_new(rows[i].server);
                struct tls_context *c = client_new(rows[i].client, false, false);
                struct pair p;
                pair_open(&p, s, c, NULL);
                assert_int_equal(p.server_outcome, rows[i].agreed ? TLS_DONE : -EPROTO);
                assert_int_equal(p.client_outcome, rows[i].agreed ? TLS_DONE : -EPROTO);
                assert_int_equal(tls_alpn(p.server), rows[i].agreed);
                pair_close(&p);
                tls_context_free(&s);
                tls_context_free(&c);
        }
}

static void test_no_alpn_is_http11_where_that_is_offered(void **state) {
        (void)state;
        struct tls_context *s = server_new(TLS_ALPN_H2 | TLS_ALPN_HTTP11);
        struct tls_context *c = client_new(0, false, false);
        struct pair p;
        pair_open(&p, s, c, NULL);
        assert_int_equal(p.server_outcome, TLS_DONE);
        assert_int_equal(tls_alpn(p.server), 0);
        pair_close(&p);
        tls_context_free(&s);
        tls_context_free(&c);
}

/* Reads nothing, but takes the ticket in. */
static void ticket_take(struct pair *p) {
        char got[8];
        size_t n;
        assert_int_equal(tls_flush(p->server), TLS_DONE);
        assert_int_equal(tls_read(p->client, got, sizeof got, &n), TLS_WANT_READ);
}

static void test_tickets_resume_until_two_rotations(void **state) {
        (void)state;
        struct tls_tickets *tickets = tls_tickets_new();
        struct tls_context *s = server_with(TLS_ALPN_H2, tickets);
        struct tls_context *c = client_new(TLS_ALPN_H2, true, true);
        struct pair p;
        pair_open(&p, s, c, "localhost");
        assert_false(tls_is_resumed(p.server));
        ticket_take(&p);
        pair_close(&p);
        tls_tickets_rotate(tickets);
        pair_open(&p, s, c, "localhost");
        assert_int_equal(p.client_outcome, TLS_DONE);
        assert_true(tls_is_resumed(p.server));
        assert_true(tls_is_resumed(p.client));
        ticket_take(&p);
        pair_close(&p);
        for (int i = 0; i < 3; i++) { /* each connection brings a fresh one */
                pair_open(&p, s, c, "localhost");
                assert_true(tls_is_resumed(p.server));
                ticket_take(&p);
                pair_close(&p);
        }
        tls_tickets_rotate(tickets);
        tls_tickets_rotate(tickets);
        pair_open(&p, s, c, "localhost");
        assert_int_equal(p.client_outcome, TLS_DONE);
        assert_false(tls_is_resumed(p.server));
        pair_close(&p);
        tls_context_free(&s);
        tls_context_free(&c);
        tls_tickets_free(&tickets);
}

static void test_tickets_are_good_in_every_context_of_their_keys(void **state) {
        (void)state;
        struct tls_tickets *tickets = tls_tickets_new();
        struct tls_context *c = client_new(TLS_ALPN_H2, true, true);
        struct pair p;
        for (int i = 0; i < 20; i++) { /* as after a reload, twenty times */
                struct tls_context *s = server_with(TLS_ALPN_H2, tickets);
                pair_open(&p, s, c, "localhost");
                assert_int_equal(p.client_outcome, TLS_DONE);
                assert_int_equal(tls_is_resumed(p.server), i > 0);
                ticket_take(&p);
                pair_close(&p);
                tls_context_free(&s);
        }
        struct tls_context *stranger = server_new(TLS_ALPN_H2);
        pair_open(&p, stranger, c, "localhost");
        assert_int_equal(p.client_outcome, TLS_DONE);
        assert_false(tls_is_resumed(p.server));
        pair_close(&p);
        tls_context_free(&stranger);
        tls_context_free(&c);
        tls_tickets_free(&tickets);
}

static void test_the_ticket_leaves_with_the_first_words(void **state) {
        (void)state;
        struct tls_context *s = server_new(TLS_ALPN_H2);
        struct tls_context *c = client_new(TLS_ALPN_H2, false, false);
        struct pair p;
        char raw[4096];
        size_t n;
        pair_open(&p, s, c, NULL);
        assert_int_equal(recv(p.fds[1], raw, sizeof raw, 0), -1); /* nothing yet */
        assert_int_equal(tls_write(p.server, "first", 5, &n), TLS_DONE);
        ssize_t all = recv(p.fds[1], raw, sizeof raw, MSG_PEEK);
        assert_int_equal(tls_read(p.client, raw, sizeof raw, &n), TLS_DONE);
        assert_int_equal(n, 5);
        pair_close(&p);
        pair_open(&p, s, c, NULL);
        assert_int_equal(tls_flush(p.server), TLS_DONE);
        ssize_t ticket = recv(p.fds[1], raw, sizeof raw, MSG_PEEK);
        assert_true(ticket > 100 && all > ticket);
        assert_int_equal(tls_flush(p.server), TLS_DONE); /* once is enough */
        assert_int_equal(recv(p.fds[1], raw, sizeof raw, MSG_PEEK), ticket);
        pair_close(&p);
        tls_context_free(&s);
        tls_context_free(&c);
}

static void test_bad_files_are_refused_in_one_line(void **state) {
        (void)state;
        const struct {
                const char *certificate, *key, *says;
        } rows[] = {
                {"/nonexistent/cert.pem", certs.key, "/nonexistent/cert.pem"},
                {certs.certificate, "/nonexistent/key.pem", "/nonexistent/key.pem"},
                {certs.certificate, certs.other_key, certs.other_key},
                {certs.key, certs.key, certs.key},
                {certs.certificate, certs.certificate, certs.certificate},
        };
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct tls_server_conf conf = {.certificate_file = rows[i].certificate,
                                               .key_file = rows[i].key,
                                               .alpn = TLS_ALPN_H2};
                struct tls_context *c;
                char why[256] = "";
                assert_int_equal(tls_server_new(&conf, &c, why, sizeof why), -EINVAL);
                assert_null(c);
                assert_non_null(strstr(why, rows[i].says));
                assert_null(strchr(why, '\n'));
        }
}

static void test_a_flood_of_key_updates_is_abuse(void **state) {
        (void)state;
        struct tls_context *s = server_new(TLS_ALPN_H2);
        int fds[2];
        sockets_open(fds);
        struct tls *server = tls_accept_new(s, fds[0]);
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        SSL *client = SSL_new(ctx);
        SSL_set_alpn_protos(client, (const unsigned char *)"\2h2", 3);
        SSL_set_fd(client, fds[1]);
        SSL_set_connect_state(client);
        int done = TLS_WANT_READ;
        for (int i = 0; i < 10; i++) {
                (void)SSL_do_handshake(client);
                if (done != TLS_DONE)
                        done = tls_handshake(server);
        }
        assert_int_equal(done, TLS_DONE);
        int outcome = TLS_WANT_READ;
        int sent = 0;
        while (outcome == TLS_WANT_READ && sent < 1000) {
                char got[8];
                size_t n;
                SSL_key_update(client, SSL_KEY_UPDATE_NOT_REQUESTED);
                (void)SSL_do_handshake(client);
                sent++;
                outcome = tls_read(server, got, sizeof got, &n);
        }
        assert_int_equal(outcome, TLS_ABUSE);
        assert_true(sent > 100);
        SSL_free(client);
        SSL_CTX_free(ctx);
        tls_free(&server);
        tls_context_free(&s);
        close(fds[0]);
        close(fds[1]);
}

static void test_foreign_bytes_are_a_protocol_failure(void **state) {
        (void)state;
        struct tls_context *s = server_new(TLS_ALPN_H2);
        int fds[2];
        sockets_open(fds);
        struct tls *t = tls_accept_new(s, fds[0]);
        assert_int_equal(write(fds[1], "GET / HTTP/1.1\r\n\r\n", 18), 18);
        assert_int_equal(tls_handshake(t), -EPROTO);
        assert_int_equal(tls_alpn(t), 0);
        tls_free(&t);
        tls_context_free(&s);
        close(fds[0]);
        close(fds[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_both_sides_agree_and_talk),
                cmocka_unit_test(test_what_is_read_ahead_is_pending),
                cmocka_unit_test(test_the_name_is_checked),
                cmocka_unit_test(test_alpn_is_required),
                cmocka_unit_test(test_no_alpn_is_http11_where_that_is_offered),
                cmocka_unit_test(test_tickets_resume_until_two_rotations),
                cmocka_unit_test(test_tickets_are_good_in_every_context_of_their_keys),
                cmocka_unit_test(test_the_ticket_leaves_with_the_first_words),
                cmocka_unit_test(test_bad_files_are_refused_in_one_line),
                cmocka_unit_test(test_a_flood_of_key_updates_is_abuse),
                cmocka_unit_test(test_foreign_bytes_are_a_protocol_failure),
        };
        return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
