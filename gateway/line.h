/* gateway/line.h - the line: join, look, claim, leave.
 *
 * Context    the worker's thread.
 */
#ifndef GATEWAY_LINE_H
#define GATEWAY_LINE_H

#include "gateway/request.h"

/* What the line and its events answer; fills r->place or has answered. */
enum gw_next gw_line_place(struct gw_request *r);

/* Joins, finds the place again or claims; r->place, or answered (away). */
enum gw_next gw_line_join(struct gw_request *r);

/* r->place of somebody without a place: the sale's state, no ticket. */
void gw_line_look(struct gw_request *r);

#endif
