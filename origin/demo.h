/* origin/demo.h - the quickstart's shop: one small page that says who got in.
 *
 * It stands for the shop's own application behind the gateway. Any path, any
 * method; no token, because it tells nothing but what came with the request.
 */
#ifndef ORIGIN_DEMO_H
#define ORIGIN_DEMO_H

#include "origin/call.h"

void org_demo(struct org_call *c);

#endif
