/* net/http_exchange.h - the server's side of struct http_exchange: how a
 * connection opens one for a stream, and tells it what happened.
 *
 * Ownership  it lies in its stream's arena and dies with the stream.
 * Context    the loop's thread.
 */
#ifndef NET_HTTP_EXCHANGE_H
#define NET_HTTP_EXCHANGE_H

#include "net/http_conn.h"
#include "net/http_server.h"
#include "net/http_session.h"

/* An exchange for a stream whose head is good. NULL without memory. */
struct http_exchange *http_exchange_open(struct http_conn *c, struct http_stream *st);
/* Events of the stream, GONE included, after which it is no more. */
void http_exchange_tell(struct http_stream *st, unsigned events);
/* The body did not come in time. */
void http_exchange_body_late(struct http_stream *st);

/* A refusal that needs no handler. The stream is released. */
void http_stream_answer_page(struct http_stream *st, struct http_page *page);

#endif
