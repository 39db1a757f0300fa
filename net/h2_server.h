/* net/h2_server.h - the server's side of one HTTP/2 connection, as a session
 * without I/O (net/http_session.h says how it is driven).
 *
 * It leaves sockets, TLS, timers and the meaning of requests to others. Abuse
 * is judged here: streams reset before their answer, by either side, and odd
 * frames fill two buckets; above their rims the peer gets GOAWAY with
 * ENHANCE_YOUR_CALM.
 *
 * Source     RFC 9113, RFC 7541, RFC 9218 (no RFC 7540 priorities).
 */
#ifndef NET_H2_SERVER_H
#define NET_H2_SERVER_H

#include "net/http_session.h"

/* Its SETTINGS are ready to be pulled. NULL without memory. */
NET_MUST struct http_session *h2_server_new(const struct http_session_conf *conf, int64_t now_ms);

#endif
