/* net/client_session.h - a client's session, whichever version it speaks: the
 * one place that knows both.
 *
 * See h2_client.h and http11_client.h for the turn of its owner and for what
 * each call promises.
 *
 * Ownership  a plain value to embed; nothing to free before open.
 * Context    one thread; nothing here calls back.
 */
#ifndef NET_CLIENT_SESSION_H
#define NET_CLIENT_SESSION_H

#include "net/client_call.h"
#include "net/client_wire.h"

struct client_session {
        struct h2_client *h2; /* one of them, or neither */
        struct http11_client *http11;
};

NET_MUST int client_session_open(struct client_session *s, enum http_protocol protocol,
                                 const struct client_session_conf *conf);
void client_session_close(struct client_session *s);
bool client_session_is_open(const struct client_session *s);

NET_MUST int client_session_submit(struct client_session *s, struct client_call *call,
                                   const struct http_call_request *r, bool kept);
void client_session_cancel(struct client_session *s, struct client_call *call);
void client_session_consumed(struct client_session *s, struct client_call *call, size_t n);
NET_MUST int client_session_feed(struct client_session *s, struct span data, int64_t now_ms);
void client_session_feed_end(struct client_session *s);
bool client_session_next(struct client_session *s, struct client_event *out);
void client_session_done(struct client_session *s);
int64_t client_session_tick(struct client_session *s, int64_t now_ms);
/* Moves output to the socket until either has no more; as client_wire_write(). */
NET_MUST int client_session_flush(struct client_session *s, struct client_wire *w);

/* The call that ends next was not sent whole: HTTP/2 resets the stream, in
 * HTTP/1.1 the connection is spoiled. */
void client_session_end_early(struct client_session *s);
/* HTTP/1.1: from the start. */
bool client_session_is_greeted(const struct client_session *s);
bool client_session_is_going(const struct client_session *s);
/* To be closed now, for the peer is at fault. */
bool client_session_is_over(const struct client_session *s);
/* HTTP/2 has windows instead. */
bool client_session_is_full(const struct client_session *s);
bool client_session_may_repeat(const struct client_session *s);
uint32_t client_session_room(const struct client_session *s);

#endif
