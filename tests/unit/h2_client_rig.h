/* tests/unit/h2_client_rig.h - a client session without a socket: the test says
 * what the peer sends, reads the events as text and the frames as text.
 */
#ifndef TESTS_UNIT_H2_CLIENT_RIG_H
#define TESTS_UNIT_H2_CLIENT_RIG_H

#include "net/h2_client.h"
#include "tests/unit/h2_frames.h"

#define REFUSED_STREAM 7u
#define CANCEL 8u

struct h2_client_rig {
        struct h2_client *h;
        struct frames in;  /* from the peer */
        char sent[262144]; /* what the session put out, not yet read */
        size_t sent_len;
        char log[8192]; /* events as text */
        size_t log_len;
        int64_t now_ms;
};

extern struct h2_client_rig rig;
extern struct client_call calls[200];

/* A greeted session; for cmocka, and with ceilings of its own. */
int setup(void **state);
int setup_with(uint32_t max_streams, uint32_t header_bytes, uint32_t window);
int teardown(void **state);

struct http_call_request get(const char *method);
void submit(struct client_call *call, struct http_call_request r);
/* Calls 0 to n - 1, on streams 1, 3, 5, ... of a fresh session. */
void submit_gets(size_t n);

/* Appends what the session has to send to `sent`. */
void put_out(void);
/* Feeds `in` and empties it; events go to the log. */
int feed(void);
/* Feeds, which must succeed, and puts out. */
void turn(void);
/* Appends events to the log: "H3:200:n" a head with n fields, "D3:text",
 * "E3:outcome" by its first letter. */
void take_events(void);
/* The whole log, which is emptied. */
void expect_events(const char *text);
/* The frames put out since the last time, as "H3 D3 R3:8 W0 ...". */
void expect_frames(const char *text);

#endif
