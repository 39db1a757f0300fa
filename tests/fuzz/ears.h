/* tests/fuzz/ears.h - a client's side of an HTTP/2 connection that hears both
 * directions: what the fuzzed client has sent, and what the server answers to
 * it. It holds the server to the rules of RFC 9113 and decodes header blocks
 * with a decoder of its own. Any breach ends the program.
 *
 * Ownership  init .. fini.
 */
#ifndef TESTS_FUZZ_EARS_H
#define TESTS_FUZZ_EARS_H

#include <nghttp2/nghttp2.h>

#include "net/h2_frame.h"
#include "tests/fuzz/fuzz.h"

/* Frames put together over any cuts. */
struct frame_reader {
        uint8_t bytes[H2_FRAME_HEAD + H2_FRAME_MAX];
        size_t n;
        bool is_lost; /* a frame was longer than allowed */
};

/* What was heard of one stream. */
struct heard {
        int32_t id;
        int64_t granted; /* by WINDOW_UPDATEs of the client */
        int64_t sent;    /* bytes of DATA */
        int64_t came;    /* bytes of DATA frames from the client */
        int64_t given;   /* window given to the client */
        char *head;      /* as text; NULL: none came */
        uint64_t data_hash;
        bool is_opened; /* by a HEADERS frame of the client */
        bool is_cut;    /* by its RST_STREAM */
        bool is_ended;
        bool is_reset;
        uint32_t rst_code;
};

#define EARS_TABLES 64

struct ears {
        struct frame_reader client, server;
        nghttp2_hd_inflater *inflater;
        struct heard *streams;
        size_t n_streams, room;
        size_t n_preface; /* of the client's, to come */
        int64_t first_window, granted, sent, came, given;
        uint32_t tables[EARS_TABLES][2]; /* least and last size asked for, not yet acknowledged */
        unsigned n_asked, n_acknowledged;
        bool had_goaway; /* with an error */
        bool is_deaf;    /* the client's frames are not followed any more */
        uint32_t goaway_code;
        int32_t goaway_last;
};

void ears_init(struct ears *e);
void ears_fini(struct ears *e);
/* The client's bytes, as they are fed to the server. */
void ears_client(struct ears *e, const uint8_t *data, size_t n);
/* The server's, as they are pulled. */
void ears_server(struct ears *e, const uint8_t *data, size_t n);
/* NULL if nothing was heard of it. */
struct heard *ears_find(const struct ears *e, int32_t id);

#endif
