#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

#include "net/h2_request.h"
#include "tests/unit/h2_client_rig.h"

/* The head of the first HEADERS frame put out, as "name=value\n" lines. */
static void read_head(char *out, size_t size, bool *never_indexed) {
        struct span bytes = {rig.sent, rig.sent_len};
        nghttp2_hd_inflater *inflater;
        struct frame f;
        size_t len = 0;
        int flags = 0;

        do
                assert_true(frame_take(&bytes, &f));
        while (f.type != FRAME_HEADERS);
        assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
        while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
                nghttp2_nv nv;
                ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags,
                                                   (const uint8_t *)f.payload.p, f.payload.len, 1);

                assert_true(n >= 0);
                f.payload = (struct span){f.payload.p + n, f.payload.len - (size_t)n};
                if (flags & NGHTTP2_HD_INFLATE_EMIT)
                        len += (size_t)snprintf(out + len, size - len, "%.*s=%.*s\n",
                                                (int)nv.namelen, nv.name, (int)nv.valuelen,
                                                nv.value);
                if ((flags & NGHTTP2_HD_INFLATE_EMIT) && (nv.flags & NGHTTP2_NV_FLAG_NO_INDEX))
                        *never_indexed = true;
        }
        nghttp2_hd_inflate_end_headers(inflater);
        nghttp2_hd_inflate_del(inflater);
}

static void test_head_holds_the_given_parts_and_our_own_length(void **state) {
        const struct http_header headers[] = {
                {.name = SPAN("content-type"), .value = SPAN("application/json")},
                {.name = SPAN("content-length"), .value = SPAN("999")},
                {.name = SPAN("sluice-pass"), .value = SPAN("secret")},
        };
        struct http_call_request r = get("POST");
        bool never_indexed = false;
        char head[1024];

        (void)state;
        r.headers = headers;
        r.n_headers = NET_COUNT_OF(headers);
        r.body = SPAN("{\"a\":1}");
        submit(&calls[0], r);
        put_out();
        read_head(head, sizeof(head), &never_indexed);
        assert_string_equal(
                head, ":method=POST\n:scheme=http\n:authority=a.test\n:path=/x?y\n"
                      "content-type=application/json\nsluice-pass=secret\ncontent-length=7\n");
        assert_true(never_indexed);
        expect_frames("H1 D1");
}

static void test_empty_post_says_length_zero_and_get_none(void **state) {
        bool unused;
        char head[512];

        (void)state;
        submit(&calls[0], get("POST"));
        put_out();
        read_head(head, sizeof(head), &unused);
        assert_non_null(strstr(head, "content-length=0\n"));
        expect_frames("H1");
        submit(&calls[1], get("GET"));
        put_out();
        assert_null(memmem(rig.sent, rig.sent_len, "\x0f\x0d", 2));
        expect_frames("H3");
}

static void test_what_may_not_be_in_a_request_is_refused(void **state) {
        static const struct {
                const char *why, *name, *value;
                int r;
        } rows[] = {
                {"fine", "x-a", "b", 0},
                {"empty value", "x-a", "", 0},
                {"upper case", "X-A", "b", -EINVAL},
                {"empty name", "", "b", -EINVAL},
                {"pseudo", ":path", "/y", -EINVAL},
                {"blank in name", "x a", "b", -EINVAL},
                {"colon in name", "x:a", "b", -EINVAL},
                {"newline in value", "x-a", "b\r\nc: d", -EINVAL},
                {"blank before value", "x-a", " b", -EINVAL},
                {"connection", "connection", "close", -EINVAL},
                {"transfer-encoding", "transfer-encoding", "chunked", -EINVAL},
                {"host", "host", "b.test", -EINVAL},
                {"te", "te", "trailers", -EINVAL},
                {"expect", "expect", "100-continue", -EINVAL},
                {"length is ignored", "content-length", "5", 0},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct http_header header = {.name = span_of(rows[i].name),
                                             .value = span_of(rows[i].value)};
                struct http_call_request r = get("GET");

                r.headers = &header;
                r.n_headers = 1;
                if (h2_request_check(&r) != rows[i].r)
                        print_error("%s\n", rows[i].why);
                assert_int_equal(h2_request_check(&r), rows[i].r);
        }
}

static void test_odd_request_lines_are_refused(void **state) {
        static const struct {
                const char *why, *method, *scheme, *authority, *path;
        } rows[] = {
                {"blank in method", "GE T", "http", "a.test", "/"},
                {"no method", "", "http", "a.test", "/"},
                {"blank in path", "GET", "http", "a.test", "/ b"},
                {"newline in path", "GET", "http", "a.test", "/\r\n"},
                {"no path", "GET", "http", "a.test", ""},
                {"odd scheme", "GET", "javascript", "a.test", "/"},
                {"blank in authority", "GET", "http", "a test", "/"},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct http_call_request r = {.method = span_of(rows[i].method),
                                              .scheme = span_of(rows[i].scheme),
                                              .authority = span_of(rows[i].authority),
                                              .path = span_of(rows[i].path)};

                if (h2_request_check(&r) != -EINVAL)
                        print_error("%s\n", rows[i].why);
                assert_int_equal(h2_request_check(&r), -EINVAL);
        }
}

