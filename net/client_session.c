#include "net/client_session.h"

#include <errno.h>

#include "net/h2_client.h"
#include "net/http11_client.h"

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

int client_session_output(struct client_session *s, struct span *out) {
        return s->h2 ? h2_client_output(s->h2, out) : http11_client_output(s->http11, out);
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
