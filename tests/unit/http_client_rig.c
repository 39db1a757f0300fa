#include "tests/unit/http_client_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const char letter[] = {
        [HTTP_CALL_OK] = 'O',   [HTTP_CALL_UNSENT] = 'U',   [HTTP_CALL_TIMEOUT] = 'T',
        [HTTP_CALL_LOST] = 'L', [HTTP_CALL_PROTOCOL] = 'P',
};

struct client_rig rig;

size_t index_of(const struct http_call *c) {
        return (size_t)(c - rig.calls);
}

static void on_head(struct http_call *c, int status, const struct http_header *headers, size_t n) {
        (void)headers;
        (void)n;
        assert_false(rig.in_start);
        rig.statuses[index_of(c)] = status;
        if (rig.plan.head)
                rig.plan.head(c);
}

static void on_data(struct http_call *c, struct span data) {
        rig.bytes[index_of(c)] += data.len;
        if (rig.plan.data)
                rig.plan.data(c, data);
}

static void on_done(struct http_call *c, enum http_call_outcome outcome) {
        assert_false(rig.in_start);
        assert_int_equal(rig.outcomes[index_of(c)], '.');
        rig.outcomes[index_of(c)] = letter[outcome];
        rig.n_done++;
        if (rig.plan.done)
                rig.plan.done(c);
        if (rig.n_done == rig.plan.calls && !rig.plan.keep_open)
                http_client_drain(rig.client);
}

static const struct http_call_events events = {on_head, on_data, on_done};

int start(size_t i) {
        struct http_call_request r = {.method = rig.plan.body.len ? SPAN("POST") : SPAN("GET"),
                                      .scheme = SPAN("http"),
                                      .authority = SPAN("a.test"),
                                      .path = SPAN("/"),
                                      .body = rig.plan.body,
                                      .deadline_ms =
                                              rig.plan.deadline_ms ? rig.plan.deadline_ms : 60000};
        int result;

        rig.calls[i].events = &events;
        rig.outcomes[i] = '.';
        rig.in_start = true;
        result = http_client_start(rig.client, &rig.calls[i], &r);
        rig.in_start = false;
        return result;
}

static void on_ready(void *owner, struct http_client *c) {
        assert_ptr_equal(owner, &rig);
        assert_ptr_equal(c, rig.client);
        assert_true(http_client_is_ready(c));
        for (size_t i = 0; i < rig.plan.calls; i++)
                assert_int_equal(start(i), 0);
        if (rig.plan.ready)
                rig.plan.ready();
}

static void on_closed(void *owner, struct http_client *c, int why) {
        (void)owner;
        assert_int_equal(http_client_open_calls(c), 0);
        assert_false(http_client_is_ready(c));
        rig.closed++;
        rig.why = why;
        loop_stop(rig.loop);
}

int setup(void **state) {
        (void)state;
        memset(&rig, 0, sizeof(rig));
        rig.loop = loop_new();
        return rig.loop ? 0 : -1;
}

int teardown(void **state) {
        (void)state;
        loop_free(&rig.loop);
        return 0;
}

void open_to(const char *address, int64_t connect_ms) {
        struct http_client_conf conf = {.address = address,
                                        .connect_ms = connect_ms,
                                        .max_streams = 50,
                                        .header_bytes = 16384,
                                        .window_bytes = 65535,
                                        .on_ready = on_ready,
                                        .on_closed = on_closed,
                                        .owner = &rig};

        assert_int_equal(http_client_open(rig.loop, &conf, &rig.client), 0);
}

void play(void (*script)(struct fake_conn *), struct client_plan plan, const char *outcomes,
          int why) {
        rig.plan = plan;
        fake_peer_start(&rig.peer, script);
        open_to(rig.peer.address, 60000);
        loop_run(rig.loop);
        fake_peer_stop(&rig.peer);
        assert_string_equal(rig.outcomes, outcomes);
        assert_int_equal(rig.closed, 1);
        assert_int_equal(rig.why, why);
}

void answer_all(struct fake_conn *c) {
        int32_t stream;

        fake_greet(c, 0);
        while ((stream = fake_await_request(c))) {
                frame_head(&c->out, stream, 200, 5, false);
                frame_text(&c->out, stream, "hello", true);
                fake_send(c);
        }
}
