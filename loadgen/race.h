/* loadgen/race.h - one race from the first connection to the report.
 *
 * Connections are opened before the clock starts: the opening is what is
 * measured, not two thousand handshakes of this program.
 *
 * Context    the main thread.
 */
#ifndef LOADGEN_RACE_H
#define LOADGEN_RACE_H

#include "loadgen/addresses.h"
#include "loadgen/options.h"

/* The program's exit code: 0 the sale held, 1 it did not or could not be
 * held; a line on standard error says why it could not. */
int lg_race_run(const struct lg_options *o, const struct lg_addresses *a);

#endif
