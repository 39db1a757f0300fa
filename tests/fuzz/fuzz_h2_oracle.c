/* The same bytes to our HTTP/2 session and to one on a whole nghttp2 session
 * (tests/unit/h2_oracle.h), frame by frame, with the same connection played
 * around both (rig.h). They must show the same requests, reset the same streams
 * for the same reason, end for the same reason, and answer the same. Where they
 * may not agree stands in one table, with the reason; behind such a difference
 * the two are no longer comparable, and the input ends there. */
#include <stdio.h>
#include <stdlib.h>

#include "net/h2_server.h"
#include "net/h2_session.h"
#include "tests/fuzz/ears.h"
#include "tests/fuzz/rig.h"
#include "tests/unit/h2_oracle.h"

struct side {
        const char *name;
        struct rig rig;
        struct ears ears;
        bool is_over; /* it will take no more bytes */
};

static struct span payload; /* of the last frame */
static struct side ours = {.name = "ours"};
static struct side oracle = {.name = "oracle"};

/* ---- differences that are allowed ---- */

/* What happened when they parted. */
struct parting {
        struct h2_frame f;      /* the last frame */
        int32_t stream;         /* that differs; 0: the connection */
        int our_code, its_code; /* of the reset or GOAWAY; NONE */
};

enum { ANY = -2, NONE = -1 };

typedef bool situation(const struct parting *p);

static const struct h2_server *inside(void) {
        return NET_CONTAINER_OF(ours.rig.session, struct h2_server, base);
}

static const struct heard *our_heard(const struct parting *p) {
        return ears_find(&ours.ears, p->f.stream);
}

static bool is_reset_alone(const struct parting *p) {
        const struct heard *h = our_heard(p);
        return h && h->is_reset && (int)h->rst_code == p->its_code;
}

static bool is_of_stream(const struct parting *p) {
        return p->f.stream != 0;
}

static bool is_of_none(const struct parting *p) {
        return p->f.stream == 0;
}

static bool is_padded(const struct parting *p) {
        return p->f.flags & H2_FLAG_PADDED;
}

static bool is_reset_there(const struct parting *p) {
        const struct heard *h = ears_find(&oracle.ears, p->f.stream);
        return h && h->is_reset;
}

static bool has_priority(const struct parting *p) {
        return p->f.flags & H2_FLAG_PRIORITY;
}

static bool is_mute(const struct parting *p) {
        (void)p;
        return oracle.is_over && !oracle.ears.had_goaway;
}

/* Settings of which only one side knows what they mean. */
static bool has_unknown(const struct parting *p) {
        (void)p;
        for (size_t i = 0; i + 6 <= payload.len; i += 6) {
                uint32_t id = h2_number16((const uint8_t *)payload.p + i);
                if (id == 8 || id == H2_SET_NO_RFC7540_PRIORITIES)
                        return true;
        }
        return false;
}

static bool has_twice(const struct parting *p) {
        unsigned seen = 0;
        (void)p;
        for (size_t i = 0; i + 6 <= payload.len; i += 6) {
                uint32_t id = h2_number16((const uint8_t *)payload.p + i);
                if (id < 16 && (seen & 1u << id))
                        return true;
                seen |= id < 16 ? 1u << id : 0;
        }
        return false;
}

/* Compared in the middle of a frame. */
static bool is_midway;

static bool is_cut(const struct parting *p) {
        (void)p;
        return is_midway;
}

static bool is_over_budget(const struct parting *p) {
        for (const struct http_stream *st = inside()->base.streams; st; st = st->next) {
                if (st->id == p->stream && st->head.over_budget)
                        return true;
        }
        return false;
}

/* Behind a body whose length the head has told. */
static bool is_trailer_of_told(const struct parting *p) {
        for (struct http_stream *st = inside()->base.streams; st; st = st->next) {
                if (st->id == p->stream && inside()->is_trailer)
                        return h2_priv_of(st)->message.length >= 0;
        }
        return false;
}

static size_t open_beside(const struct side *s, int32_t id) {
        size_t n = 0;
        for (size_t i = 0; i < s->ears.n_streams; i++) {
                const struct heard *h = &s->ears.streams[i];
                n += h->id != id && !h->is_ended && !h->is_reset;
        }
        return n;
}

/* The streams' number is met on one side, where an answer waits that the other has sent. */
static bool is_full_there(const struct parting *p) {
        size_t max = ours.rig.conf.streams;
        return open_beside(&ours, p->f.stream) < max && open_beside(&oracle, p->f.stream) >= max;
}

