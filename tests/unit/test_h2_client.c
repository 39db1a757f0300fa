#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

#include "net/h2_client.h"
#include "net/h2_request.h"
#include "tests/unit/h2_frames.h"

#define REFUSED_STREAM 7u
#define CANCEL 8u

struct rig {
        struct h2_client *h;
        struct frames in;  /* from the peer */
        char sent[262144]; /* what the session put out, not yet read */
        size_t sent_len;
        char log[8192]; /* events as text */
        size_t log_len;
        int64_t now_ms;
};

static struct rig rig;
static struct h2_call calls[200];

static void say(const char *format, ...) NET_PRINTF(1, 2);
static void say(const char *format, ...) {
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(rig.log + rig.log_len, sizeof(rig.log) - rig.log_len, format, args);
        va_end(args);
        assert_true(n >= 0 && (size_t)n < sizeof(rig.log) - rig.log_len);
        rig.log_len += (size_t)n;
}

static void put_out(void) {
        struct span out;

        while (h2_client_output(rig.h, &out) == 1) {
                assert_true(rig.sent_len + out.len <= sizeof(rig.sent));
                memcpy(rig.sent + rig.sent_len, out.p, out.len);
                rig.sent_len += out.len;
        }
}

/* "H3:200:n" head with n fields, "D3:text", "E3:outcome" by its first letter. */
static void take_events(void) {
        static const char letter[] = {[H2_CLIENT_COMPLETE] = 'C',
                                      [H2_CLIENT_REFUSED] = 'R',
                                      [H2_CLIENT_BROKEN] = 'B',
                                      [H2_CLIENT_MALFORMED] = 'M'};
        struct h2_client_event e;

        while (h2_client_next(rig.h, &e)) {
                switch (e.kind) {
                case H2_CLIENT_HEAD:
                        say("H%d:%d:%zu ", e.call->stream, e.status, e.n_headers);
                        break;
                case H2_CLIENT_DATA:
                        if (e.data.len < 64)
                                say("D%d:%.*s ", e.call->stream, (int)e.data.len, e.data.p);
                        break;
                case H2_CLIENT_END:
                        say("E%d:%c ", e.call->stream, letter[e.end]);
                        break;
                }
        }
        h2_client_done(rig.h);
}

static int feed(void) {
        int r = 0;

        for (size_t at = 0; at < rig.in.len && r == 0; at += 65536) {
                size_t n = rig.in.len - at < 65536 ? rig.in.len - at : 65536;

                r = h2_client_feed(rig.h, (struct span){rig.in.data + at, n}, rig.now_ms);
                take_events();
        }
        rig.in.len = 0;
        return r;
}

static void turn(void) {
        assert_int_equal(feed(), 0);
        put_out();
        take_events();
}

static void expect_events(const char *text) {
        if (rig.log_len)
                rig.log[rig.log_len - 1] = '\0';
        assert_string_equal(rig.log, text);
        rig.log_len = 0;
        rig.log[0] = '\0';
}

/* Frames put out since the last time, as "H3 D3 R3:8 W0 ..." */
static void expect_frames(const char *text) {
        struct span bytes = {rig.sent, rig.sent_len};
        struct frame f;

        (void)frame_take_preface(&bytes);
        while (frame_take(&bytes, &f)) {
                if (f.type == FRAME_RST)
                        say("R%d:%u ", f.stream, frame_number(f.payload, 0));
                else
                        say("%c%d ", "DH?RSPPGWC"[f.type], f.stream);
        }
        assert_int_equal(bytes.len, 0);
        rig.sent_len = 0;
        expect_events(text);
}

static int setup_with(uint32_t max_streams, uint32_t header_bytes, uint32_t window) {
        struct h2_client_conf conf = {
                .max_streams = max_streams, .header_bytes = header_bytes, .window_bytes = window};

        memset(&rig, 0, sizeof(rig));
        memset(calls, 0, sizeof(calls));
        rig.h = h2_client_new(&conf);
        if (!rig.h)
                return -1;
        frame_settings(&rig.in, 0, 0);
        frame_settings_ack(&rig.in);
        turn();
        rig.sent_len = 0;
        return 0;
}

