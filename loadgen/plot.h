/* loadgen/plot.h - how a race went over time: race.csv for programs and
 * race.svg for eyes.
 *
 * Units      seconds after the first arrivals; buyers.
 * Context    after the race.
 */
#ifndef LOADGEN_PLOT_H
#define LOADGEN_PLOT_H

#include "loadgen/crowd.h"

/* Writes both files into `folder`, which is made if it is missing. 0, -errno. */
NET_MUST int lg_plot_write(const char *folder, const struct lg_crowd *c, int64_t started_us);

#endif
