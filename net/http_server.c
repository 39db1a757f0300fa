#include "net/http_server.h"

#include <errno.h>
#include <stdlib.h>

#include "net/http_hub.h"
#include "net/http_listener.h"
#include "net/http_memory.h"

#define LISTENERS_MAX 8

struct http_server {
        struct http_hub hub;
        struct http_listener listeners[LISTENERS_MAX];
        size_t n_listeners;
        void (*on_drained)(void *owner);
};

static struct http_server *server_of(struct http_hub *h) {
        return NET_CONTAINER_OF(h, struct http_server, hub);
}

static void on_room(struct http_hub *h) {
        struct http_server *s = server_of(h);
        for (size_t i = 0; i < s->n_listeners; i++)
                http_listener_wake(&s->listeners[i]);
}

static void on_empty(struct http_hub *h) {
        struct http_server *s = server_of(h);
        void (*on_drained)(void *) = s->on_drained;
        s->on_drained = NULL;
        if (h->draining && on_drained)
                on_drained(h->conf.owner);
}

int http_server_new(struct loop *l, const struct http_server_conf *conf, struct http_server **out) {
        struct http_server *s = calloc(1, sizeof *s);
        *out = NULL;
        if (!s)
                return -ENOMEM;
        int r = http_hub_init(&s->hub, l, conf);
        s->hub.on_room = on_room;
        s->hub.on_empty = on_empty;
        *out = s;
        if (r != 0)
                http_server_free(out);
        return r;
}

static void listeners_close(struct http_server *s) {
        for (size_t i = 0; i < s->n_listeners; i++)
                http_listener_close(&s->listeners[i]);
}

void http_server_free(struct http_server **sp) {
        struct http_server *s = *sp;
        *sp = NULL;
        if (!s)
                return;
        listeners_close(s);
        http_hub_fini(&s->hub);
        free(s);
}

int http_server_listen(struct http_server *s, const char *address, bool reuse_port) {
        if (s->n_listeners == LISTENERS_MAX)
                return -ENOBUFS;
        int r = http_listener_open(&s->listeners[s->n_listeners], &s->hub, address, reuse_port);
        if (r == 0)
                s->n_listeners++;
        return r;
}

uint16_t http_server_port(const struct http_server *s, size_t i) {
        return i < s->n_listeners ? s->listeners[i].port : 0;
}

void http_server_drain(struct http_server *s, void (*on_drained)(void *owner)) {
        s->on_drained = on_drained;
        for (size_t i = 0; i < s->n_listeners; i++)
                http_listener_finish(&s->listeners[i]);
        http_hub_drain(&s->hub);
}

void http_server_set_tls(struct http_server *s, struct tls_context *tls) {
        tls_context_take(tls);
        tls_context_free(&s->hub.tls);
        s->hub.tls = tls;
}

void http_server_relieve(struct http_server *s) {
        http_memory_act(&s->hub);
}

void http_server_stats(const struct http_server *s, struct http_server_stats *out) {
        const struct http_counters *c = &s->hub.counters;
        *out = (struct http_server_stats){
                .connections_open = metrics_read(&c->connections_open),
                .connections_total = metrics_read(&c->connections_total),
                .connections_refused = metrics_read(&c->connections_refused),
                .requests_shed = metrics_read(&c->requests_shed),
                .connections_sent_away = metrics_read(&c->connections_sent_away),
                .refused_network = metrics_read(&c->refused_network),
                .refused_overload = metrics_read(&c->refused_overload),
                .refused_memory = metrics_read(&c->refused_memory),
                .handshakes_full = metrics_read(&c->handshakes_full),
                .handshakes_resumed = metrics_read(&c->handshakes_resumed),
                .handshakes_failed = metrics_read(&c->handshakes_failed),
                .networks_closed = metrics_read(&c->networks_closed),
                .networks_unknown = metrics_read(&c->networks_unknown),
                .abandoned = metrics_read(&c->abandoned),
                .exchanges_open = metrics_read(&c->exchanges_open),
                .requests_total = metrics_read(&c->requests_total),
                .closed_glitches = metrics_read(&c->closed_glitches),
                .closed_resets = metrics_read(&c->closed_resets),
                .closed_timeouts = metrics_read(&c->closed_timeouts),
                .closed_protocol = metrics_read(&c->closed_protocol),
                .closed_memory = metrics_read(&c->closed_memory),
                .sent_away_memory = metrics_read(&c->sent_away_memory),
                .header_limit_hits = metrics_read(&c->header_limit_hits),
                .queue_limit_hits = metrics_read(&c->queue_limit_hits),
                .accept_errors = metrics_read(&c->accept_errors),
                .repeats_evicted = metrics_read(&c->repeats_evicted),
        };
}
