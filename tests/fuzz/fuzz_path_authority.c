/* One text to everything that reads a path, an authority or a short field:
 *
 *   first byte   where the text is cut in two: a second text for those that
 *                compare or look up
 */
#include <arpa/inet.h>
#include <stdlib.h>

#include "gateway/address.h"
#include "gateway/cookie.h"
#include "gateway/host.h"
#include "gateway/route.h"
#include "net/http_head.h"
#include "tests/fuzz/fuzz.h"

static bool is_inside(struct span part, struct span whole) {
        return part.len == 0 || (part.p >= whole.p && part.p + part.len <= whole.p + whole.len);
}

/* ---- paths ---- */

static int hex(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        c = (char)(c | 0x20);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The part before `?` as the most eager of all readers would take it, decoded
 * until nothing changes; -1 for a broken escape. */
static ptrdiff_t decode(struct span path, char *to) {
        const char *query = path.len ? memchr(path.p, '?', path.len) : NULL;
        size_t n = query ? (size_t)(query - path.p) : path.len;
        size_t out = 0;
        for (size_t i = 0; i < n; i++) {
                char c = path.p[i];
                if (c == '%') {
                        if (i + 2 >= n || hex(path.p[i + 1]) < 0 || hex(path.p[i + 2]) < 0)
                                return -1;
                        c = (char)(hex(path.p[i + 1]) * 16 + hex(path.p[i + 2]));
                        i += 2;
                }
                to[out++] = c;
        }
        return (ptrdiff_t)out;
}

/* Not a byte of it means one thing to one program and another to the next. */
static void clean_check(struct span path) {
        char *text = malloc(path.len + 1);
        FUZZ_CHECK(text);
        ptrdiff_t n = decode(path, text);
        FUZZ_CHECK(n > 0 && text[0] == '/');
        size_t from = 1;
        for (size_t i = 1; i <= (size_t)n; i++) {
                bool is_end = i == (size_t)n;
                char c = is_end ? '/' : text[i];
                FUZZ_CHECK(is_end || ((unsigned char)c >= 0x20 && c != '\\' && c != 0x7f));
                if (c != '/')
                        continue;
                struct span segment = {text + from, i - from};
                const char *semicolon = segment.len ? memchr(segment.p, ';', segment.len) : NULL;
                if (semicolon)
                        segment.len = (size_t)(semicolon - segment.p);
                FUZZ_CHECK(!span_eq(segment, SPAN(".")) && !span_eq(segment, SPAN("..")));
                FUZZ_CHECK(is_end || i > from);
                from = i + 1;
        }
        free(text);
}

static void path_run(struct span path) {
        struct gw_route route;
        bool is_clean = http_path_is_clean(path);
        int r = gw_route_of(path, &route);
        FUZZ_CHECK(r == GW_ROUTE_FOUND || r == GW_ROUTE_MALFORMED);
        if (is_clean)
                clean_check(path);
        if (r != GW_ROUTE_FOUND)
                return;
        FUZZ_CHECK(route.kind < GW_ROUTES);
        FUZZ_CHECK(is_inside(route.sale, path) && is_inside(route.hold, path) &&
                   is_inside(route.path, path));
        FUZZ_CHECK(route.sale.len == 0 || gw_sale_id_is_good(route.sale));
        FUZZ_CHECK(gw_route_methods(route.kind) != 0 || route.kind == GW_ROUTE_NONE);
        FUZZ_CHECK(gw_route_name(route.kind));
}

/* ---- authorities and addresses ---- */

static void host_run(struct span authority, struct span field) {
        static const char *names[] = {"shop.test", "127.0.0.1:8443", "[::1]"};
        const struct conf_gateway confs[] = {{.hosts = {names, NET_COUNT_OF(names)}},
                                             {.hosts_any = true}};
        const struct http_header header = {SPAN("host"), field, HTTP_FIELD_HOST};
        struct http_request q = {.authority = authority, .headers = &header, .n_headers = 1};
        q.at[HTTP_FIELD_HOST] = field.len > 0;
        for (size_t i = 0; i < NET_COUNT_OF(confs); i++) {
                char host[GW_HOST_TEXT_MAX];
                size_t len;
                int r = gw_host_of(&q, &confs[i], host, &len);
                FUZZ_CHECK(r >= 0 && r <= GW_HOST_FOREIGN && len < GW_HOST_TEXT_MAX);
                FUZZ_CHECK(r != GW_HOST_FOREIGN || !confs[i].hosts_any);
                for (size_t j = 0; r == GW_HOST_OURS && j < len; j++)
                        FUZZ_CHECK(host[j] < 'A' || host[j] > 'Z');
                FUZZ_CHECK(r != GW_HOST_OURS || (len > 0 && host[len - 1] != '.'));
        }
}

static void authority_run(struct span text) {
        struct gw_address a;
        char shown[GW_ADDRESS_TEXT_MAX];
        if (http_authority_is_clean(text)) {
                FUZZ_CHECK(text.len <= 255 && !memchr(text.p, '@', text.len) &&
                           !memchr(text.p, ',', text.len) && !memchr(text.p, '/', text.len));
        }
        if (!gw_address_parse(text, &a))
                return;
        struct gw_address again;
        size_t n = gw_address_text(&a, shown);
        FUZZ_CHECK(n < sizeof shown && shown[n] == '\0');
        FUZZ_CHECK(gw_address_parse((struct span){shown, n}, &again));
        FUZZ_CHECK(memcmp(&a, &again, sizeof a) == 0);
}

/* ---- fields ---- */

static void cookie_run(struct span cookies, struct span name) {
        struct span sale = gw_sale_id_is_good(name) ? name : SPAN("demo");
        struct span got = http_cookie(cookies, name);
        FUZZ_CHECK(is_inside(got, cookies));
        char *left = malloc(2 * cookies.len + 1);
        FUZZ_CHECK(left);
        size_t n = gw_cookie_strip(cookies, left);
        FUZZ_CHECK(n <= 2 * cookies.len);
        for (int kind = GW_COOKIE_TICKET; kind <= GW_COOKIE_GUEST; kind++) {
                got = gw_cookie_get(cookies, (enum gw_cookie)kind, sale);
                FUZZ_CHECK(is_inside(got, cookies));
                got = gw_cookie_get((struct span){left, n}, (enum gw_cookie)kind, sale);
                FUZZ_CHECK(!got.p);
        }
        free(left);
        (void)gw_cookie_is_ours(cookies);
}

static void fields_run(struct span text, struct span other) {
        FUZZ_CHECK(http_accept_q(text, SPAN("text/html")) <= 1000);
        FUZZ_CHECK(http_accept_q(text, SPAN("application/json")) <= 1000);
        bool matches = http_etag_matches(text, SPAN("\"0123456789abcdef\""));
        FUZZ_CHECK(!matches || text.len > 0);
        cookie_run(text, other);
        (void)http_method_of(text);
        enum http_field id = http_field_of(text);
        FUZZ_CHECK(id == HTTP_FIELD_UNKNOWN || span_eq(http_field_name(id), text));
}

/* Right to left through X-Forwarded-For. */
static void forwarded_run(struct span text) {
        struct conf_network ours = {.address = {[10] = 0xff, [11] = 0xff, [12] = 10}, .bits = 104};
        const struct conf_networks trusted = {&ours, 1};
        const union net_address peer = {
                .v4 = {.sin_family = AF_INET, .sin_addr = {htonl(0x0a000001)}}};
        const struct http_header header = {SPAN("x-forwarded-for"), text,
                                           HTTP_FIELD_X_FORWARDED_FOR};
        struct http_request q = {.headers = &header, .n_headers = 1};
        q.at[HTTP_FIELD_X_FORWARDED_FOR] = 1;
        struct gw_address a = gw_address_of_client(&peer, &q, &trusted);
        (void)gw_address_key(&a, 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size < 1)
                return 0;
        size_t cut = data[0] < size - 1 ? data[0] : size - 1;
        struct span all = fuzz_copy(data + 1, size - 1);
        struct span first = fuzz_copy(data + 1, cut);
        struct span second = fuzz_copy(data + 1 + cut, size - 1 - cut);
        path_run(all);
        host_run(all, (struct span){NULL, 0});
        host_run(first, second);
        authority_run(all);
        fields_run(all, first);
        fields_run(first, second);
        forwarded_run(all);
        free((void *)(uintptr_t)all.p);
        free((void *)(uintptr_t)first.p);
        free((void *)(uintptr_t)second.p);
        return 0;
}
