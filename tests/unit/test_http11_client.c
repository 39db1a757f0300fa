#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/http11_client_rig.h"

/* ---- requests ---- */

static void collect(struct http11_client *h, char *to, size_t size) {
        struct span out;
        size_t n = 0;

        while (http11_client_output(h, &out) > 0) {
                assert_true(out.len <= 16384 && n + out.len < size);
                memcpy(to + n, out.p, out.len);
                n += out.len;
        }
        to[n] = '\0';
}

static void test_a_request_is_one_template(void **state) {
        const struct http_header headers[] = {
                {.name = SPAN("x-a"), .value = SPAN("b")},
                {.name = SPAN("content-length"), .value = SPAN("999")},
                {.name = SPAN("cookie"), .value = SPAN("c=d; e=f")},
        };
        struct http_call_request r = {.method = SPAN("POST"),
                                      .scheme = SPAN("http"),
                                      .authority = SPAN("a.test:80"),
                                      .path = SPAN("/p?q"),
                                      .headers = headers,
                                      .n_headers = 3,
                                      .body = SPAN("hello")};
        struct http11_client *h = make();
        struct client_call call;
        char text[1024];

        (void)state;
        assert_int_equal(http11_client_submit(h, &call, &r, false), 0);
        assert_int_equal(http11_client_submit(h, &call, &r, false), -EAGAIN);
        assert_int_equal(http11_client_room(h), 0);
        collect(h, text, sizeof(text));
        assert_string_equal(text, "POST /p?q HTTP/1.1\r\nhost: a.test:80\r\nx-a: b\r\n"
                                  "cookie: c=d; e=f\r\ncontent-length: 5\r\n\r\nhello");
        http11_client_free(&h);

        /* A method that promises content says that there is none. */
        h = make();
        r.body.len = 0;
        assert_int_equal(http11_client_submit(h, &call, &r, false), 0);
        collect(h, text, sizeof(text));
        assert_non_null(strstr(text, "\r\ncontent-length: 0\r\n\r\n"));
        http11_client_free(&h);
        h = make();
        r.method = SPAN("DELETE");
        assert_int_equal(http11_client_submit(h, &call, &r, false), 0);
        collect(h, text, sizeof(text));
        assert_null(strstr(text, "content-length"));
        http11_client_free(&h);
}

static void test_a_long_request_leaves_in_slices(void **state) {
        static char body[100000], text[300000], long_value[60000];
        struct http11_client *h = make();
        struct client_call call;

        (void)state;
        memset(body, 'b', sizeof(body));
        memset(long_value, 'v', sizeof(long_value));
        const struct http_header headers[] = {
                {.name = SPAN("x-a"), .value = {long_value, sizeof(long_value)}}};
        const struct http_call_request r = {.method = SPAN("PUT"),
                                            .scheme = SPAN("http"),
                                            .authority = SPAN("a.test"),
                                            .path = SPAN("/"),
                                            .headers = headers,
                                            .n_headers = 1,
                                            .body = {body, sizeof(body)}};
        assert_int_equal(http11_client_submit(h, &call, &r, false), 0);
        collect(h, text, sizeof(text));
        assert_non_null(strstr(text, "\r\ncontent-length: 100000\r\n\r\nbbb"));
        assert_int_equal(strlen(strstr(text, "\r\n\r\n") + 4), 100000);
        http11_client_free(&h);
}

/* What would end a field, or a message, is not sent. */
static void test_requests_that_are_not_sent(void **state) {
        static const struct {
                const char *why;
                struct span method, authority, path, name, value;
        } rows[] = {
                {"CRLF in a value", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("x"),
                 SPAN("a\r\nb: c")},
                {"LF in a value", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("x"), SPAN("a\nb: c")},
                {"CR in a value", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("x"), SPAN("a\rb")},
                {"NUL in a value", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("x"), SPAN("a\0b")},
                {"CRLF in a name", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("x\r\ny"), SPAN("a")},
                {"colon in a name", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("x:"), SPAN("a")},
                {"space in a name", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("x "), SPAN("a")},
                {"upper case", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("X"), SPAN("a")},
                {"coding", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("transfer-encoding"),
                 SPAN("chunked")},
                {"connection", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("connection"),
                 SPAN("close")},
                {"upgrade", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("upgrade"), SPAN("h2c")},
                {"keep-alive", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("keep-alive"), SPAN("1")},
                {"proxy-connection", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("proxy-connection"),
                 SPAN("close")},
                {"trailer", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("trailer"), SPAN("x")},
                {"te", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("te"), SPAN("trailers")},
                {"expect", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("expect"), SPAN("100-continue")},
                {"host", SPAN("GET"), SPAN("a"), SPAN("/"), SPAN("host"), SPAN("b")},
                {"space in the path", SPAN("GET"), SPAN("a"), SPAN("/ HTTP/1.1"), SPAN("x"),
                 SPAN("a")},
                {"CRLF in the path", SPAN("GET"), SPAN("a"), SPAN("/\r\nx: y"), SPAN("x"),
                 SPAN("a")},
                {"no path", SPAN("GET"), SPAN("a"), SPAN(""), SPAN("x"), SPAN("a")},
                {"space in the method", SPAN("GET /"), SPAN("a"), SPAN("/"), SPAN("x"), SPAN("a")},
                {"CRLF in the authority", SPAN("GET"), SPAN("a\r\nx: y"), SPAN("/"), SPAN("x"),
                 SPAN("a")},
        };
        struct http11_client *h = make();
        struct client_call call;
        struct span out;

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                const struct http_header header = {.name = rows[i].name, .value = rows[i].value};
                const struct http_call_request r = {.method = rows[i].method,
                                                    .scheme = SPAN("http"),
                                                    .authority = rows[i].authority,
                                                    .path = rows[i].path,
                                                    .headers = &header,
                                                    .n_headers = 1};

                if (http11_client_submit(h, &call, &r, false) != -EINVAL)
                        fail_msg("%s was taken", rows[i].why);
                assert_int_equal(http11_client_output(h, &out), 0);
        }
        assert_int_equal(http11_client_room(h), 1);
        http11_client_free(&h);
}

