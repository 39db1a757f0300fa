/* net/problem.h - every refusal sluice can give, and its document.
 *
 * The only place where a code has a status. Documents are RFC 9457
 * (application/problem+json): type, title, status, code, detail, and what the
 * caller adds.
 *
 * Context    any thread; no allocation.
 */
#ifndef NET_PROBLEM_H
#define NET_PROBLEM_H

#include "net/base.h"
#include "net/json.h"

#define PROBLEM_MEDIA_TYPE "application/problem+json"

enum problem_code {
        PROBLEM_BAD_REQUEST,              /* 400 */
        PROBLEM_IDEMPOTENCY_KEY_REQUIRED, /* 400 */
        PROBLEM_ACCOUNT_REQUIRED,         /* 401 */
        PROBLEM_TOKEN_REQUIRED,           /* 401: operators' and service bearer */
        PROBLEM_PASS_REQUIRED,            /* 403 */
        PROBLEM_PASS_EXPIRED,             /* 403 */
        PROBLEM_PASS_REVOKED,             /* 403 */
        PROBLEM_BUYER_LIMIT,              /* 403 */
        PROBLEM_NOT_FOUND,                /* 404 */
        PROBLEM_METHOD_NOT_ALLOWED,       /* 405 */
        PROBLEM_REQUEST_TIMEOUT,          /* 408 */
        PROBLEM_SOLD_OUT_HOLD,            /* 409 `sold_out`: to a hold attempt */
        PROBLEM_ALL_HELD,                 /* 409 */
        PROBLEM_NOT_ENOUGH,               /* 409 */
        PROBLEM_NOT_OPEN,                 /* 409 */
        PROBLEM_ALREADY_SOLD,             /* 409 */
        PROBLEM_HOLD_EXPIRED,             /* 409 */
        PROBLEM_HOLD_RELEASED,            /* 409 */
        PROBLEM_HOLD_CANCELLED,           /* 409 */
        PROBLEM_CONFLICT,                 /* 409 */
        PROBLEM_SOLD_OUT,                 /* 410 `sold_out`: to a shopper */
        PROBLEM_CLOSED,                   /* 410 */
        PROBLEM_BODY_TOO_LARGE,           /* 413 */
        PROBLEM_URI_TOO_LONG,             /* 414 */
        PROBLEM_MISDIRECTED,              /* 421 */
        PROBLEM_IDEMPOTENCY_MISMATCH,     /* 422 */
        PROBLEM_WORK_REQUIRED,            /* 428 */
        PROBLEM_RATE_LIMITED,             /* 429 */
        PROBLEM_HEADERS_TOO_LARGE,        /* 431 */
        PROBLEM_INTERNAL,                 /* 500 */
        PROBLEM_BAD_GATEWAY,              /* 502 */
        PROBLEM_LINE_FULL,                /* 503 */
        PROBLEM_PAUSED,                   /* 503 */
        PROBLEM_UNAVAILABLE,              /* 503: not one sale, the machine */
        PROBLEM_GATEWAY_TIMEOUT,          /* 504 */
        PROBLEM_CODE_COUNT
};

struct problem {
        const char *code;  /* its word in `code` */
        const char *title; /* a short sentence, the same for each occurrence */
        int status;        /* HTTP status, 400..599 */
};

const struct problem *problem_of(enum problem_code code);

/* The code whose word is `word` (with that status, when it is not 0);
 * PROBLEM_CODE_COUNT if there is none. */
enum problem_code problem_find(struct span word, int status);

/* Opens the document: everything but the caller's members and the closing
 * brace. `detail` may be NULL. */
void problem_begin(struct json_out *o, enum problem_code code, const char *detail);
void problem_end(struct json_out *o);

/* Adds the members of one occurrence. */
typedef void problem_members(struct json_out *o, const void *context);

/* begin, members (may be NULL), end. */
void problem_render(struct json_out *o, enum problem_code code, const char *detail,
                    problem_members *members, const void *context);

#endif