static int setup(void **state) {
        (void)state;
        return setup_with(100, 4096, 65535);
}

static int teardown(void **state) {
        (void)state;
        h2_client_free(&rig.h);
        return 0;
}

static struct http_call_request get(const char *method) {
        return (struct http_call_request){.method = span_of(method),
                                          .scheme = SPAN("http"),
                                          .authority = SPAN("a.test"),
                                          .path = SPAN("/x?y"),
                                          .deadline_ms = 1000};
}

static void submit(struct h2_call *call, struct http_call_request r) {
        assert_int_equal(h2_client_submit(rig.h, call, &r, false), 0);
}

static void submit_gets(size_t n) {
        for (size_t i = 0; i < n; i++)
                submit(&calls[i], get("GET"));
}

static void test_preface_and_settings_come_first(void **state) {
        struct h2_client_conf conf = {
                .max_streams = 1, .header_bytes = 4096, .window_bytes = 65535};

        (void)state;
        h2_client_free(&rig.h);
        rig.h = h2_client_new(&conf);
        rig.sent_len = 0;
        put_out();
        assert_true(
                span_starts((struct span){rig.sent, rig.sent_len}, SPAN("PRI * HTTP/2.0\r\n\r\n")));
        expect_frames("S0 W0");
        assert_false(h2_client_is_greeted(rig.h));
        frame_settings(&rig.in, 0, 0);
        turn();
        assert_true(h2_client_is_greeted(rig.h));
}

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

static void test_room_is_the_lower_of_both_ceilings(void **state) {
        (void)state;
        assert_int_equal(h2_client_room(rig.h), 100);
        frame_settings(&rig.in, 3, 3);
        turn();
        assert_int_equal(h2_client_room(rig.h), 3);
        submit_gets(3);
        assert_int_equal(h2_client_room(rig.h), 0);

        struct http_call_request r = get("GET");

        assert_int_equal(h2_client_submit(rig.h, &calls[3], &r, false), -EAGAIN);
        put_out();
        frame_settings(&rig.in, 3, 1);
        turn();
        assert_int_equal(h2_client_room(rig.h), 0);
        frame_head(&rig.in, 1, 200, 0, true);
        frame_head(&rig.in, 3, 200, 0, true);
        turn();
        assert_int_equal(h2_client_room(rig.h), 0);
        frame_head(&rig.in, 5, 200, 0, true);
        turn();
        assert_int_equal(h2_client_room(rig.h), 1);
        frame_settings(&rig.in, 3, 1000);
        turn();
        assert_int_equal(h2_client_room(rig.h), 100);
}

static void test_calls_above_a_lowered_ceiling_wait_inside(void **state) {
        (void)state;
        submit_gets(2);
        frame_settings(&rig.in, 3, 1);
        turn();
        expect_frames("S0 H1");
        frame_head(&rig.in, 1, 200, 0, true);
        turn();
        expect_events("H1:200:1 E1:C");
        expect_frames("H3");
}

static void test_answers_with_and_without_a_body(void **state) {
        (void)state;
        submit_gets(5);
        submit(&calls[5], get("HEAD"));
        put_out();
        frame_head(&rig.in, 1, 200, 5, false);
        frame_text(&rig.in, 1, "hel", false);
        frame_text(&rig.in, 1, "lo", true);
        frame_head(&rig.in, 3, 204, -1, true);
        frame_head(&rig.in, 5, 304, 700, true);
        frame_head(&rig.in, 7, 200, 0, true);
        frame_head(&rig.in, 9, 200, -1, false);
        frame_text(&rig.in, 9, "", true);
        frame_head(&rig.in, 11, 200, 700, true);
        turn();
        expect_events("H1:200:1 D1:hel D1:lo E1:C H3:204:0 E3:C H5:304:1 E5:C H7:200:1 E7:C "
                      "H9:200:0 E9:C H11:200:1 E11:C");
}