struct difference {
        int type;               /* of the frame; ANY */
        int our_code, its_code; /* ANY */
        bool of_connection;
        situation *when; /* NULL: always */
        const char *reason;
};

static const struct difference allowed[] = {
        {H2_DATA, H2_FRAME_SIZE_ERROR, ANY, true, NULL,
         "RFC 9113, 4.2: too short for what the flags announce; the oracle says PROTOCOL_ERROR, or "
         "nothing where it skips the payload"},
        {H2_HEADERS, H2_FRAME_SIZE_ERROR, ANY, true, NULL, "the same"},
        {H2_PRIORITY_UPDATE, H2_FRAME_SIZE_ERROR, NONE, true, NULL,
         "RFC 9218, 7.1: too short for its stream; the oracle does not read it"},
        {H2_PRIORITY_UPDATE, H2_PROTOCOL_ERROR, NONE, true, NULL,
         "RFC 9218, 7.1: not on stream 0, or for it; the oracle does not read it"},
        {H2_DATA, H2_STREAM_CLOSED, NONE, true, NULL,
         "RFC 9113, 5.1: after its end or reset, or passed over; the oracle forgets closed streams "
         "and drops it"},
        {H2_DATA, H2_PROTOCOL_ERROR, NONE, true, is_padded,
         "RFC 9113, 6.1: more padding than payload; the oracle skips it where the stream is over"},
        {H2_DATA, H2_PROTOCOL_ERROR, H2_STREAM_CLOSED, true, is_padded,
         "wrong twice: its padding, and its stream is half-closed"},
        {H2_HEADERS, H2_STREAM_CLOSED, ANY, true, NULL,
         "RFC 9113, 5.1: after its end or reset; the oracle only decodes it"},
        {H2_HEADERS, H2_PROTOCOL_ERROR, ANY, true, NULL,
         "RFC 9113, 5.1.1: a stream that was passed over; the oracle only decodes it"},
        {H2_DATA, H2_PROTOCOL_ERROR, ANY, false, is_cut,
         "RFC 9113, 8.1.1: longer than content-length; the frame's head tells it, the oracle waits "
         "for the bytes, and meanwhile the request may be served, or broken off"},
        {H2_DATA, NONE, H2_STREAM_CLOSED, true, is_reset_alone,
         "RFC 9113, 5.1: half-closed (remote) is a stream error"},
        {H2_HEADERS, NONE, H2_STREAM_CLOSED, true, is_reset_alone, "the same"},
        {H2_HEADERS, NONE, H2_PROTOCOL_ERROR, true, is_full_there,
         "RFC 9113, 5.1.2: one stream too many for the oracle alone, which gave the connection's "
         "window to other answers, so that none of its streams had ended"},
        {H2_HEADERS, H2_COMPRESSION_ERROR, H2_STREAM_CLOSED, true, NULL,
         "the same, and its block is broken, which we see because we decode it"},
        {H2_HEADERS, H2_COMPRESSION_ERROR, NONE, true, is_reset_there,
         "RFC 9113, 4.3: a block that breaks off; the oracle, which has reset the stream for what "
         "stands before, does not look at its end"},
        {H2_WINDOW_UPDATE, NONE, H2_PROTOCOL_ERROR, true, is_reset_alone,
         "RFC 9113, 6.9: an increment of 0 on a stream is a stream error"},
        {H2_HEADERS, ANY, H2_PROTOCOL_ERROR, true, has_priority,
         "RFC 9113, 5.3.2: priorities are deprecated; a stream that depends on itself is no error"},
        {H2_SETTINGS, ANY, H2_PROTOCOL_ERROR, true, has_unknown,
         "RFC 9113, 6.5.2: what we do not know is ignored (RFC 8441 is not offered)"},
        {H2_SETTINGS, H2_PROTOCOL_ERROR, ANY, true, has_twice,
         "RFC 9113, 6.5.3: values count in their order; the oracle sees the last of each"},
        {H2_SETTINGS, H2_FLOW_CONTROL_ERROR, ANY, true, has_twice, "the same"},
        {H2_GOAWAY, NONE, H2_PROTOCOL_ERROR, true, NULL,
         "RFC 9113, 6.8: a last stream that we never opened does no harm"},
        {H2_RST_STREAM, H2_PROTOCOL_ERROR, H2_FRAME_SIZE_ERROR, true, is_of_none,
         "wrong twice: its length and its stream"},
        {H2_PRIORITY, H2_PROTOCOL_ERROR, H2_FRAME_SIZE_ERROR, true, is_of_none, "the same"},
        {H2_PRIORITY, H2_PROTOCOL_ERROR, NONE, true, is_of_none,
         "RFC 9113, 6.3: not on stream 0; the oracle does not read it"},
        {H2_PRIORITY, H2_FRAME_SIZE_ERROR, NONE, true, NULL,
         "RFC 9113, 6.3: its length; an error of the stream may be one of the connection (5.4.2)"},
        {H2_SETTINGS, H2_PROTOCOL_ERROR, ANY, true, is_of_stream, "the same, or too many"},
        {H2_SETTINGS, H2_FRAME_SIZE_ERROR, H2_ENHANCE_YOUR_CALM, true, NULL, "the same"},
        {H2_PING, H2_PROTOCOL_ERROR, H2_FRAME_SIZE_ERROR, true, is_of_stream, "the same"},
        {H2_GOAWAY, H2_PROTOCOL_ERROR, H2_FRAME_SIZE_ERROR, true, is_of_stream, "the same"},
        {H2_PUSH_PROMISE, H2_PROTOCOL_ERROR, H2_FRAME_SIZE_ERROR, true, NULL, "the same"},
        {H2_CONTINUATION, ANY, NONE, true, is_mute,
         "too many CONTINUATIONs: the oracle breaks off without a word, and one earlier where it "
         "skips the block"},
        {ANY, H2_PROTOCOL_ERROR, NONE, true, is_mute,
         "the same, where another frame should be one"},
        {H2_HEADERS, NONE, H2_PROTOCOL_ERROR, false, is_trailer_of_told,
         "RFC 9110, 6.5.1: content-length says nothing among trailers; the oracle takes it for the "
         "head's, told twice"},
        {ANY, NONE, H2_PROTOCOL_ERROR, false, is_over_budget,
         "a head above its budget is answered 431, whatever else is wrong with it"},
};

