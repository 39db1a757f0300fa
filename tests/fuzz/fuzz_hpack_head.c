/* Header blocks alone, through what reads them in our session: the decoder, the
 * rules of a message, the head. The same blocks go to an nghttp2 session as
 * HEADERS frames that end their streams; the two must agree on each.
 *
 *   script, RIG_SCRIPT bytes | (length, two bytes | block) again and again
 */
#include <stdio.h>
#include <stdlib.h>

#include "net/h2_hpack.h"
#include "net/h2_message.h"
#include "tests/fuzz/ears.h"
#include "tests/fuzz/rig.h"
#include "tests/unit/h2_oracle.h"

static struct rig rig; /* the oracle's */
static struct ears ears;

/* Our side of one block. */
struct ours {
        struct arena arena;
        struct http_head head;
        struct h2_message message;
};

static void on_field(void *owner, struct span name, struct span value) {
        struct ours *o = owner;
        struct http_field_seen f = http_field_see(name, value);
        if (o->head.over_budget)
                return;
        h2_message_field(&o->message, &f);
        http_head_add(&o->head, &o->arena, &rig.conf.head, &f);
}

static int decode(struct h2_decoder *d, struct ours *o, struct span block, struct dice *dice) {
        arena_init(&o->arena, rig.pool);
        http_head_init(&o->head);
        h2_message_init(&o->message);
        for (;;) {
                size_t n = block.len;
                if (n > 1 && rig.script[RIG_SPLIT])
                        n = 1 + dice_roll(dice, (uint32_t)n);
                int r = h2_decoder_run(d, (struct span){block.p, n}, n == block.len, on_field, o);
                if (r < 0 || n == block.len)
                        return r;
                block.p += n;
                block.len -= n;
        }
}

static void oracle_pull(void) {
        static uint8_t out[16384];
        size_t n;
        while ((n = rig.session->ops->pull(rig.session, (char *)out, sizeof out)) > 0)
                ears_server(&ears, out, n);
}

static void oracle_feed(const void *data, size_t n) {
        ears_client(&ears, data, n);
        (void)rig.session->ops->feed(rig.session, data, n);
        oracle_pull();
        rig_events(&rig);
        oracle_pull();
}

static void oracle_block(int32_t id, struct span block) {
        static uint8_t frame[H2_FRAME_HEAD + H2_FRAME_MAX];
        h2_frame_head_put(frame, (struct h2_frame){(uint32_t)block.len, H2_HEADERS,
                                                   H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM, id});
        memcpy(frame + H2_FRAME_HEAD, block.p, block.len);
        oracle_feed(frame, H2_FRAME_HEAD + block.len);
}

static void head_check(const struct http_head *h, int outcome) {
        const struct http_request *q = &h->request;
        FUZZ_CHECK(outcome == HTTP_HEAD_GOOD || outcome == HTTP_HEAD_MALFORMED ||
                   outcome == HTTP_HEAD_METHOD || outcome == HTTP_HEAD_TOO_LARGE);
        if (outcome != HTTP_HEAD_GOOD)
                return;
        FUZZ_CHECK(http_path_is_clean(q->path) && http_authority_is_clean(q->authority));
        FUZZ_CHECK(q->n_headers <= rig.conf.head.fields);
        size_t cookies = 0;
        for (size_t i = 0; i < q->n_headers; i++) {
                cookies += q->headers[i].id == HTTP_FIELD_COOKIE;
                FUZZ_CHECK(q->headers[i].id != HTTP_FIELD_UNKNOWN || rig.conf.head.keep_unknown);
        }
        FUZZ_CHECK(cookies <= 1);
        for (size_t id = 1; id < HTTP_FIELD_COUNT; id++)
                FUZZ_CHECK(q->at[id] == 0 || q->headers[q->at[id] - 1].id == id);
}

/* False when nothing after this block can be compared. */
static bool block_run(struct h2_decoder *d, int32_t id, struct span block, struct dice *dice) {
        struct ours o;
        size_t shown = rig.n_records;
        int r = decode(d, &o, block, dice);
        oracle_block(id, block);
        const struct heard *heard = ears_find(&ears, id);
        bool is_over = o.head.over_budget;
        FUZZ_CHECK((r < 0) == (ears.had_goaway && ears.goaway_code == H2_COMPRESSION_ERROR));
        if (r == 0) {
                h2_message_head(&o.message, true);
                int outcome = http_head_end(&o.head, &o.arena, true, false);
                FUZZ_CHECK(http_head_end(&o.head, &o.arena, true, false) == outcome);
                head_check(&o.head, outcome);
                bool is_refused = heard && heard->is_reset;
                /* Above the budget ours is 431, whatever else is wrong with it. */
                FUZZ_CHECK(is_over || o.message.is_malformed == is_refused);
                if (!is_refused && !is_over) {
                        FUZZ_CHECK(rig.n_records == shown + 1);
                        FUZZ_CHECK(rig.records[shown].outcome == outcome);
                }
        }
        arena_fini(&o.arena);
        return r == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const uint8_t greeting[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                          "\0\0\0\4\0\0\0\0\0"
                                          "\0\0\0\4\1\0\0\0\0";
        if (size < RIG_SCRIPT)
                return 0;
        rig_init(&rig, data);
        ears_init(&ears);
        memset(rig.script + RIG_PLAN, RIG_PAGE, RIG_SCRIPT - RIG_PLAN);
        rig.conf.glitches = rig.conf.resets = (struct h2_bucket_conf){1000000, 1000};
        rig.session = h2_oracle_new(&rig.conf, 1000);
        struct h2_decoder *d = h2_decoder_new(rig.coder);
        FUZZ_CHECK(rig.session && d);
        oracle_feed(greeting, sizeof greeting - 1);
        struct dice dice = dice_of(rig.script[RIG_SPLIT]);
        int32_t id = 1;
        for (size_t at = RIG_SCRIPT; at + 2 <= size; id += 2) {
                size_t n = (size_t)h2_number16(data + at);
                at += 2;
                n = n < size - at ? n : size - at;
                n = n < H2_FRAME_MAX ? n : H2_FRAME_MAX;
                struct span block = fuzz_copy(data + at, n);
                bool goes_on = block_run(d, id, block, &dice);
                free((void *)(uintptr_t)block.p);
                at += n;
                if (!goes_on)
                        break;
        }
        h2_decoder_free(&d);
        rig_fini(&rig);
        ears_fini(&ears);
        return 0;
}