static void test_fed_byte_by_byte_says_the_same(void **state) {
        struct frames whole = {.len = 0};

        (void)state;
        submit_gets(2);
        put_out();
        frame_head(&whole, 1, 103, -1, false);
        frame_head(&whole, 1, 200, 2, false);
        frame_head(&whole, 3, 200, 7, true);
        frame_text(&whole, 1, "hi", true);
        /* 7 announced, none sent, on stream 3. */
        for (size_t i = 0; i < whole.len; i++) {
                rig.in.data[0] = whole.data[i];
                rig.in.len = 1;
                turn();
        }
        expect_events("H1:200:1 E3:M D1:h D1:i E1:C");
}

static void test_interim_answers_and_trailers_are_dropped(void **state) {
        (void)state;
        submit_gets(1);
        put_out();
        frame_head(&rig.in, 1, 103, -1, false);
        frame_head(&rig.in, 1, 100, -1, false);
        frame_head(&rig.in, 1, 200, -1, false);
        frame_text(&rig.in, 1, "x", false);
        /* A literal field, name and value of one letter. */
        frame_put(&rig.in, FRAME_HEADERS, FRAME_END | FRAME_END_HEADERS, 1, SPAN("\x00\x01t\x01v"));
        turn();
        expect_events("H1:200:0 D1:x E1:C");
}

static void test_wrong_lengths_are_malformed(void **state) {
        (void)state;
        submit_gets(3);
        put_out();
        rig.sent_len = 0;
        frame_head(&rig.in, 1, 200, 5, false);
        frame_text(&rig.in, 1, "shor", true);
        frame_head(&rig.in, 3, 200, 3, false);
        frame_text(&rig.in, 3, "long", false);
        frame_head(&rig.in, 5, 200, 5, true);
        turn();
        expect_events("H1:200:1 D1:shor H3:200:1 E1:M E3:M E5:M");
        expect_frames("R1:1 R3:1 R5:1");
}

static void test_head_over_the_ceiling_is_malformed_and_reset(void **state) {
        static char value[4096];
        struct frames block = {.len = 0};

        (void)state;
        memset(value, 'a', sizeof(value));
        /* A literal field of 3,000 bytes, twice: 7-bit prefix, then 2,873. */
        for (int i = 0; i < 2; i++) {
                memcpy(block.data + block.len, "\x00\x01t\x7f\xb9\x16", 6);
                memcpy(block.data + block.len + 6, value, 3000);
                block.len += 3006;
        }
        submit_gets(2);
        put_out();
        rig.sent_len = 0;
        frame_put(&rig.in, FRAME_HEADERS, 0, 1, SPAN("\x88"));
        frame_put(&rig.in, FRAME_CONTINUATION, FRAME_END_HEADERS, 1,
                  (struct span){block.data, block.len});
        frame_head(&rig.in, 3, 200, -1, true);
        turn();
        expect_events("E1:M H3:200:0 E3:C");
        expect_frames("R1:8");
        frame_text(&rig.in, 1, "late", true);
        turn();
        expect_events("");
}

static void test_resets_of_the_peer(void **state) {
        (void)state;
        submit_gets(4);
        put_out();
        frame_rst(&rig.in, 1, REFUSED_STREAM);
        frame_rst(&rig.in, 3, 2);
        frame_rst(&rig.in, 5, 0);
        frame_head(&rig.in, 7, 200, 9, false);
        frame_rst(&rig.in, 7, REFUSED_STREAM);
        turn();
        expect_events("E1:R E3:B E5:B H7:200:1 E7:B");
        assert_int_equal(h2_client_room(rig.h), 100);
}