static bool is_alike(int wanted, int is) {
        return wanted == ANY || wanted == is;
}

static bool is_allowed(const struct parting *p) {
        for (size_t i = 0; i < NET_COUNT_OF(allowed); i++) {
                const struct difference *d = &allowed[i];
                if (is_alike(d->type, p->f.type) && d->of_connection == (p->stream == 0) &&
                    is_alike(d->our_code, p->our_code) && is_alike(d->its_code, p->its_code) &&
                    (!d->when || d->when(p)))
                        return true;
        }
        return false;
}

static void say_side(const struct side *s) {
        const struct rig *r = &s->rig;
        (void)fprintf(stderr, "%s: goaway %d code %u, why %d\n", s->name, s->ears.goaway_last,
                      s->ears.goaway_code, (int)r->session->why);
        for (size_t i = 0; i < r->n_records; i++)
                (void)fprintf(stderr, "  %d plan %d outcome %d end %d gone %d body %zu %s\n",
                              r->records[i].id, (int)r->records[i].plan, r->records[i].outcome,
                              r->records[i].received_end, r->records[i].gone,
                              r->records[i].body_bytes,
                              r->records[i].request ? r->records[i].request : "-");
        for (size_t i = 0; i < s->ears.n_streams; i++) {
                const struct heard *h = &s->ears.streams[i];
                (void)fprintf(stderr, "  %d heard %s sent %lld end %d reset %d code %u\n", h->id,
                              h->head ? h->head : "-", (long long)h->sent, h->is_ended, h->is_reset,
                              h->rst_code);
        }
}

static void differ(const struct parting *p, const char *what) {
        if (is_allowed(p))
                return;
        say_side(&ours);
        say_side(&oracle);
        fuzz_fail(
                "they differ in %s: frame type %u flags %02x stream %d length %u; stream %d, ours "
                "%d, oracle %d",
                what, p->f.type, p->f.flags, p->f.stream, p->f.len, p->stream, p->our_code,
                p->its_code);
}

/* ---- comparing ---- */

static int goaway_of(const struct side *s) {
        return s->ears.had_goaway ? (int)s->ears.goaway_code : NONE;
}

static int rst_of(const struct heard *h) {
        return h && h->is_reset ? (int)h->rst_code : NONE;
}

/* False if they parted. A block is judged at its end, or as soon as possible. */
static bool resets_agree(struct parting *p, const struct side *a, const struct side *b) {
        if (inside()->block_id != 0 || ours.is_over)
                return true;
        for (size_t i = 0; i < a->ears.n_streams; i++) {
                const struct heard *h = &a->ears.streams[i];
                const struct heard *other = ears_find(&b->ears, h->id);
                if (rst_of(h) == rst_of(other))
                        continue;
                p->stream = h->id;
                p->our_code = rst_of(ears_find(&ours.ears, h->id));
                p->its_code = rst_of(ears_find(&oracle.ears, h->id));
                differ(p, "a reset");
                return false;
        }
        return true;
}

