#include "net/http_handshake.h"

#include <poll.h>

#include "net/http_conn.h"

/* Connections of a closed network, thrown out beside a turn's steps. */
#define REFUSALS_PER_TURN 256
/* Who waited longer, here or for a listener that was behind so lately, may have
 * left meanwhile. */
#define PATIENCE_MS 50
#define BEHIND_MS 2000

/* ---- those who wait, and those who are parked ---- */

static void queue_join(struct http_conn **first, struct http_conn **last, struct http_conn *c) {
        c->shake.next = NULL;
        c->shake.prev = *last;
        if (*last)
                (*last)->shake.next = c;
        else
                *first = c;
        *last = c;
}

static void queue_leave(struct http_conn **first, struct http_conn **last, struct http_conn *c) {
        if (c->shake.prev)
                c->shake.prev->shake.next = c->shake.next;
        else
                *first = c->shake.next;
        if (c->shake.next)
                c->shake.next->shake.prev = c->shake.prev;
        else
                *last = c->shake.prev;
}

static void on_run(struct loop_defer *d);

/* How long it has been the client's turn, all in all. */
static uint32_t client_ms(const struct http_conn *c) {
        uint32_t ms = c->shake.client_ms;
        if (c->place == HTTP_SHAKE_WITH_CLIENT)
                ms += (uint32_t)loop_now_ms(c->hub->loop) - c->shake.asked_ms;
        return ms;
}

static void place_set(struct http_conn *c, enum http_shake_place to) {
        struct http_handshakes *s = &c->hub->handshakes;
        struct http_network *w = c->shake.network;
        if (c->place == HTTP_SHAKE_WAITING) {
                queue_leave(&s->first, &s->last, c);
                s->n_waiting--;
        } else if (c->place == HTTP_SHAKE_PARKED) {
                queue_leave(&w->first_parked, &w->last_parked, c);
                s->n_parked--;
        }
        if (c->place == HTTP_SHAKE_WITH_CLIENT)
                c->shake.client_ms = client_ms(c);
        if (to == HTTP_SHAKE_WITH_CLIENT)
                c->shake.asked_ms = (uint32_t)loop_now_ms(c->hub->loop);
        c->place = (uint8_t)to;
        if (to == HTTP_SHAKE_WAITING) {
                queue_join(&s->first, &s->last, c);
                s->n_waiting++;
                if (!s->is_running)
                        loop_defer(c->hub->loop, &s->run, on_run);
        } else if (to == HTTP_SHAKE_PARKED) {
                queue_join(&w->first_parked, &w->last_parked, c);
                s->n_parked++;
                if (c->hub->on_room) /* for others */
                        c->hub->on_room(c->hub);
        }
}

static uint32_t share(const struct http_hub *h) {
        return (h->conf.limits.handshakes + 1) / 2;
}

static bool has_its_share(const struct http_hub *h, const struct http_network *w) {
        return w && w->handshakes >= share(h);
}

/* As many are parked as may be. */
static bool is_crowded(const struct http_hub *h) {
        return h->handshakes.n_parked >= h->conf.limits.handshakes;
}

/* ---- what is held against a network ---- */

static void strike(struct http_conn *c) {
        struct http_hub *h = c->hub;
        struct http_network *w = c->shake.network;
        if (!w || c->is_struck)
                return;
        c->is_struck = true;
        if (!http_network_strike(&h->handshakes.networks, w, loop_now_ms(h->loop)))
                return;
        metrics_add(&h->counters.networks_closed, 1);
        while (w->first_parked) /* to be thrown out with the next steps */
                place_set(w->first_parked, HTTP_SHAKE_WAITING);
}

bool http_handshake_join(struct http_conn *c) {
        struct http_hub *h = c->hub;
        struct http_handshakes *s = &h->handshakes;
        int64_t now_ms = loop_now_ms(h->loop);
        bool is_full;
        struct http_network *w = http_networks_find(&s->networks, &c->peer, now_ms, &is_full);
        metrics_add(&h->counters.networks_unknown, is_full);
        if (http_network_is_closed(w, now_ms) || (has_its_share(h, w) && is_crowded(h))) {
                metrics_add(&h->counters.refused_network, 1);
                return false;
        }
        c->shake = (struct http_shake){.network = w};
        place_set(c, has_its_share(h, w) ? HTTP_SHAKE_PARKED : HTTP_SHAKE_WAITING);
        return true;
}

void http_handshake_leave(struct http_conn *c) {
        struct http_network *w = c->shake.network;
        if (c->place == HTTP_SHAKE_NOWHERE)
                return;
        place_set(c, HTTP_SHAKE_NOWHERE);
        if (!w)
                return;
        if (c->is_begun)
                w->handshakes--;
        if (w->first_parked && !has_its_share(c->hub, w))
                place_set(w->first_parked, HTTP_SHAKE_WAITING);
}

void http_handshake_late(struct http_conn *c) {
        struct http_counters *n = &c->hub->counters;
        if (c->is_begun || c->place == HTTP_SHAKE_NOWHERE) {
                metrics_add(&n->handshakes_failed, 1);
                metrics_add(&n->closed_timeouts, 1);
                bool is_clients = client_ms(c) >= c->hub->conf.limits.handshake_ms / 2;
                if (c->place != HTTP_SHAKE_NOWHERE && is_clients)
                        strike(c);
        } else {
                metrics_add(&n->connections_refused, 1);
        }
        http_conn_cut(c);
}

