/* gateway/etag.h - strong entity tags of rendered bodies. */
#ifndef GATEWAY_ETAG_H
#define GATEWAY_ETAG_H

#include "gateway/snapshot.h"

/* `"16 hex digits"`, the same for the same bytes, terminated. */
void gw_etag_of(struct span body, char out[GW_ETAG_LEN]);

/* A 200 with `headers`, `etag` among them, and its 304 (the same without the
 * type). `*page` and `*page_304` are NULL when memory ran out: -ENOMEM. */
NET_MUST int gw_etag_pages(const struct http_header *headers, size_t n, struct span body,
                           struct http_page **page, struct http_page **page_304);

#endif
