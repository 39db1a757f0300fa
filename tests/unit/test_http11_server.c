#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/server_world.h"

static struct world world;
static char got[200000];

static int setup(void **state) {
        (void)state;
        world_init(&world);
        world_start(&world);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        world_stop(&world);
        return 0;
}

static unsigned count(const char *text, const char *word) {
        unsigned n = 0;
        for (const char *p = text; (p = strstr(p, word)); p += strlen(word))
                n++;
        return n;
}

static void test_a_connection_serves_one_request_after_another(void **state) {
        (void)state;
        int fd = client_open(&world);
        for (int i = 0; i < 3; i++) {
                client_say(fd, "GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
                client_read(fd, got, sizeof got, "hello");
                assert_int_equal(strncmp(got, "HTTP/1.1 200 OK\r\n", 17), 0);
                assert_non_null(strstr(got, "\r\ncontent-length: 5\r\n"));
                assert_null(strstr(got, "connection:"));
        }
        close(fd);
}

static void test_pipelined_requests_are_answered_in_order(void **state) {
        (void)state;
        int fd = client_open(&world);
        client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfirst"
                       "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"
                       "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nlast"
                       "GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        client_read(fd, got, sizeof got, NULL);
        char *first = strstr(got, "first");
        assert_non_null(first);
        char *stream = strstr(first, "3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n");
        assert_non_null(stream);
        char *last = strstr(stream, "last");
        assert_non_null(last);
        assert_non_null(strstr(last, "hello"));
        assert_int_equal(count(got, "HTTP/1.1 200 OK"), 4);
        assert_int_equal(count(got, "connection: close"), 1);
        close(fd);
}

static void test_many_pipelined_requests_do_not_stop(void **state) {
        (void)state;
        int fd = client_open(&world);
        static char text[40000];
        size_t n = 0;
        for (int i = 0; i < 500; i++)
                n += (size_t)snprintf(text + n, sizeof text - n,
                                      "GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        client_send(fd, text, n);
        client_read(fd, got, sizeof got, NULL);
        assert_int_equal(count(got, "hello"), 501);
        close(fd);
}

static void test_head_has_a_length_and_no_body(void **state) {
        (void)state;
        int fd = client_open(&world);
        client_say(fd, "HEAD /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        size_t n = client_read(fd, got, sizeof got, NULL);
        assert_non_null(strstr(got, "content-length: 5\r\n"));
        assert_int_equal(strcmp(got + n - 4, "\r\n\r\n"), 0);
        close(fd);
}

static void test_bodies_come_whole_in_pieces_and_in_chunks(void **state) {
        (void)state;
        int fd = client_open(&world);
        client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n");
        world_wait(&world.requests, 1);
        client_say(fd, "abc");
        client_say(fd, "def");
        client_read(fd, got, sizeof got, "abcdef");
        client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "3\r\nuvw\r\n3\r\nxyz\r\n0\r\n\r\n");
        client_read(fd, got, sizeof got, "uvwxyz");
        client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        client_read(fd, got, sizeof got, "content-length: 0\r\n\r\n");
        close(fd);
}

static void test_a_body_above_the_window_comes_whole(void **state) {
        (void)state;
        static char body[100000];
        int fd = client_open(&world);
        memset(body, 'b', sizeof body);
        client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n"
                       "Connection: close\r\n\r\n");
        client_send(fd, body, sizeof body);
        size_t n = client_read(fd, got, sizeof got, NULL);
        assert_true(n > sizeof body);
        assert_memory_equal(got + n - sizeof body, body, sizeof body);
        close(fd);
}

static void test_a_body_too_large_is_refused_unread(void **state) {
        (void)state;
        static char body[65536];
        int fd = client_open(&world);
        client_say(fd, "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
        for (int i = 0; i < 4; i++)
                client_send(fd, body, sizeof body);
        client_read(fd, got, sizeof got, "too large");
        assert_int_equal(strncmp(got, "HTTP/1.1 413 ", 13), 0);
        assert_non_null(strstr(got, "connection: close"));
        assert_true(client_is_closed(fd));
        close(fd);
}

static void test_continue_is_said_when_the_body_is_wanted(void **state) {
        (void)state;
        int fd = client_open(&world);
        client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
                       "Expect: 100-continue\r\n\r\n");
        client_read(fd, got, sizeof got, "HTTP/1.1 100 Continue\r\n\r\n");
        client_say(fd, "ok");
        client_read(fd, got, sizeof got, "\r\n\r\nok");
        close(fd);
}

static void test_http10_gets_no_chunks(void **state) {
        (void)state;
        int fd = client_open(&world);
        client_say(fd, "GET /stream HTTP/1.0\r\nHost: a\r\n\r\n");
        client_read(fd, got, sizeof got, NULL);
        assert_non_null(strstr(got, "\r\n\r\nonetwothree"));
        assert_null(strstr(got, "chunked"));
        close(fd);
}

static void test_bad_requests_get_a_problem_and_the_end(void **state) {
        (void)state;
        static const struct {
                const char *text, *status, *why;
        } rows[] = {
                {"nonsense\r\n\r\n", "400", "no HTTP"},
                {"GET /page HTTP/1.1\r\n\r\n", "400", "no host"},
                {"GET /page HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "400", "two hosts"},
                {"GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n", "400", "dot segment"},
                {"GET /%2e%2e/b HTTP/1.1\r\nHost: a\r\n\r\n", "400", "escaped dots"},
                {"GET http://a/page HTTP/1.1\r\nHost: a\r\n\r\n", "400", "absolute form"},
                {"GET /page HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n", "400", "space before colon"},
                {"GET /page HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", "400", "folded line"},
                {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 "400", "both lengths"},
                {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", "400", "signed"},
                {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                 "400", "two lengths"},
                {"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", "4", "CONNECT"},
        };
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                int fd = client_open(&world);
                client_say(fd, rows[i].text);
                shutdown(fd, SHUT_WR);
                client_read(fd, got, sizeof got, NULL);
                if (strncmp(got, "HTTP/1.1 ", 9) != 0 ||
                    strncmp(got + 9, rows[i].status, strlen(rows[i].status)) != 0)
                        fail_msg("%s: %s", rows[i].why, got);
                assert_non_null(strstr(got, "application/problem+json"));
                assert_non_null(strstr(got, "private, no-store"));
                close(fd);
        }
        assert_int_equal(atomic_load(&world.requests), 0);
}

static void test_fields_over_the_budget_are_431(void **state) {
        (void)state;
        static char text[20000];
        int fd = client_open(&world);
        int n = snprintf(text, sizeof text, "GET /page HTTP/1.1\r\nHost: a\r\nX: ");
        memset(text + n, 'x', 17000);
        memcpy(text + n + 17000, "\r\n\r\n", 5);
        client_say(fd, text);
        client_read(fd, got, sizeof got, "\r\n\r\n");
        assert_int_equal(strncmp(got, "HTTP/1.1 431 ", 13), 0);
        close(fd);
}

static void test_nothing_is_upgraded(void **state) {
        (void)state;
        int fd = client_open(&world);
        client_say(fd, "GET /page HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                       "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n");
        client_read(fd, got, sizeof got, "hello");
        assert_int_equal(strncmp(got, "HTTP/1.1 200 OK\r\n", 17), 0);
        client_say(fd, "GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
        client_read(fd, got, sizeof got, "hello");
        close(fd);
}

static void test_trailers_are_no_fields_of_the_request(void **state) {
        (void)state;
        int fd = client_open(&world);
        client_say(fd, "POST /named HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                       "X-Odd: V\r\n\r\n1\r\nx\r\n0\r\nSluice-Account: me\r\nCookie: a=b\r\n\r\n");
        client_read(fd, got, sizeof got, "[x-odd=V]");
        assert_null(strstr(got, "sluice-account"));
        assert_null(strstr(got, "cookie"));
        close(fd);
}

static void test_fields_are_given_in_lower_case_and_underscores_dropped(void **state) {
        (void)state;
        int fd = client_open(&world);
        client_say(fd, "GET /named HTTP/1.1\r\nHost: a\r\nX-Odd: V\r\nx_account: me\r\n"
                       "Cookie: a=1\r\nCookie: b=2\r\n\r\n");
        client_read(fd, got, sizeof got, "[host=a][x-odd=V][cookie=a=1; b=2]");
        assert_null(strstr(got, "account"));
        close(fd);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_a_connection_serves_one_request_after_another),
                T(test_pipelined_requests_are_answered_in_order),
                T(test_many_pipelined_requests_do_not_stop),
                T(test_head_has_a_length_and_no_body),
                T(test_bodies_come_whole_in_pieces_and_in_chunks),
                T(test_a_body_above_the_window_comes_whole),
                T(test_a_body_too_large_is_refused_unread),
                T(test_continue_is_said_when_the_body_is_wanted),
                T(test_http10_gets_no_chunks),
                T(test_bad_requests_get_a_problem_and_the_end),
                T(test_fields_over_the_budget_are_431),
                T(test_nothing_is_upgraded),
                T(test_trailers_are_no_fields_of_the_request),
                T(test_fields_are_given_in_lower_case_and_underscores_dropped),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
