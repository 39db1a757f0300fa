#include "tests/fuzz/rig.h"

#include <stdio.h>
#include <stdlib.h>

#include "net/h2_hpack.h"
#include "net/h2_repeat.h"

#define LARGE_BYTES 150000
#define PIECE_BYTES 9000
#define PIECES 8

static char blob[LARGE_BYTES];
static struct http_page *pages[3]; /* two, and the refusal */

uint64_t fuzz_hash(uint64_t before, const void *data, size_t n) {
        const uint8_t *p = data;
        uint64_t h = before ? before : 0xcbf29ce484222325u;
        for (size_t i = 0; i < n; i++)
                h = (h ^ p[i]) * 0x100000001b3u;
        return h;
}

/* ---- life ---- */

static struct http_page *page_make(int status, struct span type, size_t n_body) {
        const struct http_header headers[] = {{SPAN("content-type"), type, 0},
                                              {SPAN("cache-control"), SPAN("no-store"), 0},
                                              {SPAN("x-page"), SPAN("one"), 0}};
        struct http_page *page =
                http_page_new(status, headers, NET_COUNT_OF(headers), (struct span){blob, n_body});
        FUZZ_CHECK(page);
        return page;
}

/* Once: they never change. */
static void pages_make(void) {
        for (size_t i = 0; i < sizeof blob; i++)
                blob[i] = (char)('a' + i % 23);
        pages[0] = page_make(200, SPAN("text/plain"), 40);
        pages[1] = page_make(404, SPAN("application/json"), 3000);
        pages[2] = page_make(400, SPAN("text/html"), 10);
}

void rig_init(struct rig *r, const uint8_t script[RIG_SCRIPT]) {
        if (!pages[0])
                pages_make();
        memset(r, 0, sizeof *r);
        memcpy(r->script, script, RIG_SCRIPT);
        bool is_narrow = script[RIG_FLAGS] & RIG_NARROW;
        bool is_patient = script[RIG_FLAGS] & RIG_PATIENT;
        r->pool = pool_new();
        FUZZ_CHECK(r->pool);
        r->coder = h2_coder_new(r->pool);
        r->repeats = h2_repeats_new(r->pool, 1, &r->evicted);
        FUZZ_CHECK(r->coder && r->repeats);
        r->conf = (struct http_session_conf){
                .pool = r->pool,
                .coder = r->coder,
                .head = {.fields = is_narrow ? 8 : 100,
                         .bytes = is_narrow ? 800 : 16384,
                         .keep_unknown = script[RIG_FLAGS] & RIG_UNKNOWN},
                .streams = is_narrow ? 3 : 100,
                .repeats = r->repeats,
                .glitches = {is_patient ? 1000000 : 1000, 10},
                .resets = {is_patient ? 1000000 : 100, 20},
                .is_tls = true,
        };
}

void rig_fini(struct rig *r) {
        r->session->ops->free(r->session);
        for (size_t i = 0; i < r->n_records; i++)
                free(r->records[i].request);
        free(r->records);
        h2_repeats_free(&r->repeats);
        h2_coder_free(&r->coder);
        pool_free(&r->pool); /* asserts that every piece came back */
}

/* ---- answers, as an exchange gives them ---- */

static void release(struct rig_record *rec) {
        struct http_stream *st = rec->st;
        rec->st = NULL;
        http_stream_release(st);
}

static void body_drop(struct http_stream *st) {
        st->discard_body = true;
        st->session->ops->consume(st, st->unconsumed);
        buf_release(&st->body);
}

static void answer_end(struct rig_record *rec) {
        struct http_stream *st = rec->st;
        if (!st->closed && !st->received_end)
                body_drop(st);
        release(rec);
}

static void answer_head(struct http_stream *st, const struct http_answer *a) {
        st->session->ops->answer(st, a);
        st->answered = true;
        st->out_end = st->out_end || !a->has_body;
}

static void answer_page(struct rig_record *rec, struct http_page *page) {
        struct http_stream *st = rec->st;
        struct http_answer a = {.status = http_page_status(page), .is_length_known = true};
        a.headers = http_page_sent_headers(page, &a.n);
        if (!st->closed) {
                http_page_take(page);
                st->page = page;
                st->out_end = true;
                if (!st->is_head)
                        st->fixed = http_page_body(page);
                a.has_body = st->fixed.len > 0;
                answer_head(st, &a);
        }
        answer_end(rec);
}

