/* loadgen/strategies/strategies.h - `sluice-load strategies`: what each way to hold
 * a unit of one item sells in a second, and what it loses or sells twice.
 *
 * Without --servers the script loadgen/strategies/run is called in our place: it
 * starts private servers, comes back here for each round, and tells the medians.
 *
 * Context    the whole program.
 */
#ifndef LOADGEN_STRATEGIES_STRATEGIES_H
#define LOADGEN_STRATEGIES_STRATEGIES_H

/* Arguments behind the word `strategies`. The exit code: 0, 1 after a fault, 2
 * for wrong words. */
int lg_strategies_main(int argc, char *const argv[]);

#endif
