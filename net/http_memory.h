/* net/http_memory.h - what a server does when memory is short, least harm first.
 *
 *   SHUT   nobody new is accepted. Who waits for longer than `accept_wait` is
 *          closed, so that his client knows.
 *   LEAVE  connections without an open request are sent away, the longest idle
 *          first. GOAWAY costs such a client nothing but the next handshake; one
 *          in the middle of its requests would have to open a new connection,
 *          which is not accepted now. Who asked within the last second stays.
 *   CUT    the connections that hold most memory of ours (answers and bodies
 *          not yet taken, requests open) are closed at once, dearest first, until
 *          enough is free. Who holds little is never cut: it would free nothing.
 *
 * Each measurement is acted on once, and the servers of a process share what is
 * to be freed.
 *
 * Context    the loop's thread.
 */
#ifndef NET_HTTP_MEMORY_H
#define NET_HTTP_MEMORY_H

#include "net/http_hub.h"

/* Nobody new may come in. */
bool http_memory_is_short(const struct http_hub *h);
/* Acts on the last measurement, if that has not been done. */
void http_memory_act(struct http_hub *h);
/* Bytes that the connection's open requests hold, and its output that the socket
 * has not taken. */
size_t http_memory_held(const struct http_conn *c);

#endif
