#include "net/client_session.h"

#include <errno.h>

#include "net/h2_client.h"
#include "net/http11_client.h"

/* A thread has one turn at a time: its connections share it. */
#define SCRATCH_BYTES 65536
/* The most a session puts out at once: a frame. */
#define FRAME_BYTES (16384 + 9 + 1)

static _Thread_local char scratch[SCRATCH_BYTES];

int client_session_open(struct client_session *s, enum http_protocol protocol,
                        const struct client_session_conf *conf) {
        switch (protocol) {
        case HTTP_PROTOCOL_H2:
                s->h2 = h2_client_new(conf);
                break;
        case HTTP_PROTOCOL_HTTP11:
                s->http11 = http11_client_new(conf);
                break;
        }
        return client_session_is_open(s) ? 0 : -ENOMEM;
}

void client_session_close(struct client_session *s) {
        h2_client_free(&s->h2);
        http11_client_free(&s->http11);
}

bool client_session_is_open(const struct client_session *s) {
        return s->h2 || s->http11;
}

int client_session_submit(struct client_session *s, struct client_call *call,
                          const struct http_call_request *r, bool kept) {
        return s->h2 ? h2_client_submit(s->h2, call, r, kept)
                     : http11_client_submit(s->http11, call, r, kept);
}

void client_session_cancel(struct client_session *s, struct client_call *call) {
        if (s->h2)
                h2_client_cancel(s->h2, call);
        else
                http11_client_cancel(s->http11, call);
}

void client_session_consumed(struct client_session *s, struct client_call *call, size_t n) {
        if (s->h2)
                h2_client_consumed(s->h2, call, n);
        else
                http11_client_consumed(s->http11, call, n);
}

int client_session_feed(struct client_session *s, struct span data, int64_t now_ms) {
        return s->h2 ? h2_client_feed(s->h2, data, now_ms) : http11_client_feed(s->http11, data);
}

void client_session_feed_end(struct client_session *s) {
        if (s->http11)
                http11_client_feed_end(s->http11);
}

bool client_session_next(struct client_session *s, struct client_event *out) {
        return s->h2 ? h2_client_next(s->h2, out) : http11_client_next(s->http11, out);
}

void client_session_done(struct client_session *s) {
        if (s->h2)
                h2_client_done(s->h2);
        else
                http11_client_done(s->http11);
}

int64_t client_session_tick(struct client_session *s, int64_t now_ms) {
        return s->h2 ? h2_client_tick(s->h2, now_ms) : INT64_MAX;
}

static int output(struct client_session *s, struct span *out) {
        return s->h2 ? h2_client_output(s->h2, out) : http11_client_output(s->http11, out);
}

/* Fills the thread's scratch. */
static int gather(struct client_session *s, struct span *out) {
        size_t n = 0;

        while (n + FRAME_BYTES <= SCRATCH_BYTES) {
                struct span frame;
                int r = output(s, &frame);

                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                assert(frame.len <= FRAME_BYTES);
                memcpy(scratch + n, frame.p, frame.len);
                n += frame.len;
        }
        *out = (struct span){scratch, n};
        return 0;
}

int client_session_flush(struct client_session *s, struct client_wire *w) {
        for (;;) {
                struct span bytes;
                int r = client_wire_flush(w);

                if (r != CLIENT_WIRE_DONE)
                        return r;
                r = gather(s, &bytes);
                if (r < 0 || bytes.len == 0)
                        return r;
                r = client_wire_write(w, bytes);
                if (r != CLIENT_WIRE_DONE)
                        return r;
        }
}

bool client_session_is_greeted(const struct client_session *s) {
        return !s->h2 || h2_client_is_greeted(s->h2);
}

bool client_session_is_going(const struct client_session *s) {
        return s->h2 ? h2_client_is_going(s->h2) : http11_client_is_going(s->http11);
}

bool client_session_is_over(const struct client_session *s) {
        return s->h2 && h2_client_is_over(s->h2);
}

void client_session_end_early(struct client_session *s) {
        if (s->http11)
                http11_client_stop(s->http11);
}

bool client_session_is_full(const struct client_session *s) {
        return s->http11 && http11_client_is_full(s->http11);
}

bool client_session_may_repeat(const struct client_session *s) {
        return s->http11 && http11_client_may_repeat(s->http11);
}

uint32_t client_session_room(const struct client_session *s) {
        return s->h2 ? h2_client_room(s->h2) : http11_client_room(s->http11);
}
