#include "gateway/limit.h"

#include "admission/limiter.h"
#include "gateway/hash.h"

enum { SEED_FAILURE = 1, SEED_GUEST = 2, SEED_ACCOUNT = 3 };

static bool is_over(struct gw_request *r, uint64_t key, struct adm_limit limit,
                    struct metrics_counter *counted) {
        int64_t wait_ms = adm_limiter_take(r->w->shared->limiter, key, limit, r->mono_ms);
        if (wait_ms <= 0)
                return false;
        r->retry_after_ms = wait_ms;
        metrics_add(counted, 1);
        return true;
}

bool gw_limit_failure(struct gw_request *r) {
        struct adm_limit limit = {
                .burst = gw_request_conf(r)->limiter.network_failures_per_minute,
                .period_ms = 60000,
        };
        uint64_t key = gw_address_key(&r->address, r->w->shared->hash_seed + SEED_FAILURE);
        return is_over(r, key, limit, &r->w->counters.limited_network);
}

bool gw_limit_guest(struct gw_request *r) {
        struct adm_limit limit = {
                .burst = gw_request_conf(r)->limiter.network_guest_joins_per_minute,
                .period_ms = 60000,
        };
        uint64_t key = gw_address_key(&r->address, r->w->shared->hash_seed + SEED_GUEST);
        return is_over(r, key, limit, &r->w->counters.limited_network);
}

bool gw_limit_account(struct gw_request *r) {
        const struct conf_gateway *conf = gw_request_conf(r);
        uint32_t burst = conf->limiter.account_burst;
        uint64_t period_ms = (uint64_t)burst * 1000 / conf->limiter.account_requests_per_s;
        struct adm_limit limit = {
                .burst = burst,
                .period_ms = period_ms < 1         ? 1
                             : period_ms > 3600000 ? 3600000
                                                   : (uint32_t)period_ms,
        };
        uint64_t seed =
                r->w->shared->hash_seed + SEED_ACCOUNT + r->sale->handle * UINT64_C(1000003);
        uint64_t key = gw_hash(seed, r->tag.b, sizeof r->tag.b);
        return is_over(r, key, limit, &r->w->counters.limited_account);
}
