/* loadgen/plan.h - what each buyer is going to do, fixed by the seed alone.
 *
 * The same seed gives buyer i the same part, quantity and arrival, whatever
 * the network does.
 *
 * Units      milliseconds after the start of the arrivals; whole units.
 * Context    any thread; no state.
 */
#ifndef LOADGEN_PLAN_H
#define LOADGEN_PLAN_H

#include "loadgen/options.h"
#include "net/base.h"

enum lg_role {
        LG_ROLE_PAYS,    /* holds and pays */
        LG_ROLE_UNPAID,  /* holds and never pays */
        LG_ROLE_LEAVES,  /* leaves the line after a few answers */
        LG_ROLE_SLEEPS,  /* falls silent and returns, then as LG_ROLE_PAYS */
        LG_ROLE_IS_GONE, /* falls silent for good */
        LG_ROLE_CHEATS,  /* as LG_ROLE_PAYS, but tries for more on the way */
        LG_ROLE_COUNT
};

enum lg_cheat {
        LG_CHEAT_STEALS_PASS,   /* holds with somebody else's pass */
        LG_CHEAT_FORGES_PASS,   /* holds with a pass it signed itself */
        LG_CHEAT_STEALS_TICKET, /* claims with somebody else's ticket */
        LG_CHEAT_CLAIMS_TWICE,  /* claims again, holding a pass */
        LG_CHEAT_HOLDS_TWICE,   /* holds again with a new key, above its limit */
        LG_CHEAT_COUNT
};

struct lg_plan {
        enum lg_role role;
        enum lg_cheat cheat;   /* with LG_ROLE_CHEATS */
        int64_t qty;           /* units wanted */
        int64_t arrives_ms;    /* its first tab's join */
        int64_t after_answers; /* leavers and sleepers: act at this answer, 1.. */
        int64_t sleeps_ms;     /* how long a sleeper is silent */
};

void lg_plan_of(const struct lg_options *o, uint64_t seed, int64_t buyer, struct lg_plan *out);

/* True if this role pays for what it holds (perhaps late). */
bool lg_role_pays(enum lg_role role);

/* An even 64-bit value of seed, buyer and a purpose. */
uint64_t lg_plan_hash(uint64_t seed, uint64_t buyer, uint64_t purpose);

/* How long to wait before try number `tries` (0..) of something that failed:
 * 50 ms doubling to 1 s, ± 25 % by `salt`. */
int64_t lg_backoff_ms(uint32_t tries, uint64_t salt);

#endif
