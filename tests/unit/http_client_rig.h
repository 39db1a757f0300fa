/* tests/unit/http_client_rig.h - one client connection, run against a scripted
 * peer until it is closed, with the ends of its calls as a line of letters.
 */
#ifndef TESTS_UNIT_HTTP_CLIENT_RIG_H
#define TESTS_UNIT_HTTP_CLIENT_RIG_H

#include "net/http_client.h"
#include "tests/unit/fake_peer.h"

#define CALLS 64

/* What a test does when something happens. */
struct client_plan {
        size_t calls; /* started on_ready */
        int64_t deadline_ms;
        struct span body;
        void (*ready)(void);
        void (*head)(struct http_call *c);
        void (*data)(struct http_call *c, struct span data);
        void (*done)(struct http_call *c);
        bool keep_open; /* else it is drained when all calls are done */
};

struct client_rig {
        struct loop *loop;
        struct http_client *client;
        struct fake_peer peer;
        struct http_call calls[CALLS];
        struct client_plan plan;
        char outcomes[CALLS + 1]; /* by call; '.' not yet */
        int statuses[CALLS];
        size_t bytes[CALLS];
        size_t n_done;
        bool in_start;
        int closed; /* times */
        int why;
};

extern struct client_rig rig;

int setup(void **state);
int teardown(void **state);

size_t index_of(const struct http_call *c);
/* Starts call `i` as the plan says. */
int start(size_t i);
void open_to(const char *address, int64_t connect_ms);
/* Runs the plan against the script until the connection is closed. Outcomes by
 * call: O(K) U(NSENT) T(IMEOUT) L(OST) P(ROTOCOL). */
void play(void (*script)(struct fake_conn *), struct client_plan plan, const char *outcomes,
          int why);

/* A script: "hello" to everybody. */
void answer_all(struct fake_conn *c);

#endif
