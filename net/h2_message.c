#include "net/h2_message.h"

#include <nghttp2/nghttp2.h>

enum {
        SEEN_METHOD = 1,
        SEEN_SCHEME = 2,
        SEEN_AUTHORITY = 4,
        SEEN_PATH = 8,
        SEEN_HOST = 16,
        SEEN_REGULAR = 32,      /* a field that is no pseudo-field */
        SEEN_CONNECT = 64,      /* the method */
        SEEN_OPTIONS = 128,     /* the method */
        SEEN_ASTERISK = 256,    /* the path */
        SEEN_SLASH_PATH = 512,  /* the path begins with it */
        SEEN_HTTP_SCHEME = 1024 /* http or https */
};

void h2_message_init(struct h2_message *m) {
        *m = (struct h2_message){.length = -1};
}

static const uint8_t *bytes_of(struct span s) {
        return (const uint8_t *)s.p;
}

static bool is_letter(char c) {
        return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* RFC 3986, 3.1. */
static bool is_scheme(struct span s) {
        if (s.len == 0 || !is_letter(s.p[0]))
                return false;
        for (size_t i = 1; i < s.len; i++) {
                char c = s.p[i];
                if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '+' && c != '-' && c != '.')
                        return false;
        }
        return true;
}

/* Marks something that may come once and may not be empty. */
static void once(struct h2_message *m, unsigned what, struct span value) {
        if ((m->seen & what) || value.len == 0)
                m->is_malformed = true;
        m->seen |= what;
}

static void method_take(struct h2_message *m, struct span value) {
        once(m, SEEN_METHOD, value);
        if (!nghttp2_check_method(bytes_of(value), value.len))
                m->is_malformed = true;
        if (span_eq(value, SPAN("CONNECT")))
                m->seen |= SEEN_CONNECT;
        else if (span_eq(value, SPAN("OPTIONS")))
                m->seen |= SEEN_OPTIONS;
}

static void path_take(struct h2_message *m, struct span value) {
        once(m, SEEN_PATH, value);
        if (!span_is_visible(value, 0x21) && !nghttp2_check_path(bytes_of(value), value.len))
                m->is_malformed = true;
        if (value.len > 0 && value.p[0] == '/')
                m->seen |= SEEN_SLASH_PATH;
        else if (span_eq(value, SPAN("*")))
                m->seen |= SEEN_ASTERISK;
}

static void scheme_take(struct h2_message *m, struct span value) {
        once(m, SEEN_SCHEME, value);
        if (!is_scheme(value))
                m->is_malformed = true;
        if (span_eq(value, SPAN("https")) || span_eq(value, SPAN("http")))
                m->seen |= SEEN_HTTP_SCHEME;
}

static void authority_take(struct h2_message *m, unsigned what, struct span value) {
        once(m, what, value);
        if (!http_authority_is_clean(value) && !nghttp2_check_authority(bytes_of(value), value.len))
                m->is_malformed = true;
}

static void pseudo_take(struct h2_message *m, const struct http_field_seen *f) {
        if (m->seen & SEEN_REGULAR)
                m->is_malformed = true;
        switch (f->pseudo) {
        case HTTP_PSEUDO_PATH:
                path_take(m, f->value);
                return;
        case HTTP_PSEUDO_METHOD:
                method_take(m, f->value);
                return;
        case HTTP_PSEUDO_SCHEME:
                scheme_take(m, f->value);
                return;
        case HTTP_PSEUDO_AUTHORITY:
                authority_take(m, SEEN_AUTHORITY, f->value);
                return;
        case HTTP_PSEUDO_NONE:
        case HTTP_PSEUDO_UNKNOWN:
                break;
        }
        m->is_malformed = true;
}

static void length_take(struct h2_message *m, struct span value) {
        int64_t n = 0;
        if (m->length >= 0 || value.len == 0 || value.len > 18) {
                m->is_malformed = true;
                return;
        }
        for (size_t i = 0; i < value.len; i++) {
                if (value.p[i] < '0' || value.p[i] > '9') {
                        m->is_malformed = true;
                        return;
                }
                n = n * 10 + (value.p[i] - '0');
        }
        m->length = n;
}

/* Fields that belong to one connection of HTTP/1.1 (8.2.2). */
static bool is_connection_field(const struct http_field_seen *f) {
        if (f->id != HTTP_FIELD_UNKNOWN)
                return f->id == HTTP_FIELD_CONNECTION || f->id == HTTP_FIELD_TRANSFER_ENCODING;
        return span_eq(f->name, SPAN("upgrade")) || span_eq(f->name, SPAN("keep-alive")) ||
               span_eq(f->name, SPAN("proxy-connection"));
}

/* The only value of TE, in any case (8.2.2). */
static bool is_trailers(struct span value) {
        static const char want[] = "trailers";
        if (value.len != sizeof want - 1)
                return false;
        for (size_t i = 0; i < value.len; i++) {
                if ((value.p[i] | 0x20) != want[i])
                        return false;
        }
        return true;
}

/* The library's question, and the answer for nearly all that comes. */
static bool is_value(struct span v) {
        bool is_plain = span_is_visible(v, 0x20) &&
                        (v.len == 0 || (v.p[0] != ' ' && v.p[v.len - 1] != ' '));
        return is_plain || nghttp2_check_header_value_rfc9113(bytes_of(v), v.len);
}

static bool is_field(const struct http_field_seen *f) {
        bool is_name = f->id != HTTP_FIELD_UNKNOWN ||
                       nghttp2_check_header_name(bytes_of(f->name), f->name.len);
        if (!is_name || f->pseudo != HTTP_PSEUDO_NONE || !is_value(f->value) ||
            is_connection_field(f))
                return false;
        return f->id != HTTP_FIELD_TE || is_trailers(f->value);
}

void h2_message_field(struct h2_message *m, const struct http_field_seen *f) {
        if (f->pseudo != HTTP_PSEUDO_NONE) {
                pseudo_take(m, f);
                return;
        }
        m->seen |= SEEN_REGULAR;
        if (!is_field(f))
                m->is_malformed = true;
        else if (f->id == HTTP_FIELD_HOST)
                authority_take(m, SEEN_HOST, f->value);
        else if (f->id == HTTP_FIELD_CONTENT_LENGTH)
                length_take(m, f->value);
}

static bool is_complete(const struct h2_message *m) {
        unsigned seen = m->seen;
        const unsigned all = SEEN_METHOD | SEEN_SCHEME | SEEN_PATH;
        if (seen & SEEN_CONNECT)
                return (seen & SEEN_AUTHORITY) && !(seen & (SEEN_SCHEME | SEEN_PATH));
        if ((seen & all) != all || !(seen & (SEEN_AUTHORITY | SEEN_HOST)))
                return false;
        bool is_asterisk = (seen & SEEN_OPTIONS) && (seen & SEEN_ASTERISK);
        return !(seen & SEEN_HTTP_SCHEME) || (seen & SEEN_SLASH_PATH) || is_asterisk;
}

void h2_message_head(struct h2_message *m, bool end) {
        if (!is_complete(m))
                m->is_malformed = true;
        if (end)
                h2_message_end(m);
}

void h2_message_body(struct h2_message *m, size_t n) {
        m->received += n;
        if (m->length >= 0 && m->received > (uint64_t)m->length)
                m->is_malformed = true;
}

void h2_message_trailer(struct h2_message *m, const struct http_field_seen *f) {
        if (!is_field(f))
                m->is_malformed = true;
}

void h2_message_end(struct h2_message *m) {
        if (m->length >= 0 && m->received != (uint64_t)m->length)
                m->is_malformed = true;
}
