/* origin/call.h - one request at work, from its head to its answer.
 *
 * A call is made when the head is there and dies with its answer. The client
 * may go away while the database works: then the answer is dropped, never the
 * work.
 *
 * Ownership  org_call_answer and its kin free the call; so does nothing else.
 * Context    the loop's thread.
 */
#ifndef ORIGIN_CALL_H
#define ORIGIN_CALL_H

#include "net/problem.h"
#include "origin/route.h"
#include "origin/service.h"

#define ORG_CALL_HEADERS 8

struct org_batch_item;

struct org_call {
        struct org_service *s;
        struct http_exchange *x;           /* NULL once the client is gone */
        struct org_batch_item *batch_item; /* while the database decides about it alone */
        bool has_turn;                     /* the item's, until then */
        struct org_route route;            /* into the exchange: not after it is gone */
        void (*on_body)(struct org_call *c);
        struct http_header headers[ORG_CALL_HEADERS]; /* of the answer, besides the usual */
        size_t n_headers;
        char header_text[256]; /* their values */
        size_t header_len;
        bool wants_payment; /* the caller is a payer */
        bool captured;
        uint8_t tries;
        bool names_end;   /* a PATCH with closes_at */
        int64_t if_match; /* ORG_NO_MATCH: none given */
        char sale[64];    /* what outlives the exchange */
        char tenant[64];
        char item[64];
        char hold[33]; /* hex */
        char actor[65];
        char *kept; /* heap, freed with the call; a body to come back to */
        size_t kept_len;
};

#define ORG_NO_MATCH ((int64_t)-1)

/* Takes over the exchange; NULL after answering 503 for want of memory. */
struct org_call *org_call_new(struct org_service *s, struct http_exchange *x,
                              const struct org_route *route);
/* Asks for the body, then runs `on_body` with x->body; answers by itself when
 * the body is late, or larger than limits.body_bytes or `room`, whichever is more. */
void org_call_read_body(struct org_call *c, void (*on_body)(struct org_call *c));
void org_call_read_large_body(struct org_call *c, size_t room, void (*on_body)(struct org_call *c));

/* A header of the answer; both are copied, past the room they are dropped. */
void org_call_header(struct org_call *c, const char *name, struct span value);
void org_call_header_int(struct org_call *c, const char *name, int64_t value);

/* The end of a call. */
void org_call_answer(struct org_call *c, int status, const char *media_type, struct span body);
void org_call_json(struct org_call *c, int status, struct span body);
/* `detail` may be NULL. Puts Retry-After where the problem has one. */
void org_call_problem(struct org_call *c, enum problem_code code, const char *detail,
                      problem_members *members, const void *context);
/* 400, naming the field. */
void org_call_bad_field(struct org_call *c, const char *field, const char *expected);
/* 400 from a body's fault. */
void org_call_bad_body(struct org_call *c, const struct json_body *body);
/* For replies that are neither rows nor a refusal. */
void org_call_db_failed(struct org_call *c, enum org_db_outcome outcome);

/* Who asks, for journal and audit: header sluice-actor, else "service". */
void org_call_find_actor(struct org_call *c);
/* Reads If-Match (and If-None-Match: *, as 0) into c->if_match. False after
 * answering 400. A weak tag never matches. */
bool org_call_find_match(struct org_call *c);

#endif
