#include "tests/unit/h2_client_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct h2_client_rig rig;
struct client_call calls[200];

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

void put_out(void) {
        struct span out;

        while (h2_client_output(rig.h, &out) == 1) {
                assert_true(rig.sent_len + out.len <= sizeof(rig.sent));
                memcpy(rig.sent + rig.sent_len, out.p, out.len);
                rig.sent_len += out.len;
        }
}

void take_events(void) {
        static const char letter[] = {[CLIENT_END_COMPLETE] = 'C',
                                      [CLIENT_END_REFUSED] = 'R',
                                      [CLIENT_END_BROKEN] = 'B',
                                      [CLIENT_END_MALFORMED] = 'M'};
        struct client_event e;

        while (h2_client_next(rig.h, &e)) {
                switch (e.kind) {
                case CLIENT_EVENT_HEAD:
                        say("H%d:%d:%zu ", e.call->stream, e.status, e.n_headers);
                        break;
                case CLIENT_EVENT_DATA:
                        if (e.data.len < 64)
                                say("D%d:%.*s ", e.call->stream, (int)e.data.len, e.data.p);
                        break;
                case CLIENT_EVENT_END:
                        say("E%d:%c ", e.call->stream, letter[e.end]);
                        break;
                }
        }
        h2_client_done(rig.h);
}

int feed(void) {
        int r = 0;

        for (size_t at = 0; at < rig.in.len && r == 0; at += 65536) {
                size_t n = rig.in.len - at < 65536 ? rig.in.len - at : 65536;

                r = h2_client_feed(rig.h, (struct span){rig.in.data + at, n}, rig.now_ms);
                take_events();
        }
        rig.in.len = 0;
        return r;
}

void turn(void) {
        assert_int_equal(feed(), 0);
        put_out();
        take_events();
}

void expect_events(const char *text) {
        if (rig.log_len)
                rig.log[rig.log_len - 1] = '\0';
        assert_string_equal(rig.log, text);
        rig.log_len = 0;
        rig.log[0] = '\0';
}

void expect_frames(const char *text) {
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

int setup_with(uint32_t max_streams, uint32_t header_bytes, uint32_t window) {
        struct client_session_conf conf = {
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

int setup(void **state) {
        (void)state;
        return setup_with(100, 4096, 65535);
}

int teardown(void **state) {
        (void)state;
        h2_client_free(&rig.h);
        return 0;
}

struct http_call_request get(const char *method) {
        return (struct http_call_request){.method = span_of(method),
                                          .scheme = SPAN("http"),
                                          .authority = SPAN("a.test"),
                                          .path = SPAN("/x?y"),
                                          .deadline_ms = 1000};
}

void submit(struct client_call *call, struct http_call_request r) {
        assert_int_equal(h2_client_submit(rig.h, call, &r, false), 0);
}

void submit_gets(size_t n) {
        for (size_t i = 0; i < n; i++)
                submit(&calls[i], get("GET"));
}
