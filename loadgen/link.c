/* loadgen/link.c
 *
 *   closed --ask--> due --slot, gap over--> connecting --> ready
 *     ^                                         |            |
 *     +---- waiting asks fail ------------------+            |
 *     +---- waiting asks: due at once -----------------------+
 */
#include "loadgen/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CONNECT_MS 15000
#define MAX_STREAMS 100
#define HEADER_BYTES 16384
#define WINDOW_BYTES 65536
#define FIELDS_MAX 7
#define LG_BEARER_MAX 4608

enum link_state {
        LINK_CLOSED,     /* nothing to do */
        LINK_DUE,        /* wants to connect: waits for the gap or a slot */
        LINK_CONNECTING, /* holds a slot */
        LINK_READY,
};

struct lg_link {
        struct lg_links *links;
        const struct lg_endpoint *endpoint;
        enum link_state state;
        bool opening;               /* its first attempt, counted by lg_links_open() */
        struct http_client *client; /* with CONNECTING and READY */
        struct loop_timer gap;      /* started while the gap runs */
        struct loop_defer fail;     /* ends the waiting asks */
        struct lg_ask *first, **last;
        struct lg_link *next_due; /* in the set's list while DUE, gap over */
        bool is_listed;           /* there */
};

struct lg_links {
        struct loop *loop;
        struct tls_context *tls;
        struct lg_endpoint endpoints[LG_GATEWAYS_MAX];
        size_t n, connecting, ready, opening;
        bool is_ending; /* asks are forgotten, not answered */
        struct lg_link *due, **last_due;
        struct loop_defer connect;
        void (*on_all)(void *owner);
        void *owner;
        struct lg_link link[];
};

static void connect_due(struct loop_defer *d);

/* ---- asks ---- */

static void ask_forget_answer(struct lg_ask *a) {
        free(a->data);
        free(a->renewed);
        a->data = NULL;
        a->renewed = NULL;
}

/* The owner may ask again inside on_answer, with this very ask: so the old
 * answer is remembered here, and nothing of the new one can have come yet. */
static void ask_end(struct lg_ask *a) {
        bool is_ending = a->link->links->is_ending;
        char *data = a->data, *renewed = a->renewed;
        a->link = NULL;
        a->ended_us = loop_clock_us();
        if (!is_ending)
                a->on_answer(a);
        a->data = NULL;
        a->renewed = NULL;
        free(data);
        free(renewed);
}

static void on_head(struct http_call *c, int status, const struct http_header *headers, size_t n) {
        struct lg_ask *a = c->owner;
        a->status = status;
        for (size_t i = 0; i < n; i++) {
                struct span value = headers[i].value;
                if (span_eq(headers[i].name, SPAN("retry-after")) && value.len > 0 &&
                    value.len < 7) {
                        a->retry_after_s = 0;
                        for (size_t k = 0; k < value.len && value.p[k] >= '0' && value.p[k] <= '9';
                             k++)
                                a->retry_after_s = a->retry_after_s * 10 + (value.p[k] - '0');
                } else if (span_eq(headers[i].name, SPAN("sluice-pass")) && !a->renewed) {
                        a->renewed = strndup(value.p, value.len);
                }
        }
}

static void on_data(struct http_call *c, struct span data) {
        struct lg_ask *a = c->owner;
        if (data.len == 0 || a->len + data.len > a->answer_bytes)
                return;
        char *grown = realloc(a->data, a->len + data.len);
        if (!grown)
                return;
        memcpy(grown + a->len, data.p, data.len);
        a->data = grown;
        a->len += data.len;
}

static void link_pump(struct lg_link *link);

static void on_done(struct http_call *c, enum http_call_outcome outcome) {
        struct lg_ask *a = c->owner;
        struct lg_link *link = a->link;
        a->lost = outcome != HTTP_CALL_OK;
        a->unsent = outcome == HTTP_CALL_UNSENT;
        ask_end(a);
        if (link->state == LINK_READY && link->first)
                link_pump(link);
}

static const struct http_call_events call_events = {
        .on_head = on_head,
        .on_data = on_data,
        .on_done = on_done,
};

static void add_field(struct http_header *fields, size_t *n, struct span name, struct span value) {
        if (value.len > 0)
                fields[(*n)++] = (struct http_header){.name = name, .value = value};
}

