#include "net/http_networks.h"

#include <errno.h>
#include <stdlib.h>

#include "net/random.h"

#define WAYS 4
#define SETS (NETWORKS_MAX / WAYS)
#define STRIKE_MILLI 1000u

int http_networks_init(struct http_networks *n, uint32_t strikes, uint32_t closed_ms) {
        *n = (struct http_networks){.strikes = strikes, .closed_ms = closed_ms};
        if (strikes == 0)
                return 0;
        random_bytes(&n->seed, sizeof n->seed);
        n->entries = calloc(NETWORKS_MAX, sizeof *n->entries);
        return n->entries ? 0 : -ENOMEM;
}

void http_networks_fini(struct http_networks *n) {
        free(n->entries);
        n->entries = NULL;
}

static uint64_t first_bytes(const uint8_t *address, size_t n) {
        uint64_t v = 0;
        for (size_t i = 0; i < n; i++)
                v = v << 8 | address[i];
        return v;
}

/* 24 bits of IPv4 or 56 of IPv6 under a mark that keeps them apart; 0: neither. */
static uint64_t name_of(const union net_address *peer) {
        static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
        if (peer->any.sa_family == AF_INET)
                return (uint64_t)1 << 62 | first_bytes((const uint8_t *)&peer->v4.sin_addr, 3);
        if (peer->any.sa_family != AF_INET6)
                return 0;
        const uint8_t *address = peer->v6.sin6_addr.s6_addr;
        if (memcmp(address, mapped, sizeof mapped) == 0)
                return (uint64_t)1 << 62 | first_bytes(address + sizeof mapped, 3);
        return (uint64_t)1 << 63 | first_bytes(address, 7);
}

/* Whoever picks addresses must not be able to pick sets. */
static size_t set_of(const struct http_networks *n, uint64_t name) {
        uint64_t x = name ^ n->seed;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return (size_t)((x ^ x >> 31) % SETS);
}

static void time_forgives(const struct http_networks *n, struct http_network *w, int64_t now_ms) {
        uint64_t passed_ms = (uint64_t)(now_ms - w->seen_ms);
        uint64_t back = passed_ms * n->strikes * STRIKE_MILLI / n->closed_ms;
        if (passed_ms >= n->closed_ms || back >= w->strikes_milli)
                w->strikes_milli = 0;
        else
                w->strikes_milli -= (uint32_t)back;
        w->seen_ms = now_ms;
}

static bool is_in_use(const struct http_network *w, int64_t now_ms) {
        return w->handshakes > 0 || w->first_parked || now_ms < w->closed_until_ms;
}

struct http_network *http_networks_find(struct http_networks *n, const union net_address *peer,
                                        int64_t now_ms, bool *is_full) {
        uint64_t name = name_of(peer);
        struct http_network *room = NULL;
        *is_full = false;
        if (!n->entries || name == 0)
                return NULL;
        struct http_network *set = n->entries + set_of(n, name) * WAYS;
        for (struct http_network *w = set; w < set + WAYS; w++) {
                if (w->name == name)
                        return w;
                if (w->name != 0 && is_in_use(w, now_ms))
                        continue;
                if (w->name != 0)
                        time_forgives(n, w, now_ms);
                if (!room || (room->name != 0 && w->strikes_milli < room->strikes_milli))
                        room = w;
        }
        *is_full = !room;
        if (room)
                *room = (struct http_network){.name = name, .seen_ms = now_ms};
        return room;
}

bool http_network_strike(const struct http_networks *n, struct http_network *w, int64_t now_ms) {
        time_forgives(n, w, now_ms);
        w->strikes_milli += STRIKE_MILLI;
        /* What time has forgiven since the first of a row is not a whole one. */
        if (w->strikes_milli <= (n->strikes - 1) * STRIKE_MILLI)
                return false;
        w->strikes_milli = 0;
        w->closed_until_ms = now_ms + n->closed_ms;
        return true;
}

void http_network_forgive(struct http_network *w) {
        w->strikes_milli -= w->strikes_milli < STRIKE_MILLI ? w->strikes_milli : STRIKE_MILLI;
}
