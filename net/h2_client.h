/* net/h2_client.h - the client side of one HTTP/2 connection as a machine
 * without I/O: bytes in, events out; calls in, bytes out.
 *
 * A turn of its owner:
 *
 *   feed bytes          only records what happened
 *   while next: act     calls may be submitted and cancelled here
 *   done                gives back what the events held
 *   while output: send  may record events too (then: next and done again)
 *
 * Spans of events point into the bytes fed and into the session: valid until
 * done. No frame and no library type is visible from outside.
 *
 * Limits     a head over `header_bytes` (name + value + 32 a field) ends its
 *            call as malformed; a peer that sends mostly control frames, or
 *            mostly nothing of use, ends the connection (feed: -EPROTO).
 * Units      bytes; milliseconds of the monotonic clock.
 * Ownership  a call is embedded by its owner and stays until its END event
 *            or h2_client_cancel(). The session does not free calls.
 * Context    one thread; nothing here calls back.
 * Source     RFC 9113, RFC 9110.
 */
#ifndef NET_H2_CLIENT_H
#define NET_H2_CLIENT_H

#include "net/client_call.h"

struct h2_client;

/* NULL when out of memory. The preface and SETTINGS are its first output. */
struct h2_client *h2_client_new(const struct client_session_conf *conf);
/* Calls still open are forgotten without an event. */
void h2_client_free(struct h2_client **h);

/* 0; what h2_request_check() says; -EAGAIN without room, -ENOTCONN when going,
 * -ENOMEM. `r->body` must live until the call's end. With `kept` set all of `r`
 * must, it has passed the check, and nothing is copied. Content-length is
 * written from the body alone, whatever the caller gave. */
NET_MUST int h2_client_submit(struct h2_client *h, struct client_call *call,
                              const struct http_call_request *r, bool kept);
/* Forgets an open call: no event of it comes any more. Its answer runs out
 * unread for a while before it is reset (h2_orphans.h). */
void h2_client_cancel(struct h2_client *h, struct client_call *call);
/* Lets the peer send `n` more bytes of this call's answer. */
void h2_client_consumed(struct h2_client *h, struct client_call *call, size_t n);

/* 0, -EPROTO or -ENOMEM: then the connection is of no further use. At most
 * 64 KiB at once. */
NET_MUST int h2_client_feed(struct h2_client *h, struct span data, int64_t now_ms);
bool h2_client_next(struct h2_client *h, struct client_event *out);
void h2_client_done(struct h2_client *h);
/* 1 and the next bytes to send, valid until the next call into the session;
 * 0 when there are none; -EPROTO, -ENOMEM. */
NET_MUST int h2_client_output(struct h2_client *h, struct span *out);

/* Before output, once a turn: resets what has run for too long. When to call
 * again at the latest; INT64_MAX: never. */
int64_t h2_client_tick(struct h2_client *h, int64_t now_ms);

/* The peer's first SETTINGS came. */
bool h2_client_is_greeted(const struct h2_client *h);
/* The peer wants no new streams (GOAWAY), or stream numbers ran out. */
bool h2_client_is_going(const struct h2_client *h);
/* The session found the peer at fault, has said so, and is over. */
bool h2_client_is_over(const struct h2_client *h);
/* Calls that could be submitted now, by our ceiling and the peer's. */
uint32_t h2_client_room(const struct h2_client *h);

#endif
