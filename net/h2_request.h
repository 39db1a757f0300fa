/* net/h2_request.h - a request of a client as a head of HTTP/2: which fields a
 * caller may give, which the session writes itself, which are compressed how.
 *
 * Source     RFC 9113, 8.2 and 8.3; RFC 7541, 7.1.3 (never indexed).
 * Context    part of the client session; knows the library it is built on.
 */
#ifndef NET_H2_REQUEST_H
#define NET_H2_REQUEST_H

#include "net/h2_client.h"

struct nghttp2_session;

/* 0, or -EINVAL for parts that may not be in a request (fields about the
 * connection, bytes that would end a field), -EMSGSIZE above 64 KiB or 128
 * fields. */
NET_MUST int h2_request_check(const struct http_call_request *r);

/* The number of the stream, > 0, which carries `call` as its user data; `r` has
 * passed the check. -ENOTCONN when numbers ran out, -ENOMEM. With `kept` set
 * nothing of `r` is copied, and it must live until the head is put out; the
 * body is always read from `call`. */
NET_MUST int h2_request_submit(struct nghttp2_session *session, struct client_call *call,
                               const struct http_call_request *r, bool kept);

#endif
