#include "conf/redis.h"

#include <stdlib.h>

#define EXPECTED "expected redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]"

static int hex(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        c = (char)(c | 0x20);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool decode(struct span from, char *to, size_t cap) {
        size_t n = 0;

        for (size_t i = 0; i < from.len; i++) {
                int c = (unsigned char)from.p[i];

                if (c == '%') {
                        if (i + 2 >= from.len || hex(from.p[i + 1]) < 0 || hex(from.p[i + 2]) < 0)
                                return false;
                        c = hex(from.p[i + 1]) * 16 + hex(from.p[i + 2]);
                        i += 2;
                }
                if (c == 0 || n + 1 >= cap)
                        return false;
                to[n++] = (char)c;
        }
        to[n] = '\0';
        return true;
}

static bool number(struct span s, uint32_t low, uint32_t high, uint32_t *out) {
        uint32_t n = 0;

        if (s.len == 0 || s.len > 5)
                return false;
        for (size_t i = 0; i < s.len; i++) {
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
                n = n * 10 + (uint32_t)(s.p[i] - '0');
        }
        *out = n;
        return n >= low && n <= high;
}

/* Cuts off what stands before `c`, or all of it. */
static struct span before(struct span *rest, char c, bool *found) {
        const char *at = memchr(rest->p, c, rest->len);
        struct span head = {rest->p, at ? (size_t)(at - rest->p) : rest->len};

        *found = at != NULL;
        rest->p += head.len + (at ? 1 : 0);
        rest->len -= head.len + (at ? 1 : 0);
        return head;
}

static bool take_account(struct span text, struct conf_redis *out) {
        bool has_password;
        struct span user = before(&text, ':', &has_password);

        return has_password && text.len > 0 && decode(user, out->user, sizeof(out->user)) &&
               decode(text, out->password, sizeof(out->password));
}

static bool take_address(struct span text, struct conf_redis *out) {
        bool has_port, is_closed = true;
        struct span host;

        if (text.len > 0 && text.p[0] == '[') {
                text.p++;
                text.len--;
                host = before(&text, ']', &is_closed);
                has_port = text.len > 0;
                if (has_port && text.p[0] != ':')
                        return false;
                text.p += has_port;
                text.len -= has_port;
        } else {
                host = before(&text, ':', &has_port);
        }
        out->port = 6379;
        return is_closed && host.len > 0 && !memchr(host.p, '@', host.len) &&
               decode(host, out->host, sizeof(out->host)) &&
               (!has_port || number(text, 1, 65535, &out->port));
}

const char *conf_redis_parse(const char *text, struct conf_redis *out) {
        struct span rest = span_of(text), part;
        bool has_account, has_database;

        *out = (struct conf_redis){.port = 0};
        if (!span_starts(rest, SPAN("redis://")))
                return EXPECTED;
        rest.p += 8;
        rest.len -= 8;
        part = before(&rest, '@', &has_account);
        if (has_account && !take_account(part, out))
                return EXPECTED;
        if (has_account)
                part = rest;
        rest = part;
        part = before(&rest, '/', &has_database);
        if (!take_address(part, out) ||
            (has_database && rest.len > 0 && !number(rest, 0, 9999, &out->database)))
                return EXPECTED;
        return NULL;
}
