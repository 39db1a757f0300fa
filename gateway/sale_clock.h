/* gateway/sale_clock.h - the origin's clock, kept as an offset to ours.
 *
 * Every snapshot tells the database's time; the answer was under way and may
 * have been computed a little earlier, so what is told is never ahead of the
 * truth. The offset therefore follows upward at once and downward slowly: by a
 * thousandth of the time gone by, or by half of it when the origin's clock was
 * set back. Sale time stands almost still then, but never runs backwards.
 *
 * Units      milliseconds.
 * Context    the control thread; readers take the offset atomically.
 */
#ifndef GATEWAY_SALE_CLOCK_H
#define GATEWAY_SALE_CLOCK_H

#include "gateway/shared.h"

#define GW_CLOCK_STEP_MS 2000 /* a difference that no delay explains */

/* Before anything was heard: the machine's own wall clock. */
void gw_sale_clock_init(struct gw_shared *s, int64_t wall_ms, int64_t mono_ms);

/* The origin said `origin_ms` in an answer that came at `mono_ms`; the offset
 * was last moved at `*moved_at_ms`, which is kept up to date here. */
void gw_sale_clock_hear(struct gw_shared *s, int64_t origin_ms, int64_t mono_ms,
                        int64_t *moved_at_ms);

#endif
