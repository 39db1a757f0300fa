/* gateway/place.h - a place in line as the outside sees it.
 *
 * Context    any thread; no allocation.
 */
#ifndef GATEWAY_PLACE_H
#define GATEWAY_PLACE_H

#include "admission/place.h"
#include "gateway/page.h"
#include "net/json.h"
#include "net/problem.h"

struct gw_place_text {
        struct span sale;
        const struct adm_place *place;
        bool in_body;       /* ticket and pass are members */
        struct span ticket; /* p NULL: none */
        struct span pass;
};

/* The Place members, into an object that is open. */
void gw_place_members(struct json_out *o, const struct gw_place_text *t);

/* 200, 202, 410 or 503. */
int gw_place_status(const struct adm_place *p);

/* The problem a place is, or PROBLEM_CODE_COUNT where it is none. */
enum problem_code gw_place_problem(const struct adm_place *p);

/* Facts of the page that shows it; `in_prequeue` picks the words. */
struct gw_page_facts gw_place_page(const struct adm_place *p, struct span sale, bool in_prequeue);

#endif
