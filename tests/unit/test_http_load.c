/* Client, pool and server together, over real sockets: what each promises must
 * still hold when many calls run through both. */

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/http_pool.h"
#include "net/http_server.h"
#include "tests/unit/own_cert.h"

#define CALLS 10000
#define STREAM_BYTES ((size_t)10 << 20)
#define WINDOW_BYTES 65536u

struct rig {
        struct loop *loop;
        struct http_server *server;
        struct tls_context *server_tls, *client_tls;
        struct http_pool *pool;
        struct own_cert cert;
        char address[32];
        struct http_call *calls;
        size_t n_started, n_ended, n_ok;
        size_t bytes;
        size_t unread;
        struct loop_timer reader;
        struct http_exchange *streamed;
        size_t streamed_at;
        size_t most_queued;
};

static struct rig rig;

static char pattern(size_t at) {
        return (char)(at * 31 + (at >> 13));
}

/* The server's side. "/echo" answers with the body, "/stream" with a lot. */

static void on_body(struct http_exchange *x, int outcome) {
        const struct http_header headers[] = {
                {.name = SPAN("content-type"), .value = SPAN("application/json")}};

        assert_int_equal(outcome, HTTP_BODY_DONE);
        http_answer(x, 201, headers, 1, x->body);
}

static void stream_on(struct http_exchange *x) {
        size_t queued = 0;

        while (rig.streamed_at < STREAM_BYTES && queued < HTTP_ANSWER_QUEUE) {
                char piece[8192];

                for (size_t i = 0; i < sizeof(piece); i++)
                        piece[i] = pattern(rig.streamed_at + i);
                rig.streamed_at += sizeof(piece);
                queued = http_answer_data(x, (struct span){piece, sizeof(piece)},
                                          rig.streamed_at == STREAM_BYTES);
                if (queued > rig.most_queued)
                        rig.most_queued = queued;
        }
        if (rig.streamed_at == STREAM_BYTES)
                rig.streamed = NULL;
}

static void on_gone(struct http_exchange *x) {
        if (rig.streamed == x)
                rig.streamed = NULL;
}

static const struct http_exchange_events exchange_events = {on_body, on_gone, stream_on};

static void on_request(void *owner, struct http_exchange *x) {
        (void)owner;
        x->events = &exchange_events;
        if (span_eq(x->request.path, SPAN("/echo"))) {
                http_exchange_read_body(x, 4096);
                return;
        }
        rig.streamed = x;
        http_answer_start(x, 200, NULL, 0, (int64_t)STREAM_BYTES);
        stream_on(x);
}

static void make_server(bool with_tls) {
        struct http_server_conf conf = {
                .on_request = on_request,
                .limits = {.connections = 100,
                           .handshakes = 100,
                           .handshakes_per_turn = 50,
                           .streams = 100,
                           .requests_per_connection = 3000,
                           .header_fields = 100,
                           .header_bytes = 16384,
                           .queued_bytes = 65536,
                           .glitch_burst = 1000,
                           .glitch_per_s = 100,
                           .reset_burst = 100,
                           .reset_per_s = 20,
                           .handshake_ms = 60000,
                           .header_ms = 60000,
                           .body_ms = 60000,
                           .stall_ms = 300000,
                           .idle_ms = 300000},
        };
        struct tls_server_conf tls = {.certificate_file = rig.cert.certificate_file,
                                      .key_file = rig.cert.key_file,
                                      .alpn = TLS_ALPN_H2};
        char why[128];

        if (with_tls)
                assert_int_equal(tls_server_new(&tls, &rig.server_tls, why, sizeof(why)), 0);
        conf.tls = rig.server_tls;
        assert_int_equal(http_server_new(rig.loop, &conf, &rig.server), 0);
        assert_int_equal(http_server_listen(rig.server, "127.0.0.1:0", false), 0);
        (void)snprintf(rig.address, sizeof(rig.address), "127.0.0.1:%u",
                       http_server_port(rig.server, 0));
}

static void make_pool(uint32_t in_flight) {
        struct http_pool_conf conf = {.address = rig.address,
                                      .connections = 2,
                                      .in_flight = in_flight,
                                      .waiting = CALLS,
                                      .header_bytes = 16384,
                                      .window_bytes = WINDOW_BYTES,
                                      .breaker_failures = 3,
                                      .connect_ms = 60000,
                                      .breaker_ms = 1000};
        struct tls_client_conf tls = {
                .ca_file = rig.cert.certificate_file, .alpn = TLS_ALPN_H2, .resume = true};
        char why[128];

        if (rig.server_tls) {
                assert_int_equal(tls_client_new(&tls, &rig.client_tls, why, sizeof(why)), 0);
                conf.tls = rig.client_tls;
                conf.server_name = "localhost";
        }
        assert_int_equal(http_pool_new(rig.loop, &conf, &rig.pool), 0);
}

static int setup(void **state) {
        (void)state;
        signal(SIGPIPE, SIG_IGN);
        memset(&rig, 0, sizeof(rig));
        rig.loop = loop_new();
        rig.calls = calloc(CALLS, sizeof(*rig.calls));
        return rig.loop && rig.calls ? own_cert_init(&rig.cert) : -1;
}

static int teardown(void **state) {
        (void)state;
        http_pool_free(&rig.pool);
        http_server_free(&rig.server);
        loop_free(&rig.loop);
        tls_context_free(&rig.server_tls);
        tls_context_free(&rig.client_tls);
        own_cert_fini(&rig.cert);
        free(rig.calls);
        return 0;
}

