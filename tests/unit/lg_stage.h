/* tests/unit/lg_stage.h - a stage for one buyer of the load generator: a
 * server that answers from a script, and a race around the buyer.
 *
 * Each request must be the next row's; what it showed is kept for the test.
 *
 * Ownership  one stage a test; stage_open, stage_run, stage_close.
 * Context    one thread; the loop runs inside stage_run only.
 */
#ifndef TESTS_UNIT_LG_STAGE_H
#define TESTS_UNIT_LG_STAGE_H

#include "loadgen/crowd.h"
#include "net/http_server.h"

#define STAGE_ROWS 16

/* Bodies of a gateway's answers. */
#define STAGE_PASS_1 "e30.eyJqdGkiOiJqMSIsInN1YiI6ImIxLTAifQ.c2ln"
#define STAGE_PASS_2 "e30.eyJqdGkiOiJqMiIsInN1YiI6ImIxLTAifQ.c2ln"
#define STAGE_WAITING(ticket)                                                                      \
        "{\"state\":\"waiting\",\"reason\":null,\"poll_after_ms\":1,\"ticket\":\"" ticket "\"}"
#define STAGE_READY "{\"state\":\"ready\",\"poll_after_ms\":1,\"ticket\":\"t9\"}"
#define STAGE_ADMITTED(pass) "{\"state\":\"admitted\",\"pass\":\"" pass "\",\"poll_after_ms\":1}"
#define STAGE_HOLD(state) "{\"hold\":\"h1\",\"qty\":1,\"state\":\"" state "\"}"
#define STAGE_CODE(code) "{\"code\":\"" code "\"}"

struct stage_row {
        const char *request; /* "POST line": method and the path's last word */
        int status;          /* 0: the connection is cut instead */
        const char *body;
        const char *retry_after;
};

struct stage_seen {
        char key[LG_KEY_BYTES], ticket[16], pass[128];
        bool bearer;
};

struct stage {
        struct loop *loop;
        struct http_server *server;
        const struct stage_row *rows;
        size_t n_rows, n_seen;
        struct stage_seen seen[STAGE_ROWS];
        struct lg_options options;
        uint64_t seed; /* 1 unless changed */
        struct lg_addresses addresses;
        struct lg_endpoint endpoint;
        struct lg_histogram answers[LG_ANSWER_COUNT];
        struct lg_crowd crowd;
        struct loop_timer guard;
        struct loop_defer cut;
        bool stuck;      /* the buyer had no end within seconds */
        char wrong[128]; /* the first request that was not the script's */
};

/* One buyer who pays; change options before stage_run. */
void stage_open(struct stage *s, const struct stage_row *rows, size_t n);
/* Plays to the buyer's end and fails the test unless it is `end` and the whole
 * script was played. */
void stage_run(struct stage *s, enum lg_end end);
void stage_close(struct stage *s);

#endif
