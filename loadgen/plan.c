#include "loadgen/plan.h"

#include <math.h>

enum purpose { ROLE = 1, CHEAT, QTY, ARRIVAL, ANSWERS, RETURNS, SLEEP };

/* splitmix64's finisher. */
static uint64_t mix(uint64_t x) {
        x ^= x >> 30;
        x *= UINT64_C(0xbf58476d1ce4e5b9);
        x ^= x >> 27;
        x *= UINT64_C(0x94d049bb133111eb);
        return x ^ (x >> 31);
}

uint64_t lg_plan_hash(uint64_t seed, uint64_t buyer, uint64_t purpose) {
        uint64_t x = mix(seed + UINT64_C(0x9e3779b97f4a7c15));
        x = mix(x ^ (buyer + UINT64_C(0x9e3779b97f4a7c15)));
        return mix(x ^ (purpose * UINT64_C(0x9e3779b97f4a7c15)));
}

/* [0, 1) */
static double unit_of(uint64_t seed, int64_t buyer, enum purpose purpose) {
        return (double)(lg_plan_hash(seed, (uint64_t)buyer, purpose) >> 11) * 0x1p-53;
}

static enum lg_role role_of(const struct lg_options *o, uint64_t seed, int64_t buyer) {
        double u = unit_of(seed, buyer, ROLE);
        if (u < o->unpaid)
                return LG_ROLE_UNPAID;
        u -= o->unpaid;
        if (u < o->leavers)
                return LG_ROLE_LEAVES;
        u -= o->leavers;
        if (u < o->sleepers)
                return unit_of(seed, buyer, RETURNS) < 0.5 ? LG_ROLE_SLEEPS : LG_ROLE_IS_GONE;
        u -= o->sleepers;
        return u < o->cheats ? LG_ROLE_CHEATS : LG_ROLE_PAYS;
}

static int64_t arrival_of(const struct lg_options *o, uint64_t seed, int64_t buyer) {
        double spread_ms = (double)o->spread_s * 1000;
        double u = unit_of(seed, buyer, ARRIVAL);
        switch (o->arrival) {
        case LG_ARRIVAL_HERD:
                return 0;
        case LG_ARRIVAL_RAMP:
                /* The rate grows evenly, so the share come by t grows as t². */
                return (int64_t)(spread_ms * sqrt(u));
        case LG_ARRIVAL_POISSON:
        case LG_ARRIVAL_PREQUEUE:
                /* Given their number, the arrivals of a Poisson stream lie
                 * evenly and independently. */
                return (int64_t)(spread_ms * u);
        }
        return 0;
}

void lg_plan_of(const struct lg_options *o, uint64_t seed, int64_t buyer, struct lg_plan *out) {
        uint64_t span = (uint64_t)(o->qty_high - o->qty_low + 1);
        uint64_t id = (uint64_t)buyer;
        *out = (struct lg_plan){
                .role = role_of(o, seed, buyer),
                .cheat = (enum lg_cheat)(lg_plan_hash(seed, id, CHEAT) % LG_CHEAT_COUNT),
                .qty = o->qty_low + (int64_t)(lg_plan_hash(seed, id, QTY) % span),
                .arrives_ms = arrival_of(o, seed, buyer),
                .after_answers = 1 + (int64_t)(lg_plan_hash(seed, id, ANSWERS) % 3),
                .sleeps_ms = 5000 + (int64_t)(lg_plan_hash(seed, id, SLEEP) % 30000),
        };
}

bool lg_role_pays(enum lg_role role) {
        return role == LG_ROLE_PAYS || role == LG_ROLE_SLEEPS || role == LG_ROLE_CHEATS;
}

int64_t lg_backoff_ms(uint32_t tries, uint64_t salt) {
        int64_t base = tries < 5 ? INT64_C(50) << tries : 1000;
        if (base > 1000)
                base = 1000;
        int64_t swing = base / 4;
        return base - swing + (int64_t)(mix(salt + tries) % (uint64_t)(2 * swing + 1));
}
