/* loadgen/options.h - the command line of `sluice-load race`.
 *
 * One table row an option: parser, range check and help grow from it. All
 * faults of a command line are told in one run.
 *
 * Units      the names say them; shares are 0..1.
 * Ownership  texts borrow argv.
 * Context    start.
 */
#ifndef LOADGEN_OPTIONS_H
#define LOADGEN_OPTIONS_H

#include <stdio.h>

#include "net/base.h"

enum lg_arrival {
        LG_ARRIVAL_HERD,     /* all in the instant of the opening */
        LG_ARRIVAL_RAMP,     /* ever more a second, over --spread */
        LG_ARRIVAL_POISSON,  /* at random, --spread long on average */
        LG_ARRIVAL_PREQUEUE, /* spread evenly before the opening */
};

struct lg_options {
        int64_t buyers;
        int64_t units;
        double unpaid, leavers, sleepers, cheats;
        int64_t tabs;
        int64_t qty_low, qty_high;
        enum lg_arrival arrival;
        int64_t spread_s;
        int64_t hold_seconds; /* 0: not given */
        int64_t connections;  /* 0: not given */
        int64_t seed;         /* -1: not given */
        int64_t deadline_s;   /* 0: not given */
        const char *plot;     /* NULL: none */
        const char *addresses;
        const char *sale; /* NULL: the race makes its own */
        bool json;
        bool help;
};

/* Arguments behind the word `race`. 0, or 1 after every fault was written to
 * `faults`, a line each. */
NET_MUST int lg_options_parse(struct lg_options *o, int argc, char *const argv[], FILE *faults);

void lg_options_help(FILE *out);

/* Connections this race will use: as given, else min(buyers, 2000). */
int64_t lg_options_connections(const struct lg_options *o);
/* Seconds of a hold: as given, else 600, or 5 where some buyers never pay. */
int64_t lg_options_hold_seconds(const struct lg_options *o);
/* Seconds after the opening at which an unfinished race is given up. */
int64_t lg_options_deadline_s(const struct lg_options *o);

#endif
