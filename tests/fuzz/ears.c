#include "tests/fuzz/ears.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/rig.h"

#define PREFACE_BYTES 24

typedef void on_frame(struct ears *e, struct h2_frame f, const uint8_t *payload);

void ears_init(struct ears *e) {
        memset(e, 0, sizeof *e);
        e->n_preface = PREFACE_BYTES;
        e->first_window = e->granted = H2_WINDOW_FIRST;
        e->goaway_last = H2_WINDOW_MAX;
        FUZZ_CHECK(nghttp2_hd_inflate_new(&e->inflater) == 0);
}

void ears_fini(struct ears *e) {
        for (size_t i = 0; i < e->n_streams; i++)
                free(e->streams[i].head);
        free(e->streams);
        nghttp2_hd_inflate_del(e->inflater);
}

struct heard *ears_find(const struct ears *e, int32_t id) {
        for (size_t i = e->n_streams; i-- > 0;) {
                if (e->streams[i].id == id)
                        return &e->streams[i];
        }
        return NULL;
}

static struct heard *heard_of(struct ears *e, int32_t id) {
        struct heard *s = ears_find(e, id);
        if (s)
                return s;
        if (e->n_streams == e->room) {
                e->room = e->room ? 2 * e->room : 16;
                e->streams = realloc(e->streams, e->room * sizeof *e->streams);
                FUZZ_CHECK(e->streams);
        }
        s = &e->streams[e->n_streams++];
        *s = (struct heard){.id = id};
        return s;
}

static void reader_take(struct ears *e, struct frame_reader *r, const uint8_t *data, size_t n,
                        on_frame *frame) {
        while (n > 0 && !r->is_lost) {
                size_t need = H2_FRAME_HEAD;
                if (r->n >= H2_FRAME_HEAD)
                        need += h2_frame_head(r->bytes).len;
                size_t part = need - r->n < n ? need - r->n : n;
                memcpy(r->bytes + r->n, data, part);
                r->n += part;
                data += part;
                n -= part;
                if (r->n < H2_FRAME_HEAD)
                        continue;
                struct h2_frame f = h2_frame_head(r->bytes);
                r->is_lost = f.len > H2_FRAME_MAX;
                if (!r->is_lost && r->n == H2_FRAME_HEAD + f.len) {
                        r->n = 0;
                        frame(e, f, r->bytes + H2_FRAME_HEAD);
                }
        }
}

/* ---- the client's frames: what the server may do because of them ---- */

static void client_settings(struct ears *e, struct h2_frame f, const uint8_t *payload) {
        if (f.flags & H2_FLAG_ACK)
                return;
        uint32_t *table = e->tables[e->n_asked % EARS_TABLES];
        table[0] = table[1] = UINT32_MAX; /* not named */
        for (size_t i = 0; i + 6 <= f.len; i += 6) {
                uint32_t value = h2_number32(payload + i + 2);
                switch (h2_number16(payload + i)) {
                case H2_SET_INITIAL_WINDOW_SIZE:
                        e->first_window = value;
                        break;
                case H2_SET_HEADER_TABLE_SIZE:
                        table[0] = value < table[0] ? value : table[0];
                        table[1] = value;
                        break;
                default:
                        break;
                }
        }
        e->n_asked++;
        if (e->n_asked - e->n_acknowledged > EARS_TABLES)
                e->is_deaf = true;
}

static void client_frame(struct ears *e, struct h2_frame f, const uint8_t *payload) {
        switch (f.type) {
        case H2_SETTINGS:
                client_settings(e, f, payload);
                break;
        case H2_HEADERS:
                heard_of(e, f.stream)->is_opened = true;
                break;
        case H2_RST_STREAM:
                heard_of(e, f.stream)->is_cut = true;
                break;
        case H2_DATA:
                heard_of(e, f.stream)->came += f.len;
                e->came += f.len;
                break;
        case H2_WINDOW_UPDATE:
                if (f.len == 4 && f.stream == 0)
                        e->granted += h2_number32(payload) & 0x7FFFFFFF;
                else if (f.len == 4)
                        heard_of(e, f.stream)->granted += h2_number32(payload) & 0x7FFFFFFF;
                break;
        default:
                break;
        }
}

void ears_client(struct ears *e, const uint8_t *data, size_t n) {
        size_t preface = e->n_preface < n ? e->n_preface : n;
        e->n_preface -= preface;
        reader_take(e, &e->client, data + preface, n - preface, client_frame);
        /* Padding that is still to come keeps no server from answering. */
        struct h2_frame f = h2_frame_head(e->client.bytes);
        if (e->client.n >= H2_FRAME_HEAD && f.type == H2_HEADERS)
                heard_of(e, f.stream)->is_opened = true;
}

/* ---- the server's ---- */

static void head_decode(struct ears *e, struct heard *s, struct h2_frame f, const uint8_t *block) {
        size_t cap = 256 + (size_t)f.len * 8;
        size_t at = 0;
        size_t n_fields = 0;
        char *text = malloc(cap);
        FUZZ_CHECK(text);
        text[0] = '\0';
        for (int flags = 0; !(flags & NGHTTP2_HD_INFLATE_FINAL);) {
                nghttp2_nv nv;
                ssize_t used = nghttp2_hd_inflate_hd2(e->inflater, &nv, &flags, block, f.len, 1);
                FUZZ_CHECK(used >= 0);
                block += used;
                f.len -= (uint32_t)used;
                if (!(flags & NGHTTP2_HD_INFLATE_EMIT))
                        continue;
                bool is_status = nv.namelen == 7 && memcmp(nv.name, ":status", 7) == 0;
                FUZZ_CHECK(is_status == (n_fields++ == 0));
                while (cap - at < nv.namelen + nv.valuelen + 4) {
                        cap *= 2;
                        text = realloc(text, cap);
                        FUZZ_CHECK(text);
                }
                at += (size_t)snprintf(text + at, cap - at, "%.*s=%.*s|", (int)nv.namelen, nv.name,
                                       (int)nv.valuelen, nv.value);
        }
        FUZZ_CHECK(n_fields > 0 && f.len == 0);
        FUZZ_CHECK(nghttp2_hd_inflate_end_headers(e->inflater) == 0);
        s->head = text;
}

