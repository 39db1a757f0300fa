/* Changes inputs of the HTTP/2 targets frame by frame, so that most of them get
 * past the first one:
 *
 *   script, RIG_SCRIPT bytes | frames of a client
 *
 * Frames are inserted, taken out, doubled, moved; their flags, stream and
 * length are changed; their payloads go through the driver's own mutator and
 * get the right length again. */
#include <stdlib.h>

#include "net/h2_frame.h"
#include "tests/fuzz/rig.h"

#define FRAMES_MAX 512
#define FRAME_BYTES 2048 /* of one made here, at most */

struct place {
        size_t at, len; /* with its head */
};

struct input {
        uint8_t *data;
        size_t size, max;
        struct place frames[FRAMES_MAX];
        size_t n;
        int32_t top; /* the highest stream */
        struct dice dice;
};

static void input_read(struct input *in) {
        in->n = 0;
        in->top = -1;
        for (size_t at = RIG_SCRIPT; at + H2_FRAME_HEAD <= in->size && in->n < FRAMES_MAX;) {
                struct h2_frame f = h2_frame_head(in->data + at);
                size_t len = H2_FRAME_HEAD + f.len;
                if (len > in->size - at)
                        len = in->size - at;
                in->frames[in->n++] = (struct place){at, len};
                if (f.type == H2_HEADERS && f.stream > in->top && f.stream < 100000)
                        in->top = f.stream;
                at += len;
        }
}

/* Makes room for `n` bytes at `at`, or takes -n away. False: they do not fit. */
static bool bytes_move(struct input *in, size_t at, ptrdiff_t n) {
        if (n > 0 && (size_t)n > in->max - in->size)
                return false;
        size_t from = n < 0 ? at + (size_t)-n : at;
        size_t to = n < 0 ? at : at + (size_t)n;
        memmove(in->data + to, in->data + from, in->size - from);
        in->size = (size_t)((ptrdiff_t)in->size + n);
        return true;
}

/* ---- new frames ---- */

static size_t field_put(struct dice *d, uint8_t *to, const char *name, const char *value) {
        static const uint8_t kinds[] = {0x00, 0x10, 0x40};
        size_t n = 0;
        to[n++] = kinds[dice_roll(d, 3)];
        to[n++] = (uint8_t)strlen(name);
        memcpy(to + n, name, strlen(name));
        n += strlen(name);
        to[n++] = (uint8_t)strlen(value);
        memcpy(to + n, value, strlen(value));
        return n + strlen(value);
}

static const char *const fields[][2] = {
        {":method", "GET"},
        {":method", "POST"},
        {":method", "HEAD"},
        {":method", "CONNECT"},
        {":method", "OPTIONS"},
        {":method", "b ad"},
        {":scheme", "https"},
        {":scheme", "http"},
        {":scheme", "1x"},
        {":path", "/a?b"},
        {":path", "*"},
        {":path", ""},
        {":path", "/%2e%2e/"},
        {":authority", "a"},
        {":authority", "u@a"},
        {":authority", ""},
        {":protocol", "x"},
        {":status", "200"},
        {"host", "a"},
        {"host", "b"},
        {"te", "trailers"},
        {"te", "gzip"},
        {"cookie", "a=b"},
        {"cookie", "c"},
        {"content-length", "5"},
        {"content-length", "0"},
        {"content-length", "+5"},
        {"content-length", "1234"},
        {"connection", "x"},
        {"transfer-encoding", "chunked"},
        {"upgrade", "h2c"},
        {"Upper", "x"},
        {"a b", "x"},
        {"", "x"},
        {"x-y", " lead"},
        {"x-y", "trail\t"},
        {"x-y", "in\rside"},
        {"x_y", "\x80\xff"},
        {"accept", "*/*"},
        {"expect", "100-continue"},
        {"priority", "u=1"},
        {"trailer", "x"},
};

static size_t field_random(struct dice *d, uint8_t *to) {
        switch (dice_roll(d, 4)) {
        case 0: /* indexed, the dynamic table too */
                to[0] = (uint8_t)(0x80 | (1 + dice_roll(d, 70)));
                return 1;
        case 1: /* the table's size */
                to[0] = (uint8_t)(0x20 | dice_roll(d, 31));
                return dice_roll(d, 8) ? 0 : 1;
        default: {
                uint32_t i = dice_roll(d, NET_COUNT_OF(fields));
                return field_put(d, to, fields[i][0], fields[i][1]);
        }
        }
}

/* Mostly a good request with something odd about it, now and then. */
static size_t block_make(struct dice *d, uint8_t *to) {
        size_t n = 0;
        if (dice_roll(d, 8)) {
                to[n++] = dice_roll(d, 3) ? 0x82 : 0x83;
                to[n++] = dice_roll(d, 16) ? 0x87 : 0x86;
                to[n++] = 0x84;
                n += field_put(d, to + n, dice_roll(d, 6) ? ":authority" : "host", "a");
        }
        for (uint32_t i = dice_roll(d, dice_roll(d, 12) ? 4 : 40); i > 0; i--)
                n += field_random(d, to + n);
        return n;
}

