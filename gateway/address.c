#include "gateway/address.h"

#include <arpa/inet.h>

#include "gateway/hash.h"

#define FORWARDED_MAX 32 /* entries looked at, from the right */

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool gw_address_is_ipv4(const struct gw_address *a) {
        return memcmp(a->b, mapped, sizeof mapped) == 0;
}

static struct gw_address of_ipv4(const struct in_addr *in) {
        struct gw_address a;
        memcpy(a.b, mapped, sizeof mapped);
        memcpy(a.b + sizeof mapped, in, 4);
        return a;
}

struct gw_address gw_address_of_peer(const union net_address *peer) {
        struct gw_address a = {{0}};
        if (peer->any.sa_family == AF_INET)
                return of_ipv4(&peer->v4.sin_addr);
        if (peer->any.sa_family == AF_INET6)
                memcpy(a.b, &peer->v6.sin6_addr, sizeof a.b);
        return a;
}

/* Takes brackets and a port off. */
static struct span bare(struct span s) {
        if (s.len > 0 && s.p[0] == '[') {
                const char *end = memchr(s.p, ']', s.len);
                return end ? (struct span){s.p + 1, (size_t)(end - s.p) - 1}
                           : (struct span){s.p, 0};
        }
        const char *colon = s.len ? memchr(s.p, ':', s.len) : NULL;
        if (colon) {
                size_t before = (size_t)(colon - s.p);
                bool only_one = !memchr(colon + 1, ':', s.len - before - 1);
                if (only_one)
                        s.len = before;
        }
        return s;
}

bool gw_address_parse(struct span text, struct gw_address *out) {
        char copy[INET6_ADDRSTRLEN];
        struct span s = bare(text);
        if (s.len == 0 || s.len >= sizeof copy)
                return false;
        memcpy(copy, s.p, s.len);
        copy[s.len] = '\0';
        struct in_addr in;
        if (inet_pton(AF_INET, copy, &in) == 1) {
                *out = of_ipv4(&in);
                return true;
        }
        return inet_pton(AF_INET6, copy, out->b) == 1;
}

/* Cuts the last comma-separated entry off `list`, blanks taken off it. */
static struct span take_last(struct span *list) {
        size_t end = list->len, start = end;
        while (start > 0 && list->p[start - 1] != ',')
                start--;
        list->len = start > 0 ? start - 1 : 0;
        while (start < end && (list->p[start] == ' ' || list->p[start] == '\t'))
                start++;
        while (end > start && (list->p[end - 1] == ' ' || list->p[end - 1] == '\t'))
                end--;
        return (struct span){list->p + start, end - start};
}

struct gw_address gw_address_of_client(const union net_address *peer,
                                       const struct http_request *request,
                                       const struct conf_networks *trusted) {
        struct gw_address client = gw_address_of_peer(peer);
        unsigned seen = 0;
        if (!request->at[HTTP_FIELD_X_FORWARDED_FOR])
                return client;
        for (size_t i = request->n_headers; i-- > 0;) {
                if (request->headers[i].id != HTTP_FIELD_X_FORWARDED_FOR)
                        continue;
                struct span list = request->headers[i].value;
                while (list.len > 0) {
                        struct gw_address next;
                        if (!conf_networks_hold(trusted, client.b) || ++seen > FORWARDED_MAX ||
                            !gw_address_parse(take_last(&list), &next))
                                return client;
                        client = next;
                }
        }
        return client;
}

uint64_t gw_address_key(const struct gw_address *a, uint64_t seed) {
        return gw_hash(seed, a->b, gw_address_is_ipv4(a) ? 16 : 8);
}

size_t gw_address_text(const struct gw_address *a, char out[GW_ADDRESS_TEXT_MAX]) {
        const char *text = gw_address_is_ipv4(a)
                                   ? inet_ntop(AF_INET, a->b + 12, out, GW_ADDRESS_TEXT_MAX)
                                   : inet_ntop(AF_INET6, a->b, out, GW_ADDRESS_TEXT_MAX);
        assert(text);
        return strlen(text);
}
