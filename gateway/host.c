#include "gateway/host.h"

#define LETTER(upper, lower) [upper] = (lower), [lower] = (lower)
#define SAME(c) [c] = (c)

/* What a byte of a name or address is in lower case, 0 for all others. */
static const char folded[256] = {
        LETTER('A', 'a'), LETTER('B', 'b'), LETTER('C', 'c'), LETTER('D', 'd'), LETTER('E', 'e'),
        LETTER('F', 'f'), LETTER('G', 'g'), LETTER('H', 'h'), LETTER('I', 'i'), LETTER('J', 'j'),
        LETTER('K', 'k'), LETTER('L', 'l'), LETTER('M', 'm'), LETTER('N', 'n'), LETTER('O', 'o'),
        LETTER('P', 'p'), LETTER('Q', 'q'), LETTER('R', 'r'), LETTER('S', 's'), LETTER('T', 't'),
        LETTER('U', 'u'), LETTER('V', 'v'), LETTER('W', 'w'), LETTER('X', 'x'), LETTER('Y', 'y'),
        LETTER('Z', 'z'), SAME('0'),        SAME('1'),        SAME('2'),        SAME('3'),
        SAME('4'),        SAME('5'),        SAME('6'),        SAME('7'),        SAME('8'),
        SAME('9'),        SAME('-'),        SAME('.'),        SAME('_'),
};

static char fold(char c) {
        return folded[(unsigned char)c];
}

/* Copies the host in front of `s` (a name, an IPv4 or a bracketed IPv6) in
 * lower case and returns its length, 0 for none or one that is too long. */
static size_t host_take(struct span s, char host[GW_HOST_TEXT_MAX]) {
        size_t most = s.len < GW_HOST_TEXT_MAX - 1 ? s.len : GW_HOST_TEXT_MAX - 1;
        size_t n = 0;
        bool is_bracketed = s.len > 0 && s.p[0] == '[';
        if (is_bracketed)
                host[n++] = '[';
        while (n < most && (fold(s.p[n]) || (is_bracketed && s.p[n] == ':'))) {
                host[n] = fold(s.p[n]) ? fold(s.p[n]) : ':';
                n++;
        }
        if (!is_bracketed)
                return n;
        if (n == most || s.p[n] != ']')
                return 0;
        host[n] = ']';
        return n + 1;
}

static bool port_is_good(struct span s) {
        if (s.len == 0)
                return true;
        if (s.p[0] != ':' || s.len > 6)
                return false;
        for (size_t i = 1; i < s.len; i++)
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
        return s.len > 1;
}

static bool equal_folded(struct span a, struct span b) {
        if (a.len != b.len)
                return false;
        for (size_t i = 0; i < a.len; i++)
                if (a.p[i] != b.p[i] && (!fold(a.p[i]) || fold(a.p[i]) != fold(b.p[i])))
                        return false;
        return true;
}

/* A configured host without a port stands for every port. */
static bool is_served(const struct conf_gateway *conf, struct span host, struct span authority) {
        if (conf->hosts_any)
                return true;
        for (size_t i = 0; i < conf->hosts.count; i++) {
                struct span served = span_of(conf->hosts.at[i]);
                if (span_eq(served, host) || equal_folded(served, authority))
                        return true;
        }
        return false;
}

int gw_host_of(const struct http_request *r, const struct conf_gateway *conf, char *host,
               size_t *len) {
        struct span authority = r->authority;
        struct span field = http_request_field(r, HTTP_FIELD_HOST);
        *len = 0;
        if (field.p && !equal_folded(field, authority))
                return GW_HOST_MALFORMED;
        size_t n = host_take(authority, host);
        struct span port = {authority.p + n, authority.len - n};
        if (n == 0 || !port_is_good(port))
                return GW_HOST_MALFORMED;
        if (n > 1 && host[n - 1] == '.')
                n--;
        if (host[n - 1] == '.') /* an empty label */
                return GW_HOST_MALFORMED;
        *len = n;
        return is_served(conf, (struct span){host, n}, authority) ? GW_HOST_OURS : GW_HOST_FOREIGN;
}
