/* gateway/host.h - whether an :authority is well formed and ours.
 *
 * Context    any thread; no state, no allocation.
 */
#ifndef GATEWAY_HOST_H
#define GATEWAY_HOST_H

#include "conf/gateway.h"
#include "net/http.h"

#define GW_HOST_TEXT_MAX 256

enum gw_host_outcome {
        GW_HOST_OURS = 0,
        GW_HOST_MALFORMED = 1, /* 400 */
        GW_HOST_FOREIGN = 2,   /* 421 */
};

/* Fills `host` (GW_HOST_TEXT_MAX bytes) with the name in lower case, without
 * port and final dot. A Host field beside :authority must say the same. */
NET_MUST int gw_host_of(const struct http_request *r, const struct conf_gateway *conf, char *host,
                        size_t *len);

#endif
