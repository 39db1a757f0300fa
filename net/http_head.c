#include "net/http_head.h"

#define FIELD_OVERHEAD 32
#define FIRST_CAPACITY 16

void http_head_init(struct http_head *h) {
        memset(h, 0, sizeof *h);
        h->request.content_length = -1;
}

static bool is_alnum(char c) {
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool same_host(struct span a, struct span b) {
        if (a.len != b.len)
                return false;
        for (size_t i = 0; i < a.len; i++) {
                char x = a.p[i];
                char y = b.p[i];
                if (x != y && !(is_alnum(x) && is_alnum(y) && (x | 0x20) == (y | 0x20)))
                        return false;
        }
        return true;
}

/* ---- adding ---- */

static void pseudo_set(struct http_head *h, struct span *to, struct arena *a, struct span value) {
        if (to->p)
                h->is_malformed = true;
        *to = arena_copy(a, value);
        if (!to->p)
                h->no_memory = true;
}

static void pseudo_add(struct http_head *h, struct arena *a, const struct http_field_seen *f) {
        struct http_request *r = &h->request;
        switch (f->pseudo) {
        case HTTP_PSEUDO_PATH:
                pseudo_set(h, &r->path, a, f->value);
                return;
        case HTTP_PSEUDO_METHOD:
                pseudo_set(h, &r->method_text, a, f->value);
                return;
        case HTTP_PSEUDO_SCHEME:
                pseudo_set(h, &r->scheme, a, f->value);
                return;
        case HTTP_PSEUDO_AUTHORITY:
                pseudo_set(h, &r->authority, a, f->value);
                return;
        case HTTP_PSEUDO_NONE:
        case HTTP_PSEUDO_UNKNOWN:
                break;
        }
        h->is_malformed = true;
}

static bool room_make(struct http_head *h, struct arena *a) {
        uint32_t capacity = h->capacity ? 2 * h->capacity : FIRST_CAPACITY;
        if (h->request.n_headers < h->capacity)
                return true;
        struct http_header *fresh = arena_take(a, capacity * sizeof *fresh);
        if (!fresh)
                return false;
        if (h->request.n_headers > 0)
                memcpy(fresh, h->headers, h->request.n_headers * sizeof *fresh);
        h->headers = fresh;
        h->capacity = capacity;
        return true;
}

static void content_length_set(struct http_head *h, struct span value) {
        int64_t n = 0;
        if (value.len == 0 || value.len > 18 || h->request.content_length >= 0) {
                h->is_malformed = true;
                return;
        }
        for (size_t i = 0; i < value.len; i++) {
                if (value.p[i] < '0' || value.p[i] > '9') {
                        h->is_malformed = true;
                        return;
                }
                n = n * 10 + (value.p[i] - '0');
        }
        h->request.content_length = n;
}

static bool is_kept(struct span name, enum http_field id, bool keep_unknown) {
        if (id != HTTP_FIELD_UNKNOWN)
                return true;
        /* An underscore and a dash are the same to some applications. */
        return keep_unknown && !memchr(name.p, '_', name.len);
}

static void field_add(struct http_head *h, struct arena *a, struct http_header field) {
        if (!room_make(h, a)) {
                h->no_memory = true;
                return;
        }
        field.name = field.id == HTTP_FIELD_UNKNOWN ? arena_copy(a, field.name)
                                                    : http_field_name(field.id);
        field.value = arena_copy(a, field.value);
        if (!field.name.p || !field.value.p) {
                h->no_memory = true;
                return;
        }
        if (field.id == HTTP_FIELD_COOKIE)
                h->crumbs++;
        h->headers[h->request.n_headers++] = field;
        if (h->request.at[field.id] == 0)
                h->request.at[field.id] = (uint8_t)h->request.n_headers;
}

static enum http_pseudo pseudo_of(struct span name) {
        switch (name.len) {
        case 5:
                return span_eq(name, SPAN(":path")) ? HTTP_PSEUDO_PATH : HTTP_PSEUDO_UNKNOWN;
        case 7:
                if (span_eq(name, SPAN(":method")))
                        return HTTP_PSEUDO_METHOD;
                return span_eq(name, SPAN(":scheme")) ? HTTP_PSEUDO_SCHEME : HTTP_PSEUDO_UNKNOWN;
        case 10:
                return span_eq(name, SPAN(":authority")) ? HTTP_PSEUDO_AUTHORITY
                                                         : HTTP_PSEUDO_UNKNOWN;
        default:
                return HTTP_PSEUDO_UNKNOWN;
        }
}

struct http_field_seen http_field_see(struct span name, struct span value) {
        struct http_field_seen f = {.name = name, .value = value};
        if (name.len > 0 && name.p[0] == ':')
                f.pseudo = pseudo_of(name);
        else
                f.id = http_field_of(name);
        return f;
}

void http_head_add(struct http_head *h, struct arena *a, const struct http_head_limits *limits,
                   const struct http_field_seen *f) {
        h->fields += f->pseudo == HTTP_PSEUDO_NONE;
        h->bytes += (uint32_t)(f->name.len + f->value.len + FIELD_OVERHEAD);
        if (h->over_budget || h->no_memory)
                return;
        if (h->fields > limits->fields || h->fields > HTTP_HEAD_FIELDS_MAX ||
            h->bytes > limits->bytes) {
                h->over_budget = true;
                return;
        }
        if (f->pseudo != HTTP_PSEUDO_NONE) {
                pseudo_add(h, a, f);
                return;
        }
        if (f->id == HTTP_FIELD_CONTENT_LENGTH)
                content_length_set(h, f->value);
        if (f->id == HTTP_FIELD_HOST && h->request.at[HTTP_FIELD_HOST] != 0)
                h->is_malformed = true;
        if (is_kept(f->name, f->id, limits->keep_unknown))
                field_add(h, a, (struct http_header){f->name, f->value, f->id});
}

/* ---- judging ---- */

/* RFC 9113, 8.2.3: the crumbs become one value, at the place of the first. */
static bool cookies_merge(struct http_head *h, struct arena *a) {
        size_t first = h->request.at[HTTP_FIELD_COOKIE] - 1u;
        size_t len = 0;
        for (size_t i = first; i < h->request.n_headers; i++) {
                if (h->headers[i].id == HTTP_FIELD_COOKIE)
                        len += h->headers[i].value.len + 2;
        }
        char *to = arena_take(a, len);
        if (!to)
                return false;
        size_t at = 0;
        size_t kept = first;
        for (size_t i = first; i < h->request.n_headers; i++) {
                struct http_header field = h->headers[i];
                if (field.id != HTTP_FIELD_COOKIE) {
                        h->headers[kept++] = field;
                        continue;
                }
                if (i == first)
                        kept++;
                memcpy(to + at, field.value.p, field.value.len);
                memcpy(to + at + field.value.len, "; ", 2);
                at += field.value.len + 2;
        }
        h->headers[first].value = (struct span){to, at - 2};
        h->request.n_headers = kept;
        memset(h->request.at, 0, sizeof h->request.at);
        for (size_t i = kept; i-- > 0;)
                h->request.at[h->headers[i].id] = (uint8_t)(i + 1);
        return true;
}

static bool target_is_good(struct http_request *r, bool is_tls) {
        struct span scheme = is_tls ? SPAN("https") : SPAN("http");
        struct span host = http_request_field(r, HTTP_FIELD_HOST);
        if (!span_eq(r->scheme, scheme))
                return false;
        if (!r->authority.p)
                r->authority = host;
        else if (host.p && !same_host(host, r->authority))
                return false;
        return r->authority.p && http_authority_is_clean(r->authority) && r->path.p &&
               http_target_is_clean(r->path);
}

static int judge(struct http_head *h, struct arena *a, bool is_tls) {
        struct http_request *r = &h->request;
        r->at[HTTP_FIELD_UNKNOWN] = 0;
        r->headers = h->headers;
        r->method = r->method_text.p ? http_method_of(r->method_text) : HTTP_METHOD_OTHER;
        if (h->over_budget)
                return HTTP_HEAD_TOO_LARGE;
        if (h->no_memory || (h->crumbs > 1 && !cookies_merge(h, a)))
                return HTTP_HEAD_NO_MEMORY;
        if (h->is_malformed || !r->method_text.p)
                return HTTP_HEAD_MALFORMED;
        if (span_eq(r->method_text, SPAN("CONNECT")))
                return HTTP_HEAD_METHOD;
        return target_is_good(r, is_tls) ? HTTP_HEAD_GOOD : HTTP_HEAD_MALFORMED;
}

int http_head_end(struct http_head *h, struct arena *a, bool is_tls, bool has_body) {
        if (!h->is_judged) {
                h->request.has_body = has_body;
                h->outcome = judge(h, a, is_tls);
                h->is_judged = true;
        }
        return h->outcome;
}

bool http_head_copy(struct http_head *to, struct arena *a, const struct http_head *from) {
        struct http_request *r = &to->request;
        struct http_header *headers =
                arena_take(a, (from->request.n_headers + 1) * sizeof *headers);
        assert(from->is_judged && from->outcome == HTTP_HEAD_GOOD);
        if (!headers)
                return false;
        *to = *from;
        to->headers = headers;
        to->capacity = (uint32_t)r->n_headers;
        r->headers = headers;
        r->method_text = arena_copy(a, from->request.method_text);
        r->scheme = arena_copy(a, from->request.scheme);
        r->authority = arena_copy(a, from->request.authority);
        r->path = arena_copy(a, from->request.path);
        bool is_whole = r->method_text.p && r->scheme.p && r->authority.p && r->path.p;
        for (size_t i = 0; i < r->n_headers && is_whole; i++) {
                struct http_header h = from->headers[i];
                h.name = h.id == HTTP_FIELD_UNKNOWN ? arena_copy(a, h.name) : h.name;
                h.value = arena_copy(a, h.value);
                is_whole = h.name.p && h.value.p;
                headers[i] = h;
        }
        return is_whole;
}
