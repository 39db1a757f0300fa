/* origin/pass.h - the pass that comes with an attempt to hold, looked at once
 * more: the gateway has done so, and the origin does not take its word.
 *
 * Context    the loop's thread; no waiting.
 */
#ifndef ORIGIN_PASS_H
#define ORIGIN_PASS_H

#include "net/jwt.h"
#include "net/problem.h"

#define ORG_PASS_LEEWAY_MS 2000
#define ORG_PASS_REPLAY_MS 600000 /* a spent or expired pass may repeat this long */

/* Whose pass it must be. */
struct org_pass_ask {
        const char *sale;
        struct span buyer;
        bool is_replay; /* only an existing key is answered */
};

/* PROBLEM_CODE_COUNT: it is good, with its claims; else the refusal. */
enum problem_code org_pass_check(const struct jwt_keys *keys, struct span pass,
                                 const struct org_pass_ask *ask, int64_t now_ms,
                                 struct jwt_claims *claims);

#endif