static uint32_t number_random(struct dice *d) {
        static const uint32_t edges[] = {
                0,     1,          2,   1023,  1024, 4095, 4096,       16383,      16384,     65535,
                65536, 0x7ffe0000, 100, 32767, 5,    10,   0x7fffffff, 0x80000000, 0xffffffff};
        return dice_roll(d, 3) ? edges[dice_roll(d, NET_COUNT_OF(edges))] : dice_roll(d, 70000);
}

static int32_t stream_random(struct input *in) {
        struct dice *d = &in->dice;
        switch (dice_roll(d, 8)) {
        case 0:
                return (int32_t)(number_random(d) & 0x7FFFFFFF);
        case 1:
                return 0;
        case 2:
        case 3:
                return in->top + 2 + (int32_t)dice_roll(d, 2) * 2;
        default: /* one of the youngest */
                return in->top > 0 ? in->top - (int32_t)dice_roll(d, 6) * 2 : 1;
        }
}

static size_t settings_make(struct dice *d, uint8_t *to) {
        size_t n = 0;
        for (uint32_t i = dice_roll(d, dice_roll(d, 20) ? 4 : 40); i > 0; i--, n += 6) {
                to[n] = 0;
                to[n + 1] = (uint8_t)dice_roll(d, 11);
                h2_number32_put(to + n + 2, number_random(d));
        }
        return n;
}

/* Pads a payload, right or almost. */
static size_t pad(struct dice *d, uint8_t *payload, size_t n) {
        uint32_t padding = dice_roll(d, 30);
        memmove(payload + 1, payload, n);
        payload[0] = (uint8_t)(dice_roll(d, 12) ? padding : dice_roll(d, 256));
        memset(payload + 1 + n, 0, padding);
        return n + 1 + padding;
}

static size_t payload_make(struct dice *d, struct h2_frame *f, uint8_t *to) {
        size_t n = 0;
        switch (f->type) {
        case H2_HEADERS:
        case H2_CONTINUATION:
                f->flags = (uint8_t)((dice_roll(d, 8) ? H2_FLAG_END_HEADERS : 0) |
                                     (dice_roll(d, 2) ? H2_FLAG_END_STREAM : 0));
                n = block_make(d, to);
                break;
        case H2_DATA:
                f->flags = dice_roll(d, 2) ? H2_FLAG_END_STREAM : 0;
                n = dice_roll(d, 6) ? dice_roll(d, 40) : dice_roll(d, 1500);
                memset(to, 'x', n);
                break;
        case H2_SETTINGS:
                f->flags = dice_roll(d, 3) == 0;
                n = f->flags ? 0 : settings_make(d, to);
                break;
        case H2_PRIORITY:
                n = 5;
                memset(to, 0, n);
                break;
        case H2_RST_STREAM:
        case H2_WINDOW_UPDATE:
                n = 4;
                h2_number32_put(to, number_random(d));
                break;
        case H2_PING:
        case H2_GOAWAY:
                n = 8;
                h2_number32_put(to, number_random(d));
                h2_number32_put(to + 4, number_random(d));
                break;
        default:
                n = dice_roll(d, 20);
                memset(to, 'y', n);
                break;
        }
        bool may_pad = f->type == H2_DATA || f->type == H2_HEADERS;
        if (may_pad && dice_roll(d, 6) == 0) {
                f->flags |= H2_FLAG_PADDED;
                n = pad(d, to, n);
        }
        return n;
}

static bool stream_is_zero(uint8_t type) {
        return type == H2_SETTINGS || type == H2_PING || type == H2_GOAWAY ||
               type == H2_PRIORITY_UPDATE;
}

static void frame_insert(struct input *in) {
        static const uint8_t types[] = {H2_HEADERS,
                                        H2_HEADERS,
                                        H2_HEADERS,
                                        H2_HEADERS,
                                        H2_DATA,
                                        H2_DATA,
                                        H2_DATA,
                                        H2_RST_STREAM,
                                        H2_WINDOW_UPDATE,
                                        H2_WINDOW_UPDATE,
                                        H2_SETTINGS,
                                        H2_PING,
                                        H2_CONTINUATION,
                                        H2_PRIORITY,
                                        H2_GOAWAY,
                                        H2_PUSH_PROMISE,
                                        H2_PRIORITY_UPDATE,
                                        0x42};
        uint8_t frame[H2_FRAME_HEAD + FRAME_BYTES];
        struct dice *d = &in->dice;
        struct h2_frame f = {.type = types[dice_roll(d, NET_COUNT_OF(types))]};
        f.len = (uint32_t)payload_make(d, &f, frame + H2_FRAME_HEAD);
        f.stream = stream_random(in);
        if (stream_is_zero(f.type) && dice_roll(d, 12))
                f.stream = 0;
        if (f.type == H2_HEADERS && dice_roll(d, 4))
                f.stream = in->top + 2;
        h2_frame_head_put(frame, f);
        size_t where = dice_roll(d, (uint32_t)in->n + 1);
        if (f.type == H2_HEADERS || dice_roll(d, 2))
                where = in->n;
        size_t at = where < in->n ? in->frames[where].at : in->size;
        if (at >= RIG_SCRIPT && bytes_move(in, at, H2_FRAME_HEAD + (ptrdiff_t)f.len))
                memcpy(in->data + at, frame, H2_FRAME_HEAD + f.len);
}

