/* net/h2_frame.h - the nine bytes in front of every HTTP/2 frame, and the
 * numbers that go with them.
 *
 *   | length, 24 bits | type, 8 | flags, 8 | 0, 1 bit | stream, 31 bits |
 *
 * Units      bytes; numbers in the order of the network.
 * Source     RFC 9113 sections 4.1, 6, 7; RFC 9218 section 7.1.
 */
#ifndef NET_H2_FRAME_H
#define NET_H2_FRAME_H

#include "net/base.h"

#define H2_FRAME_HEAD 9
#define H2_FRAME_MAX ((uint32_t)16384) /* of a payload; we never allow more */
#define H2_WINDOW_MAX 0x7FFFFFFF
#define H2_WINDOW_FIRST 65535

enum h2_type {
        H2_DATA = 0,
        H2_HEADERS = 1,
        H2_PRIORITY = 2,
        H2_RST_STREAM = 3,
        H2_SETTINGS = 4,
        H2_PUSH_PROMISE = 5,
        H2_PING = 6,
        H2_GOAWAY = 7,
        H2_WINDOW_UPDATE = 8,
        H2_CONTINUATION = 9,
        H2_PRIORITY_UPDATE = 16,
};

enum h2_flag {
        H2_FLAG_ACK = 0x1,
        H2_FLAG_END_STREAM = 0x1,
        H2_FLAG_END_HEADERS = 0x4,
        H2_FLAG_PADDED = 0x8,
        H2_FLAG_PRIORITY = 0x20,
};

enum h2_error {
        H2_NO_ERROR = 0,
        H2_PROTOCOL_ERROR = 1,
        H2_INTERNAL_ERROR = 2,
        H2_FLOW_CONTROL_ERROR = 3,
        H2_SETTINGS_TIMEOUT = 4,
        H2_STREAM_CLOSED = 5,
        H2_FRAME_SIZE_ERROR = 6,
        H2_REFUSED_STREAM = 7,
        H2_CANCEL = 8,
        H2_COMPRESSION_ERROR = 9,
        H2_ENHANCE_YOUR_CALM = 11,
};

enum h2_setting {
        H2_SET_HEADER_TABLE_SIZE = 1,
        H2_SET_ENABLE_PUSH = 2,
        H2_SET_MAX_CONCURRENT_STREAMS = 3,
        H2_SET_INITIAL_WINDOW_SIZE = 4,
        H2_SET_MAX_FRAME_SIZE = 5,
        H2_SET_MAX_HEADER_LIST_SIZE = 6,
        H2_SET_NO_RFC7540_PRIORITIES = 9,
};

struct h2_frame {
        uint32_t len; /* of the payload */
        uint8_t type; /* enum h2_type, or one unknown */
        uint8_t flags;
        int32_t stream;
};

static inline uint32_t h2_number16(const uint8_t *p) {
        return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t h2_number32(const uint8_t *p) {
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void h2_number32_put(uint8_t *p, uint32_t n) {
        p[0] = (uint8_t)(n >> 24);
        p[1] = (uint8_t)(n >> 16);
        p[2] = (uint8_t)(n >> 8);
        p[3] = (uint8_t)n;
}

static inline struct h2_frame h2_frame_head(const uint8_t *p) {
        return (struct h2_frame){.len = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2],
                                 .type = p[3],
                                 .flags = p[4],
                                 .stream = (int32_t)(h2_number32(p + 5) & 0x7FFFFFFF)};
}

static inline void h2_frame_head_put(uint8_t *p, struct h2_frame f) {
        h2_number32_put(p, f.len << 8 | f.type);
        p[4] = f.flags;
        h2_number32_put(p + 5, (uint32_t)f.stream);
}

#endif
