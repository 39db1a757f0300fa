/* origin/metrics.h - GET /metrics. */
#ifndef ORIGIN_METRICS_H
#define ORIGIN_METRICS_H

#include "origin/call.h"

void org_metrics_get(struct org_call *c);

#endif
