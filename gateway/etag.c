#include "gateway/etag.h"

#include <errno.h>
#include <stdio.h>

#include "gateway/hash.h"

void gw_etag_of(struct span body, char out[GW_ETAG_LEN]) {
        uint64_t h = gw_hash(UINT64_C(0x736c75696365), body.p, body.len);
        (void)snprintf(out, GW_ETAG_LEN, "\"%016llx\"", (unsigned long long)h);
}

int gw_etag_pages(const struct http_header *headers, size_t n, struct span body,
                  struct http_page **page, struct http_page **page_304) {
        struct http_header kept[16];
        size_t count = 0;
        assert(n <= NET_COUNT_OF(kept));
        for (size_t i = 0; i < n; i++)
                if (!span_eq(headers[i].name, SPAN("content-type")))
                        kept[count++] = headers[i];
        *page = http_page_new(200, headers, n, body);
        *page_304 = http_page_new(304, kept, count, (struct span){NULL, 0});
        if (*page && *page_304)
                return 0;
        http_page_free(page);
        http_page_free(page_304);
        return -ENOMEM;
}