/* ---- the connection ---- */

static void test_a_kept_connection_serves_on(void **state) {
        struct http11_client *h = make();
        struct story *s = calloc(1, sizeof(*s));
        struct client_call call;
        bool in_body;

        (void)state;
        assert_non_null(s);
        for (int i = 0; i < 5; i++) {
                s->len = 0;
                in_body = false;
                ask(h, &call, SPAN("GET"));
                assert_int_equal(http11_client_may_repeat(h), i > 0);
                feed(h, SPAN(OK "content-length: 2\r\n\r\nh"), s, &in_body);
                assert_false(http11_client_may_repeat(h));
                feed(h, SPAN("i"), s, &in_body);
                assert_string_equal(s->text, "200 content-length=2 |hi| OK");
                assert_int_equal(http11_client_room(h), 1);
        }
        ask(h, &call, SPAN("POST"));
        assert_false(http11_client_may_repeat(h));
        http11_client_free(&h);
        free(s);
}

static void test_bytes_that_nobody_asked_for_end_it(void **state) {
        struct http11_client *h = make();
        const struct http_call_request r = {.method = SPAN("GET"),
                                            .scheme = SPAN("http"),
                                            .authority = SPAN("a"),
                                            .path = SPAN("/")};
        struct client_call call;

        (void)state;
        assert_int_equal(http11_client_feed(h, SPAN("HTTP/1.1 408 Timeout\r\n\r\n")), -EPROTO);
        /* A call that has not left yet is not meant by them either. */
        assert_int_equal(http11_client_submit(h, &call, &r, false), 0);
        assert_int_equal(http11_client_feed(h, SPAN("HTTP/1.1 408 Timeout\r\n\r\n")), -EPROTO);
        assert_int_equal(call.first_byte, UINT64_MAX);
        http11_client_free(&h);
}

static void test_an_early_answer_spoils_the_connection(void **state) {
        static char body[50000];
        struct http11_client *h = make();
        struct story *s = calloc(1, sizeof(*s));
        const struct http_call_request r = {.method = SPAN("POST"),
                                            .scheme = SPAN("http"),
                                            .authority = SPAN("a"),
                                            .path = SPAN("/"),
                                            .body = {body, sizeof(body)}};
        struct client_call call;
        struct span out;
        bool in_body = false;

        (void)state;
        assert_non_null(s);
        assert_int_equal(http11_client_submit(h, &call, &r, false), 0);
        assert_int_equal(http11_client_output(h, &out), 1);
        feed(h, SPAN(OK "content-length: 2\r\n\r\nhi"), s, &in_body);
        assert_string_equal(s->text, "200 content-length=2 |hi| OK");
        assert_int_equal(http11_client_room(h), 0);
        assert_true(http11_client_is_going(h));
        assert_int_equal(http11_client_output(h, &out), 0);
        http11_client_free(&h);
        free(s);
}

static void test_a_cancelled_call_takes_the_connection_once_sent(void **state) {
        struct http11_client *h = make();
        const struct http_call_request r = {.method = SPAN("GET"),
                                            .scheme = SPAN("http"),
                                            .authority = SPAN("a"),
                                            .path = SPAN("/")};
        struct client_call call;
        struct span out;

        (void)state;
        assert_int_equal(http11_client_submit(h, &call, &r, false), 0);
        http11_client_cancel(h, &call);
        assert_int_equal(http11_client_output(h, &out), 0);
        assert_int_equal(http11_client_room(h), 1);
        assert_int_equal(http11_client_submit(h, &call, &r, false), 0);
        assert_int_equal(http11_client_output(h, &out), 1);
        http11_client_cancel(h, &call);
        assert_int_equal(http11_client_room(h), 0);
        assert_int_equal(http11_client_submit(h, &call, &r, false), -ENOTCONN);
        http11_client_free(&h);
}

static void test_unread_bytes_fill_it(void **state) {
        static char answer[100000];
        size_t head = (size_t)snprintf(answer, sizeof(answer), OK "content-length: 99000\r\n\r\n");
        struct http11_client *h = make();
        struct client_call call;
        struct client_event e;
        size_t unread = 0;

        (void)state;
        ask(h, &call, SPAN("GET"));
        assert_int_equal(http11_client_feed(h, (struct span){answer, head + 70000}), 0);
        while (http11_client_next(h, &e))
                unread += e.kind == CLIENT_EVENT_DATA ? e.data.len : 0;
        http11_client_done(h);
        assert_int_equal(unread, 70000);
        assert_true(http11_client_is_full(h));
        http11_client_consumed(h, &call, 4464);
        assert_true(http11_client_is_full(h));
        http11_client_consumed(h, &call, 1);
        assert_false(http11_client_is_full(h));
        http11_client_free(&h);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_request_is_one_template),
                cmocka_unit_test(test_a_long_request_leaves_in_slices),
                cmocka_unit_test(test_requests_that_are_not_sent),
                cmocka_unit_test(test_a_kept_connection_serves_on),
                cmocka_unit_test(test_bytes_that_nobody_asked_for_end_it),
                cmocka_unit_test(test_an_early_answer_spoils_the_connection),
                cmocka_unit_test(test_a_cancelled_call_takes_the_connection_once_sent),
                cmocka_unit_test(test_unread_bytes_fill_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
