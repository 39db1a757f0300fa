/* gateway/forward_head.h - the head of a request to an application, built anew.
 *
 * Only fields on the list of net/http.h pass; the gateway's own cookies are
 * taken out; whatever says who asks, from where and with what right is ours.
 *
 * Ownership  a plain value; the spans of the request it fills point into it
 *            and into the exchange.
 * Context    the worker's thread.
 */
#ifndef GATEWAY_FORWARD_HEAD_H
#define GATEWAY_FORWARD_HEAD_H

#include "gateway/request.h"

#define GW_FORWARD_FIELDS 128
#define GW_FORWARD_TEXT 8192

struct gw_forward_head {
        struct http_header at[GW_FORWARD_FIELDS];
        size_t n;
        size_t used;
        char text[GW_FORWARD_TEXT];
};

/* Fills method, scheme, authority, path and headers of `q`. The length of its
 * body is told by the client side, from the bytes it has. */
void gw_forward_head(struct gw_forward_head *h, struct gw_request *r, struct http_call_request *q);

#endif
