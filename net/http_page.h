/* net/http_page.h - an answer rendered once and sent many times.
 *
 * A page is immutable: status, header list and body in one allocation,
 * shared by threads through a reference count. Sending one copies nothing but
 * frames; a session that could not send the whole body at once keeps a
 * reference until it has.
 *
 * Ownership  new gives the caller one reference; take adds one; free drops one.
 * Context    any thread.
 */
#ifndef NET_HTTP_PAGE_H
#define NET_HTTP_PAGE_H

#include "net/http.h"

struct http_page;
struct h2_blocks;

/* Copies everything. `content-length` is added by the session, so it must not
 * be in `headers`; a 204 or 304 has no body. NULL when out of memory. */
struct http_page *http_page_new(int status, const struct http_header *headers, size_t n_headers,
                                struct span body);
void http_page_take(struct http_page *p);
void http_page_free(struct http_page **p);

int http_page_status(const struct http_page *p);
const struct http_header *http_page_headers(const struct http_page *p, size_t *n);
/* The same with `content-length` at their end, as sessions send them. */
const struct http_header *http_page_sent_headers(const struct http_page *p, size_t *n);
struct span http_page_body(const struct http_page *p);
/* Its head, compressed (net/h2_hpack.h). */
const struct h2_blocks *http_page_blocks(const struct http_page *p);

#endif
