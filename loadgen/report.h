/* loadgen/report.h - the report of a race, as JSON for programs and as a table
 * for people.
 *
 * Units      as the names say; latencies in whole microseconds.
 * Context    after the race.
 */
#ifndef LOADGEN_REPORT_H
#define LOADGEN_REPORT_H

#include <stdio.h>

#include "loadgen/histogram.h"
#include "loadgen/judge.h"

enum lg_answer {
        LG_ANSWER_JOIN,
        LG_ANSWER_POLL,
        LG_ANSWER_CLAIM,
        LG_ANSWER_HOLD,
        LG_ANSWER_PAY,
        LG_ANSWER_LEAVE,
        LG_ANSWER_FLAG,
        LG_ANSWER_CHEAT,
        LG_ANSWER_COUNT
};

/* Requests that were sent again. */
struct lg_again {
        int64_t lost;    /* no answer came */
        int64_t limited; /* 429 */
        int64_t paused;  /* 503 */
        int64_t failed;  /* other 5xx */
};

/* Nothing is judged by it, but it helps to understand a race. */
struct lg_extras {
        int64_t seed;
        char sale[64];
        int64_t connections;
        struct lg_again again;
        int64_t all_held_to_pass; /* pass holders told to come back */
        int64_t asked_snapshot, asked_health, asked_hold, asked_hold_read, asked_forward;
};

struct lg_report {
        struct lg_facts facts;
        struct lg_verdict verdict;
        struct lg_extras extras;
        double duration_s;
        struct lg_histogram answers[LG_ANSWER_COUNT];
};

/* One object and a line end. 0, or -errno of the stream. */
NET_MUST int lg_report_json(const struct lg_report *r, FILE *out);
NET_MUST int lg_report_table(const struct lg_report *r, FILE *out);

#endif
