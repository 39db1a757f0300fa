/* Bytes to our HTTP/2 session, cut anywhere, with a connection played around
 * it (rig.h) and a client that hears what comes back (ears.h). Beside what the
 * ears hold it to, the session's own books must balance after every piece. */
#include <stdio.h>
#include <stdlib.h>

#include "net/h2_server.h"
#include "net/h2_session.h"
#include "tests/fuzz/ears.h"
#include "tests/fuzz/rig.h"

static struct rig rig;
static struct ears ears;

static struct h2_server *inside(void) {
        return NET_CONTAINER_OF(rig.session, struct h2_server, base);
}

/* ---- the books ---- */

static void ready_check(const struct h2_server *h) {
        unsigned marked = 0;
        for (struct http_stream *st = h->base.streams; st; st = st->next)
                marked += h2_priv_of(st)->is_ready;
        struct http_stream *st = h->last_ready;
        for (unsigned i = 0; i < marked; i++) {
                FUZZ_CHECK(st && h2_priv_of(st)->is_ready && !st->closed && !st->sent_end);
                st = h2_priv_of(st)->next_ready;
        }
        FUZZ_CHECK(st == h->last_ready);
}

static void windows_check(const struct h2_server *h) {
        int64_t whole = (int64_t)h->receive_window + h->owed;
        for (const struct http_stream *st = h->base.streams; st; st = st->next) {
                if (!st->closed)
                        whole += (int64_t)st->unconsumed;
        }
        FUZZ_CHECK(h->receive_window >= 0 && whole <= H2_WINDOW_FIRST);
        /* Between two frames nothing of the window is lost. */
        if (h->at == H2_AT_HEAD && h->n_part == 0 && !h->is_dead)
                FUZZ_CHECK(whole == H2_WINDOW_FIRST);
        FUZZ_CHECK((int64_t)h->send_window <= ears.granted - ears.sent || ears.is_deaf);
}

static void books_check(void) {
        struct h2_server *h = inside();
        uint32_t stored = 0;
        unsigned open = 0;
        unsigned all = 0;
        for (const struct http_stream *st = h->base.streams; st; st = st->next) {
                all++;
                open += !st->closed;
                stored += st->stored;
                FUZZ_CHECK(buf_len(&st->body) <= HTTP_STREAM_WINDOW);
                FUZZ_CHECK(st->closed || st->held || st->queued || !st->sent_end ||
                           !st->received_end);
        }
        FUZZ_CHECK(open == h->n_open && open <= h->base.conf->streams);
        FUZZ_CHECK(all == h->base.n_streams);
        FUZZ_CHECK(stored == h->base.stored_bytes);
        FUZZ_CHECK(stored <= HTTP_SESSION_STORED_MAX + h->base.conf->head.bytes);
        FUZZ_CHECK(h->control_at <= h->control_len && h->control_len <= h->control_size);
        FUZZ_CHECK(h->control_len <= 8192);
        ready_check(h);
        windows_check(h);
}

/* After a pull that gave nothing: nobody waits who could go on. */
static void stall_check(void) {
        struct h2_server *h = inside();
        if (h->is_dead)
                return;
        for (struct http_stream *st = h->base.streams; st; st = st->next) {
                const struct h2_priv *p = h2_priv_of(st);
                if (st->closed || st->sent_end || !st->answered)
                        continue;
                FUZZ_CHECK(!p->is_head_due);
                FUZZ_CHECK(p->has_body);
                size_t queued = http_stream_queued(st);
                FUZZ_CHECK(queued > 0 || !st->out_end);
                FUZZ_CHECK(queued == 0 || p->send_window <= 0 || h->send_window <= 0);
        }
}

/* ---- the two directions ---- */

static void pull_all(struct dice *d) {
        static uint8_t out[16384];
        bool is_whole = rig.script[RIG_PULL] % 2 == 0;
        for (;;) {
                bool is_dead = inside()->is_dead;
                /* What a record holds; a session may want room for a whole head. */
                size_t size = is_whole ? sizeof out : sizeof out - dice_roll(d, 4);
                size_t n = rig.session->ops->pull(rig.session, (char *)out, size);
                FUZZ_CHECK(n <= size);
                ears_server(&ears, out, n);
                FUZZ_CHECK(!is_dead || inside()->is_dead);
                books_check();
                if (n == 0)
                        break;
        }
        stall_check();
}

static bool feed(const uint8_t *data, size_t n) {
        struct span copy = fuzz_copy(data, n);
        ears_client(&ears, data, n);
        int r = rig.session->ops->feed(rig.session, copy.p, copy.len);
        free((void *)(uintptr_t)copy.p);
        books_check();
        FUZZ_CHECK((r < 0) == inside()->is_dead);
        FUZZ_CHECK(r == 0 || rig.session->why != HTTP_SESSION_FINE);
        return r == 0;
}

static bool greet(void) {
        static const uint8_t bytes[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                       "\0\0\0\4\0\0\0\0\0"
                                       "\0\0\0\4\1\0\0\0\0";
        return feed(bytes, sizeof bytes - 1);
}

/* Everything is answered, everything may be sent: it must come to its end. */
static void finish(struct dice *d) {
        static const uint8_t more[] = "\0\0\4\10\0\0\0\0\0\x3f\xff\0\0";
        if (inside()->at != H2_AT_HEAD || inside()->n_part != 0 || inside()->block_id != 0)
                return;
        rig.is_finishing = true;
        if (inside()->send_window < 0x3f000000 && !feed(more, sizeof more - 1))
                return;
        for (int i = 0; i < 12; i++) {
                rig_turn(&rig);
                pull_all(d);
        }
        for (struct http_stream *st = rig.session->streams; st; st = st->next)
                FUZZ_CHECK(st->sent_end || !st->answered || h2_priv_of(st)->send_window <= 0);
        for (size_t i = 0; i < rig.n_records; i++) {
                const struct rig_record *rec = &rig.records[i];
                FUZZ_CHECK(!rec->st || rec->plan == RIG_READ || rec->plan == RIG_SLOW_READ);
        }
}

static bool turn_is_due(struct dice *d) {
        return dice_roll(d, rig.script[RIG_TURN] % 8u + 1) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size < RIG_SCRIPT)
                return 0;
        rig_init(&rig, data);
        ears_init(&ears);
        struct dice d = dice_of(rig.script[RIG_SPLIT]);
        bool is_split = rig.script[RIG_SPLIT] != 0;
        rig.session = h2_server_new(&rig.conf, 1000);
        FUZZ_CHECK(rig.session);
        bool goes_on = !(rig.script[RIG_FLAGS] & RIG_GREETED) || greet();
        for (size_t at = RIG_SCRIPT; at < size && goes_on;) {
                size_t n = is_split ? 1 + dice_roll(&d, dice_roll(&d, 4) ? 40 : 9000) : size - at;
                n = n < size - at ? n : size - at;
                goes_on = feed(data + at, n);
                at += n;
                if (goes_on && turn_is_due(&d)) {
                        rig_turn(&rig);
                        pull_all(&d);
                }
        }
        rig_events(&rig);
        pull_all(&d);
        if (goes_on && (rig.script[RIG_FLAGS] & RIG_FINISHED))
                finish(&d);
        if (!goes_on)
                FUZZ_CHECK(rig.session->ops->is_done(rig.session) && ears.had_goaway);
        rig_fini(&rig);
        ears_fini(&ears);
        return 0;
}