static void test_goaway_refuses_only_later_calls(void **state) {
        (void)state;
        submit_gets(4);
        put_out();
        frame_goaway(&rig.in, 5, 0);
        turn();
        expect_events("E7:R");
        assert_true(h2_client_is_going(rig.h));
        assert_false(h2_client_is_over(rig.h));
        assert_int_equal(h2_client_room(rig.h), 0);
        frame_head(&rig.in, 1, 200, 0, true);
        frame_head(&rig.in, 3, 200, 0, true);
        frame_head(&rig.in, 5, 200, 2, false);
        turn();
        frame_text(&rig.in, 5, "ok", true);
        turn();
        expect_events("H1:200:1 E1:C H3:200:1 E3:C H5:200:1 D5:ok E5:C");

        struct http_call_request r = get("GET");

        assert_int_equal(h2_client_submit(rig.h, &calls[5], &r, false), -ENOTCONN);
}

static void test_goaway_in_two_steps(void **state) {
        (void)state;
        submit_gets(2);
        put_out();
        frame_goaway(&rig.in, INT32_MAX, 0);
        turn();
        expect_events("");
        assert_true(h2_client_is_going(rig.h));
        frame_goaway(&rig.in, 1, 0);
        turn();
        expect_events("E3:R");
        frame_head(&rig.in, 1, 200, 0, true);
        turn();
        expect_events("H1:200:1 E1:C");
}

static void test_calls_not_put_out_before_goaway_are_refused(void **state) {
        (void)state;
        submit_gets(1);
        put_out();
        rig.sent_len = 0;
        submit(&calls[1], get("GET"));
        frame_goaway(&rig.in, INT32_MAX, 0);
        turn();
        expect_events("E3:R");
        expect_frames("");
        assert_true(calls[1].first_byte == UINT64_MAX);
}

static void test_cancelled_call_is_reset_and_says_nothing(void **state) {
        (void)state;
        submit_gets(2);
        put_out();
        rig.sent_len = 0;
        h2_client_cancel(rig.h, &calls[0]);
        memset(&calls[0], 0xee, sizeof(calls[0]));
        frame_head(&rig.in, 1, 200, 2, false);
        frame_text(&rig.in, 1, "no", true);
        frame_head(&rig.in, 3, 200, 0, true);
        turn();
        expect_events("H3:200:1 E3:C");
        expect_frames("R1:8");
        assert_int_equal(h2_client_room(rig.h), 100);
}

static void test_cancelled_before_it_was_put_out_leaves_no_trace(void **state) {
        struct h2_call *call = calloc(1, sizeof(*call));
        struct http_call_request r = get("POST");

        (void)state;
        r.body = SPAN("body");
        submit(call, r);
        submit(&calls[1], get("GET"));
        h2_client_cancel(rig.h, call);
        free(call);
        put_out();
        take_events();
        expect_frames("H3");
        expect_events("");
}

