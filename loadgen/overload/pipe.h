/* loadgen/overload/pipe.h - one HTTP/2 connection that costs its owner little:
 * the same request again and again, as bytes made beforehand, and of an answer
 * only its status.
 *
 *   closed -> opening -> open -> leaving -> closed
 *
 * It leaves once the server has said GOAWAY. Our header table has no room, so
 * every status comes spelled out and nothing has to be decoded.
 *
 * Units      bytes; instants in microseconds of the monotonic clock.
 * Ownership  a value to embed; closed before its owner goes.
 * Context    the loop's thread; the owner's calls come from reads and from
 *            pipe_flush(). Of all calls only on_read may close its own pipe, and
 *            none may open it; others they may open and close.
 */
#ifndef LOADGEN_OVERLOAD_PIPE_H
#define LOADGEN_OVERLOAD_PIPE_H

#include <netinet/in.h>

#include "net/h2_frame.h"
#include "net/loop.h"
#include "net/tls.h"

#define PIPE_STREAMS 100u /* under way at once */
#define PIPE_SLOTS 128u   /* their instants, by stream */
#define PIPE_OUT 32768u   /* for 100 requests and more */
#define PIPE_REQUEST 256u /* at most, with its frame's head */
#define PIPE_KEPT 8u      /* first bytes of a payload: GOAWAY's, or a status */

struct pipe;

enum pipe_end {
        PIPE_REFUSED, /* closed before the server had sent anything */
        PIPE_LEFT,    /* after a GOAWAY, with all answers */
        PIPE_LOST,
};

struct pipe_shared {
        struct loop *loop;
        struct tls_context *tls;
        struct sockaddr_in server;
        uint8_t request[PIPE_REQUEST]; /* with a stream of 0 */
        size_t request_len;
        /* The answer to what was due then; 0: it was reset, or will not come. */
        void (*on_answer)(struct pipe *p, int status, int64_t due_us);
        /* After the answers of this read. */
        void (*on_read)(struct pipe *p);
        void (*on_open)(struct pipe *p);
        /* It is closed; what was under way was told as 0. */
        void (*on_end)(struct pipe *p, enum pipe_end how);
};

enum pipe_state { PIPE_CLOSED, PIPE_OPENING, PIPE_OPEN, PIPE_LEAVING };

struct pipe {
        struct loop_io io;
        struct pipe_shared *shared;
        struct tls *tls;
        enum pipe_state state;
        bool is_connected; /* TCP is */
        bool is_heard;     /* a byte has come */
        int32_t next_stream;
        uint32_t in_flight;
        int64_t due_us[PIPE_SLOTS]; /* 0: none */
        uint32_t unacknowledged;    /* bytes of bodies since the last window */
        uint8_t head[H2_FRAME_HEAD + PIPE_KEPT];
        uint32_t head_len, left; /* of the frame that comes */
        uint32_t out_len;
        uint8_t out[PIPE_OUT];
};

/* Makes the one request: GET of `path`, which is shorter than 127 bytes. */
void pipe_request(struct pipe_shared *s, const char *path);
/* A closed one begins to open. < 0: it did not. */
NET_MUST int pipe_open(struct pipe *p, struct pipe_shared *s);
/* False: no room now. Sent by pipe_flush(). */
bool pipe_ask(struct pipe *p, int64_t due_us);
void pipe_flush(struct pipe *p);
/* Closes it if it is leaving and has all answers. */
bool pipe_leave(struct pipe *p);
/* Without a word to its owner. */
void pipe_close(struct pipe *p);

#endif
