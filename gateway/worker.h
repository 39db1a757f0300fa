/* gateway/worker.h - one thread that serves shoppers: a loop, a listener with
 * SO_REUSEPORT, its own connections to origin and upstreams, its own caches
 * and counters.
 *
 * Ownership  gw_worker_new .. gw_worker_free by the control thread; between
 *            start and the end of its thread everything inside is the
 *            worker's, except counters (read by anyone) and the slot through
 *            which snapshots come.
 * Context    said at each function.
 */
#ifndef GATEWAY_WORKER_H
#define GATEWAY_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "gateway/backlog.h"
#include "gateway/counters.h"
#include "gateway/shared.h"
#include "gateway/snapshot.h"
#include "net/http_pool.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/random.h"
#include "net/watchdog.h"

/* Where a worker forwards to. */
struct gw_upstream {
        const struct conf_upstream *conf;
        struct http_pool *pool;
        struct gw_backlog backlog;
        struct loop_timer pressure; /* runs while calls wait for unread answers */
};

struct gw_worker {
        struct gw_shared *shared;
        struct loop *loop;
        struct http_server *server;
        struct gw_counters counters;
        struct gw_snapshot *snap; /* the worker's own reference; never NULL */
        struct http_pool *origin;
        struct gw_upstream *upstreams; /* in the order of the first settings */
        size_t n_upstreams;
        size_t unread_bytes;             /* of forwarded answers, not yet taken by their clients */
        struct gw_backlog unread;        /* answers that wait for nothing but their client */
        struct gw_settings *settings;    /* the first; holds `conf` */
        const struct conf_gateway *conf; /* what only a restart changes */
        struct jwt_cache *accounts;
        struct jwt_cache *passes;
        struct random_fast random;

        _Atomic(struct gw_snapshot *) incoming; /* the newest not yet taken */
        atomic_bool drain;                      /* asked to end in order */
        atomic_bool halt;                       /* asked to end now */
        atomic_bool ended;
        struct loop_wake wake;
        struct loop_wake *on_ended; /* the control thread's; sent when drained */
        pthread_t thread;
        struct watchdog watchdog;
        bool is_running;
        bool is_draining;
        int64_t latest_ms; /* sale time as last used; it does not go back */
};

/* Control thread. `like` is worker 0, whose ports the others share, or NULL for
 * worker 0 itself. 0 or -errno. */
NET_MUST int gw_worker_new(struct gw_shared *shared, struct gw_snapshot *first,
                           const struct gw_worker *like, struct gw_worker **out);
/* Control thread. Binds the listeners. 0 or -errno with one line in `why`. */
NET_MUST int gw_worker_listen(struct gw_worker *w, const struct gw_worker *like, char *why,
                              size_t why_cap);
/* Starts the thread; `on_ended` is sent once it has drained. */
NET_MUST int gw_worker_start(struct gw_worker *w, struct loop_wake *on_ended);
/* Any thread. Hands over one reference to `s`. */
void gw_worker_publish(struct gw_worker *w, struct gw_snapshot *s);
/* Any thread. GOAWAY, finish what is open, then the thread ends. */
void gw_worker_drain(struct gw_worker *w);
/* Any thread. Memory is short: the worker does what that asks for. */
void gw_worker_relieve(struct gw_worker *w);
/* Control thread. Ends the loop now if it has not drained, joins, frees. */
void gw_worker_free(struct gw_worker **w);

/* The worker's thread. Sale time now, never before what it said last. */
int64_t gw_worker_sale_time_ms(struct gw_worker *w);

/* The port of the i-th listener. */
uint16_t gw_worker_port(const struct gw_worker *w, size_t i);

#endif
