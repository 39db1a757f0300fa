#include "tests/unit/http11_client_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void tell(struct story *s, struct span text) {
        assert_true(text.len < sizeof(s->text) - s->len);
        memcpy(s->text + s->len, text.p, text.len);
        s->len += text.len;
        s->text[s->len] = '\0';
}

/* "200 name=value ... |body| OK keep" */
static void tell_event(struct story *s, const struct client_event *e, bool *in_body) {
        static const char *const ends[] = {
                [CLIENT_END_COMPLETE] = "OK",
                [CLIENT_END_REFUSED] = "REFUSED",
                [CLIENT_END_BROKEN] = "BROKEN",
                [CLIENT_END_MALFORMED] = "BAD",
        };
        char status[16];

        switch (e->kind) {
        case CLIENT_EVENT_HEAD:
                (void)snprintf(status, sizeof(status), "%d ", e->status);
                tell(s, span_of(status));
                for (size_t i = 0; i < e->n_headers; i++) {
                        tell(s, e->headers[i].name);
                        tell(s, SPAN("="));
                        tell(s, e->headers[i].value);
                        tell(s, SPAN(" "));
                }
                tell(s, SPAN("|"));
                *in_body = true;
                break;
        case CLIENT_EVENT_DATA:
                tell(s, e->data);
                break;
        case CLIENT_EVENT_END:
                tell(s, *in_body ? SPAN("| ") : SPAN(""));
                tell(s, span_of(ends[e->end]));
                break;
        }
}

struct http11_client *make(void) {
        const struct client_session_conf conf = {.header_bytes = HEADER_BYTES,
                                                 .window_bytes = WINDOW_BYTES};
        struct http11_client *h = http11_client_new(&conf);

        assert_non_null(h);
        return h;
}

void ask(struct http11_client *h, struct client_call *call, struct span method) {
        const struct http_call_request r = {.method = method,
                                            .scheme = SPAN("http"),
                                            .authority = SPAN("a.test"),
                                            .path = SPAN("/x")};
        struct span out;

        assert_int_equal(http11_client_submit(h, call, &r, false), 0);
        while (http11_client_output(h, &out) > 0)
                ;
}

void feed(struct http11_client *h, struct span part, struct story *s, bool *in_body) {
        struct client_event e;
        /* A block of its own, so that a sanitizer sees where it ends. */
        char *own = malloc(part.len + 1);
        int r;

        assert_non_null(own);
        memcpy(own, part.p, part.len);
        r = http11_client_feed(h, (struct span){own, part.len});
        if (r < 0)
                tell(s, SPAN(" unasked"));
        while (http11_client_next(h, &e)) {
                if (e.kind == CLIENT_EVENT_DATA)
                        http11_client_consumed(h, e.call, e.data.len);
                tell_event(s, &e, in_body);
        }
        http11_client_done(h);
        free(own);
}

static void end_input(struct http11_client *h, struct story *s, bool *in_body) {
        struct client_event e;

        http11_client_feed_end(h);
        while (http11_client_next(h, &e))
                tell_event(s, &e, in_body);
        http11_client_done(h);
}

/* Feeds `answer` cut before `first` and then every `step` bytes; 0: whole. */
void play(struct span method, struct span answer, size_t first, size_t step, bool ends,
          struct story *s) {
        struct http11_client *h = make();
        struct client_call call;
        bool in_body = false;

        *s = (struct story){.len = 0};
        ask(h, &call, method);
        for (size_t at = 0; at < answer.len && !call.ended;) {
                size_t n = at == 0 && first ? first : step ? step : answer.len - at;

                if (n > answer.len - at)
                        n = answer.len - at;
                feed(h, (struct span){answer.p + at, n}, s, &in_body);
                at += n;
        }
        if (ends)
                end_input(h, s, &in_body);
        if (!ends && call.ended)
                tell(s, http11_client_room(h) ? SPAN(" keep") : SPAN(" close"));
        http11_client_free(&h);
        assert_null(h);
}
