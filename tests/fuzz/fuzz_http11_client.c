/* Answers of an upstream to the HTTP/1.1 client session, as they come and cut at
 * random: both ways must tell the same, and what is told must be fit to be
 * passed on. Then the connection serves on for as long as it says it can.
 *
 * Input: a byte that picks the request and how the connection ends, a byte from
 * which the cuts grow, then what the upstream says. */
#include <stdlib.h>

#include "net/http11_client.h"

#define CALLS_MAX 8
#define HEADER_BYTES 4096
#define WINDOW_BYTES 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENDS = 4, CANCELS = 8, READS_LATE = 16 };

#define CHECK(is_true)                                                                             \
        do {                                                                                       \
                if (!(is_true))                                                                    \
                        abort();                                                                   \
        } while (0)

/* What a run tells: a hash over all of it, with pieces of body run together. */
struct told {
        uint64_t hash;
        unsigned heads, ends;
};

static void mix(struct told *t, const char *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                t->hash = (t->hash ^ (unsigned char)p[i]) * 1099511628211u;
}

static bool is_token(struct span s) {
        for (size_t i = 0; i < s.len; i++) {
                char c = s.p[i];
                if ((c < 'a' || c > 'z') && (c < '0' || c > '9') &&
                    (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
                        return false;
        }
        return s.len > 0;
}

static bool is_value(struct span s) {
        for (size_t i = 0; i < s.len; i++) {
                unsigned char c = (unsigned char)s.p[i];
                if ((c < 0x20 && c != '\t') || c == 0x7f)
                        return false;
        }
        return s.len == 0 || (s.p[0] != ' ' && s.p[s.len - 1] != ' ');
}

static void check_head(const struct client_event *e, struct told *t) {
        static const struct span never[] = {SPAN("connection"),       SPAN("keep-alive"),
                                            SPAN("proxy-connection"), SPAN("transfer-encoding"),
                                            SPAN("upgrade"),          SPAN("te"),
                                            SPAN("trailer")};
        size_t lengths = 0;
        char status = (char)e->status;

        CHECK(e->status >= 200 && e->status <= 999 && e->n_headers <= 128);
        mix(t, &status, 1);
        for (size_t i = 0; i < e->n_headers; i++) {
                const struct http_header *h = &e->headers[i];
                CHECK(is_token(h->name) && is_value(h->value));
                for (size_t k = 0; k < NET_COUNT_OF(never); k++)
                        CHECK(!span_eq(h->name, never[k]));
                lengths += span_eq(h->name, SPAN("content-length"));
                mix(t, h->name.p, h->name.len);
                mix(t, ":", 1);
                mix(t, h->value.p, h->value.len);
                mix(t, "\n", 1);
        }
        CHECK(lengths <= 1);
        t->heads++;
}

/* One connection and its call. */
struct run {
        struct http11_client *h;
        struct client_call call;
        unsigned flags, n_calls;
        bool is_open, head_told;
        size_t unread;
        bool has_length;
        uint64_t left; /* of the body, by its length */
        struct told told;
};

/* A body with a length has exactly that, and ends with its last byte. */
static void read_length(struct run *r, const struct client_event *e) {
        bool is_bodiless = (r->flags & 3) == 1 || e->status == 204 || e->status == 304;

        r->has_length = false;
        for (size_t i = 0; i < e->n_headers && !is_bodiless; i++) {
                const struct http_header *h = &e->headers[i];

                if (!span_eq(h->name, SPAN("content-length")))
                        continue;
                r->has_length = true;
                r->left = 0;
                CHECK(h->value.len > 0);
                for (size_t k = 0; k < h->value.len; k++) {
                        CHECK(h->value.p[k] >= '0' && h->value.p[k] <= '9');
                        r->left = r->left * 10 + (uint64_t)(h->value.p[k] - '0');
                }
        }
}

static void ask(struct run *r) {
        static const struct span methods[] = {SPAN("GET"), SPAN("HEAD"), SPAN("POST"), SPAN("GET")};
        struct http_call_request q = {.method = methods[r->flags & 3],
                                      .scheme = SPAN("http"),
                                      .authority = SPAN("a.test"),
                                      .path = SPAN("/"),
                                      .body = (r->flags & 3) == 2 ? SPAN("body") : SPAN("")};
        struct span out;
        int e = http11_client_submit(r->h, &r->call, &q, false);

        CHECK(e == 0);
        while (http11_client_output(r->h, &out) > 0)
                CHECK(out.len <= 16384);
        r->is_open = true;
        r->head_told = false;
        r->unread = 0;
        r->n_calls++;
}

static void on_event(struct run *r, const struct client_event *e) {
        char end = (char)e->end;

        CHECK(r->is_open && e->call == &r->call);
        switch (e->kind) {
        case CLIENT_EVENT_HEAD:
                CHECK(!r->head_told);
                r->head_told = true;
                check_head(e, &r->told);
                read_length(r, e);
                break;
        case CLIENT_EVENT_DATA:
                CHECK(r->head_told && e->data.len > 0);
                CHECK(!r->has_length || e->data.len <= r->left);
                r->left -= r->has_length ? e->data.len : 0;
                mix(&r->told, e->data.p, e->data.len);
                r->unread += e->data.len;
                CHECK(http11_client_is_full(r->h) == (r->unread >= WINDOW_BYTES));
                if (r->flags & READS_LATE)
                        break;
                http11_client_consumed(r->h, e->call, r->unread);
                r->unread = 0;
                break;
        case CLIENT_EVENT_END:
                CHECK(r->head_told || e->end != CLIENT_END_COMPLETE);
                CHECK(!r->has_length || r->left == 0 || e->end != CLIENT_END_COMPLETE);
                r->has_length = false;
                mix(&r->told, &end, 1);
                r->told.ends++;
                r->is_open = false;
                break;
        }
}

static void take(struct run *r, bool may_cancel) {
        struct client_event e;

        while (http11_client_next(r->h, &e)) {
                on_event(r, &e);
                if (may_cancel && r->is_open && (r->flags & CANCELS) && r->unread % 3 == 1) {
                        http11_client_cancel(r->h, &r->call);
                        CHECK(http11_client_room(r->h) == 0);
                        r->is_open = r->has_length = false;
                }
        }
        http11_client_done(r->h);
        CHECK(!r->is_open || !r->head_told || !r->has_length || r->left > 0);
        if (r->unread) {
                if (r->is_open)
                        http11_client_consumed(r->h, &r->call, r->unread);
                r->unread = 0;
        }
}

/* In memory of just that size. */
static void feed(struct run *r, const uint8_t *data, size_t n, bool may_cancel) {
        char *own = malloc(n ? n : 1);

        CHECK(own);
        memcpy(own, data, n);
        CHECK(http11_client_feed(r->h, (struct span){own, n}) == 0 || !r->is_open);
        take(r, may_cancel);
        free(own);
}

static void open_run(struct run *r, unsigned flags) {
        const struct client_session_conf conf = {.header_bytes = HEADER_BYTES,
                                                 .window_bytes = WINDOW_BYTES};

        *r = (struct run){.flags = flags, .told.hash = 14695981039346656037u};
        r->h = http11_client_new(&conf);
        CHECK(r->h);
        ask(r);
}

static struct told close_run(struct run *r) {
        if (r->flags & ENDS) {
                http11_client_feed_end(r->h);
                take(r, false);
        }
        http11_client_free(&r->h);
        return r->told;
}

static size_t cut(uint32_t *dice, size_t left) {
        size_t n;

        *dice = *dice * 1664525u + 1013904223u;
        n = 1 + (*dice >> 16) % (*dice & 0x300 ? 13 : 700);
        return n < left ? n : left;
}

/* The first answer, in pieces or whole. */
static struct told first_answer(const uint8_t *data, size_t size, unsigned flags, uint32_t dice,
                                bool whole) {
        struct run r;

        open_run(&r, flags);
        for (size_t at = 0; at < size && r.is_open;) {
                size_t n = whole ? size - at : cut(&dice, size - at);

                feed(&r, data + at, n, false);
                at += n;
        }
        return close_run(&r);
}

static void serve_on(const uint8_t *data, size_t size, unsigned flags, uint32_t dice) {
        struct run r;

        open_run(&r, flags);
        for (size_t at = 0; at < size;) {
                size_t n = cut(&dice, size - at);

                if (!r.is_open && (http11_client_room(r.h) == 0 || r.n_calls == CALLS_MAX))
                        break;
                if (!r.is_open)
                        ask(&r);
                feed(&r, data + at, n, true);
                at += n;
        }
        (void)close_run(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size < 2)
                return 0;

        unsigned flags = data[0];
        uint32_t dice = data[1] * 2654435761u;
        struct told whole = first_answer(data + 2, size - 2, flags, dice, true);
        struct told cut_up = first_answer(data + 2, size - 2, flags, dice, false);

        CHECK(whole.hash == cut_up.hash && whole.heads == cut_up.heads &&
              whole.ends == cut_up.ends);
        serve_on(data + 2, size - 2, flags, dice);
        return 0;
}
