#include "gateway/host.h"

static char lower(char c) {
        return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_host_char(char c) {
        char l = lower(c);
        return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

/* How many bytes of `s` are the host: a name, an IPv4 or a bracketed IPv6. */
static size_t host_length(struct span s) {
        size_t n = 0;
        if (s.len > 0 && s.p[0] == '[') {
                const char *end = memchr(s.p, ']', s.len);
                if (!end)
                        return 0;
                for (n = 1; s.p + n < end; n++)
                        if (!is_host_char(s.p[n]) && s.p[n] != ':')
                                return 0;
                return n + 1;
        }
        while (n < s.len && is_host_char(s.p[n]))
                n++;
        return n;
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
                if (lower(a.p[i]) != lower(b.p[i]))
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
        size_t n = host_length(authority);
        struct span port = {authority.p + n, authority.len - n};
        if (n == 0 || n >= GW_HOST_TEXT_MAX || !port_is_good(port))
                return GW_HOST_MALFORMED;
        if (n > 1 && authority.p[n - 1] == '.')
                n--;
        for (size_t i = 0; i < n; i++)
                host[i] = lower(authority.p[i]);
        *len = n;
        return is_served(conf, (struct span){host, n}, authority) ? GW_HOST_OURS : GW_HOST_FOREIGN;
}