static struct heard *of_open_stream(struct ears *e, struct h2_frame f) {
        struct heard *s = ears_find(e, f.stream);
        FUZZ_CHECK(f.stream > 0 && f.stream % 2 == 1);
        FUZZ_CHECK(s && s->is_opened);
        return s;
}

static void server_head(struct ears *e, struct h2_frame f, const uint8_t *payload) {
        struct heard *s = of_open_stream(e, f);
        FUZZ_CHECK((f.flags & ~(unsigned)H2_FLAG_END_STREAM) == H2_FLAG_END_HEADERS);
        FUZZ_CHECK(!s->head && !s->is_ended && !s->is_reset);
        head_decode(e, s, f, payload);
        s->is_ended = f.flags & H2_FLAG_END_STREAM;
}

static void server_data(struct ears *e, struct h2_frame f, const uint8_t *payload) {
        struct heard *s = of_open_stream(e, f);
        FUZZ_CHECK((f.flags & ~(unsigned)H2_FLAG_END_STREAM) == 0);
        FUZZ_CHECK(s->head && !s->is_ended && !s->is_reset);
        s->sent += f.len;
        e->sent += f.len;
        FUZZ_CHECK(f.len == 0 || e->is_deaf || s->sent <= e->first_window + s->granted);
        FUZZ_CHECK(f.len == 0 || e->is_deaf || e->sent <= e->granted);
        s->data_hash = fuzz_hash(s->data_hash, payload, f.len);
        s->is_ended = f.flags & H2_FLAG_END_STREAM;
}

static void server_rst(struct ears *e, struct h2_frame f, const uint8_t *payload) {
        struct heard *s = heard_of(e, f.stream);
        FUZZ_CHECK(f.len == 4 && f.flags == 0 && f.stream % 2 == 1);
        FUZZ_CHECK(!s->is_reset);
        s->is_reset = true;
        s->rst_code = h2_number32(payload);
        FUZZ_CHECK(!s->is_ended || s->rst_code == H2_NO_ERROR || s->rst_code != H2_CANCEL);
}

/* An acknowledgement: from here the client's decoder has the sizes asked for. */
static void server_settings(struct ears *e, struct h2_frame f) {
        FUZZ_CHECK(f.stream == 0);
        if (!(f.flags & H2_FLAG_ACK)) {
                FUZZ_CHECK(f.len % 6 == 0);
                return;
        }
        FUZZ_CHECK(f.len == 0 && e->n_acknowledged < e->n_asked);
        const uint32_t *table = e->tables[e->n_acknowledged++ % EARS_TABLES];
        if (table[1] == UINT32_MAX || e->is_deaf)
                return;
        /* A decoder of a client with little memory; more would change nothing. */
        uint32_t least = table[0] < 65536 ? table[0] : 65536;
        uint32_t last = table[1] < 65536 ? table[1] : 65536;
        FUZZ_CHECK(nghttp2_hd_inflate_change_table_size(e->inflater, least) == 0);
        FUZZ_CHECK(nghttp2_hd_inflate_change_table_size(e->inflater, last) == 0);
}

static void server_window(struct ears *e, struct h2_frame f, const uint8_t *payload) {
        uint32_t by = f.len == 4 ? h2_number32(payload) : 0;
        FUZZ_CHECK(f.flags == 0 && by > 0 && by <= H2_WINDOW_MAX);
        if (f.stream == 0) {
                e->given += by;
                /* Of a frame under way, all of it may count already. */
                FUZZ_CHECK(e->given <=
                           e->came + (int64_t)e->client.n + 0xFFFFFF * e->client.is_lost);
                return;
        }
        struct heard *s = of_open_stream(e, f);
        s->given += by;
        FUZZ_CHECK(!s->is_reset && s->given <= s->came + (int64_t)e->client.n);
}

static void server_goaway(struct ears *e, struct h2_frame f, const uint8_t *payload) {
        FUZZ_CHECK(f.stream == 0 && f.len >= 8); /* a text may follow */
        int32_t last = (int32_t)h2_number32(payload);
        FUZZ_CHECK(last <= e->goaway_last);
        e->goaway_last = last;
        e->goaway_code = h2_number32(payload + 4);
        e->had_goaway = e->goaway_code != H2_NO_ERROR;
}

static void server_frame(struct ears *e, struct h2_frame f, const uint8_t *payload) {
        FUZZ_CHECK(!e->had_goaway);
        switch (f.type) {
        case H2_DATA:
                server_data(e, f, payload);
                break;
        case H2_HEADERS:
                server_head(e, f, payload);
                break;
        case H2_RST_STREAM:
                server_rst(e, f, payload);
                break;
        case H2_SETTINGS:
                server_settings(e, f);
                break;
        case H2_PING:
                FUZZ_CHECK(f.len == 8 && f.flags == H2_FLAG_ACK && f.stream == 0);
                break;
        case H2_GOAWAY:
                server_goaway(e, f, payload);
                break;
        case H2_WINDOW_UPDATE:
                server_window(e, f, payload);
                break;
        default:
                fuzz_fail("the server sent a frame of type %u", f.type);
        }
}

void ears_server(struct ears *e, const uint8_t *data, size_t n) {
        reader_take(e, &e->server, data, n, server_frame);
        FUZZ_CHECK(!e->server.is_lost);
}
