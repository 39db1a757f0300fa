/* tests/unit/h2_peer.h - a client of a server session, made by hand: it writes
 * any frame, right or wrong, and counts what comes back.
 *
 * Between the two stands what a connection would do: heads are judged, and
 * answered, held, or their body is read, as the test says.
 */
#ifndef TESTS_UNIT_H2_PEER_H
#define TESTS_UNIT_H2_PEER_H

#include "net/http_session.h"
#include "net/metrics.h"
#include "tests/unit/h2_frames.h"

enum peer_mode {
        PEER_ANSWER, /* a page, at once */
        PEER_HOLD,   /* nothing: the test goes on with `held` */
};

#define PEER_HELD_MAX 128
#define PEER_TYPES 16
#define PEER_REPEATS 4

struct peer {
        struct pool *pool;
        struct h2_coder *coder;
        struct h2_repeats *repeats;
        struct metrics_counter evicted;
        struct http_session_conf conf;
        struct http_session *session;
        struct http_page *page;
        enum peer_mode mode;
        struct frames to;   /* not yet fed */
        struct frames from; /* the last exchange's bytes */
        /* what the server's side saw */
        struct http_stream *held[PEER_HELD_MAX];
        size_t n_held;
        unsigned shown; /* heads */
        unsigned gone;
        unsigned bodies; /* BODY events */
        int outcome;     /* of the last head */
        int fed;         /* what the last feed returned */
        /* what the client's side saw, from the start */
        unsigned seen[PEER_TYPES];
        unsigned ended; /* frames with END_STREAM */
        uint32_t rst_code, goaway_code;
        int32_t goaway_last;
        size_t data_bytes;
        struct span last_head; /* in `from` */
};

struct peer_field {
        const char *name;
        const char *value;
};

/* The one of the test under way: made by the set-up, gone with the teardown. */
extern struct peer *peer;
int peer_setup(void **state);
int peer_teardown(void **state);

/* Ordinary limits; the session starts with its preface and settings done. */
void peer_open(struct peer *p);
/* The client never acknowledges our settings. */
void peer_open_deaf(struct peer *p);
void peer_close(struct peer *p);

/* Writes a head with pseudo-fields for GET (or POST, for `end` false) of
 * `path`, and further fields up to one without a name; NULL is none. */
void peer_request(struct peer *p, int32_t stream, const char *path, const struct peer_field *more,
                  bool end);
/* Any fields at all, in any order. */
void peer_fields(struct peer *p, int32_t stream, const struct peer_field *fields, bool end);

/* Feeds what was written, plays the connection, reads what comes back. */
void peer_turn(struct peer *p);
/* Only the first half: the bytes are fed, nobody looks. */
void peer_feed(struct peer *p);
/* Answers with the page. */
void peer_answer(struct peer *p, struct http_stream *st);

#endif
