#include "net/problem.h"

static const struct problem problems[PROBLEM_CODE_COUNT] = {
        [PROBLEM_BAD_REQUEST] = {"bad_request", "The request cannot be understood", 400},
        [PROBLEM_IDEMPOTENCY_KEY_REQUIRED] = {"idempotency_key_required",
                                              "An Idempotency-Key is required", 400},
        [PROBLEM_ACCOUNT_REQUIRED] = {"account_required", "Sign in first", 401},
        [PROBLEM_TOKEN_REQUIRED] = {"token_required", "A bearer token is required", 401},
        [PROBLEM_PASS_REQUIRED] = {"pass_required", "It is not your turn", 403},
        [PROBLEM_PASS_EXPIRED] = {"pass_expired", "The pass has ended", 403},
        [PROBLEM_PASS_REVOKED] = {"pass_revoked", "The pass was taken back", 403},
        [PROBLEM_BUYER_LIMIT] = {"buyer_limit", "One buyer may not have more", 403},
        [PROBLEM_NOT_FOUND] = {"not_found", "There is nothing here", 404},
        [PROBLEM_METHOD_NOT_ALLOWED] = {"method_not_allowed", "This method is not allowed here",
                                        405},
        [PROBLEM_REQUEST_TIMEOUT] = {"request_timeout", "The request did not arrive in time", 408},
        [PROBLEM_SOLD_OUT_HOLD] = {"sold_out", "Sold out", 409},
        [PROBLEM_ALL_HELD] = {"all_held", "Every unit is in somebody's hands", 409},
        [PROBLEM_NOT_ENOUGH] = {"not_enough", "Fewer units are left than were asked for", 409},
        [PROBLEM_NOT_OPEN] = {"not_open", "The sale is not open", 409},
        [PROBLEM_ALREADY_SOLD] = {"already_sold", "The hold is sold", 409},
        [PROBLEM_HOLD_EXPIRED] = {"hold_expired", "The hold has expired", 409},
        [PROBLEM_HOLD_RELEASED] = {"hold_released", "The hold was given back", 409},
        [PROBLEM_HOLD_CANCELLED] = {"hold_cancelled", "The hold was cancelled", 409},
        [PROBLEM_CONFLICT] = {"conflict", "The present state does not allow this", 409},
        [PROBLEM_SOLD_OUT] = {"sold_out", "Sold out", 410},
        [PROBLEM_CLOSED] = {"closed", "The sale is closed", 410},
        [PROBLEM_BODY_TOO_LARGE] = {"body_too_large", "The body is too large", 413},
        [PROBLEM_URI_TOO_LONG] = {"uri_too_long", "The path is too long", 414},
        [PROBLEM_MISDIRECTED] = {"misdirected", "This host is not served here", 421},
        [PROBLEM_IDEMPOTENCY_MISMATCH] = {"idempotency_mismatch",
                                          "The key was used with another body", 422},
        [PROBLEM_WORK_REQUIRED] = {"work_required", "A proof of work is required", 428},
        [PROBLEM_RATE_LIMITED] = {"rate_limited", "Too many requests", 429},
        [PROBLEM_HEADERS_TOO_LARGE] = {"headers_too_large", "The header fields are too large", 431},
        [PROBLEM_INTERNAL] = {"internal", "Something went wrong here", 500},
        [PROBLEM_BAD_GATEWAY] = {"bad_gateway", "The server behind gave no good answer", 502},
        [PROBLEM_LINE_FULL] = {"line_full", "The line is full", 503},
        [PROBLEM_PAUSED] = {"paused", "The sale is paused", 503},
        [PROBLEM_UNAVAILABLE] = {"unavailable", "Not able to answer at the moment", 503},
        [PROBLEM_GATEWAY_TIMEOUT] = {"gateway_timeout", "The server behind did not answer in time",
                                     504},
};

const struct problem *problem_of(enum problem_code code) {
        assert(code < PROBLEM_CODE_COUNT && problems[code].code);
        return &problems[code];
}

enum problem_code problem_find(struct span word, int status) {
        for (unsigned i = 0; i < PROBLEM_CODE_COUNT; i++)
                if ((status == 0 || problems[i].status == status) &&
                    span_eq(span_of(problems[i].code), word))
                        return (enum problem_code)i;
        return PROBLEM_CODE_COUNT;
}

void problem_begin(struct json_out *o, enum problem_code code, const char *detail) {
        const struct problem *problem = problem_of(code);

        json_out_object(o, NULL);
        json_out_text(o, "type", "about:blank");
        json_out_text(o, "title", problem->title);
        json_out_int(o, "status", problem->status);
        json_out_text(o, "code", problem->code);
        if (detail)
                json_out_text(o, "detail", detail);
}

void problem_end(struct json_out *o) {
        json_out_object_end(o);
}

void problem_render(struct json_out *o, enum problem_code code, const char *detail,
                    problem_members *members, const void *context) {
        problem_begin(o, code, detail);
        if (members)
                members(o, context);
        problem_end(o);
}