static void start(struct http_call *c, const struct http_call_events *events, const char *path,
                  struct span body) {
        const struct http_header headers[] = {
                {.name = SPAN("content-type"), .value = SPAN("application/json")},
                {.name = SPAN("idempotency-key"), .value = SPAN("0123456789abcdef")}};
        struct http_call_request r = {.method = body.len ? SPAN("POST") : SPAN("GET"),
                                      .scheme = rig.server_tls ? SPAN("https") : SPAN("http"),
                                      .authority = SPAN("localhost"),
                                      .path = span_of(path),
                                      .headers = headers,
                                      .n_headers = NET_COUNT_OF(headers),
                                      .body = body,
                                      .deadline_ms = 300000};

        c->events = events;
        assert_int_equal(http_pool_start(rig.pool, c, &r), 0);
}

static void on_echo_head(struct http_call *c, int status, const struct http_header *headers,
                         size_t n) {
        (void)c;
        (void)headers;
        assert_int_equal(status, 201);
        assert_true(n >= 2);
}

static void on_echo(struct http_call *c, struct span data) {
        char body[32];
        int n = snprintf(body, sizeof(body), "{\"call\":%zu}", (size_t)(c - rig.calls));

        assert_true(span_eq(data, (struct span){body, (size_t)n}));
}

static void start_echo(void);

static void on_echo_done(struct http_call *c, enum http_call_outcome outcome) {
        (void)c;
        rig.n_ok += outcome == HTTP_CALL_OK;
        rig.n_ended++;
        if (rig.n_ended == CALLS)
                loop_stop(rig.loop);
        else if (rig.n_started < CALLS)
                start_echo();
}

static const struct http_call_events echo_events = {on_echo_head, on_echo, on_echo_done};

static void start_echo(void) {
        char body[32];
        size_t i = rig.n_started++;
        int n = snprintf(body, sizeof(body), "{\"call\":%zu}", i);

        start(&rig.calls[i], &echo_events, "/echo", (struct span){body, (size_t)n});
}

static void echo_all(bool with_tls) {
        struct http_pool_stats stats;
        struct http_server_stats served;

        make_server(with_tls);
        make_pool(64);
        for (int i = 0; i < 100; i++)
                start_echo();
        loop_run(rig.loop);
        assert_int_equal(rig.n_ok, CALLS);
        http_pool_stats(rig.pool, &stats);
        assert_int_equal(stats.failures_total, 0);
        assert_int_equal(stats.in_flight, 0);
        assert_int_equal(stats.waiting, 0);
        http_server_stats(rig.server, &served);
        assert_int_equal(served.requests_total, CALLS);
        /* 3,000 requests a connection: it was renewed without a failure. */
        assert_true(served.connections_total >= 4);
}

static void test_ten_thousand_calls_in_the_clear(void **state) {
        (void)state;
        echo_all(false);
}

static void test_ten_thousand_calls_under_tls(void **state) {
        (void)state;
        echo_all(true);
}

static void on_stream_data(struct http_call *c, struct span data) {
        (void)c;
        for (size_t i = 0; i < data.len; i++)
                assert_int_equal(data.p[i], pattern(rig.bytes + i));
        rig.bytes += data.len;
        rig.unread += data.len;
        assert_true(rig.unread <= WINDOW_BYTES);
}

static void on_stream_done(struct http_call *c, enum http_call_outcome outcome) {
        (void)c;
        rig.n_ok += outcome == HTTP_CALL_OK;
        loop_stop(rig.loop);
}

static const struct http_call_events stream_events = {.on_data = on_stream_data,
                                                      .on_done = on_stream_done};

/* Takes up to 64 KiB a millisecond, so that 10 MiB need 160 turns of it. */
static void on_read(struct loop_timer *t) {
        if (rig.unread)
                http_call_consumed(&rig.calls[0], rig.unread);
        rig.unread = 0;
        loop_timer_start(t, 1);
}

static void stream_slowly(bool with_tls) {
        make_server(with_tls);
        make_pool(64);
        rig.calls[0].manual_window = true;
        start(&rig.calls[0], &stream_events, "/stream", SPAN(""));
        loop_timer_init(rig.loop, &rig.reader, on_read);
        loop_timer_start(&rig.reader, 1);
        loop_run(rig.loop);
        loop_timer_cancel(&rig.reader);
        assert_int_equal(rig.n_ok, 1);
        assert_int_equal(rig.bytes, STREAM_BYTES);
        assert_in_range(rig.most_queued, 1, HTTP_ANSWER_QUEUE + 8192);
}

static void test_long_answer_to_a_slow_reader_in_the_clear(void **state) {
        (void)state;
        stream_slowly(false);
}

static void test_long_answer_to_a_slow_reader_under_tls(void **state) {
        (void)state;
        stream_slowly(true);
}

/* A reader that stops for good must not stop the others. */
static void test_stalled_reader_does_not_stop_other_calls(void **state) {
        (void)state;
        make_server(true);
        make_pool(64);
        rig.n_started = rig.n_ended = 1;
        rig.calls[0].manual_window = true;
        start(&rig.calls[0], &stream_events, "/stream", SPAN(""));
        for (int i = 0; i < 100; i++)
                start_echo();
        loop_run(rig.loop);
        assert_int_equal(rig.n_ok, CALLS - 1);
        assert_int_equal(rig.bytes, WINDOW_BYTES);
        http_call_cancel(&rig.calls[0]);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_ten_thousand_calls_in_the_clear),
                T(test_ten_thousand_calls_under_tls),
                T(test_long_answer_to_a_slow_reader_in_the_clear),
                T(test_long_answer_to_a_slow_reader_under_tls),
                T(test_stalled_reader_does_not_stop_other_calls),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
