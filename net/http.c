#include "net/http.h"

struct field {
        struct span name;
        bool forward;
};

static const struct field fields[HTTP_FIELD_COUNT] = {
#define X(id, text, forward_)                                                                      \
        [HTTP_FIELD_##id] = {.name = {text, sizeof(text) - 1}, .forward = forward_},
        HTTP_FIELD_TABLE(X)
#undef X
};

/* Open addressing over four characters of a name; filled before main. A slot
 * holds an enum http_field, 0 is free. */
#define FIELD_SLOTS 256
static uint8_t field_slot[FIELD_SLOTS];

_Static_assert(HTTP_FIELD_COUNT < FIELD_SLOTS / 4, "the table stays sparse");

static unsigned field_hash(struct span name) {
        const unsigned char *p = (const unsigned char *)name.p;
        unsigned h = (unsigned)name.len;

        h = h * 31 + p[0];
        h = h * 31 + p[name.len / 2];
        h = h * 31 + p[name.len - 1];
        h = h * 31 + p[name.len * 3 / 4];
        return (h ^ (h >> 8)) % FIELD_SLOTS;
}

__attribute__((constructor)) static void fill_field_slots(void) {
        for (unsigned id = 1; id < HTTP_FIELD_COUNT; id++) {
                unsigned at = field_hash(fields[id].name);

                while (field_slot[at])
                        at = (at + 1) % FIELD_SLOTS;
                field_slot[at] = (uint8_t)id;
        }
}

enum http_field http_field_of(struct span name) {
        if (name.len == 0)
                return HTTP_FIELD_UNKNOWN;
        for (unsigned at = field_hash(name); field_slot[at]; at = (at + 1) % FIELD_SLOTS)
                if (span_eq(fields[field_slot[at]].name, name))
                        return (enum http_field)field_slot[at];
        return HTTP_FIELD_UNKNOWN;
}

struct span http_field_name(enum http_field id) {
        assert(id > HTTP_FIELD_UNKNOWN && id < HTTP_FIELD_COUNT);
        return fields[id].name;
}

bool http_field_is_forwarded(enum http_field id) {
        assert(id < HTTP_FIELD_COUNT);
        return fields[id].forward;
}

static const struct span methods[HTTP_METHOD_OTHER] = {
        [HTTP_GET] = {"GET", 3},         [HTTP_HEAD] = {"HEAD", 4},   [HTTP_POST] = {"POST", 4},
        [HTTP_PUT] = {"PUT", 3},         [HTTP_PATCH] = {"PATCH", 5}, [HTTP_DELETE] = {"DELETE", 6},
        [HTTP_OPTIONS] = {"OPTIONS", 7},
};

enum http_method http_method_of(struct span text) {
        for (unsigned m = 0; m < HTTP_METHOD_OTHER; m++)
                if (span_eq(methods[m], text))
                        return (enum http_method)m;
        return HTTP_METHOD_OTHER;
}

struct span http_method_name(enum http_method m) {
        assert(m < HTTP_METHOD_OTHER);
        return methods[m];
}

static bool is_blank(char c) {
        return c == ' ' || c == '\t';
}

static struct span trimmed(struct span s) {
        while (s.len && is_blank(s.p[0])) {
                s.p++;
                s.len--;
        }
        while (s.len && is_blank(s.p[s.len - 1]))
                s.len--;
        return s;
}

/* Cuts the part before `mark` off the front of `*rest`, the mark with it. A
 * mark inside double quotes does not count when `quoted` is set. */
static struct span cut(struct span *rest, char mark, bool quoted) {
        bool in_quotes = false;
        struct span part;
        size_t i;

        for (i = 0; i < rest->len; i++) {
                char c = rest->p[i];

                if (in_quotes && c == '\\')
                        i++;
                else if (quoted && c == '"')
                        in_quotes = !in_quotes;
                else if (c == mark && !in_quotes)
                        break;
        }
        if (i > rest->len)
                i = rest->len;
        part = (struct span){rest->p, i};
        i += i < rest->len;
        *rest = (struct span){rest->p + i, rest->len - i};
        return part;
}

static char lower(char c) {
        return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool same_ignoring_case(struct span a, struct span b) {
        if (a.len != b.len)
                return false;
        for (size_t i = 0; i < a.len; i++)
                if (lower(a.p[i]) != lower(b.p[i]))
                        return false;
        return true;
}

static int hex_value(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

/* The byte a "%xx" at the front of `s` stands for, -1 when it is broken. */
static int escaped_byte(struct span s) {
        int high, low;

        if (s.len < 3)
                return -1;
        high = hex_value(s.p[1]);
        low = hex_value(s.p[2]);
        return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Plain when no decoder, however often it runs, could make structure of it. */
static bool is_clean_escape(struct span s) {
        int byte = escaped_byte(s);

        return byte >= 0x20 && byte != 0x7f && byte != '.' && byte != '/' && byte != '\\' &&
               byte != '%' && byte != ';';
}

/* `s` begins after a "/". Some servers cut parameters off a segment before
 * they resolve dots, so "..;x" is a dot segment too. */
static bool is_odd_segment(struct span s) {
        size_t dots = 0;

        if (s.len && s.p[0] == '/')
                return true;
        while (dots < s.len && dots < 2 && s.p[dots] == '.')
                dots++;
        if (dots == 0)
                return false;
        return dots == s.len || s.p[dots] == '/' || s.p[dots] == ';' || s.p[dots] == '?';
}

enum path_byte { BYTE_PLAIN, BYTE_BAD, BYTE_SLASH, BYTE_ESCAPE, BYTE_QUERY };

static const uint8_t path_bytes[256] = {
        [0 ... ' '] = BYTE_BAD, ['#'] = BYTE_BAD,  ['%'] = BYTE_ESCAPE,        ['/'] = BYTE_SLASH,
        ['?'] = BYTE_QUERY,     ['\\'] = BYTE_BAD, [0x7f ... 0xff] = BYTE_BAD,
};

/* The length of the part before the first "?", -1 when it is not clean. */
static ptrdiff_t clean_path_len(struct span path) {
        if (path.len == 0 || path.p[0] != '/')
                return -1;
        for (size_t i = 0; i < path.len; i++) {
                struct span rest = {path.p + i, path.len - i};

                switch ((enum path_byte)path_bytes[(unsigned char)path.p[i]]) {
                case BYTE_PLAIN:
                        break;
                case BYTE_BAD:
                        return -1;
                case BYTE_SLASH:
                        if (is_odd_segment((struct span){rest.p + 1, rest.len - 1}))
                                return -1;
                        break;
                case BYTE_ESCAPE:
                        if (!is_clean_escape(rest))
                                return -1;
                        break;
                case BYTE_QUERY:
                        return (ptrdiff_t)i;
                }
        }
        return (ptrdiff_t)path.len;
}

bool http_path_is_clean(struct span path) {
        return clean_path_len(path) >= 0;
}

bool http_target_is_clean(struct span path) {
        ptrdiff_t len = clean_path_len(path);

        if (len < 0)
                return false;
        path = (struct span){path.p + len, path.len - (size_t)len};
        return span_is_visible(path, 0x21) && (path.len == 0 || !memchr(path.p, '#', path.len));
}

static const bool authority_bytes[256] = {
        ['0' ... '9'] = true, ['a' ... 'z'] = true, ['A' ... 'Z'] = true,
        ['.'] = true,         ['-'] = true,         [':'] = true,
        ['_'] = true,         ['['] = true,         [']'] = true,
};

bool http_authority_is_clean(struct span authority) {
        for (size_t i = 0; i < authority.len; i++)
                if (!authority_bytes[(unsigned char)authority.p[i]])
                        return false;
        return authority.len > 0 && authority.len <= 255;
}

static struct span unquoted(struct span s) {
        if (s.len >= 2 && s.p[0] == '"' && s.p[s.len - 1] == '"')
                return (struct span){s.p + 1, s.len - 2};
        return s;
}

struct span http_cookie(struct span cookies, struct span name) {
        while (cookies.len) {
                struct span crumb = cut(&cookies, ';', false);
                const char *sign = crumb.len ? memchr(crumb.p, '=', crumb.len) : NULL;
                size_t key_len = sign ? (size_t)(sign - crumb.p) : 0;

                if (sign && span_eq(trimmed((struct span){crumb.p, key_len}), name))
                        return unquoted(trimmed((struct span){sign + 1, crumb.len - key_len - 1}));
        }
        return (struct span){NULL, 0};
}

/* qvalue = "0" [ "." 0*3DIGIT ] / "1" [ "." 0*3"0" ]; -1 when it is not one. */
static int parse_q(struct span s) {
        int q, unit = 100;

        if (s.len < 1 || s.len > 5 || (s.p[0] != '0' && s.p[0] != '1'))
                return -1;
        q = (s.p[0] - '0') * 1000;
        if (s.len > 1 && s.p[1] != '.')
                return -1;
        for (size_t i = 2; i < s.len; i++, unit /= 10) {
                if (s.p[i] < '0' || s.p[i] > '9')
                        return -1;
                q += (s.p[i] - '0') * unit;
        }
        return q <= 1000 ? q : -1;
}

/* How well a media range fits `type`: 0 not, then "*" "/" "*", "type/" "*", the
 * type with parameters, the type. */
static unsigned range_fit(struct span range, struct span type, bool has_params) {
        struct span main;

        if (span_eq(range, SPAN("*/*")))
                return 1;
        if (same_ignoring_case(range, type))
                return has_params ? 3 : 4;
        main = cut(&type, '/', false);
        if (range.len != main.len + 2 || memcmp(range.p + main.len, "/*", 2) != 0)
                return 0;
        range.len = main.len;
        return same_ignoring_case(range, main) ? 2 : 0;
}

/* Reads the parameters of one range; q -1 when it has a broken one. */
static int range_q(struct span params, bool *has_params) {
        int q = 1000;

        *has_params = false;
        while (params.len) {
                struct span value = cut(&params, ';', true);
                struct span key = trimmed(cut(&value, '=', true));

                if (same_ignoring_case(key, SPAN("q")))
                        return parse_q(trimmed(value));
                *has_params |= key.len > 0;
        }
        return q;
}

unsigned http_accept_q(struct span accept, struct span type) {
        unsigned best_fit = 0;
        int best_q = 0;

        if (trimmed(accept).len == 0)
                return 1000;
        while (accept.len) {
                struct span params = cut(&accept, ',', true);
                struct span range = trimmed(cut(&params, ';', true));
                bool has_params;
                int q = range_q(params, &has_params);
                unsigned fit = range_fit(range, type, has_params);

                if (q < 0 || fit == 0 || fit < best_fit)
                        continue;
                if (fit > best_fit || q > best_q)
                        best_q = q;
                best_fit = fit;
        }
        return (unsigned)best_q;
}

static struct span opaque_tag(struct span etag) {
        if (span_starts(etag, SPAN("W/")))
                return (struct span){etag.p + 2, etag.len - 2};
        return etag;
}

bool http_etag_matches(struct span list, struct span etag) {
        list = trimmed(list);
        if (span_eq(list, SPAN("*")))
                return true;
        etag = opaque_tag(etag);
        while (list.len) {
                struct span tag = opaque_tag(list);
                const char *close;

                if (list.p[0] == ',' || is_blank(list.p[0])) {
                        list = (struct span){list.p + 1, list.len - 1};
                        continue;
                }
                if (tag.len < 2 || tag.p[0] != '"')
                        return false;
                close = memchr(tag.p + 1, '"', tag.len - 1);
                if (!close)
                        return false;
                list = (struct span){close + 1, (size_t)(tag.p + tag.len - close - 1)};
                tag.len = (size_t)(close + 1 - tag.p);
                if (span_eq(tag, etag))
                        return true;
        }
        return false;
}