static void test_too_many_fields_are_refused(void **state) {
        static char big[65536];
        struct http_header headers[129];
        struct http_call_request r = get("GET");

        (void)state;
        memset(big, 'a', sizeof(big));
        for (size_t i = 0; i < NET_COUNT_OF(headers); i++)
                headers[i] = (struct http_header){.name = SPAN("x-a"), .value = SPAN("b")};
        r.headers = headers;
        r.n_headers = 129;
        assert_int_equal(h2_request_check(&r), -EMSGSIZE);
        r.n_headers = 128;
        assert_int_equal(h2_client_submit(rig.h, &calls[0], &r, false), 0);
        put_out();
        headers[0].value = (struct span){big, sizeof(big)};
        r.n_headers = 1;
        assert_int_equal(h2_request_check(&r), -EMSGSIZE);
}

static void test_kept_request_may_go_after_it_was_put_out(void **state) {
        char *name = strdup("x-name"), *value = strdup("value");
        struct http_header header = {.name = span_of(name), .value = span_of(value)};
        struct http_call_request r = get("GET");
        bool unused;
        char head[512];

        (void)state;
        r.headers = &header;
        r.n_headers = 1;
        assert_int_equal(h2_client_submit(rig.h, &calls[0], &r, true), 0);
        put_out();
        free(name);
        free(value);
        read_head(head, sizeof(head), &unused);
        assert_non_null(strstr(head, "x-name=value\n"));
        rig.sent_len = 0;
        frame_head(&rig.in, 1, 200, -1, true);
        turn();
        expect_events("H1:200:0 E1:C");
}

static void test_kept_request_may_go_when_its_call_is_cancelled_unsent(void **state) {
        char *parts[3] = {strdup("/path"), strdup("x-name"), strdup("value")};
        struct http_header header = {.name = span_of(parts[1]), .value = span_of(parts[2])};
        struct http_call_request r = get("GET");

        (void)state;
        r.path = span_of(parts[0]);
        r.headers = &header;
        r.n_headers = 1;
        assert_int_equal(h2_client_submit(rig.h, &calls[0], &r, true), 0);
        h2_client_cancel(rig.h, &calls[0]);
        for (size_t i = 0; i < NET_COUNT_OF(parts); i++)
                free(parts[i]);
        submit(&calls[1], get("GET"));
        put_out();
        expect_frames("H3");
}

static void test_body_follows_the_peers_window(void **state) {
        static char body[100000];
        struct http_call_request r = get("POST");
        struct frame f;
        struct span bytes;
        size_t got = 0;

        (void)state;
        r.body = (struct span){body, sizeof(body)};
        for (size_t i = 0; i < sizeof(body); i++)
                body[i] = (char)(i * 7);
        submit(&calls[0], r);
        put_out();
        frame_window(&rig.in, 0, 100000);
        frame_window(&rig.in, 1, 100000);
        turn();
        bytes = (struct span){rig.sent, rig.sent_len};
        while (frame_take(&bytes, &f)) {
                if (f.type != FRAME_DATA)
                        continue;
                assert_memory_equal(f.payload.p, body + got, f.payload.len);
                got += f.payload.len;
        }
        assert_int_equal(got, sizeof(body));
        assert_int_equal(f.flags & FRAME_END, FRAME_END);
}

static void test_answer_before_the_body_was_sent_ends_the_request(void **state) {
        static char body[200000];
        struct http_call_request r = get("POST");

        (void)state;
        r.body = (struct span){body, sizeof(body)};
        submit(&calls[0], r);
        put_out();
        assert_true(rig.sent_len < 70000);
        rig.sent_len = 0;
        frame_head(&rig.in, 1, 413, 0, true);
        turn();
        expect_events("H1:413:1 E1:C");
        expect_frames("R1:0");
        memset(&calls[0], 0xee, sizeof(calls[0]));
        frame_window(&rig.in, 1, 100000);
        frame_window(&rig.in, 0, 100000);
        turn();
        expect_frames("");
}

static void test_first_byte_tells_where_a_head_begins(void **state) {
        size_t before;

        (void)state;
        h2_client_free(&rig.h);
        assert_int_equal(setup_with(10, 4096, 65535), 0);
        submit_gets(3);
        assert_true(calls[0].first_byte == UINT64_MAX);
        before = 0;
        put_out();
        for (int i = 0; i < 2; i++) {
                struct span bytes = {rig.sent + before, rig.sent_len - before};
                struct frame f;

                assert_true(frame_take(&bytes, &f));
                assert_int_equal(calls[i + 1].first_byte - calls[i].first_byte, f.payload.len + 9);
                before += f.payload.len + 9;
        }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_head_holds_the_given_parts_and_our_own_length),
                T(test_empty_post_says_length_zero_and_get_none),
                T(test_what_may_not_be_in_a_request_is_refused),
                T(test_odd_request_lines_are_refused),
                T(test_too_many_fields_are_refused),
                T(test_kept_request_may_go_after_it_was_put_out),
                T(test_kept_request_may_go_when_its_call_is_cancelled_unsent),
                T(test_body_follows_the_peers_window),
                T(test_answer_before_the_body_was_sent_ends_the_request),
                T(test_first_byte_tells_where_a_head_begins),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
