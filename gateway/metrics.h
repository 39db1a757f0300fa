/* gateway/metrics.h - everything the gateway counts, as Prometheus text.
 *
 * Context    the control thread; workers' numbers are read while they run.
 */
#ifndef GATEWAY_METRICS_H
#define GATEWAY_METRICS_H

#include "net/metrics.h"

struct gw_control;

#define GW_METRICS_MAX_BYTES ((size_t)4 * 1024 * 1024)

void gw_metrics_render(const struct gw_control *c, struct metrics_out *o);

#endif