static void test_cancelled_in_the_middle_of_its_events(void **state) {
        struct h2_client_event e;

        (void)state;
        submit_gets(2);
        put_out();
        rig.sent_len = 0;
        frame_head(&rig.in, 1, 200, 2, false);
        frame_text(&rig.in, 1, "no", true);
        frame_head(&rig.in, 3, 200, 0, true);
        assert_int_equal(h2_client_feed(rig.h, (struct span){rig.in.data, rig.in.len}, 0), 0);
        rig.in.len = 0;
        assert_true(h2_client_next(rig.h, &e));
        assert_ptr_equal(e.call, &calls[0]);
        h2_client_cancel(rig.h, &calls[0]);
        memset(&calls[0], 0xee, sizeof(calls[0]));
        take_events();
        turn();
        expect_events("H3:200:1 E3:C");
        expect_frames("");
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

static void test_stalled_call_does_not_eat_the_connections_window(void **state) {
        static char piece[16384];
        size_t stalled = 65535 / sizeof(piece);

        (void)state;
        submit_gets(2);
        put_out();
        rig.sent_len = 0;
        frame_head(&rig.in, 1, 200, -1, false);
        frame_head(&rig.in, 3, 200, -1, false);
        for (size_t i = 0; i < stalled; i++)
                frame_put(&rig.in, FRAME_DATA, 0, 1, (struct span){piece, sizeof(piece)});
        turn();
        /* 64 MiB through the other call, the first one stays untouched. */
        for (int i = 0; i < 4096; i++) {
                frame_put(&rig.in, FRAME_DATA, 0, 3, (struct span){piece, sizeof(piece)});
                turn();
                h2_client_consumed(rig.h, &calls[1], sizeof(piece));
                put_out();

                struct span bytes = {rig.sent, rig.sent_len};
                struct frame f;

                while (frame_take(&bytes, &f))
                        assert_true(f.type == FRAME_WINDOW && f.stream != 1);
                rig.sent_len = 0;
        }
        assert_false(h2_client_is_over(rig.h));
        h2_client_consumed(rig.h, &calls[0], stalled * sizeof(piece));
        put_out();
        rig.log_len = 0;
        expect_frames("W1");
}

static void test_peer_that_oversteps_the_window_is_cut_off(void **state) {
        static char piece[16384];

        (void)state;
        submit_gets(1);
        put_out();
        frame_head(&rig.in, 1, 200, -1, false);
        for (int i = 0; i < 5; i++)
                frame_put(&rig.in, FRAME_DATA, 0, 1, (struct span){piece, sizeof(piece)});
        turn();
        assert_non_null(strstr(rig.log, "E1:M"));
}

static void test_connection_errors_end_the_session(void **state) {
        static const struct {
                const char *why;
                enum frame_type type;
                int32_t stream;
                struct span payload;
        } rows[] = {
                {"data for a stream never opened", FRAME_DATA, 9, {"x", 1}},
                {"pushed answer", FRAME_PUSH, 1, {"\0\0\0\2\x88", 5}},
                {"broken compression", FRAME_HEADERS, 1, {"\xff\xff\xff\xff\xff\xff", 6}},
                {"settings of odd length", FRAME_SETTINGS, 0, {"x", 1}},
                {"continuation of nothing", FRAME_CONTINUATION, 1, {"x", 1}},
                {"window overflow", FRAME_WINDOW, 0, {"\x7f\xff\xff\xff", 4}},
        };

        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                assert_int_equal(setup(state), 0);
                submit_gets(1);
                put_out();
                frame_put(&rig.in, rows[i].type, FRAME_END_HEADERS, rows[i].stream,
                          rows[i].payload);
                (void)feed();
                put_out();
                if (!h2_client_is_over(rig.h))
                        print_error("%s\n", rows[i].why);
                assert_true(h2_client_is_over(rig.h));
                assert_int_equal(h2_client_room(rig.h), 0);
                teardown(state);
        }
}

