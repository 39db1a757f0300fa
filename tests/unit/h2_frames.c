#include "tests/unit/h2_frames.h"

#include <stdio.h>

static void put(struct frames *f, const void *data, size_t n) {
        assert(n <= sizeof(f->data) - f->len);
        if (n)
                memcpy(f->data + f->len, data, n);
        f->len += n;
}

static void put_number(char out[4], uint32_t n) {
        for (int i = 0; i < 4; i++)
                out[i] = (char)(n >> (24 - 8 * i));
}

void frame_put(struct frames *f, enum frame_type type, unsigned flags, int32_t stream,
               struct span payload) {
        char head[9];

        put_number(head, (uint32_t)payload.len << 8);
        head[3] = (char)type;
        head[4] = (char)flags;
        put_number(head + 5, (uint32_t)stream);
        put(f, head, sizeof(head));
        put(f, payload.p, payload.len);
}

void frame_settings(struct frames *f, unsigned id, uint32_t value) {
        char entry[6] = {(char)(id >> 8), (char)id};

        put_number(entry + 2, value);
        frame_put(f, FRAME_SETTINGS, 0, 0, (struct span){entry, id ? sizeof(entry) : 0});
}

void frame_settings_ack(struct frames *f) {
        frame_put(f, FRAME_SETTINGS, FRAME_ACK, 0, SPAN(""));
}

void frame_head(struct frames *f, int32_t stream, int status, int64_t length, bool end) {
        char block[64];
        int n = snprintf(block, sizeof(block), "%c%c%03d", 0x08, 3, status);

        if (length >= 0) {
                char digits[24];
                int d = snprintf(digits, sizeof(digits), "%lld", (long long)length);

                n += snprintf(block + n, sizeof(block) - (size_t)n, "%c%c%c%s", 0x0f, 28 - 15, d,
                              digits);
        }
        frame_put(f, FRAME_HEADERS, FRAME_END_HEADERS | (end ? FRAME_END : 0u), stream,
                  (struct span){block, (size_t)n});
}

void frame_text(struct frames *f, int32_t stream, const char *text, bool end) {
        frame_put(f, FRAME_DATA, end ? FRAME_END : 0, stream, span_of(text));
}

static void put_with_number(struct frames *f, enum frame_type type, int32_t stream, uint32_t n) {
        char payload[4];

        put_number(payload, n);
        frame_put(f, type, 0, stream, (struct span){payload, sizeof(payload)});
}

void frame_rst(struct frames *f, int32_t stream, uint32_t code) {
        put_with_number(f, FRAME_RST, stream, code);
}

void frame_window(struct frames *f, int32_t stream, uint32_t by) {
        put_with_number(f, FRAME_WINDOW, stream, by);
}

void frame_goaway(struct frames *f, int32_t last, uint32_t code) {
        char payload[8];

        put_number(payload, (uint32_t)last);
        put_number(payload + 4, code);
        frame_put(f, FRAME_GOAWAY, 0, 0, (struct span){payload, sizeof(payload)});
}

uint32_t frame_number(struct span payload, size_t at) {
        uint32_t n = 0;

        assert(at + 4 <= payload.len);
        for (size_t i = at; i < at + 4; i++)
                n = n << 8 | (unsigned char)payload.p[i];
        return n;
}

bool frame_take(struct span *bytes, struct frame *out) {
        size_t len;

        if (bytes->len < 9)
                return false;
        len = frame_number(*bytes, 0) >> 8;
        if (bytes->len < 9 + len)
                return false;
        *out = (struct frame){
                .type = (enum frame_type)bytes->p[3],
                .flags = (unsigned char)bytes->p[4],
                .stream = (int32_t)(frame_number(*bytes, 5) & 0x7fffffff),
                .payload = {bytes->p + 9, len},
        };
        *bytes = (struct span){bytes->p + 9 + len, bytes->len - 9 - len};
        return true;
}

bool frame_take_preface(struct span *bytes) {
        struct span preface = SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

        if (!span_starts(*bytes, preface))
                return false;
        *bytes = (struct span){bytes->p + preface.len, bytes->len - preface.len};
        return true;
}
