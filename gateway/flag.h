/* gateway/flag.h - answers that are the same for everybody, rendered: a
 * sale's flag, the list of flags, and what is told when it is over.
 *
 * Context    the control thread; allocates pages.
 */
#ifndef GATEWAY_FLAG_H
#define GATEWAY_FLAG_H

#include "gateway/snapshot.h"

#define GW_FLAG_MAX 512 /* bytes of one flag */

/* What of a flag counts as a change; its version and time follow from it. */
struct gw_flag {
        enum adm_sale_state state;
        int64_t left; /* -1 null, -2 "few" */
        int64_t opens_at_ms, closes_at_ms;
};

struct gw_flag gw_flag_of(const struct gw_sale *s);
bool gw_flag_equal(const struct gw_flag *a, const struct gw_flag *b);

/* Writes the flag of `s` with its flag_version and flag_as_of_ms. */
size_t gw_flag_render(const struct gw_sale *s, char out[GW_FLAG_MAX]);

/* s->pages, all of them. 0 or -ENOMEM. */
NET_MUST int gw_flag_pages(struct gw_sale *s);

/* s->list from the flags of its sales. 0 or -ENOMEM. */
NET_MUST int gw_flag_list(struct gw_snapshot *s);

#endif
