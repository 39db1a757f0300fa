/* loadgen/ask.h - one request with its whole answer, as shoppers, payers and
 * the set-up use them.
 *
 * An ask waits on its link for a connection and for room, is sent once, and
 * ends exactly once: with an answer, or with `lost` when nothing can be said
 * about it. Sending again is its owner's decision.
 *
 * Units      milliseconds; instants in microseconds of the monotonic clock.
 * Ownership  embedded in its owner, who keeps everything the spans point at
 *            until the end. The answer's bytes live until on_answer returns.
 * Context    the loop's thread.
 */
#ifndef LOADGEN_ASK_H
#define LOADGEN_ASK_H

#include "net/http_client.h"

struct lg_link;

struct lg_ask {
        /* set by the owner before lg_link_ask(): */
        void (*on_answer)(struct lg_ask *a);
        void *owner;
        struct span method, path;
        struct span bearer;    /* account, service or operator token; empty: none */
        struct span ticket;    /* Sluice-Ticket; empty: none */
        struct span pass;      /* Sluice-Pass; empty: none */
        struct span key;       /* Idempotency-Key; empty: none */
        struct span body;      /* JSON; empty: none */
        int64_t deadline_ms;   /* from its sending */
        uint32_t answer_bytes; /* ceiling of the answer's body */

        /* the answer: */
        bool lost;   /* no answer; perhaps acted upon */
        bool unsent; /* with `lost`: surely not acted upon */
        int status;
        int64_t retry_after_s; /* -1 when not given */
        char *renewed;         /* Sluice-Pass of the answer, or NULL */
        char *data;            /* the body; NULL when empty */
        size_t len;
        int64_t wanted_us; /* lg_link_ask() */
        int64_t sent_us;   /* given to the connection; 0 when it never was */
        int64_t ended_us;

        /* the link's: */
        struct http_call call;
        struct lg_link *link; /* NULL when idle */
        struct lg_ask *next;
        bool is_queued;
};

static inline bool lg_ask_is_idle(const struct lg_ask *a) {
        return a->link == NULL;
}

#endif
