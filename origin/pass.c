#include "origin/pass.h"

enum problem_code org_pass_check(const struct jwt_keys *keys, struct span pass,
                                 const struct org_pass_ask *ask, int64_t now_ms,
                                 struct jwt_claims *claims) {
        const struct jwt_rules rules = {
                .typ = JWT_TYP_PASS,
                .issuer = "sluice",
                .audience = ask->sale,
                .leeway_ms = ORG_PASS_LEEWAY_MS + (ask->is_replay ? ORG_PASS_REPLAY_MS : 0),
        };
        int r = jwt_verify(keys, pass, &rules, now_ms, claims);

        if (r == JWT_EXPIRED)
                return PROBLEM_PASS_EXPIRED;
        if (r != 0 || !span_eq(span_of(claims->sub), ask->buyer) || claims->rnd < 0)
                return PROBLEM_PASS_REQUIRED;
        return PROBLEM_CODE_COUNT;
}
