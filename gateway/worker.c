#include "gateway/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/limits.h"
#include "gateway/forward.h"
#include "gateway/walk.h"
#include "net/http_server.h"
#include "net/log.h"

#define HEADER_BYTES 32768  /* of an answer's head from behind */
#define WINDOW_BYTES 131072 /* a stream's receive window from behind */
/* To an upstream that takes many requests on one connection. */
#define MULTIPLEXED_CONNECTIONS 2
#define WAITING_FACTOR 4 /* calls that may wait for each that may fly */
#define FILES_KEPT_BACK 32
#define BREAKER_FAILURES 3
#define BREAKER_MS 1000

int64_t gw_worker_sale_time_ms(struct gw_worker *w) {
        int64_t now_ms = gw_sale_time_ms(w->shared, loop_now_ms(w->loop));
        if (now_ms > w->latest_ms)
                w->latest_ms = now_ms;
        return w->latest_ms;
}

/* ---- pools ---- */

static int open_origin(struct gw_worker *w) {
        const struct conf_gateway *conf = w->conf;
        struct http_pool_conf pool = {
                .address = conf->origin.address.text,
                .connections = conf->origin.connections,
                .in_flight = conf->origin.max_in_flight,
                .waiting = conf->origin.max_in_flight * WAITING_FACTOR,
                .header_bytes = HEADER_BYTES,
                .window_bytes = WINDOW_BYTES,
                .breaker_failures = BREAKER_FAILURES,
                .connect_ms = conf->origin.connect_timeout_ms,
                .breaker_ms = BREAKER_MS,
                .counters = &w->counters.calls,
        };
        return http_pool_new(w->loop, &pool, &w->origin);
}

static const char *name_of(const struct conf_upstream *up, char *out, size_t cap) {
        const char *written = up->address.written, *colon = strrchr(written, ':');
        size_t len = colon ? (size_t)(colon - written) : strlen(written);
        if (up->server_name)
                return up->server_name;
        if (len > 2 && written[0] == '[') {
                written++;
                len -= 2;
        }
        (void)snprintf(out, cap, "%.*s", (int)len, written);
        return out;
}

static uint32_t suited_connections(const struct conf_upstream *up) {
        return up->protocol == CONF_PROTOCOL_HTTP11 ? up->max_in_flight : MULTIPLEXED_CONNECTIONS;
}

static int open_upstream(struct gw_worker *w, size_t i) {
        struct gw_upstream *u = &w->upstreams[i];
        const struct conf_upstream *up = &w->conf->upstreams.at[i];
        bool is_http11 = up->protocol == CONF_PROTOCOL_HTTP11;
        char name[260];
        struct http_pool_conf pool = {
                .protocol = is_http11 ? HTTP_PROTOCOL_HTTP11 : HTTP_PROTOCOL_H2,
                .address = up->address.text,
                .tls = w->settings->upstream_tls[i],
                .server_name = up->ca_file ? name_of(up, name, sizeof name) : NULL,
                .connections = up->connections ? up->connections : suited_connections(up),
                .in_flight = up->max_in_flight,
                .waiting = up->max_in_flight * WAITING_FACTOR,
                .header_bytes = HEADER_BYTES,
                .window_bytes = WINDOW_BYTES,
                .breaker_failures = BREAKER_FAILURES,
                .connect_ms = up->connect_timeout_ms,
                .idle_ms = up->idle_timeout_ms,
                .breaker_ms = BREAKER_MS,
                .counters = &w->counters.calls,
        };
        u->conf = up;
        loop_timer_init(w->loop, &u->pressure, gw_forward_on_pressure);
        return http_pool_new(w->loop, &pool, &u->pool);
}

static int open_pools(struct gw_worker *w) {
        int r = open_origin(w);
        w->upstreams = calloc(w->conf->upstreams.count + 1, sizeof *w->upstreams);
        if (r < 0 || !w->upstreams)
                return r < 0 ? r : -ENOMEM;
        for (size_t i = 0; i < w->conf->upstreams.count; i++) {
                r = open_upstream(w, i);
                if (r < 0)
                        return r;
                w->n_upstreams++;
        }
        return 0;
}

