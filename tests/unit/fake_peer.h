/* tests/unit/fake_peer.h - a server that follows a script, not the rules: it
 * listens on a free port of the loopback and runs the test's script, blocking,
 * in a thread of its own for every connection.
 *
 * Every wait ends after 10 s, so that a broken test fails and does not hang.
 */
#ifndef TESTS_UNIT_FAKE_PEER_H
#define TESTS_UNIT_FAKE_PEER_H

#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/h2_frames.h"

#define FAKE_PEER_CONNS 64

struct fake_peer;

struct fake_conn {
        struct fake_peer *peer;
        pthread_t thread;
        int fd;
        int nth; /* 0 for the first */
        char in[131072];
        size_t in_len, in_at;
        struct frames out;
};

struct fake_peer {
        void (*script)(struct fake_conn *c);
        char address[32];
        int listener;
        pthread_t thread;
        struct fake_conn *conns[FAKE_PEER_CONNS];
        atomic_int n_conns;
        atomic_int requests;  /* heads seen by fake_await_request */
        atomic_int most_open; /* of a script's counting */
};

void fake_peer_start(struct fake_peer *p, void (*script)(struct fake_conn *c));
/* Waits for the scripts to end. */
void fake_peer_stop(struct fake_peer *p);

/* Takes the preface, answers SETTINGS; `max_streams` 0 says none. */
void fake_greet(struct fake_conn *c, uint32_t max_streams);
/* The next frame; false at the end of the connection or after 10 s. */
bool fake_read(struct fake_conn *c, struct frame *f);
/* The stream of the next HEADERS; 0 at the end. Other frames are skipped. */
int32_t fake_await_request(struct fake_conn *c);
/* Whether a frame of `type` comes before the end; others are skipped. */
bool fake_await(struct fake_conn *c, enum frame_type type, struct frame *f);
/* HTTP/1.1: the next head, ended by '\0' in place of its empty line; a body stays
 * unread. NULL at the end. It lives until the next read. */
char *fake_await_head(struct fake_conn *c);
/* Takes `n` bytes of a body; false at the end before that. */
bool fake_take_body(struct fake_conn *c, size_t n);
void fake_say(struct fake_conn *c, const char *text);
/* Sends what is in `out` and empties it. */
void fake_send(struct fake_conn *c);
/* Reads until the other side closes. */
void fake_await_end(struct fake_conn *c);

/* A port on which nobody listens. */
void fake_dead_address(char out[32]);

#endif