static void answer_text(struct rig_record *rec, int status, size_t n_fields, size_t n_body) {
        static const struct http_header field = {SPAN("x-field-of-some-length"),
                                                 SPAN("and a value that goes with it"), 0};
        struct http_stream *st = rec->st;
        struct http_header *headers = arena_take(&st->arena, (n_fields + 1) * sizeof *headers);
        struct http_answer a = {
                .status = status, .headers = headers, .n = n_fields, .is_length_known = true};
        FUZZ_CHECK(headers);
        for (size_t i = 0; i < n_fields; i++)
                headers[i] = field;
        st->out_end = true;
        a.has_body = n_body > 0 && !st->is_head;
        if (a.has_body)
                st->fixed = (struct span){blob, n_body};
        if (!st->closed)
                answer_head(st, &a);
        answer_end(rec);
}

static void answer_start(struct rig_record *rec) {
        struct http_stream *st = rec->st;
        const struct http_answer a = {.status = 200, .has_body = !st->is_head};
        if (!st->closed)
                answer_head(st, &a);
}

static void answer_data(struct rig_record *rec, bool end) {
        struct http_stream *st = rec->st;
        if (!st->closed && !st->is_head && !st->out_end) {
                FUZZ_CHECK(buf_append(&st->out, blob, PIECE_BYTES) == 0);
                st->out_end = end;
                st->session->ops->resume(st);
                st->want_drain = buf_len(&st->out) >= HTTP_STREAM_QUEUE;
        }
        if (end)
                answer_end(rec);
}

static void answer_abort(struct rig_record *rec) {
        rec->st->session->ops->abort(rec->st);
        answer_end(rec);
}

/* ---- requests ---- */

static int put_span(char *to, size_t cap, const char *name, struct span value) {
        return snprintf(to, cap, "%s=%.*s|", name, value.p ? (int)value.len : 1,
                        value.p ? value.p : "-");
}

/* All of it in one line. A zero byte cuts only what is behind it in a field. */
static char *request_text(const struct http_stream *st) {
        const struct http_request *q = &st->head.request;
        size_t cap = 64 + q->method_text.len + q->path.len + q->scheme.len + q->authority.len;
        for (size_t i = 0; i < q->n_headers; i++)
                cap += q->headers[i].name.len + q->headers[i].value.len + 16;
        char *text = malloc(cap);
        FUZZ_CHECK(text);
        size_t n = 0;
        n += (size_t)put_span(text + n, cap - n, "m", q->method_text);
        n += (size_t)put_span(text + n, cap - n, "s", q->scheme);
        n += (size_t)put_span(text + n, cap - n, "a", q->authority);
        n += (size_t)put_span(text + n, cap - n, "p", q->path);
        for (size_t i = 0; i < q->n_headers; i++) {
                n += (size_t)put_span(text + n, cap - n, "n", q->headers[i].name);
                n += (size_t)put_span(text + n, cap - n, "v", q->headers[i].value);
        }
        (void)snprintf(text + n, cap - n, "%s", q->has_body ? "+" : ".");
        return text;
}

static struct rig_record *record_add(struct rig *r, struct http_stream *st) {
        if (r->n_records == r->room) {
                r->room = r->room ? 2 * r->room : 16;
                r->records = realloc(r->records, r->room * sizeof *r->records);
                FUZZ_CHECK(r->records);
        }
        struct rig_record *rec = &r->records[r->n_records++];
        size_t number = r->is_http11 ? r->n_records : (size_t)st->id / 2;
        *rec = (struct rig_record){.id = st->id, .st = st};
        rec->plan = (enum rig_plan)(r->script[RIG_PLAN + number % 8] % RIG_PLANS);
        st->user = (void *)r->n_records;
        return rec;
}

static void body_read(const struct rig *r, struct rig_record *rec) {
        struct http_stream *st = rec->st;
        bool is_slow = rec->plan == RIG_SLOW_READ && !st->received_end && !r->is_finishing;
        if ((rec->plan != RIG_READ && rec->plan != RIG_SLOW_READ) || st->closed)
                return;
        if (is_slow && rec->turns % 4 != 3)
                return;
        struct span body = buf_span(&st->body);
        rec->body_hash = fuzz_hash(rec->body_hash, body.p, body.len);
        rec->body_bytes += body.len;
        buf_eat(&st->body, body.len);
        st->session->ops->consume(st, st->unconsumed);
        rec->received_end = st->received_end;
        if (st->received_end || st->body_lost)
                answer_page(rec, pages[0]);
}

