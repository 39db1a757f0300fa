/* net/http11_server.h - the server's side of one HTTP/1.1 connection, as a
 * session without I/O (net/http_session.h says how it is driven).
 *
 * Enough for operators' tools, scrapers and scripts: keep-alive, bodies with
 * content-length or in chunks, pipelining answered one at a time. No upgrade.
 *
 * Source     RFC 9112, parsed by llhttp in its strict mode.
 */
#ifndef NET_HTTP11_SERVER_H
#define NET_HTTP11_SERVER_H

#include "net/http_session.h"

/* NULL without memory. */
NET_MUST struct http_session *http11_server_new(const struct http_session_conf *conf,
                                                int64_t now_ms);

#endif