static bool same_text(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool requests_agree(struct parting *p) {
        const struct rig *a = &ours.rig;
        const struct rig *b = &oracle.rig;
        size_t n = a->n_records > b->n_records ? a->n_records : b->n_records;
        for (size_t i = 0; i < n; i++) {
                const struct rig_record *x = i < a->n_records ? &a->records[i] : NULL;
                const struct rig_record *y = i < b->n_records ? &b->records[i] : NULL;
                p->stream = x ? x->id : y->id;
                p->our_code = p->its_code = NONE;
                if (!x || !y || x->id != y->id || x->outcome != y->outcome ||
                    !same_text(x->request, y->request)) {
                        differ(p, "the requests");
                        return false;
                }
                if (x->gone != y->gone || x->received_end != y->received_end ||
                    x->body_bytes != y->body_bytes || x->body_hash != y->body_hash) {
                        differ(p, "a request's body or end");
                        return false;
                }
        }
        return true;
}

static bool heads_agree(struct parting *p) {
        for (size_t i = 0; i < ours.ears.n_streams; i++) {
                const struct heard *x = &ours.ears.streams[i];
                const struct heard *y = ears_find(&oracle.ears, x->id);
                p->stream = x->id;
                p->our_code = p->its_code = NONE;
                if (!same_text(x->head, y ? y->head : NULL)) {
                        differ(p, "the head of an answer");
                        return false;
                }
        }
        return true;
}

/* Frames may be cut differently and streams may take turns differently while
 * windows are narrow: bodies are compared when all is sent. */
static bool bodies_agree(struct parting *p) {
        for (size_t i = 0; i < ours.ears.n_streams; i++) {
                const struct heard *x = &ours.ears.streams[i];
                const struct heard *y = ears_find(&oracle.ears, x->id);
                p->stream = x->id;
                if (!y || x->is_reset || x->is_cut)
                        continue; /* how far it had come depends on whose turn it was */
                if (x->sent != y->sent || x->data_hash != y->data_hash ||
                    x->is_ended != y->is_ended) {
                        differ(p, "the body of an answer");
                        return false;
                }
        }
        return true;
}

static bool ends_agree(struct parting *p) {
        p->stream = 0;
        p->our_code = goaway_of(&ours);
        p->its_code = goaway_of(&oracle);
        if (p->our_code != p->its_code || ours.is_over != oracle.is_over ||
            ours.ears.goaway_last != oracle.ears.goaway_last) {
                differ(p, "how it ends");
                return false;
        }
        return true;
}

static bool agree(struct parting p) {
        return ends_agree(&p) && resets_agree(&p, &ours, &oracle) &&
               resets_agree(&p, &oracle, &ours) && requests_agree(&p) && heads_agree(&p);
}

/* ---- feeding ---- */

static void side_pull(struct side *s) {
        static uint8_t out[16384];
        size_t n;
        while ((n = s->rig.session->ops->pull(s->rig.session, (char *)out, sizeof out)) > 0)
                ears_server(&s->ears, out, n);
        s->is_over |= s->ears.had_goaway;
}

static void side_feed(struct side *s, const uint8_t *data, size_t n) {
        struct span copy = fuzz_copy(data, n);
        ears_client(&s->ears, data, n);
        s->is_over |= s->rig.session->ops->feed(s->rig.session, copy.p, copy.len) < 0;
        free((void *)(uintptr_t)copy.p);
        side_pull(s);
}

static void side_turn(struct side *s) {
        rig_turn(&s->rig);
        side_pull(s);
}

/* The oracle is also done when the client has said GOAWAY and nothing is open. */
static bool is_done(void) {
        bool is_ours = ours.rig.session->ops->is_done(ours.rig.session);
        bool is_its = oracle.rig.session->ops->is_done(oracle.rig.session);
        FUZZ_CHECK(!is_ours || is_its);
        return is_its;
}

/* One may see sooner than the other what is wrong with the frame. */
static void both_feed_part(const uint8_t *data, size_t n) {
        side_feed(&ours, data, n);
        side_feed(&oracle, data, n);
}

/* The frame's end; false when there is nothing more to compare. */
static bool both_feed(struct h2_frame f, const uint8_t *data, size_t n) {
        struct parting p = {.f = f};
        both_feed_part(data, n);
        return ends_agree(&p) && resets_agree(&p, &ours, &oracle) &&
               resets_agree(&p, &oracle, &ours) && !is_done();
}

static bool both_turn(struct h2_frame f) {
        if (inside()->block_id != 0)
                return true; /* the oracle may have judged it already */
        side_turn(&ours);
        side_turn(&oracle);
        return agree((struct parting){.f = f}) && !is_done();
}

static bool frame_feed(struct dice *d, const uint8_t *data, size_t n) {
        struct h2_frame f = h2_frame_head(data);
        size_t part = 0;
        payload = (struct span){(const char *)data + H2_FRAME_HEAD, n - H2_FRAME_HEAD};
        if (n > 1 && ours.rig.script[RIG_SPLIT] && dice_roll(d, 3) == 0) {
                part = 1 + dice_roll(d, (uint32_t)n - 1);
                both_feed_part(data, part);
                bool is_over = ours.is_over || oracle.is_over;
                bool is_body = f.type == H2_DATA; /* a head we show before its padding */
                is_midway = true;
                bool goes_on = is_over || !is_body || dice_roll(d, 4) != 0 || both_turn(f);
                is_midway = false;
                if (!goes_on)
                        return false;
        }
        if (!both_feed(f, data + part, n - part))
                return false;
        return dice_roll(d, ours.rig.script[RIG_TURN] % 8u + 1) > 0 || both_turn(f);
}

static bool greet(void) {
        static const uint8_t bytes[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                       "\0\0\0\4\0\0\0\0\0"
                                       "\0\0\0\4\1\0\0\0\0";
        return both_feed((struct h2_frame){.type = H2_SETTINGS}, bytes, sizeof bytes - 1);
}

static bool window_give(int32_t stream) {
        uint8_t frame[H2_FRAME_HEAD + 4];
        struct h2_frame f = {4, H2_WINDOW_UPDATE, 0, stream};
        h2_frame_head_put(frame, f);
        h2_number32_put(frame + H2_FRAME_HEAD, 0x3f000000);
        return both_feed(f, frame, sizeof frame);
}

/* Windows for everybody who waits, and all is answered. */
static void finish(void) {
        int32_t narrow[128];
        size_t n = 0;
        if (inside()->at != H2_AT_HEAD || inside()->n_part != 0 || inside()->block_id != 0)
                return;
        if (inside()->send_window < 0x3f000000 && !window_give(0))
                return;
        for (struct http_stream *st = inside()->base.streams; st; st = st->next) {
                if (!st->closed && h2_priv_of(st)->send_window < 0x3f000000 && n < 128)
                        narrow[n++] = st->id;
        }
        while (n > 0) {
                if (!window_give(narrow[--n]))
                        return;
        }
        ours.rig.is_finishing = oracle.rig.is_finishing = true;
        for (int i = 0; i < 12; i++) {
                if (!both_turn((struct h2_frame){.type = UINT8_MAX}))
                        return;
        }
        struct parting p = {.f = {.type = UINT8_MAX}};
        (void)bodies_agree(&p);
}

static void side_init(struct side *s, const uint8_t *script) {
        rig_init(&s->rig, script);
        ears_init(&s->ears);
        s->is_over = false;
        /* What counts as odd, and how much, is ours alone (net/h2_limits.h). */
        s->rig.conf.glitches = s->rig.conf.resets = (struct h2_bucket_conf){1000000, 1000};
        for (size_t i = RIG_PLAN; i < RIG_SCRIPT; i++) {
                /* We abort what does not fit one frame; the oracle continues it. */
                if (s->rig.script[i] % RIG_PLANS == RIG_TOO_MANY)
                        s->rig.script[i] = RIG_FIELDS;
        }
}

static void side_fini(struct side *s) {
        rig_fini(&s->rig);
        ears_fini(&s->ears);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size < RIG_SCRIPT)
                return 0;
        side_init(&ours, data);
        side_init(&oracle, data);
        ours.rig.session = h2_server_new(&ours.rig.conf, 1000);
        oracle.rig.session = h2_oracle_new(&oracle.rig.conf, 1000);
        FUZZ_CHECK(ours.rig.session && oracle.rig.session);
        struct dice d = dice_of(data[RIG_SPLIT]);
        bool goes_on = greet();
        size_t at = RIG_SCRIPT;
        while (goes_on && at + H2_FRAME_HEAD <= size) {
                size_t n = H2_FRAME_HEAD + h2_frame_head(data + at).len;
                if (n > size - at)
                        break;
                goes_on = frame_feed(&d, data + at, n);
                at += n;
        }
        if (goes_on && at < size) {
                both_feed_part(data + at, size - at);
                goes_on = false;
        }
        if (goes_on)
                finish();
        side_fini(&ours);
        side_fini(&oracle);
        return 0;
}
