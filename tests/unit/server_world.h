/* tests/unit/server_world.h - an http_server in a thread of its own, with a
 * handler that does what the path says, and blocking clients for it.
 *
 *   /page        the page                 /echo   the body back (at most 100,000)
 *   /small       the body back (4,096)    /stream "one", "two", "three" in three turns
 *   /big         4 MiB, streamed          /hold   no answer
 *   /named       the request's fields as text
 *   /nap         the page, after the whole loop stood still for 1.6 s
 *   /toil        the page, after a millisecond of work
 */
#ifndef TESTS_UNIT_SERVER_WORLD_H
#define TESTS_UNIT_SERVER_WORLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/http_server.h"

#define WORLD_BIG ((size_t)4 << 20)

struct world {
        struct loop *loop;
        struct http_server *server;
        struct http_page *page;
        struct http_server_conf conf;
        struct loop_wake stop, drain;
        pthread_t thread;
        uint16_t port;
        atomic_uint requests, gone, drained;
};

/* Ordinary limits, plain text, both versions. */
void world_init(struct world *w);
void world_start(struct world *w);
void world_drain(struct world *w);
/* Frees the server with whatever is open. */
void world_stop(struct world *w);
/* Waits until the counter has the value; fails the test after 10 s. */
void world_wait(const atomic_uint *counter, unsigned value);

/* A connected socket whose reads give up after 10 s. */
int client_open(const struct world *w);
/* The same from an address of its own, 127.x.x.x. */
int client_open_from(const struct world *w, const char *address);
void client_send(int fd, const void *data, size_t n);
void client_say(int fd, const char *text);
/* Reads until `enough` is in what came (or to the end, with NULL); what came
 * is terminated. Returns its length; fails the test if the end comes first. */
size_t client_read(int fd, char *to, size_t size, const char *enough);
/* True if the peer has closed or reset the connection. */
bool client_is_closed(int fd);

#endif
