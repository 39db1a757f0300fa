/* origin/answer.h - what a step of a hold came to, from rows or from a
 * refusal, and how it is told over HTTP.
 *
 * Ownership  spans point into the reply, or into `tree`; org_answer_fini.
 * Context    the loop's thread.
 */
#ifndef ORIGIN_ANSWER_H
#define ORIGIN_ANSWER_H

#include "origin/call.h"

struct org_answer {
        struct span code;    /* created, ok, replayed, or a problem's word */
        struct span body;    /* the hold as JSON; p NULL when there is none */
        int64_t available;   /* -1: not known */
        struct span version; /* "T.N" */
        struct span state;
        struct span hold;
        int64_t before_us, wait_us; /* -1: the item row was not touched */
        int64_t expired;            /* due holds taken back on the way */
        json_t *tree;
};

/* By the row of that number, or by the refusal, which is of all rows. False when the
 * reply is neither, or has no such row. */
bool org_answer_read(struct org_answer *a, const struct org_reply *r, size_t row);
void org_answer_fini(struct org_answer *a);

/* 201, 200 or the problem; with Sluice-Available and Sluice-Version where
 * known. To a payer a refusal says what to do with the money. Ends the call. */
void org_answer_tell(struct org_call *c, const struct org_answer *a);

/* Counts the lock's times and the due holds of a transaction of `took_us`. */
void org_answer_count(struct org_service *s, const struct org_answer *a, int64_t took_us);

/* Counts what became of an attempt to hold. */
enum org_outcome org_answer_outcome(const struct org_answer *a);

#endif