void http_handshakes_judge(struct http_hub *h, int64_t now_ms) {
        int64_t before_ms = now_ms - h->conf.limits.handshake_slow_ms;
        struct http_conn *c = h->lists[HTTP_CONN_HANDSHAKING].first;
        if (!h->handshakes.networks.entries)
                return;
        for (; c && c->since_ms <= before_ms; c = c->next) {
                if (c->is_begun && client_ms(c) >= h->conf.limits.handshake_slow_ms)
                        strike(c);
        }
}

/* ---- steps ---- */

static void finished(struct http_conn *c) {
        struct http_counters *n = &c->hub->counters;
        metrics_add(tls_is_resumed(c->tls) ? &n->handshakes_resumed : &n->handshakes_full, 1);
        if (c->shake.network)
                http_network_forgive(c->shake.network);
        http_conn_greet(c);
}

static void go_on(struct http_conn *c) {
        switch (tls_handshake(c->tls)) {
        case TLS_DONE:
                finished(c);
                return;
        case TLS_WANT_READ:
                loop_io_want(&c->io, LOOP_READ);
                return;
        case TLS_WANT_WRITE:
                loop_io_want(&c->io, LOOP_WRITE);
                return;
        default:
                metrics_add(&c->hub->counters.handshakes_failed, 1);
                strike(c);
                http_conn_cut(c);
        }
}

static bool has_waited(const struct http_conn *c) {
        int64_t now_ms = loop_now_ms(c->hub->loop);
        int64_t behind_at_ms = c->hub->behind_at_ms;
        return now_ms - c->since_ms > PATIENCE_MS ||
               (behind_at_ms != 0 && now_ms - behind_at_ms < BEHIND_MS);
}

/* A client that has lost its patience with us costs nothing more, and that is
 * not its network's fault. */
static bool has_gone(const struct http_conn *c) {
        struct pollfd peer = {.fd = c->io.fd, .events = POLLRDHUP};
        return poll(&peer, 1, 0) == 1;
}

/* True if it cost as much as a step does. */
static bool step(struct http_conn *c) {
        struct http_hub *h = c->hub;
        struct http_network *w = c->shake.network;
        if (c->is_begun) {
                place_set(c, HTTP_SHAKE_WITH_CLIENT);
                go_on(c);
                return true;
        }
        if (has_waited(c) && has_gone(c)) {
                metrics_add(&h->counters.abandoned, 1);
                http_conn_cut(c);
                return false;
        }
        bool has_share = has_its_share(h, w);
        if (http_network_is_closed(w, loop_now_ms(h->loop)) || (has_share && is_crowded(h))) {
                metrics_add(&h->counters.refused_network, 1);
                http_conn_cut(c);
                return false;
        }
        if (has_share) {
                place_set(c, HTTP_SHAKE_PARKED);
                return false;
        }
        c->tls = tls_accept_new(h->tls, c->io.fd);
        if (!c->tls) {
                metrics_add(&h->counters.connections_refused, 1);
                http_conn_cut(c);
                return true;
        }
        c->is_begun = true;
        if (w)
                w->handshakes++;
        place_set(c, HTTP_SHAKE_WITH_CLIENT);
        go_on(c);
        return true;
}

static void on_run(struct loop_defer *d) {
        struct http_handshakes *s = NET_CONTAINER_OF(d, struct http_handshakes, run);
        struct http_hub *h = NET_CONTAINER_OF(s, struct http_hub, handshakes);
        uint32_t steps = h->conf.limits.handshakes_per_turn;
        uint32_t refusals = REFUSALS_PER_TURN;
        http_hub_flush(h);
        s->is_running = true;
        while (s->first && steps > 0 && refusals > 0) {
                if (step(s->first))
                        steps--;
                else
                        refusals--;
        }
        s->is_running = false;
        if (s->first)
                loop_timer_start(&s->go_on, 0);
}

static void on_go_on(struct loop_timer *t) {
        struct http_handshakes *s = NET_CONTAINER_OF(t, struct http_handshakes, go_on);
        loop_defer(t->loop, &s->run, on_run);
}

void http_handshake_ready(struct http_conn *c) {
        if (c->place == HTTP_SHAKE_WITH_CLIENT)
                place_set(c, HTTP_SHAKE_WAITING);
}

uint32_t http_handshakes_room(const struct http_hub *h) {
        uint32_t most = h->conf.limits.handshakes_per_turn;
        uint32_t waiting = h->handshakes.n_waiting;
        return waiting < most ? most - waiting : 0;
}

bool http_handshakes_may_accept(const struct http_hub *h) {
        return h->n_handshaking - h->handshakes.n_parked < h->conf.limits.handshakes;
}

int http_handshakes_init(struct http_hub *h) {
        const struct http_server_limits *lim = &h->conf.limits;
        struct http_handshakes *s = &h->handshakes;
        loop_timer_init(h->loop, &s->go_on, on_go_on);
        return http_networks_init(&s->networks, h->tls ? lim->network_strikes : 0,
                                  (uint32_t)lim->network_closed_ms);
}

void http_handshakes_fini(struct http_hub *h) {
        loop_timer_cancel(&h->handshakes.go_on);
        loop_defer_cancel(h->loop, &h->handshakes.run);
        http_networks_fini(&h->handshakes.networks);
}
