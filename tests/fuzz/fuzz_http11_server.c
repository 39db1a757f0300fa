/* Bytes to the HTTP/1.1 session, cut anywhere, with a connection played around
 * it (rig.h); what comes back must be answers that a parser for responses takes
 * without a word, one for each request answered. */
#include <stdio.h>
#include <stdlib.h>

#include "net/http11_llhttp.h"
#include "net/http11_server.h"
#include "tests/fuzz/rig.h"

/* What a request may keep: its first window and what came along (131,072). */
#define BODY_MAX ((size_t)131072)

static struct rig rig;
static llhttp_t reader;
static size_t n_answers; /* final ones, begun */
static bool is_torn;     /* a stream was broken off: the last answer may be cut */

static int on_headers_complete(llhttp_t *p) {
        if (p->status_code < 200)
                return 0;
        FUZZ_CHECK(n_answers < rig.n_records);
        return rig.records[n_answers++].is_head; /* 1: no body follows */
}

static const llhttp_settings_t settings = {.on_headers_complete = on_headers_complete};

static void books_check(void) {
        unsigned all = 0;
        uint32_t stored = 0;
        for (const struct http_stream *st = rig.session->streams; st; st = st->next) {
                all++;
                stored += st->stored;
                FUZZ_CHECK(buf_len(&st->body) <= BODY_MAX);
        }
        FUZZ_CHECK(all == rig.session->n_streams && all <= rig.n_records + 1);
        FUZZ_CHECK(stored == rig.session->stored_bytes);
        FUZZ_CHECK(stored <= HTTP_SESSION_STORED_MAX + rig.conf.head.bytes);
        for (size_t i = 0; i < rig.n_records; i++)
                is_torn |= rig.records[i].plan == RIG_BREAK || rig.records[i].plan == RIG_ABORT;
}

static void pull_all(struct dice *d) {
        static char out[16384];
        for (;;) {
                size_t size = sizeof out - dice_roll(d, 2) * dice_roll(d, 16300);
                size_t n = rig.session->ops->pull(rig.session, out, size);
                FUZZ_CHECK(n <= size);
                if (n == 0)
                        break;
                enum llhttp_errno e = llhttp_execute(&reader, out, n);
                if (e != HPE_OK)
                        fuzz_fail("answer %zu: %s, %s", n_answers, llhttp_errno_name(e),
                                  llhttp_get_error_reason(&reader));
                books_check();
        }
}

static bool feed(const uint8_t *data, size_t n) {
        struct span copy = fuzz_copy(data, n);
        int r = rig.session->ops->feed(rig.session, copy.p, copy.len);
        free((void *)(uintptr_t)copy.p);
        books_check();
        return r == 0 && !rig.session->ops->is_done(rig.session);
}

/* All is answered; no answer is cut short but where a stream was broken off. */
static void finish(struct dice *d) {
        rig.is_finishing = true;
        for (int i = 0; i < 12; i++) {
                rig_turn(&rig);
                pull_all(d);
        }
        for (size_t i = 0; i < rig.n_records; i++) {
                const struct rig_record *rec = &rig.records[i];
                FUZZ_CHECK(!rec->st || rec->plan == RIG_READ || rec->plan == RIG_SLOW_READ);
        }
        if (rig.session->ops->is_done(rig.session) && !is_torn)
                (void)llhttp_finish(&reader);
        FUZZ_CHECK(n_answers <= rig.n_records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size < RIG_SCRIPT)
                return 0;
        rig_init(&rig, data);
        rig.is_http11 = true;
        struct dice d = dice_of(rig.script[RIG_SPLIT]);
        bool is_split = rig.script[RIG_SPLIT] != 0;
        llhttp_init(&reader, HTTP_RESPONSE, &settings);
        n_answers = 0;
        is_torn = false;
        rig.session = http11_server_new(&rig.conf, 1000);
        FUZZ_CHECK(rig.session);
        bool goes_on = true;
        for (size_t at = RIG_SCRIPT; at < size && goes_on;) {
                size_t n = is_split ? 1 + dice_roll(&d, dice_roll(&d, 4) ? 40 : 9000) : size - at;
                n = n < size - at ? n : size - at;
                goes_on = !rig.session->is_full && feed(data + at, n);
                at += n;
                if (dice_roll(&d, rig.script[RIG_TURN] % 8u + 1) == 0) {
                        rig_turn(&rig);
                        pull_all(&d);
                }
        }
        rig_events(&rig);
        pull_all(&d);
        if (rig.script[RIG_FLAGS] & RIG_FINISHED)
                finish(&d);
        rig_fini(&rig);
        return 0;
}
