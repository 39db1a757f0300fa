/* gateway/steps.h - the steps of the walk, in the order in which they run.
 *
 * Each says go on, done (answered), or parked. None reads a socket.
 *
 * Context    the worker's thread.
 */
#ifndef GATEWAY_STEPS_H
#define GATEWAY_STEPS_H

#include "gateway/request.h"

/* Path, method, host. Flags, the list and keys are answered here. */
enum gw_next gw_step_route(struct gw_request *r);
/* Cookies against headers; the key and body of a hold. May park for the body. */
enum gw_next gw_step_read(struct gw_request *r);
/* The sale, by path or by rule. */
enum gw_next gw_step_sale(struct gw_request *r);
/* Whose address it is, for the limits below. */
enum gw_next gw_step_network(struct gw_request *r);
/* A pass that came along. */
enum gw_next gw_step_pass(struct gw_request *r);
/* Sold out and closed, from memory. */
enum gw_next gw_step_ended(struct gw_request *r);
enum gw_next gw_step_account(struct gw_request *r);
enum gw_next gw_step_limit(struct gw_request *r);
/* The place in line: asks the store. */
enum gw_next gw_step_place(struct gw_request *r);
/* Asks origin or upstream. Parks. */
enum gw_next gw_step_forward(struct gw_request *r);
enum gw_next gw_step_answer(struct gw_request *r);

/* A refusal; on the line it carries the sale's place members. */
enum gw_next gw_refuse(struct gw_request *r, enum problem_code code, const char *detail);
/* 503 `paused`, coming back in two seconds. */
enum gw_next gw_refuse_away(struct gw_request *r);

#endif
