#include "gateway/pull.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "admission/store.h"
#include "gateway/keeper.h"
#include "gateway/publish.h"
#include "gateway/sale_clock.h"
#include "net/buf.h"
#include "net/json.h"
#include "net/log.h"

#define ANSWER_MAX ((size_t)64 * 1024 * 1024)
#define RETRY_MS 200

struct gw_pull {
        struct gw_control *c;
        struct http_call call;
        struct loop_timer again;
        struct buf body;
        int status;
        bool too_large;
        bool is_silent;      /* said once until it is heard again */
        int64_t moved_at_ms; /* the offset of the sale clock */
};

static void pull(struct gw_pull *p);

static void on_head(struct http_call *call, int status, const struct http_header *headers,
                    size_t n) {
        struct gw_pull *p = call->owner;
        (void)headers;
        (void)n;
        p->status = status;
}

static void on_data(struct http_call *call, struct span data) {
        struct gw_pull *p = call->owner;
        if (buf_append(&p->body, data.p, data.len) < 0)
                p->too_large = true;
}

static void hear_time(struct gw_pull *p, int64_t origin_ms) {
        int64_t mono_ms = loop_clock_ms();
        gw_sale_clock_hear(&p->c->shared, origin_ms, mono_ms, &p->moved_at_ms);
}

static void heard(struct gw_pull *p) {
        struct gw_control *c = p->c;
        int64_t mono_ms = loop_clock_ms();
        atomic_store_explicit(&c->shared.snapshot_at_ms, mono_ms, memory_order_relaxed);
        adm_store_alive(c->shared.store, gw_sale_time_ms(&c->shared, mono_ms));
        if (c->first_heard_at_ms == 0)
                c->first_heard_at_ms = mono_ms;
        if (p->is_silent)
                log_event(LOG_INFO, "snapshot", "origin heard");
        p->is_silent = false;
}

/* True when the document was good. */
static bool take(struct gw_pull *p) {
        struct span text = buf_span(&p->body);
        json_error_t why;
        json_t *document = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why);
        int64_t now_ms = json_get_int(document, "now", 0);
        bool good = now_ms > 0;
        if (good)
                hear_time(p, now_ms); /* first: states are judged by it */
        if (good && !json_get_bool(document, "unchanged", false)) {
                good = gw_publish_document(p->c, document, true) == 0;
                if (good)
                        gw_keeper_changed(p->c->keeper);
        }
        if (good)
                heard(p);
        json_decref(document);
        return good;
}

static void failed(struct gw_pull *p, const char *why, int64_t number) {
        if (!p->is_silent)
                log_event(LOG_WARN, "snapshot", "no snapshot from the origin", LOG_S("why", why),
                          LOG_I("number", number));
        p->is_silent = true;
        loop_timer_start(&p->again, RETRY_MS);
}

static void on_done(struct http_call *call, enum http_call_outcome outcome) {
        struct gw_pull *p = call->owner;
        if (outcome != HTTP_CALL_OK || p->too_large)
                failed(p, p->too_large ? "too large" : "no answer", outcome);
        else if (p->status != 200)
                failed(p, "status", p->status);
        else if (!take(p))
                failed(p, "not a snapshot", (int64_t)buf_len(&p->body));
        else
                loop_timer_start(&p->again, 0);
        buf_release(&p->body);
}

static const struct http_call_events events = {
        .on_head = on_head,
        .on_data = on_data,
        .on_done = on_done,
};

static void pull(struct gw_pull *p) {
        const struct conf_gateway *conf = p->c->settings->conf;
        const struct gw_settings *s = p->c->settings;
        char path[192];
        const char *digest = p->c->snapshot->digest;
        int len = snprintf(path, sizeof path, "/v1/snapshot?wait=%" PRIu32 "%s%s",
                           conf->snapshot.wait_ms, digest[0] ? "&after=" : "", digest);
        struct http_header headers[] = {
                {.name = SPAN("authorization"), .value = {s->bearer, s->bearer_len}},
                {.name = SPAN("accept"), .value = SPAN("application/json")},
        };
        struct http_call_request q = {
                .method = SPAN("GET"),
                .scheme = SPAN("http"),
                .authority = span_of(conf->origin.address.text),
                .path = {path, (size_t)len},
                .headers = headers,
                .n_headers = NET_COUNT_OF(headers),
                .deadline_ms = (int64_t)conf->snapshot.wait_ms + conf->origin.request_timeout_ms,
        };
        p->too_large = false;
        p->status = 0;
        int r = http_pool_start(p->c->origin, &p->call, &q);
        if (r < 0)
                failed(p, "not reached", r);
        else
                gw_count_origin(&p->c->counters, GW_ORIGIN_SNAPSHOT);
}

static void on_timer(struct loop_timer *t) {
        struct gw_pull *p = NET_CONTAINER_OF(t, struct gw_pull, again);
        pull(p);
}

int gw_pull_new(struct gw_control *c, struct gw_pull **out) {
        struct gw_pull *p = calloc(1, sizeof *p);
        *out = p;
        if (!p)
                return -ENOMEM;
        p->c = c;
        p->moved_at_ms = loop_clock_ms();
        p->call = (struct http_call){.events = &events, .owner = p};
        buf_init(&p->body, ANSWER_MAX);
        loop_timer_init(c->loop, &p->again, on_timer);
        loop_timer_start(&p->again, 0);
        return 0;
}

void gw_pull_hurry(struct gw_pull *p) {
        if (loop_timer_is_started(&p->again))
                loop_timer_start(&p->again, 0);
}

void gw_pull_free(struct gw_pull **pp) {
        struct gw_pull *p = *pp;
        *pp = NULL;
        if (!p)
                return;
        loop_timer_cancel(&p->again);
        http_call_cancel(&p->call);
        buf_fini(&p->body);
        free(p);
}
