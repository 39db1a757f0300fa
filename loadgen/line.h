/* loadgen/line.h - a tab in the line: join, come back when told, claim, leave.
 *
 * It does what an honest app does: waits as long as it was told, shows its
 * ticket, claims when it is told `ready`, and after a loss or a 503 asks
 * again. Sleepers and leavers do as their plan says.
 *
 * Context    the loop's thread.
 */
#ifndef LOADGEN_LINE_H
#define LOADGEN_LINE_H

#include "loadgen/crowd.h"

void lg_line_init(struct lg_tab *tab);
/* The tab opens and joins, unless its buyer is past the line already. */
void lg_line_join(struct lg_tab *tab);
/* Tabs that wait close, since the buyer is at the checkout; a request under
 * way goes on, and what it tells about the pass is looked at. */
void lg_line_rest(struct lg_buyer *b);
/* The checkout sends the buyer back: its leading tab joins again. */
void lg_line_return(struct lg_buyer *b, int64_t after_ms);
/* Stops the timer and forgets the request. */
void lg_line_cancel(struct lg_tab *tab);

/* How long after a promised poll the line still counts a shopper as there. */
#define LG_LINE_SKIP_US INT64_C(15000000)

#endif
