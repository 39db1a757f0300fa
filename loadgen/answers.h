/* loadgen/answers.h - what an answer of the gateway or the origin says.
 *
 * Only what a buyer acts upon is read; missing members become the neutral
 * value. A body that is no JSON object reads as one without members.
 *
 * Ownership  an answer owns its parsed tree until lg_answer_fini; spans live
 *            as long.
 * Context    any thread, one at a time.
 */
#ifndef LOADGEN_ANSWERS_H
#define LOADGEN_ANSWERS_H

#include "net/base.h"
#include "net/json.h"

enum lg_place_state {
        LG_PLACE_NONE, /* no place, or a state we do not know */
        LG_PLACE_NOT_OPEN,
        LG_PLACE_WAITING,
        LG_PLACE_READY,
        LG_PLACE_ADMITTED,
        LG_PLACE_ALL_HELD,
        LG_PLACE_PAUSED,
        LG_PLACE_SOLD_OUT,
        LG_PLACE_CLOSED,
        LG_PLACE_LINE_FULL,
};

struct lg_answer_read {
        json_t *root; /* NULL: no object */
        enum lg_place_state state;
        bool has_reason;       /* `reason` is not null: the place is a new one */
        int64_t poll_after_ms; /* -1 when not given */
        struct span ticket;    /* p NULL when not given, as all below */
        struct span pass;
        struct span code; /* of a problem */
        struct span hold; /* a hold's id */
        struct span hold_state;
        int64_t qty;       /* of a hold; 0 when not given */
        int64_t available; /* with not_enough; -1 when not given */
};

void lg_answer_read(struct lg_answer_read *r, const char *data, size_t len);
void lg_answer_fini(struct lg_answer_read *r);

/* The claims of a pass that name it and its holder, without any check. */
struct lg_pass_names {
        char jti[72];
        char sub[136];
};

/* 0; 1 when it is no such token. */
NET_MUST int lg_pass_read(struct span pass, struct lg_pass_names *out);

#endif
