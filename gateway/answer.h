/* gateway/answer.h - how a request is answered and counted.
 *
 * Exactly one of the calls below ends a request; each counts it under its
 * sale and word. Whatever is not public is `private, no-store`, and sets the
 * cookies that the place or the pass asks for.
 *
 * Ownership  everything is copied by the server before these return.
 * Context    the worker's thread; none of them allocates.
 */
#ifndef GATEWAY_ANSWER_H
#define GATEWAY_ANSWER_H

#include "gateway/request.h"

/* A head under construction: fields, and the text they point to. */
#define GW_HEAD_FIELDS 24
#define GW_HEAD_TEXT 8192

struct gw_head {
        struct http_header at[GW_HEAD_FIELDS];
        size_t n;
        size_t used;
        char text[GW_HEAD_TEXT];
};

void gw_head_init(struct gw_head *h);
/* Borrows `value`, or copies it. Beyond the room it is a bug. */
void gw_head_add(struct gw_head *h, struct span name, struct span value);
void gw_head_copy(struct gw_head *h, struct span name, struct span value);

/* Cookies and Sluice-* fields for r->place or r->pass (whichever is new), and
 * what keeps caches off. True when anything personal was set. */
bool gw_head_personal(struct gw_head *h, struct gw_request *r);

/* A public answer rendered before. */
enum gw_next gw_answer_page(struct gw_request *r, struct http_page *page, enum gw_answer a);

/* A problem document; on the line and gated paths with the Place members when
 * r->has_place. r->retry_after_ms sets Retry-After. */
enum gw_next gw_answer_problem(struct gw_request *r, enum problem_code code, const char *detail);

/* r->place as JSON or page, with the status that goes with its state. */
enum gw_next gw_answer_place(struct gw_request *r);

/* 204 for OPTIONS and DELETE; with `forget` the cookies shown go. */
enum gw_next gw_answer_nothing(struct gw_request *r, bool forget, enum gw_answer a);

/* JSON from memory, private. */
enum gw_next gw_answer_json(struct gw_request *r, int status, struct gw_head *h, struct span body,
                            enum gw_answer a);

/* Counts an answer that was sent by other means. Ends the request. */
void gw_answer_count(struct gw_request *r, enum gw_answer a);

#endif