/* ---- listener ---- */

/* Descriptors that no client gets, so that the origin and upstreams can be
 * connected to anew while clients take all there are: what is open so far, files,
 * loops, operators, and each worker's connections to what stands behind. */
static size_t files_kept_back(const struct conf_gateway *conf) {
        size_t each = 8 + conf->listen.count + conf->origin.connections;
        for (size_t i = 0; i < conf->upstreams.count; i++) {
                const struct conf_upstream *up = &conf->upstreams.at[i];
                each += up->connections > 0 ? up->connections : suited_connections(up);
        }
        return FILES_KEPT_BACK + conf->workers * each;
}

/* A worker's share of the connections there are descriptors for. */
static uint32_t connections_of(const struct conf_gateway *conf, bool is_first) {
        size_t files = conf_raise_file_limit();
        size_t kept = files_kept_back(conf);
        size_t room = (files > 2 * kept ? files - kept : files / 2) / conf->workers;
        uint32_t wanted = conf_server_limits(&conf->limits, conf->workers).connections;
        if (wanted <= room)
                return wanted;
        if (is_first)
                log_event(LOG_WARN, "control", "the limit of open files allows fewer connections",
                          LOG_U("files", files), LOG_U("connections", room * conf->workers));
        return room > 0 ? (uint32_t)room : 1;
}

static int open_server(struct gw_worker *w, bool is_first) {
        struct http_server_conf server = {
                .tls = w->snap->settings->tls,
                .limits = conf_server_limits(&w->conf->limits, w->conf->workers),
                .memory = w->shared->memory,
                .memory_shares = w->conf->workers,
                .on_request = gw_walk_on_request,
                .owner = w,
        };
        server.limits.connections = connections_of(w->conf, is_first);
        return http_server_new(w->loop, &server, &w->server);
}

/* Port 0 is chosen by worker 0; the others listen where it does. */
static void address_for(const struct conf_address *a, const struct gw_worker *like, size_t i,
                        char *out, size_t cap) {
        const char *colon = strrchr(a->text, ':');
        assert(colon);
        unsigned port = like && a->port == 0 ? gw_worker_port(like, i) : a->port;
        (void)snprintf(out, cap, "%.*s:%u", (int)(colon - a->text), a->text, port);
}

int gw_worker_listen(struct gw_worker *w, const struct gw_worker *like, char *why, size_t why_cap) {
        for (size_t i = 0; i < w->conf->listen.count; i++) {
                char address[320];
                address_for(&w->conf->listen.at[i], like, i, address, sizeof address);
                int r = http_server_listen(w->server, address, true);
                if (r < 0) {
                        (void)snprintf(why, why_cap, "listen: cannot listen on %s: %s", address,
                                       r == -EADDRINUSE ? "the port is in use" : strerror(-r));
                        return r;
                }
        }
        return 0;
}

uint16_t gw_worker_port(const struct gw_worker *w, size_t i) {
        return http_server_port(w->server, i);
}

/* ---- what comes from outside the thread ---- */

static void take_snapshot(struct gw_worker *w) {
        struct gw_snapshot *s = atomic_exchange_explicit(&w->incoming, NULL, memory_order_acq_rel);
        if (!s)
                return;
        struct gw_snapshot *before = w->snap;
        w->snap = s;
        if (before->settings != s->settings) {
                http_server_set_tls(w->server, s->settings->tls);
                jwt_cache_clear(w->accounts);
                jwt_cache_clear(w->passes);
        }
        gw_snapshot_free(&before);
}

static void on_drained(void *owner) {
        struct gw_worker *w = owner;
        loop_stop(w->loop);
}