static int ask_send(struct lg_link *link, struct lg_ask *a) {
        char bearer[LG_BEARER_MAX];
        struct http_header fields[FIELDS_MAX];
        size_t n = 0;
        assert(a->bearer.len + 8 < sizeof(bearer));
        add_field(fields, &n, SPAN("accept"), SPAN("application/json"));
        if (a->bearer.len > 0) {
                memcpy(bearer, "Bearer ", 7);
                memcpy(bearer + 7, a->bearer.p, a->bearer.len);
                add_field(fields, &n, SPAN("authorization"),
                          (struct span){bearer, a->bearer.len + 7});
        }
        add_field(fields, &n, SPAN("sluice-ticket"), a->ticket);
        add_field(fields, &n, SPAN("sluice-pass"), a->pass);
        add_field(fields, &n, SPAN("idempotency-key"), a->key);
        if (a->body.len > 0)
                add_field(fields, &n, SPAN("content-type"), SPAN("application/json"));
        struct http_call_request request = {
                .method = a->method,
                .scheme = link->endpoint->tls ? SPAN("https") : SPAN("http"),
                .authority = span_of(link->endpoint->address),
                .path = a->path,
                .headers = fields,
                .n_headers = n,
                .body = a->body,
                .deadline_ms = a->deadline_ms,
        };
        a->call = (struct http_call){.events = &call_events, .owner = a};
        a->sent_us = loop_clock_us();
        return http_client_start(link->client, &a->call, &request);
}

static void ask_enqueue(struct lg_link *link, struct lg_ask *a) {
        a->next = NULL;
        a->is_queued = true;
        *link->last = a;
        link->last = &a->next;
}

static struct lg_ask *ask_dequeue(struct lg_link *link) {
        struct lg_ask *a = link->first;
        link->first = a->next;
        if (!link->first)
                link->last = &link->first;
        a->next = NULL;
        a->is_queued = false;
        return a;
}

/* Sends what there is room for. A connection that takes no more calls soon
 * closes or finishes one, and either event comes back here. */
static void link_pump(struct lg_link *link) {
        while (link->first && http_client_is_ready(link->client) &&
               http_client_room(link->client) > 0) {
                struct lg_ask *a = link->first;
                int r = ask_send(link, a);
                assert(r != -EMSGSIZE);
                if (r != 0) {
                        a->sent_us = 0;
                        return;
                }
                ask_dequeue(link);
        }
}

/* ---- connections ---- */

static void opening_done(struct lg_link *link) {
        struct lg_links *links = link->links;
        if (!link->opening)
                return;
        link->opening = false;
        if (--links->opening == 0 && links->on_all)
                links->on_all(links->owner);
}

static void slot_give_back(struct lg_links *links) {
        assert(links->connecting > 0);
        links->connecting--;
        if (links->due)
                loop_defer(links->loop, &links->connect, connect_due);
}

static void fail_waiting(struct loop_defer *d) {
        struct lg_link *link = NET_CONTAINER_OF(d, struct lg_link, fail);
        struct lg_ask *a = link->first;
        link->first = NULL;
        link->last = &link->first;
        while (a) {
                struct lg_ask *next = a->next;
                a->next = NULL;
                a->is_queued = false;
                a->lost = true;
                a->unsent = true;
                ask_end(a);
                a = next;
        }
        opening_done(link);
}

static void on_ready(void *owner, struct http_client *c) {
        struct lg_link *link = owner;
        assert(link->state == LINK_CONNECTING && link->client == c);
        link->state = LINK_READY;
        link->links->ready++;
        slot_give_back(link->links);
        link_pump(link);
        opening_done(link);
}

static void link_become_due(struct lg_link *link) {
        struct lg_links *links = link->links;
        link->state = LINK_DUE;
        /* An expired timer whose turn has not come is no longer started, so
         * on_gap_over may find the link listed by an ask of the same turn. */
        if (link->is_listed || loop_timer_is_started(&link->gap))
                return;
        link->is_listed = true;
        link->next_due = NULL;
        *links->last_due = link;
        links->last_due = &link->next_due;
        loop_defer(links->loop, &links->connect, connect_due);
}

static void on_gap_over(struct loop_timer *t) {
        struct lg_link *link = NET_CONTAINER_OF(t, struct lg_link, gap);
        if (link->state == LINK_DUE)
                link_become_due(link);
}

static void on_closed(void *owner, struct http_client *c, int why) {
        struct lg_link *link = owner;
        struct lg_links *links = link->links;
        (void)c;
        (void)why;
        link->client = NULL;
        if (link->state == LINK_CONNECTING) {
                link->state = LINK_CLOSED;
                slot_give_back(links);
                loop_defer(links->loop, &link->fail, fail_waiting);
                return;
        }
        assert(link->state == LINK_READY);
        links->ready--;
        link->state = LINK_CLOSED;
        if (link->first)
                link_become_due(link);
}

