#include "gateway/origin_call.h"

#include <errno.h>
#include <stdlib.h>

bool gw_digits_parse(struct span text, int64_t *out) {
        int64_t value = 0;
        if (text.len == 0 || text.len > 18)
                return false;
        for (size_t i = 0; i < text.len; i++) {
                if (text.p[i] < '0' || text.p[i] > '9')
                        return false;
                value = value * 10 + (text.p[i] - '0');
        }
        *out = value;
        return true;
}

bool gw_version_parse(struct span text, uint64_t *timeline, uint64_t *n) {
        const char *dot = text.len ? memchr(text.p, '.', text.len) : NULL;
        int64_t high = 0, low = 0;
        if (!dot)
                return false;
        size_t before = (size_t)(dot - text.p);
        if (!gw_digits_parse((struct span){text.p, before}, &high) ||
            !gw_digits_parse((struct span){dot + 1, text.len - before - 1}, &low))
                return false;
        *timeline = (uint64_t)high;
        *n = (uint64_t)low;
        return true;
}

static void on_head(struct http_call *call, int status, const struct http_header *headers,
                    size_t n) {
        struct gw_origin_call *c = call->owner;
        bool has_available = false, has_version = false;
        c->status = status;
        for (size_t i = 0; i < n; i++) {
                struct span name = headers[i].name, value = headers[i].value;
                if (span_eq(name, SPAN("idempotent-replayed")))
                        c->is_replayed = span_eq(value, SPAN("true"));
                else if (span_eq(name, SPAN("retry-after")))
                        (void)gw_digits_parse(value, &c->retry_after_s);
                else if (span_eq(name, SPAN("sluice-available")))
                        has_available = gw_digits_parse(value, &c->available);
                else if (span_eq(name, SPAN("sluice-version")))
                        has_version = gw_version_parse(value, &c->timeline, &c->n);
        }
        c->has_stock = has_available && has_version;
}

static void on_data(struct http_call *call, struct span data) {
        struct gw_origin_call *c = call->owner;
        if (data.len > sizeof c->body - c->len) {
                c->too_long = true;
                return;
        }
        memcpy(c->body + c->len, data.p, data.len);
        c->len += data.len;
}

static void on_done(struct http_call *call, enum http_call_outcome outcome) {
        struct gw_origin_call *c = call->owner;
        c->outcome = outcome == HTTP_CALL_OK && c->too_long ? HTTP_CALL_PROTOCOL : outcome;
        if (c->r)
                c->r->call = NULL;
        c->on_answer(c);
        free(c);
}

static const struct http_call_events events = {
        .on_head = on_head,
        .on_data = on_data,
        .on_done = on_done,
};

struct gw_origin_call *gw_origin_call_new(struct gw_request *r,
                                          void (*on_answer)(struct gw_origin_call *)) {
        struct gw_origin_call *c = malloc(sizeof *c);
        if (!c)
                return NULL;
        memset(c, 0, offsetof(struct gw_origin_call, body));
        c->call = (struct http_call){.events = &events, .owner = c};
        c->w = r->w;
        c->r = r;
        c->on_answer = on_answer;
        c->sale = r->sale->handle;
        c->is_stored = r->sale->is_stored;
        return c;
}

int gw_origin_call_start(struct gw_origin_call *c, const struct http_call_request *q,
                         enum gw_origin_kind kind) {
        int err = http_pool_start(c->w->origin, &c->call, q);
        if (err < 0)
                return err;
        gw_count_origin(&c->w->counters, kind);
        c->r->call = c;
        return 0;
}

void gw_origin_call_free(struct gw_origin_call **c) {
        free(*c);
        *c = NULL;
}

void gw_origin_call_orphan(struct gw_origin_call *c) {
        c->r = NULL;
}
