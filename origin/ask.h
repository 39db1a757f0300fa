/* origin/ask.h - an attempt to hold, as it was asked: who, how much, under
 * which key, with which pass. For single holds and for orders.
 *
 * Ownership  spans point into the request, its body, or the ask itself.
 * Context    the loop's thread.
 */
#ifndef ORIGIN_ASK_H
#define ORIGIN_ASK_H

#include "origin/call.h"

#define ORG_QTY_MAX 1000000
#define ORG_UUID_HEX 33  /* 32 digits and the zero */
#define ORG_LINES_MAX 50 /* of an order */

struct org_ask_line {
        struct span item;
        int64_t qty;
};

struct org_ask {
        struct span buyer, sale, channel, order_ref, pass_jti, key;
        struct org_ask_line lines[ORG_LINES_MAX];
        size_t n_lines;
        int64_t round;  /* of the pass; -1: none was shown */
        bool is_replay; /* only an existing key is answered */
        struct jwt_claims claims;
};

/* Reads key, body and pass. `item`: the one of the path, for a single hold; p
 * NULL for an order, whose lines are in the body. False after answering. */
bool org_ask_read(struct org_call *c, struct org_ask *a, struct json_body *b, struct span item);

/* What must be the same again under the same key. The pass is left out: it is
 * the gateway's matter, and may have been renewed. NULL span if too long. */
struct span org_ask_text(const struct org_ask *a, char *out, size_t cap);
#define ORG_ASK_TEXT_MAX 8192

/* 128 random bits, in hex. */
void org_new_id(char out[ORG_UUID_HEX]);
/* The hex part of a hold's id; false when it cannot be one of ours. */
bool org_id_of(const struct org_call *c, struct span hold, char out[ORG_UUID_HEX]);

#endif
