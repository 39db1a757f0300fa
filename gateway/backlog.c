#include "gateway/backlog.h"

void gw_backlog_add(struct gw_backlog *b, struct gw_unread *u, uint64_t client, int64_t now_ms) {
        if (u->is_in)
                return;
        *u = (struct gw_unread){
                .prev = b->last,
                .since_ms = now_ms,
                .client = (uint32_t)(client % GW_BACKLOG_CLIENTS),
                .is_in = true,
        };
        *(b->last ? &b->last->next : &b->first) = u;
        b->last = u;
        b->count++;
        b->of_client[u->client]++;
}

void gw_backlog_remove(struct gw_backlog *b, struct gw_unread *u) {
        if (!u->is_in)
                return;
        assert(b->count > 0 && b->of_client[u->client] > 0);
        *(u->prev ? &u->prev->next : &b->first) = u->next;
        *(u->next ? &u->next->prev : &b->last) = u->prev;
        b->count--;
        b->of_client[u->client]--;
        u->is_in = false;
}

struct gw_unread *gw_backlog_victim(const struct gw_backlog *b, uint32_t share, int64_t now_ms) {
        if (!b->first)
                return NULL;
        for (struct gw_unread *u = b->first; u && b->count > share; u = u->next)
                if (b->of_client[u->client] > share)
                        return u;
        return now_ms - b->first->since_ms >= GW_BACKLOG_STALL_MS ? b->first : NULL;
}
