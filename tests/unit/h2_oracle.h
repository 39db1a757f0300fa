/* tests/unit/h2_oracle.h - a server session on a whole nghttp2 session: what
 * net/h2_server.h is compared with. Driven the same way.
 *
 * It leaves sockets, TLS, timers and the meaning of requests to others.
 *
 * Source     RFC 9113, RFC 7541, RFC 9218 (no RFC 7540 priorities).
 */
#ifndef TESTS_UNIT_H2_ORACLE_H
#define TESTS_UNIT_H2_ORACLE_H

#include "net/http_session.h"

/* Its SETTINGS are ready to be pulled. NULL without memory. */
NET_MUST struct http_session *h2_oracle_new(const struct http_session_conf *conf, int64_t now_ms);

#endif
