#include "gateway/slots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int gw_slots_new(size_t cap, struct gw_slots **out) {
        *out = calloc(1, sizeof **out + cap * sizeof(struct gw_slot));
        if (!*out)
                return -ENOMEM;
        (*out)->count = 1;
        (*out)->cap = cap;
        return 0;
}

void gw_slots_free(struct gw_slots **s) {
        free(*s);
        *s = NULL;
}

uint32_t gw_slots_of(struct gw_slots *s, const char *id) {
        for (uint32_t i = 1; i < s->count; i++)
                if (strcmp(s->at[i].id, id) == 0)
                        return i;
        if (s->count == s->cap)
                return 0;
        struct gw_slot *slot = &s->at[s->count];
        (void)snprintf(slot->id, sizeof slot->id, "%s", id);
        return (uint32_t)s->count++;
}