static void link_connect(struct lg_link *link) {
        struct lg_links *links = link->links;
        const struct lg_endpoint *e = link->endpoint;
        struct http_client_conf conf = {
                .address = e->address,
                .tls = e->tls ? links->tls : NULL,
                .server_name = e->tls ? e->host : NULL,
                .connect_ms = CONNECT_MS,
                .max_streams = MAX_STREAMS,
                .header_bytes = HEADER_BYTES,
                .window_bytes = WINDOW_BYTES,
                .on_ready = on_ready,
                .on_closed = on_closed,
                .owner = link,
        };
        link->state = LINK_CONNECTING;
        links->connecting++;
        loop_timer_start(&link->gap, LG_LINK_GAP_MS);
        if (http_client_open(links->loop, &conf, &link->client) == 0)
                return;
        link->client = NULL;
        link->state = LINK_CLOSED;
        links->connecting--;
        loop_defer(links->loop, &link->fail, fail_waiting);
}

static void connect_due(struct loop_defer *d) {
        struct lg_links *links = NET_CONTAINER_OF(d, struct lg_links, connect);
        while (links->due && links->connecting < LG_LINKS_CONNECTING) {
                struct lg_link *link = links->due;
                links->due = link->next_due;
                if (!links->due)
                        links->last_due = &links->due;
                link->next_due = NULL;
                link->is_listed = false;
                link_connect(link);
        }
}

/* ---- the set ---- */

int lg_links_new(struct loop *l, const struct lg_endpoint *endpoints, size_t n_endpoints, size_t n,
                 struct tls_context *tls, struct lg_links **out) {
        assert(n_endpoints >= 1 && n_endpoints <= LG_GATEWAYS_MAX);
        struct lg_links *links = calloc(1, sizeof(*links) + n * sizeof(links->link[0]));
        if (!links)
                return -ENOMEM;
        links->loop = l;
        links->tls = tls;
        links->n = n;
        links->last_due = &links->due;
        memcpy(links->endpoints, endpoints, n_endpoints * sizeof(*endpoints));
        for (size_t i = 0; i < n; i++) {
                struct lg_link *link = &links->link[i];
                link->links = links;
                link->endpoint = &links->endpoints[i % n_endpoints];
                link->last = &link->first;
                loop_timer_init(l, &link->gap, on_gap_over);
        }
        *out = links;
        return 0;
}

static void forget_waiting(struct lg_link *link) {
        while (link->first) {
                struct lg_ask *a = ask_dequeue(link);
                a->link = NULL;
        }
}

void lg_links_free(struct lg_links **set) {
        struct lg_links *links = *set;
        if (!links)
                return;
        links->is_ending = true;
        for (size_t i = 0; i < links->n; i++) {
                struct lg_link *link = &links->link[i];
                loop_timer_cancel(&link->gap);
                forget_waiting(link);
                if (link->client)
                        http_client_close(link->client);
                loop_defer_cancel(links->loop, &link->fail);
        }
        loop_defer_cancel(links->loop, &links->connect);
        free(links);
        *set = NULL;
}

size_t lg_links_count(const struct lg_links *links) {
        return links->n;
}

struct lg_link *lg_links_at(struct lg_links *links, size_t i) {
        assert(i < links->n);
        return &links->link[i];
}

size_t lg_links_ready(const struct lg_links *links) {
        return links->ready;
}

void lg_links_open(struct lg_links *links, void (*on_all)(void *owner), void *owner) {
        links->on_all = on_all;
        links->owner = owner;
        for (size_t i = 0; i < links->n; i++) {
                struct lg_link *link = &links->link[i];
                if (link->state != LINK_CLOSED)
                        continue;
                link->opening = true;
                links->opening++;
                link_become_due(link);
        }
}

void lg_link_ask(struct lg_link *link, struct lg_ask *a) {
        assert(lg_ask_is_idle(a));
        a->link = link;
        a->lost = a->unsent = false;
        a->status = 0;
        a->retry_after_s = -1;
        a->len = 0;
        a->sent_us = 0;
        a->wanted_us = loop_clock_us();
        ask_enqueue(link, a);
        if (link->state == LINK_READY)
                link_pump(link);
        else if (link->state == LINK_CLOSED)
                link_become_due(link);
}

static void unlink_waiting(struct lg_link *link, struct lg_ask *ask) {
        struct lg_ask **at = &link->first;
        while (*at != ask)
                at = &(*at)->next;
        *at = ask->next;
        if (link->last == &ask->next)
                link->last = at;
        ask->next = NULL;
        ask->is_queued = false;
}

void lg_ask_cancel(struct lg_ask *ask) {
        if (lg_ask_is_idle(ask))
                return;
        if (ask->is_queued)
                unlink_waiting(ask->link, ask);
        else
                http_call_cancel(&ask->call);
        ask->link = NULL;
        ask_forget_answer(ask);
}
