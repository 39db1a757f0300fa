/* tests/unit/h2_frames.h - HTTP/2 frames written and read by hand, so that a
 * test can say what a well-behaved library would not.
 *
 * Fields are written with the static table only (RFC 7541, appendix A).
 */
#ifndef TESTS_UNIT_H2_FRAMES_H
#define TESTS_UNIT_H2_FRAMES_H

#include "net/base.h"

enum frame_type {
        FRAME_DATA = 0,
        FRAME_HEADERS = 1,
        FRAME_PRIORITY = 2,
        FRAME_RST = 3,
        FRAME_SETTINGS = 4,
        FRAME_PUSH = 5,
        FRAME_PING = 6,
        FRAME_GOAWAY = 7,
        FRAME_WINDOW = 8,
        FRAME_CONTINUATION = 9,
};

enum frame_flags {
        FRAME_ACK = 1,
        FRAME_END = 1,
        FRAME_END_HEADERS = 4,
        FRAME_PADDED = 8,
};

struct frames {
        char data[262144];
        size_t len;
};

struct frame {
        enum frame_type type;
        unsigned flags;
        int32_t stream;
        struct span payload;
};

void frame_put(struct frames *f, enum frame_type type, unsigned flags, int32_t stream,
               struct span payload);
/* One setting, or none with id 0. */
void frame_settings(struct frames *f, unsigned id, uint32_t value);
void frame_settings_ack(struct frames *f);
/* A whole head: the status, and content-length unless it is < 0. */
void frame_head(struct frames *f, int32_t stream, int status, int64_t length, bool end);
void frame_text(struct frames *f, int32_t stream, const char *text, bool end);
void frame_rst(struct frames *f, int32_t stream, uint32_t code);
void frame_goaway(struct frames *f, int32_t last, uint32_t code);
void frame_window(struct frames *f, int32_t stream, uint32_t by);

/* Takes the next whole frame off the front; false when there is none. */
bool frame_take(struct span *bytes, struct frame *out);
/* Takes the client's preface off the front; false when it is not whole. */
bool frame_take_preface(struct span *bytes);
uint32_t frame_number(struct span payload, size_t at);

#endif
