#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/h2_frames.h"
#include "tests/unit/server_world.h"
#include "tests/unit/test_certs.h"

static struct world world;
static char got[262144];

/* An HTTP/2 client on a socket: what was read and not yet looked at. */
struct h2 {
        int fd;
        char bytes[262144];
        size_t len;
};

static struct h2 h2;
static struct frames out;

static int setup(void **state) {
        (void)state;
        world_init(&world);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        world_stop(&world);
        return 0;
}

static void flush(void) {
        client_send(h2.fd, out.data, out.len);
        out.len = 0;
}

static void h2_open(void) {
        h2.fd = client_open(&world);
        h2.len = 0;
        out.len = 0;
        client_say(h2.fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        frame_settings(&out, 0, 0);
        frame_settings_ack(&out);
        flush();
}

/* GET, http, authority a, and the path: static table and short literals. */
static void h2_request(int32_t stream, const char *path, bool end) {
        char block[128];
        int n = snprintf(block, sizeof block, "%c\x86\x01\x01%c\x04%c%s", end ? 0x82 : 0x83, 'a',
                         (int)strlen(path), path);
        frame_put(&out, FRAME_HEADERS, FRAME_END_HEADERS | (end ? FRAME_END : 0u), stream,
                  (struct span){block, (size_t)n});
}

/* The next frame of a type; false at the end of the connection. The payload
 * lives until the next call. */
static bool h2_next(enum frame_type type, struct frame *f) {
        static char payload[262144];
        for (;;) {
                struct span bytes = {h2.bytes, h2.len};
                bool is_whole = frame_take(&bytes, f);
                if (is_whole) {
                        memcpy(payload, f->payload.p, f->payload.len);
                        f->payload.p = payload;
                        memmove(h2.bytes, bytes.p, bytes.len);
                        h2.len = bytes.len;
                        if (f->type == type)
                                return true;
                        continue;
                }
                ssize_t r = recv(h2.fd, h2.bytes + h2.len, sizeof h2.bytes - h2.len, 0);
                if (r < 0 && errno != ECONNRESET)
                        fail_msg("waiting for a frame: %s", strerror(errno));
                if (r <= 0)
                        return false;
                h2.len += (size_t)r;
        }
}

static void h2_close(void) {
        close(h2.fd);
}

static void h2_expect_body(const char *text) {
        struct frame f;
        assert_true(h2_next(FRAME_DATA, &f));
        assert_true(span_eq(f.payload, span_of(text)));
}

/* ---- requests ---- */

static void test_a_request_over_h2c_is_answered(void **state) {
        (void)state;
        world_start(&world);
        h2_open();
        h2_request(1, "/page", true);
        flush();
        h2_expect_body("hello");
        h2_close();
}

static void test_the_version_may_come_byte_by_byte(void **state) {
        (void)state;
        world_start(&world);
        const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        h2.fd = client_open(&world);
        h2.len = out.len = 0;
        int one = 1;
        setsockopt(h2.fd, 6, 1, &one, sizeof one); /* no delay */
        for (size_t i = 0; i < sizeof preface - 1; i++)
                client_send(h2.fd, preface + i, 1);
        frame_settings(&out, 0, 0);
        h2_request(1, "/page", true);
        flush();
        h2_expect_body("hello");
        h2_close();
}

static void test_an_odd_target_is_refused_without_the_handler(void **state) {
        (void)state;
        static const char *const paths[] = {"/a//b", "/%2e/b", "/a\\b", "/a#b",   "/a/..",
                                            "a",     "*",      "/\x80", "/a%2Fb", "/a%00"};
        world_start(&world);
        h2_open();
        int32_t id = 1;
        for (size_t i = 0; i < NET_COUNT_OF(paths); i++, id += 2) {
                struct frame f;
                h2_request(id, paths[i], true);
                flush();
                if (paths[i][0] != '/') /* the library's own refusal */
                        assert_true(h2_next(FRAME_RST, &f));
                else
                        assert_true(h2_next(FRAME_HEADERS, &f) &&
                                    (unsigned char)f.payload.p[0] == 0x8c); /* :status 400 */
        }
        assert_int_equal(atomic_load(&world.requests), 0);
        h2_close();
}

static void test_a_body_comes_whole_or_too_large(void **state) {
        (void)state;
        static char chunk[16384];
        struct frame f;
        world_start(&world);
        h2_open();
        h2_request(1, "/echo", false);
        frame_text(&out, 1, "one ", false);
        flush();
        frame_text(&out, 1, "two", true);
        flush();
        h2_expect_body("one two");
        h2_request(3, "/small", false);
        frame_put(&out, FRAME_DATA, 0, 3, (struct span){chunk, sizeof chunk});
        flush();
        h2_expect_body("too large");
        assert_true(h2_next(FRAME_RST, &f)); /* the rest is not wanted */
        assert_int_equal(frame_number(f.payload, 0), 0);
        h2_close();
}

static void test_a_stream_of_words_arrives_as_said(void **state) {
        (void)state;
        world_start(&world);
        h2_open();
        h2_request(1, "/stream", true);
        flush();
        h2_expect_body("one");
        h2_expect_body("two");
        h2_expect_body("three");
        h2_close();
}

static void test_a_large_answer_flows_with_the_window(void **state) {
        (void)state;
        struct frame f;
        size_t n = 0;
        world_start(&world);
        h2_open();
        h2_request(1, "/big", true);
        flush();
        do {
                assert_true(h2_next(FRAME_DATA, &f));
                n += f.payload.len;
                if (f.payload.len > 0) {
                        frame_window(&out, 0, (uint32_t)f.payload.len);
                        frame_window(&out, 1, (uint32_t)f.payload.len);
                        flush();
                }
        } while (!(f.flags & FRAME_END));
        assert_int_equal(n, WORLD_BIG);
        h2_close();
}

/* ---- limits in time ---- */

static void test_a_silent_client_is_closed(void **state) {
        (void)state;
        world.conf.limits.handshake_ms = 100;
        world_start(&world);
        int fd = client_open(&world);
        client_say(fd, "PR"); /* either version yet */
        assert_true(client_is_closed(fd));
        close(fd);
}

static void test_a_dripping_head_is_closed(void **state) {
        (void)state;
        world.conf.limits.header_ms = 150;
        world_start(&world);
        int fd = client_open(&world);
        client_say(fd, "GET /page HTTP/1.1\r\nHost:");
        assert_true(client_is_closed(fd));
        close(fd);
        h2_open();
        h2_request(1, "/page", true);
        out.len -= 3;
        flush();
        assert_true(client_is_closed(h2.fd));
        h2_close();
        assert_int_equal(atomic_load(&world.requests), 0);
}

static void test_a_loop_that_was_away_blames_nobody(void **state) {
        (void)state;
        world.conf.limits.header_ms = 500;
        world_start(&world);
        int fd = client_open(&world);
        client_say(fd, "GET /page HTTP/1.1\r\nHost: a\r\n\r\nGET /page HTTP/1.1\r\nHost:");
        client_read(fd, got, sizeof got, "hello"); /* so it has the half head as well */
        int other = client_open(&world);
        client_say(other, "GET /nap HTTP/1.1\r\nHost: a\r\n\r\n");
        world_wait(&world.requests, 2); /* it has begun */
        client_say(fd, " a\r\n\r\n");
        client_read(fd, got, sizeof got, "hello");
        client_read(other, got, sizeof got, "hello");
        close(fd);
        close(other);
}

static void test_a_body_that_does_not_come_is_408(void **state) {
        (void)state;
        world.conf.limits.body_ms = 100;
        world_start(&world);
        h2_open();
        h2_request(1, "/echo", false);
        flush();
        h2_expect_body("late");
        h2_close();
}

static void test_an_idle_connection_is_told_and_closed(void **state) {
        (void)state;
        struct frame f;
        world.conf.limits.idle_ms = 150;
        world_start(&world);
        h2_open();
        h2_request(1, "/page", true);
        flush();
        h2_expect_body("hello");
        assert_true(h2_next(FRAME_GOAWAY, &f));
        assert_int_equal(frame_number(f.payload, 0), 1);
        assert_int_equal(frame_number(f.payload, 4), 0);
        assert_true(client_is_closed(h2.fd));
        h2_close();
}

static void test_a_zero_window_costs_the_stream(void **state) {
        (void)state;
        struct frame f;
        world.conf.limits.stall_ms = 150;
        world_start(&world);
        h2_open();
        frame_settings(&out, 4, 0);
        h2_request(1, "/big", true);
        flush();
        world_wait(&world.requests, 1);
        world_wait(&world.gone, 1);
        assert_true(h2_next(FRAME_RST, &f));
        assert_int_equal(frame_number(f.payload, 0), 8);
        frame_settings(&out, 4, 65535);
        h2_request(3, "/page", true);
        flush();
        h2_expect_body("hello");
        h2_close();
}

static void test_drips_of_window_are_no_progress(void **state) {
        (void)state;
        world.conf.limits.stall_ms = 200;
        world_start(&world);
        h2_open();
        frame_settings(&out, 4, 0);
        h2_request(1, "/big", true);
        flush();
        for (int i = 0; i < 1000 && atomic_load(&world.gone) == 0; i++) {
                frame_window(&out, 1, 1);
                (void)!send(h2.fd, out.data, out.len, MSG_NOSIGNAL);
                out.len = 0;
                usleep(10000);
        }
        world_wait(&world.gone, 1);
        h2_close();
}

static void test_a_client_that_never_reads_is_cut_off(void **state) {
        (void)state;
        world.conf.limits.stall_ms = 200;
        world_start(&world);
        h2_open();
        frame_settings(&out, 4, 0x7fffffff);
        frame_window(&out, 0, 0x7fff0000);
        h2_request(1, "/big", true);
        h2_request(3, "/big", true);
        flush();
        world_wait(&world.gone, 2);
        h2_close();
}

/* ---- ends ---- */

static void test_a_reset_connection_is_told_to_its_exchanges(void **state) {
        (void)state;
        struct linger at_once = {.l_onoff = 1, .l_linger = 0};
        world_start(&world);
        h2_open();
        h2_request(1, "/hold", true);
        h2_request(3, "/hold", true);
        flush();
        world_wait(&world.requests, 2);
        setsockopt(h2.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        h2_close();
        world_wait(&world.gone, 2);
}

static void test_a_half_closed_client_still_gets_its_answer(void **state) {
        (void)state;
        world_start(&world);
        h2_open();
        h2_request(1, "/stream", true);
        h2_request(3, "/echo", false); /* can never be whole */
        flush();
        shutdown(h2.fd, SHUT_WR);
        h2_expect_body("one");
        h2_expect_body("two");
        h2_expect_body("three");
        assert_true(client_is_closed(h2.fd));
        world_wait(&world.gone, 1);
        h2_close();
}

static void test_a_free_tells_open_exchanges(void **state) {
        (void)state;
        world_start(&world);
        h2_open();
        h2_request(1, "/hold", true);
        h2_request(3, "/stream", true);
        flush();
        int fd = client_open(&world);
        client_say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
        world_wait(&world.requests, 3);
        h2_expect_body("one");
        world_stop(&world);
        assert_true(atomic_load(&world.gone) >= 2);
        assert_true(client_is_closed(fd));
        close(fd);
        h2_close();
        world_start(&world); /* for the teardown */
}

static void test_a_drain_finishes_what_is_open(void **state) {
        (void)state;
        struct frame f;
        world_start(&world);
        int fd = client_open(&world);
        client_say(fd, "GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
        client_read(fd, got, sizeof got, "hello");
        h2_open();
        h2_request(1, "/echo", false);
        flush();
        world_wait(&world.requests, 2);
        world_drain(&world);
        assert_true(h2_next(FRAME_GOAWAY, &f));
        assert_int_equal(frame_number(f.payload, 0), 0x7fffffff);
        h2_request(3, "/page", true); /* sent before the notice was read */
        flush();
        h2_expect_body("hello");
        assert_true(h2_next(FRAME_GOAWAY, &f));
        assert_int_equal(frame_number(f.payload, 0), 3);
        assert_int_equal(atomic_load(&world.drained), 0);
        frame_text(&out, 1, "whole", true);
        flush();
        h2_expect_body("whole");
        assert_true(client_is_closed(h2.fd));
        assert_true(client_is_closed(fd));
        world_wait(&world.drained, 1);
        h2_close();
        close(fd);
}

static void test_a_drain_without_connections_ends_at_once(void **state) {
        (void)state;
        world_start(&world);
        world_drain(&world);
        world_wait(&world.drained, 1);
}

static void test_connections_above_the_ceiling_are_closed(void **state) {
        (void)state;
        world.conf.limits.connections = 1;
        world_start(&world);
        h2_open();
        h2_request(1, "/page", true);
        flush();
        h2_expect_body("hello");
        int fd = client_open(&world);
        client_say(fd, "GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(client_is_closed(fd));
        close(fd);
        h2_request(3, "/page", true);
        flush();
        h2_expect_body("hello");
        h2_close();
}

static void test_a_used_up_connection_says_so(void **state) {
        (void)state;
        struct frame f;
        world.conf.limits.requests_per_connection = 2;
        world_start(&world);
        h2_open();
        h2_request(1, "/page", true);
        h2_request(3, "/page", true);
        flush();
        h2_expect_body("hello"); /* the notice may stand before it or behind */
        h2_expect_body("hello");
        do
                assert_true(h2_next(FRAME_GOAWAY, &f));
        while (frame_number(f.payload, 0) == 0x7fffffff);
        assert_int_equal(frame_number(f.payload, 0), 3);
        assert_true(client_is_closed(h2.fd));
        h2_close();
}

/* ---- addresses and TLS ---- */

static void test_bad_addresses_are_refused(void **state) {
        (void)state;
        static const char *const bad[] = {"127.0.0.1",  "localhost:1",     ":1",           "[::1:1",
                                          "1.2.3.4:-1", "127.0.0.1:65536", "127.0.0.1:1x", ""};
        world_start(&world);
        struct loop *l = loop_new();
        struct http_server *s;
        assert_int_equal(http_server_new(l, &world.conf, &s), 0);
        for (size_t i = 0; i < NET_COUNT_OF(bad); i++)
                assert_int_equal(http_server_listen(s, bad[i], false), -EINVAL);
        char taken[32];
        snprintf(taken, sizeof taken, "127.0.0.1:%u", world.port);
        assert_int_equal(http_server_listen(s, taken, false), -EADDRINUSE);
        http_server_free(&s);
        loop_free(&l);
}

static int handshake_wait(struct tls *t) {
        int r;
        while ((r = tls_handshake(t)) == TLS_WANT_READ)
                ;
        return r;
}

static struct test_certs certs;
static struct tls_context *server_tls;
static struct tls_context *client_tls;

static int tls_setup(void **state) {
        char why[256];
        test_certs_make(&certs);
        struct tls_server_conf sc = {.certificate_file = certs.certificate,
                                     .key_file = certs.key,
                                     .alpn = TLS_ALPN_H2 | TLS_ALPN_HTTP11};
        struct tls_client_conf cc = {certs.certificate, TLS_ALPN_HTTP11, false};
        assert_int_equal(tls_server_new(&sc, &server_tls, why, sizeof why), 0);
        assert_int_equal(tls_client_new(&cc, &client_tls, why, sizeof why), 0);
        setup(state);
        world.conf.tls = server_tls;
        return 0;
}

static int tls_teardown(void **state) {
        teardown(state);
        tls_context_free(&server_tls);
        tls_context_free(&client_tls);
        test_certs_remove(&certs);
        return 0;
}

/* One request over TLS and HTTP/1.1 is answered. */
static void tls_expect_page(void) {
        const char text[] = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
        size_t n;
        int fd = client_open(&world);
        struct tls *t = tls_connect_new(client_tls, fd, "127.0.0.1");
        assert_int_equal(handshake_wait(t), TLS_DONE);
        assert_int_equal(tls_write(t, text, sizeof text - 1, &n), TLS_DONE);
        assert_int_equal(tls_read(t, got, sizeof got, &n), TLS_DONE);
        got[n] = '\0';
        assert_non_null(strstr(got, "hello"));
        tls_free(&t);
        close(fd);
}

static void test_tls_serves_the_version_agreed_on(void **state) {
        (void)state;
        world_start(&world);
        tls_expect_page();
        int fd = client_open(&world);
        client_say(fd, "no TLS at all");
        assert_true(client_is_closed(fd));
        close(fd);
        tls_expect_page();
}

static void test_accepting_waits_while_too_many_shake_hands(void **state) {
        (void)state;
        struct http_server_stats stats;
        world.conf.limits.handshakes = 1;
        world.conf.limits.handshake_ms = 300;
        world_start(&world);
        int fd = client_open(&world);
        client_say(fd, "\x16\x03\x01"); /* a ClientHello's beginning */
        do
                http_server_stats(world.server, &stats);
        while (stats.connections_open < 1);
        tls_expect_page(); /* after the slow one is given up */
        http_server_stats(world.server, &stats);
        assert_int_equal(stats.handshakes_failed, 1);
        assert_int_equal(stats.handshakes_full, 1);
        assert_true(client_is_closed(fd));
        close(fd);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_a_request_over_h2c_is_answered),
                T(test_the_version_may_come_byte_by_byte),
                T(test_an_odd_target_is_refused_without_the_handler),
                T(test_a_body_comes_whole_or_too_large),
                T(test_a_stream_of_words_arrives_as_said),
                T(test_a_large_answer_flows_with_the_window),
                T(test_a_silent_client_is_closed),
                T(test_a_dripping_head_is_closed),
                T(test_a_loop_that_was_away_blames_nobody),
                T(test_a_body_that_does_not_come_is_408),
                T(test_an_idle_connection_is_told_and_closed),
                T(test_a_zero_window_costs_the_stream),
                T(test_drips_of_window_are_no_progress),
                T(test_a_client_that_never_reads_is_cut_off),
                T(test_a_reset_connection_is_told_to_its_exchanges),
                T(test_a_half_closed_client_still_gets_its_answer),
                T(test_a_free_tells_open_exchanges),
                T(test_a_drain_finishes_what_is_open),
                T(test_a_drain_without_connections_ends_at_once),
                T(test_connections_above_the_ceiling_are_closed),
                T(test_a_used_up_connection_says_so),
                T(test_bad_addresses_are_refused),
                cmocka_unit_test_setup_teardown(test_tls_serves_the_version_agreed_on, tls_setup,
                                                tls_teardown),
                cmocka_unit_test_setup_teardown(test_accepting_waits_while_too_many_shake_hands,
                                                tls_setup, tls_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
