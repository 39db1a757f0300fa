#include "gateway/cookie.h"

#include <strings.h>

#include "net/http.h"

static const struct span prefixes[] = {
        [GW_COOKIE_TICKET] = SPAN("__Host-sluice-"),
        [GW_COOKIE_PASS] = SPAN("__Host-sluice-pass-"),
        [GW_COOKIE_GUEST] = SPAN("__Host-sluice_guest"),
};

static const struct span ours = SPAN("__Host-sluice");
static const struct span flags = SPAN("; Path=/; Secure; HttpOnly; SameSite=Lax");
static const struct span deleted = SPAN("; Max-Age=0");

static size_t put(char *out, size_t at, struct span s) {
        memcpy(out + at, s.p, s.len);
        return at + s.len;
}

size_t gw_cookie_name(enum gw_cookie kind, struct span sale, char out[GW_COOKIE_NAME_MAX]) {
        size_t n = put(out, 0, prefixes[kind]);
        assert(n + sale.len <= GW_COOKIE_NAME_MAX);
        return kind == GW_COOKIE_GUEST ? n : put(out, n, sale);
}

struct span gw_cookie_get(struct span cookies, enum gw_cookie kind, struct span sale) {
        char name[GW_COOKIE_NAME_MAX];
        if (!cookies.p)
                return (struct span){NULL, 0};
        size_t n = gw_cookie_name(kind, sale, name);
        struct span value = http_cookie(cookies, (struct span){name, n});
        return value.len > 0 ? value : (struct span){NULL, 0};
}

size_t gw_cookie_set(enum gw_cookie kind, struct span sale, struct span value, char *out,
                     size_t cap) {
        assert(cap >= GW_COOKIE_NAME_MAX + GW_COOKIE_SET_MAX + value.len);
        size_t n = gw_cookie_name(kind, sale, out);
        out[n++] = '=';
        n = value.len > 0 ? put(out, n, value) : n;
        n = put(out, n, flags);
        return value.len == 0 ? put(out, n, deleted) : n;
}

/* Browsers take the prefix in any case, so do we when it is about refusing. */
static bool starts_like_ours(struct span s) {
        return s.len >= ours.len && strncasecmp(s.p, ours.p, ours.len) == 0;
}

static struct span trimmed(struct span s) {
        while (s.len > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
                s.p++;
                s.len--;
        }
        while (s.len > 0 && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
                s.len--;
        return s;
}

size_t gw_cookie_strip(struct span cookies, char *out) {
        size_t n = 0, start = 0;
        for (size_t i = 0; i <= cookies.len; i++) {
                if (i < cookies.len && cookies.p[i] != ';')
                        continue;
                struct span crumb = trimmed((struct span){cookies.p + start, i - start});
                start = i + 1;
                if (crumb.len == 0 || starts_like_ours(crumb))
                        continue;
                if (n > 0)
                        n = put(out, n, SPAN("; "));
                n = put(out, n, crumb);
        }
        return n;
}

bool gw_cookie_is_ours(struct span set_cookie) {
        return starts_like_ours(trimmed(set_cookie));
}
