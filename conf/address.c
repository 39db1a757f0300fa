#include "conf/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#define EXPECTED_ADDRESS "expected HOST:PORT, as 127.0.0.1:8443 or [::1]:8443"
#define EXPECTED_NETWORK "expected an address block, as 10.0.0.0/8 or 2001:db8::/32"

/* A decimal of at most `digits` digits and nothing else; -1 otherwise. */
static long take_decimal(const char *text, size_t digits) {
        size_t n = strlen(text);

        if (n == 0 || n > digits || strspn(text, "0123456789") != n)
                return -1;
        return strtol(text, NULL, 10);
}

/* IPv4 first: what people mean by a name like localhost. */
static bool look_up(const char *host, char *numeric, size_t cap) {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        struct addrinfo *found = NULL, *chosen;
        bool ok;

        if (getaddrinfo(host, NULL, &hints, &found) != 0 || !found)
                return false;
        chosen = found;
        for (struct addrinfo *a = found->ai_next; a; a = a->ai_next)
                if (chosen->ai_family != AF_INET && a->ai_family == AF_INET)
                        chosen = a;
        ok = getnameinfo(chosen->ai_addr, chosen->ai_addrlen, numeric, (socklen_t)cap, NULL, 0,
                         NI_NUMERICHOST) == 0;
        freeaddrinfo(found);
        return ok;
}

static bool split(const char *text, char *host, size_t cap, const char **port) {
        const char *colon = strrchr(text, ':');
        size_t len;

        if (!colon || colon == text)
                return false;
        len = (size_t)(colon - text);
        if (text[0] == '[') {
                if (text[len - 1] != ']')
                        return false;
                text++;
                len -= 2;
        } else if (memchr(text, ':', len)) {
                return false; /* IPv6 needs its brackets */
        }
        if (len == 0 || len >= cap)
                return false;
        memcpy(host, text, len);
        host[len] = 0;
        *port = colon + 1;
        return true;
}

const char *conf_address_parse(struct conf_arena *arena, const char *text, bool is_listener,
                               struct conf_address *out) {
        char host[256], numeric[INET6_ADDRSTRLEN + 32], whole[sizeof(numeric) + 16];
        struct in6_addr any;
        const char *port_text;
        long port;

        if (!split(text, host, sizeof(host), &port_text))
                return EXPECTED_ADDRESS;
        port = take_decimal(port_text, 5);
        if (port < (is_listener ? 0 : 1) || port > 65535)
                return is_listener ? "expected a port 0..65535 behind the host"
                                   : "expected a port 1..65535 behind the host";
        if (inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1)
                (void)snprintf(numeric, sizeof(numeric), "%.64s", host);
        else if (!look_up(host, numeric, sizeof(numeric)))
                return "expected an address, or a name that can be looked up, before the port";
        (void)snprintf(whole, sizeof(whole), strchr(numeric, ':') ? "[%s]:%ld" : "%s:%ld", numeric,
                       port);
        *out = (struct conf_address){
                .text = conf_arena_text(arena, span_of(whole)),
                .written = conf_arena_text(arena, span_of(text)),
                .port = (uint16_t)port,
        };
        return NULL;
}

static bool bits_are_zero_from(const uint8_t address[16], unsigned from) {
        for (unsigned i = from; i < 128; i++)
                if (address[i / 8] & (0x80u >> (i % 8)))
                        return false;
        return true;
}

const char *conf_network_parse(const char *text, struct conf_network *out) {
        const char *slash = strchr(text, '/');
        size_t len = slash ? (size_t)(slash - text) : strlen(text);
        char host[INET6_ADDRSTRLEN];
        bool is_v4;
        long bits;

        if (len == 0 || len >= sizeof(host))
                return EXPECTED_NETWORK;
        memcpy(host, text, len);
        host[len] = 0;
        *out = (struct conf_network){.address = {[10] = 0xFF, [11] = 0xFF}};
        is_v4 = inet_pton(AF_INET, host, out->address + 12) == 1;
        if (!is_v4 && inet_pton(AF_INET6, host, out->address) != 1)
                return EXPECTED_NETWORK;
        bits = slash ? take_decimal(slash + 1, 3) : is_v4 ? 32 : 128;
        if (bits < 0 || bits > (is_v4 ? 32 : 128))
                return EXPECTED_NETWORK;
        out->bits = (uint8_t)(is_v4 ? bits + 96 : bits);
        if (!bits_are_zero_from(out->address, out->bits))
                return "expected an address block whose bits behind the length are zero";
        return NULL;
}

void conf_network_text(const struct conf_network *network, char *out, size_t cap) {
        static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
        char host[INET6_ADDRSTRLEN];
        bool is_v4 = network->bits >= 96 && memcmp(network->address, mapped, 12) == 0;

        (void)inet_ntop(is_v4 ? AF_INET : AF_INET6, network->address + (is_v4 ? 12 : 0), host,
                        sizeof(host));
        (void)snprintf(out, cap, "%s/%d", host, network->bits - (is_v4 ? 96 : 0));
}