/* ---- changes to what is there ---- */

static void frame_double(struct input *in, struct place p) {
        struct place other = in->frames[dice_roll(&in->dice, (uint32_t)in->n)];
        uint8_t *copy = malloc(p.len);
        if (!copy)
                return;
        memcpy(copy, in->data + p.at, p.len);
        if (bytes_move(in, other.at, (ptrdiff_t)p.len))
                memcpy(in->data + other.at, copy, p.len);
        free(copy);
}

static void payload_mutate(struct input *in, struct place p) {
        size_t n = p.len - H2_FRAME_HEAD;
        size_t room = n + 64 < H2_FRAME_MAX ? n + 64 : H2_FRAME_MAX;
        uint8_t *copy = malloc(room);
        if (!copy || n > room) {
                free(copy);
                return;
        }
        memcpy(copy, in->data + p.at + H2_FRAME_HEAD, n);
        size_t fresh = LLVMFuzzerMutate(copy, n, room);
        if (bytes_move(in, p.at + H2_FRAME_HEAD, (ptrdiff_t)fresh - (ptrdiff_t)n)) {
                struct h2_frame f = h2_frame_head(in->data + p.at);
                f.len = (uint32_t)fresh;
                h2_frame_head_put(in->data + p.at, f);
                memcpy(in->data + p.at + H2_FRAME_HEAD, copy, fresh);
        }
        free(copy);
}

static void head_mutate(struct input *in, struct place p) {
        static const uint8_t flags[] = {1, 4, 8, 0x20, 5};
        struct dice *d = &in->dice;
        struct h2_frame f = h2_frame_head(in->data + p.at);
        switch (dice_roll(d, 8)) {
        case 0:
                f.len = dice_roll(d, 2) ? number_random(d) & 0xFFFFFF
                                        : (f.len + dice_roll(d, 3) - 1) & 0xFFFFFF;
                break;
        case 1:
                f.type = (uint8_t)dice_roll(d, 18);
                break;
        case 2:
        case 3:
                f.stream = stream_random(in);
                break;
        default:
                f.flags ^= flags[dice_roll(d, NET_COUNT_OF(flags))];
                break;
        }
        h2_frame_head_put(in->data + p.at, f);
}

/* A number in the payload: a window, a setting, a length. */
static void number_mutate(struct input *in, struct place p) {
        size_t n = p.len - H2_FRAME_HEAD;
        if (n < 4)
                return;
        size_t at = p.at + H2_FRAME_HEAD + dice_roll(&in->dice, (uint32_t)(n - 3));
        h2_number32_put(in->data + at, number_random(&in->dice));
}

static void frame_change(struct input *in) {
        struct place p = in->frames[dice_roll(&in->dice, (uint32_t)in->n)];
        if (p.len < H2_FRAME_HEAD)
                return;
        switch (dice_roll(&in->dice, 8)) {
        case 0:
                (void)bytes_move(in, p.at, -(ptrdiff_t)p.len);
                break;
        case 1:
                frame_double(in, p);
                break;
        case 2:
                number_mutate(in, p);
                break;
        case 3:
        case 4:
                head_mutate(in, p);
                break;
        default:
                payload_mutate(in, p);
                break;
        }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
        struct input in = {.data = data, .size = size, .max = max, .dice = dice_of(seed)};
        uint32_t way = dice_roll(&in.dice, 16);
        if (size < RIG_SCRIPT || way == 0)
                return LLVMFuzzerMutate(data, size, max);
        if (way == 1) {
                (void)LLVMFuzzerMutate(data, RIG_SCRIPT, RIG_SCRIPT);
                return size;
        }
        if (way == 2) {
                data[dice_roll(&in.dice, RIG_SCRIPT)] = (uint8_t)dice_roll(&in.dice, 256);
                return size;
        }
        for (uint32_t i = 1 + dice_roll(&in.dice, 4); i > 0; i--) {
                input_read(&in);
                if (in.n == 0 || dice_roll(&in.dice, 3) == 0)
                        frame_insert(&in);
                else
                        frame_change(&in);
        }
        return in.size;
}