static void on_wake(struct loop_wake *wake) {
        struct gw_worker *w = NET_CONTAINER_OF(wake, struct gw_worker, wake);
        take_snapshot(w);
        http_server_relieve(w->server);
        if (atomic_load_explicit(&w->halt, memory_order_acquire)) {
                loop_stop(w->loop);
                return;
        }
        if (atomic_load_explicit(&w->drain, memory_order_acquire) && !w->is_draining) {
                w->is_draining = true;
                http_server_drain(w->server, on_drained);
        }
}

void gw_worker_publish(struct gw_worker *w, struct gw_snapshot *s) {
        struct gw_snapshot *missed =
                atomic_exchange_explicit(&w->incoming, s, memory_order_acq_rel);
        gw_snapshot_free(&missed);
        loop_wake_send(&w->wake);
}

void gw_worker_relieve(struct gw_worker *w) {
        loop_wake_send(&w->wake);
}

void gw_worker_drain(struct gw_worker *w) {
        atomic_store_explicit(&w->drain, true, memory_order_release);
        loop_wake_send(&w->wake);
}

/* ---- life ---- */

static void *run(void *arg) {
        struct gw_worker *w = arg;
        watchdog_start(&w->watchdog, w->loop, "worker", &w->conf->watchdog);
        loop_run(w->loop);
        watchdog_stop(&w->watchdog);
        atomic_store_explicit(&w->ended, true, memory_order_release);
        loop_wake_send(w->on_ended);
        return NULL;
}

int gw_worker_start(struct gw_worker *w, struct loop_wake *on_ended) {
        sigset_t all, before;
        w->on_ended = on_ended;
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the control's */
        int r = pthread_create(&w->thread, NULL, run, w);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        w->is_running = r == 0;
        return -r;
}

int gw_worker_new(struct gw_shared *shared, struct gw_snapshot *first, const struct gw_worker *like,
                  struct gw_worker **out) {
        struct gw_worker *w = calloc(1, sizeof *w);
        *out = w;
        if (!w)
                return -ENOMEM;
        w->shared = shared;
        w->loop = loop_new();
        if (!w->loop)
                return -EMFILE;
        gw_snapshot_take(first);
        w->snap = first;
        w->settings = like ? like->settings : first->settings;
        gw_settings_take(w->settings);
        w->conf = w->settings->conf;
        loop_wake_init(w->loop, &w->wake, on_wake);
        random_fast_init_any(&w->random);
        int r = gw_counters_init(&w->counters, (size_t)w->conf->store.max_sales * 4 + 1);
        if (r == 0)
                r = jwt_cache_new(&w->accounts, w->conf->accounts.cache_entries);
        if (r == 0)
                r = jwt_cache_new(&w->passes, w->conf->accounts.cache_entries);
        if (r == 0)
                r = open_pools(w);
        return r == 0 ? open_server(w, !like) : r;
}

static void free_pools(struct gw_worker *w) {
        for (size_t i = 0; i < w->n_upstreams; i++) {
                loop_timer_cancel(&w->upstreams[i].pressure);
                http_pool_free(&w->upstreams[i].pool);
        }
        free(w->upstreams);
        http_pool_free(&w->origin);
}

void gw_worker_free(struct gw_worker **wp) {
        struct gw_worker *w = *wp;
        *wp = NULL;
        if (!w)
                return;
        if (w->is_running) {
                atomic_store_explicit(&w->halt, true, memory_order_release);
                loop_wake_send(&w->wake);
                (void)pthread_join(w->thread, NULL);
        }
        /* Exchanges first: they give up their calls. Then the pools: calls that
         * nobody waits for end there. */
        http_server_free(&w->server);
        free_pools(w);
        jwt_cache_free(&w->accounts);
        jwt_cache_free(&w->passes);
        struct gw_snapshot *missed =
                atomic_exchange_explicit(&w->incoming, NULL, memory_order_acq_rel);
        gw_snapshot_free(&missed);
        gw_snapshot_free(&w->snap);
        gw_settings_free(&w->settings);
        if (w->loop) {
                loop_wake_fini(&w->wake);
                loop_free(&w->loop);
        }
        gw_counters_fini(&w->counters);
        free(w);
}
