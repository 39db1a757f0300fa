/* loadgen/wire.h - one call after the other, for before and after the race.
 *
 * Each function runs the loop until its answer is there, so none of them may
 * be called from inside a callback.
 *
 * Units      milliseconds.
 * Ownership  the answer's tree is the caller's: lg_wire_answer_fini.
 * Context    the loop's thread, while the loop does not run.
 */
#ifndef LOADGEN_WIRE_H
#define LOADGEN_WIRE_H

#include "loadgen/link.h"
#include "net/json.h"

struct lg_wire_request {
        struct lg_link *link;
        const char *method, *path;
        const char *token;   /* bearer; NULL: none */
        const char *body;    /* JSON; NULL: none */
        int64_t patience_ms; /* tries again while there is no answer or a 5xx */
};

struct lg_wire_answer {
        int status;     /* 0: none came */
        json_t *root;   /* NULL when the body is no JSON */
        char text[160]; /* the body's beginning, for messages */
        int64_t took_us;
};

/* Always fills *answer. 0 when one came, 1 when patience ran out. */
NET_MUST int lg_wire_call(struct loop *l, const struct lg_wire_request *request,
                          struct lg_wire_answer *answer);
void lg_wire_answer_fini(struct lg_wire_answer *answer);

void lg_wire_sleep(struct loop *l, int64_t ms);

#endif