static void test_floods_end_the_connection(void **state) {
        static const struct {
                const char *why;
                enum frame_type type;
                unsigned flags;
                int32_t stream;
                struct span payload;
                int most;
        } rows[] = {
                {"ping", FRAME_PING, 0, 0, {"12345678", 8}, 2000},
                {"ping answers", FRAME_PING, FRAME_ACK, 0, {"12345678", 8}, 2000},
                {"settings", FRAME_SETTINGS, 0, 0, {"", 0}, 200},
                {"settings answers", FRAME_SETTINGS, FRAME_ACK, 0, {"", 0}, 200},
                {"priority", FRAME_PRIORITY, 0, 1, {"\0\0\0\0\1", 5}, 2000},
                {"empty data", FRAME_DATA, 0, 1, {"", 0}, 200},
                {"padding", FRAME_DATA, FRAME_PADDED, 1, {"\3\0\0\0", 4}, 200},
                {"window by one", FRAME_WINDOW, 0, 0, {"\0\0\0\1", 4}, 2000},
                {"goaway", FRAME_GOAWAY, 0, 0, {"\x7f\xff\xff\xff\0\0\0\0", 8}, 200},
                {"unknown type", (enum frame_type)0x77, 0, 0, {"0123456789abcdef", 16}, 120000},
                {"interim answers",
                 FRAME_HEADERS,
                 FRAME_END_HEADERS,
                 3,
                 {"\x08\x03"
                  "103",
                  5},
                 2000},
        };

        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                int n = 0, r = 0;

                assert_int_equal(setup(state), 0);
                submit_gets(2);
                put_out();
                frame_head(&rig.in, 1, 200, -1, false);
                turn();
                while (r == 0 && n < rows[i].most && !h2_client_is_over(rig.h)) {
                        for (int k = 0; k < 50; k++, n++)
                                frame_put(&rig.in, rows[i].type, rows[i].flags, rows[i].stream,
                                          rows[i].payload);
                        r = feed();
                        if (r == 0)
                                put_out();
                        rig.sent_len = 0;
                        rig.log_len = 0;
                }
                if (r != -EPROTO && !h2_client_is_over(rig.h))
                        print_error("%s: %d taken\n", rows[i].why, n);
                assert_true(r == -EPROTO || h2_client_is_over(rig.h));
                teardown(state);
        }
}

static void test_ping_answers_nobody_takes_are_bounded(void **state) {
        int r = 0;

        (void)state;
        for (int i = 0; i < 300 && r == 0; i++) {
                frame_put(&rig.in, FRAME_PING, 0, 0, SPAN("12345678"));
                r = feed();
        }
        assert_int_equal(r, -EPROTO);
}

static void test_honest_traffic_is_no_flood(void **state) {
        (void)state;
        for (int i = 0; i < 20000; i++) {
                rig.now_ms += 1;
                submit(&calls[0], get("GET"));
                put_out();
                rig.sent_len = 0;
                frame_head(&rig.in, calls[0].stream, 200, 2, false);
                frame_text(&rig.in, calls[0].stream, "ok", true);
                if (i % 20 == 0)
                        frame_put(&rig.in, FRAME_PING, 0, 0, SPAN("12345678"));
                turn();
                rig.log_len = 0;
        }
        assert_false(h2_client_is_over(rig.h));
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
                T(test_preface_and_settings_come_first),
                T(test_head_holds_the_given_parts_and_our_own_length),
                T(test_empty_post_says_length_zero_and_get_none),
                T(test_what_may_not_be_in_a_request_is_refused),
                T(test_odd_request_lines_are_refused),
                T(test_too_many_fields_are_refused),
                T(test_kept_request_may_go_after_it_was_put_out),
                T(test_room_is_the_lower_of_both_ceilings),
                T(test_calls_above_a_lowered_ceiling_wait_inside),
                T(test_answers_with_and_without_a_body),
                T(test_fed_byte_by_byte_says_the_same),
                T(test_interim_answers_and_trailers_are_dropped),
                T(test_wrong_lengths_are_malformed),
                T(test_head_over_the_ceiling_is_malformed_and_reset),
                T(test_resets_of_the_peer),
                T(test_goaway_refuses_only_later_calls),
                T(test_goaway_in_two_steps),
                T(test_calls_not_put_out_before_goaway_are_refused),
                T(test_cancelled_call_is_reset_and_says_nothing),
                T(test_cancelled_before_it_was_put_out_leaves_no_trace),
                T(test_cancelled_in_the_middle_of_its_events),
                T(test_answer_before_the_body_was_sent_ends_the_request),
                T(test_body_follows_the_peers_window),
                T(test_stalled_call_does_not_eat_the_connections_window),
                T(test_peer_that_oversteps_the_window_is_cut_off),
                cmocka_unit_test(test_connection_errors_end_the_session),
                cmocka_unit_test(test_floods_end_the_connection),
                T(test_ping_answers_nobody_takes_are_bounded),
                T(test_honest_traffic_is_no_flood),
                T(test_first_byte_tells_where_a_head_begins),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
