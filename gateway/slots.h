/* gateway/slots.h - what the control thread remembers of a sale from one
 * snapshot to the next, and the small number under which it is counted.
 *
 * A sale keeps its slot until the process ends. When they run out a sale has
 * slot 0 and is counted under "no sale"; all else works.
 *
 * Ownership  new/free.
 * Context    the control thread.
 */
#ifndef GATEWAY_SLOTS_H
#define GATEWAY_SLOTS_H

#include "gateway/flag.h"

struct gw_slot {
        char id[ADM_ID_LEN]; /* "" for slot 0 */
        struct adm_sale_shown shown;
        bool has_flag;
        struct gw_flag flag; /* as last published */
        uint64_t flag_version;
        int64_t flag_as_of_ms;
        uint32_t handle; /* the store's */
        bool is_stored;
};

struct gw_slots {
        size_t count, cap;
        struct gw_slot at[];
};

/* `cap` >= 1, slot 0 included. 0 or -ENOMEM. */
NET_MUST int gw_slots_new(size_t cap, struct gw_slots **out);
void gw_slots_free(struct gw_slots **s);

/* The sale's slot, made if need be; 0 when they have run out. */
uint32_t gw_slots_of(struct gw_slots *s, const char *id);

#endif
