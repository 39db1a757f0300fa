/* net/http_pool_entry.h - a call given to a pool, with its request, and the
 * queue of those that wait for room.
 *
 * Units      milliseconds.
 * Ownership  an entry is the pool's from new to free; blocks of the usual size
 *            are kept for the next call, at most `keep` of them.
 * Context    the pool's thread.
 */
#ifndef NET_HTTP_POOL_ENTRY_H
#define NET_HTTP_POOL_ENTRY_H

#include "net/http_client.h"

struct pool_conn;
struct http_pool;

/* One call and its request, in one block. It is waiting (in the queue) or in
 * flight (`conn` set). */
struct pool_entry {
        struct pool_entry *prev, *next;
        struct http_pool *pool;
        struct http_call *call;
        struct pool_conn *conn;
        struct http_call_request request; /* points behind this struct */
        int64_t deadline_at_ms;
        size_t size;
        bool is_second_try;
        bool is_probe; /* let through while the pool was away */
};

struct pool_queue {
        struct pool_entry *first, *last;
        uint64_t count;
        struct pool_entry *spare;
        uint32_t n_spare, keep;
};

/* Copies the request. NULL when out of memory. */
struct pool_entry *pool_entry_new(struct pool_queue *q, struct http_call *call,
                                  const struct http_call_request *r, int64_t now_ms);
void pool_entry_free(struct pool_queue *q, struct pool_entry *e);

void pool_queue_put(struct pool_queue *q, struct pool_entry *e, bool at_front);
void pool_queue_take(struct pool_queue *q, struct pool_entry *e);
/* NULL when nothing waits. */
struct pool_entry *pool_queue_take_first(struct pool_queue *q);
/* Of an empty queue. */
void pool_queue_fini(struct pool_queue *q);

#endif
