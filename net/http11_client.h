/* net/http11_client.h - the client side of one HTTP/1.1 connection as a machine
 * without I/O: bytes in, events out; one call at a time in, bytes out.
 *
 * A turn of its owner:
 *
 *   feed bytes
 *   while next: act     the call may be cancelled, a next one submitted
 *   done                gives back what the events held
 *   while output: send
 *
 * An answer is taken strictly or not at all: a head has CRLF line ends, no
 * folded lines, no byte that is none of a field's; its length is told once, by
 * Content-Length or by `Transfer-Encoding: chunked`, or by the end of the
 * connection. 1xx answers are dropped, fields about the connection (and those
 * that Connection names) do not come out. After an answer that came early, with
 * bytes behind it, broken, of HTTP/1.0, or with `Connection: close` the
 * connection takes no further call.
 *
 * Limits     heads of one answer, 1xx included, up to `header_bytes` as they
 *            came and 128 fields; more ends the call as malformed.
 * Units      bytes.
 * Ownership  spans of events live until done; nothing else may be fed on this
 *            thread meanwhile (heads share one table of fields).
 * Context    one thread; nothing here calls back.
 * Source     RFC 9112, RFC 9110.
 */
#ifndef NET_HTTP11_CLIENT_H
#define NET_HTTP11_CLIENT_H

#include "net/client_call.h"

struct http11_client;

/* NULL when out of memory. */
struct http11_client *http11_client_new(const struct client_session_conf *conf);
/* A call still open is forgotten without an event. */
void http11_client_free(struct http11_client **h);

/* 0; what h2_request_check() says; -EAGAIN while there is a call, -ENOTCONN when
 * going, -ENOMEM. `r->body` must live until the call's end; the rest is copied.
 * Content-Length is written from the body alone. With `checked` set `r` has
 * passed the check. */
NET_MUST int http11_client_submit(struct http11_client *h, struct client_call *call,
                                  const struct http_call_request *r, bool checked);
/* Forgets the call: no event of it comes any more. One that was put out takes
 * the connection with it. */
void http11_client_cancel(struct http11_client *h, struct client_call *call);
/* `n` more bytes of the answer are dealt with. */
void http11_client_consumed(struct http11_client *h, struct client_call *call, size_t n);

/* 0, or -EPROTO: bytes that no call has asked for. */
NET_MUST int http11_client_feed(struct http11_client *h, struct span data);
/* The peer ended the connection in order: an answer without a length is whole
 * now. Ask for events after it. */
void http11_client_feed_end(struct http11_client *h);
bool http11_client_next(struct http11_client *h, struct client_event *out);
void http11_client_done(struct http11_client *h);
/* 1 and the next bytes to send, at most 16 KiB, valid until the next call into
 * the session; 0 when there are none. */
NET_MUST int http11_client_output(struct http11_client *h, struct span *out);

/* No further call; what is open goes on. */
void http11_client_stop(struct http11_client *h);
bool http11_client_is_going(const struct http11_client *h);
/* More is delivered than `window_bytes` and not consumed: read no further. */
bool http11_client_is_full(const struct http11_client *h);
/* The open call may be sent again although it was sent: it is safe (RFC 9110,
 * 9.2.1), the connection had served others before, and no byte of an answer
 * came. So ends a kept connection that its peer closed meanwhile. */
bool http11_client_may_repeat(const struct http11_client *h);
/* 1 when a call can be submitted. */
uint32_t http11_client_room(const struct http11_client *h);

#endif