static void plan_begin(struct rig *r, struct rig_record *rec) {
        switch (rec->plan) {
        case RIG_PAGE:
        case RIG_OTHER:
                answer_page(rec, pages[rec->plan == RIG_OTHER]);
                break;
        case RIG_SMALL:
                answer_text(rec, 201, 2, 100);
                break;
        case RIG_FIELDS:
                answer_text(rec, 200, 250, 10);
                break;
        case RIG_TOO_MANY:
                answer_text(rec, 200, 400, 10);
                break;
        case RIG_LARGE:
                answer_text(rec, 200, 1, LARGE_BYTES);
                break;
        case RIG_EMPTY:
                answer_text(rec, 204, 1, 0);
                break;
        case RIG_ABORT:
                answer_abort(rec);
                break;
        case RIG_STREAM:
        case RIG_BREAK:
                answer_start(rec);
                break;
        case RIG_READ:
        case RIG_SLOW_READ:
                rec->st->session->ops->want_body(rec->st);
                body_read(r, rec);
                break;
        case RIG_HOLD:
        case RIG_KEEP:
        case RIG_PLANS:
                break;
        }
}

static void head_shown(struct rig *r, struct http_stream *st) {
        struct rig_record *rec = record_add(r, st);
        bool has_body = !st->received_end || buf_len(&st->body) > 0 || st->body_lost;
        rec->outcome = http_head_end(&st->head, &st->arena, r->conf.is_tls, has_body);
        st->is_head = rec->is_head = st->head.request.method == HTTP_HEAD;
        if (rec->outcome == HTTP_HEAD_GOOD)
                rec->request = request_text(st);
        if (rec->outcome == HTTP_HEAD_GOOD)
                plan_begin(r, rec);
        else
                answer_page(rec, pages[2]);
}

void rig_events(struct rig *r) {
        struct http_stream *st;
        unsigned events;
        while ((st = http_session_next(r->session, &events))) {
                if (events & HTTP_STREAM_HEAD) {
                        head_shown(r, st);
                        continue;
                }
                struct rig_record *rec = &r->records[(size_t)st->user - 1];
                FUZZ_CHECK(rec->st == st);
                if (events & HTTP_STREAM_GONE) {
                        rec->gone = true;
                        release(rec);
                } else if (events & HTTP_STREAM_BODY) {
                        body_read(r, rec);
                }
        }
}

static void plan_go_on(struct rig *r, struct rig_record *rec) {
        bool is_late = r->is_finishing || rec->turns >= r->script[RIG_LATE] % 8u + 1;
        switch (rec->plan) {
        case RIG_STREAM:
                if (rec->turns <= PIECES || is_late)
                        answer_data(rec, rec->turns >= PIECES || r->is_finishing);
                break;
        case RIG_BREAK:
                if (is_late)
                        answer_abort(rec);
                else
                        answer_data(rec, false);
                break;
        case RIG_HOLD:
                if (is_late)
                        answer_page(rec, pages[1]);
                break;
        case RIG_KEEP:
                if (r->is_finishing)
                        answer_page(rec, pages[0]);
                break;
        case RIG_READ:
        case RIG_SLOW_READ:
                body_read(r, rec);
                break;
        case RIG_PAGE:
        case RIG_OTHER:
        case RIG_SMALL:
        case RIG_FIELDS:
        case RIG_TOO_MANY:
        case RIG_LARGE:
        case RIG_EMPTY:
        case RIG_ABORT:
        case RIG_PLANS:
                fuzz_fail("plan %d goes on", (int)rec->plan);
        }
}

void rig_turn(struct rig *r) {
        r->turns++;
        r->session->now_ms += r->script[RIG_CLOCK] * 8;
        rig_events(r);
        for (size_t i = 0; i < r->n_records; i++) {
                if (!r->records[i].st)
                        continue;
                r->records[i].turns++;
                plan_go_on(r, &r->records[i]);
        }
        if (r->script[RIG_NOTICE] && r->turns == r->script[RIG_NOTICE])
                r->session->ops->drain(r->session, false);
        if (r->script[RIG_FINAL] && r->turns == r->script[RIG_FINAL])
                r->session->ops->drain(r->session, true);
}
