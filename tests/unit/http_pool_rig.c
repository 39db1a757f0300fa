#include "tests/unit/http_pool_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct pool_rig rig;

static void on_done(struct http_call *c, enum http_call_outcome outcome) {
        assert_false(rig.in_start);
        assert_null(c->client);
        rig.ended[outcome]++;
        rig.n_ended++;
        if (rig.done)
                rig.done(c, outcome);
        if (rig.n_ended >= rig.wanted)
                loop_stop(rig.loop);
}

const struct http_call_events events = {.on_done = on_done};

int start(size_t i, int64_t deadline_ms) {
        const struct http_header headers[] = {{.name = SPAN("x-test"), .value = SPAN("value")}};
        char body[] = "{\"quantity\":1}";
        struct http_call_request r = {.method = span_of(rig.method ? rig.method : "POST"),
                                      .scheme = SPAN("http"),
                                      .authority = SPAN("a.test"),
                                      .path = SPAN("/v1/x"),
                                      .headers = headers,
                                      .n_headers = 1,
                                      .body = {body, sizeof(body) - 1},
                                      .deadline_ms = deadline_ms};
        int result;

        rig.calls[i].events = &events;
        rig.in_start = true;
        result = http_pool_start(rig.pool, &rig.calls[i], &r);
        rig.in_start = false;
        memset(body, 'x', sizeof(body)); /* it must have been copied */
        return result;
}

int setup(void **state) {
        (void)state;
        memset(&rig, 0, sizeof(rig));
        rig.loop = loop_new();
        return rig.loop ? 0 : -1;
}

int teardown(void **state) {
        (void)state;
        http_pool_free(&rig.pool);
        loop_free(&rig.loop);
        return 0;
}

struct http_pool_conf conf_to(const char *address) {
        return (struct http_pool_conf){.address = address,
                                       .connections = 2,
                                       .in_flight = 64,
                                       .waiting = 1000,
                                       .header_bytes = 16384,
                                       .window_bytes = 65535,
                                       .breaker_failures = 3,
                                       .connect_ms = 30000,
                                       .breaker_ms = 1000};
}

void make_pool(struct http_pool_conf conf) {
        assert_int_equal(http_pool_new(rig.loop, &conf, &rig.pool), 0);
}

void begin(void (*script)(struct fake_conn *)) {
        fake_peer_start(&rig.peer, script);
        make_pool(conf_to(rig.peer.address));
}

void run_calls(size_t n, int64_t deadline_ms) {
        memset(rig.ended, 0, sizeof(rig.ended));
        rig.n_ended = 0;
        rig.wanted = n;
        for (size_t i = 0; i < n; i++)
                assert_int_equal(start(i, deadline_ms), 0);
        loop_run(rig.loop);
        assert_int_equal(rig.n_ended, n);
}

void finish_peer(void) {
        struct http_pool_stats stats;

        http_pool_stats(rig.pool, &stats);
        assert_int_equal(stats.in_flight, 0);
        assert_int_equal(stats.waiting, 0);
        http_pool_free(&rig.pool);
        fake_peer_stop(&rig.peer);
}

static void on_pass(struct loop_timer *t) {
        loop_stop(t->loop);
}

void pass_ms(int64_t ms) {
        loop_timer_init(rig.loop, &rig.timer, on_pass);
        loop_timer_start(&rig.timer, ms);
        loop_run(rig.loop);
}

void await_in_flight(size_t n) {
        struct http_pool_stats stats;

        for (int i = 0; i < 5000; i++) {
                http_pool_stats(rig.pool, &stats);
                if (stats.in_flight == n)
                        return;
                pass_ms(1);
        }
        fail_msg("never %zu calls in flight", n);
}

void await_connections(size_t n) {
        struct http_pool_stats stats;

        for (int i = 0; i < 60000; i++) {
                http_pool_stats(rig.pool, &stats);
                if (stats.connections_open == n)
                        return;
                pass_ms(1);
        }
        fail_msg("never %zu connections", n);
}

void connect_first(void) {
        assert_int_equal(start(CALLS - 1, 9000), 0);
        await_in_flight(1);
        http_call_cancel(&rig.calls[CALLS - 1]);
}

void answer(struct fake_conn *c) {
        int32_t stream;

        while ((stream = fake_await_request(c))) {
                frame_head(&c->out, stream, 200, 2, false);
                frame_text(&c->out, stream, "ok", true);
                fake_send(c);
        }
}

void answer_all(struct fake_conn *c) {
        fake_greet(c, 0);
        answer(c);
}

void say_nothing(struct fake_conn *c) {
        fake_greet(c, 0);
        fake_await_end(c);
}
