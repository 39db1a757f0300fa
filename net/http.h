/* net/http.h - what a request and a header list are, for servers and clients
 * alike. It knows no frames and no sockets.
 *
 * Field names are lower case. Known names have an id (the table below); a
 * server may be told to keep unknown ones too (the origin does, the gateway
 * does not: what is not on the list never leaves it).
 *
 * Ownership  spans of a request live as long as the request.
 * Source     RFC 9110; RFC 9113 section 8 for the pseudo-fields.
 */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include "net/base.h"

enum http_method {
        HTTP_GET,
        HTTP_HEAD,
        HTTP_POST,
        HTTP_PUT,
        HTTP_PATCH,
        HTTP_DELETE,
        HTTP_OPTIONS,
        HTTP_METHOD_OTHER,
};

/* FORWARD: passes through the gateway to an application behind it. */
#define HTTP_FIELD_TABLE(X)                                                                        \
        X(ACCEPT, "accept", true)                                                                  \
        X(ACCEPT_ENCODING, "accept-encoding", true)                                                \
        X(ACCEPT_LANGUAGE, "accept-language", true)                                                \
        X(AUTHORIZATION, "authorization", true)                                                    \
        X(CACHE_CONTROL, "cache-control", true)                                                    \
        X(CONNECTION, "connection", false)                                                         \
        X(CONTENT_ENCODING, "content-encoding", true)                                              \
        X(CONTENT_LANGUAGE, "content-language", true)                                              \
        X(CONTENT_LENGTH, "content-length", false)                                                 \
        X(CONTENT_TYPE, "content-type", true)                                                      \
        X(COOKIE, "cookie", true)                                                                  \
        X(DATE, "date", false)                                                                     \
        X(DNT, "dnt", true)                                                                        \
        X(EXPECT, "expect", false)                                                                 \
        X(FORWARDED, "forwarded", false)                                                           \
        X(HOST, "host", false)                                                                     \
        X(IDEMPOTENCY_KEY, "idempotency-key", true)                                                \
        X(IF_MATCH, "if-match", true)                                                              \
        X(IF_MODIFIED_SINCE, "if-modified-since", true)                                            \
        X(IF_NONE_MATCH, "if-none-match", true)                                                    \
        X(IF_RANGE, "if-range", true)                                                              \
        X(IF_UNMODIFIED_SINCE, "if-unmodified-since", true)                                        \
        X(LAST_EVENT_ID, "last-event-id", true)                                                    \
        X(ORIGIN, "origin", true)                                                                  \
        X(PRAGMA, "pragma", true)                                                                  \
        X(PREFER, "prefer", true)                                                                  \
        X(PURPOSE, "purpose", true)                                                                \
        X(RANGE, "range", true)                                                                    \
        X(REFERER, "referer", true)                                                                \
        X(SAVE_DATA, "save-data", true)                                                            \
        X(SEC_CH_UA, "sec-ch-ua", true)                                                            \
        X(SEC_CH_UA_MOBILE, "sec-ch-ua-mobile", true)                                              \
        X(SEC_CH_UA_PLATFORM, "sec-ch-ua-platform", true)                                          \
        X(SEC_FETCH_DEST, "sec-fetch-dest", true)                                                  \
        X(SEC_FETCH_MODE, "sec-fetch-mode", true)                                                  \
        X(SEC_FETCH_SITE, "sec-fetch-site", true)                                                  \
        X(SEC_FETCH_USER, "sec-fetch-user", true)                                                  \
        X(SEC_PURPOSE, "sec-purpose", true)                                                        \
        X(SLUICE_ACCOUNT, "sluice-account", false)                                                 \
        X(SLUICE_PASS, "sluice-pass", false)                                                       \
        X(SLUICE_REPLAY_ONLY, "sluice-replay-only", false)                                         \
        X(SLUICE_SALE, "sluice-sale", false)                                                       \
        X(SLUICE_TICKET, "sluice-ticket", false)                                                   \
        X(TE, "te", false)                                                                         \
        X(TRACEPARENT, "traceparent", false)                                                       \
        X(TRANSFER_ENCODING, "transfer-encoding", false)                                           \
        X(UPGRADE_INSECURE_REQUESTS, "upgrade-insecure-requests", true)                            \
        X(USER_AGENT, "user-agent", true)                                                          \
        X(X_CSRF_TOKEN, "x-csrf-token", true)                                                      \
        X(X_FORWARDED_FOR, "x-forwarded-for", false)                                               \
        X(X_FORWARDED_HOST, "x-forwarded-host", false)                                             \
        X(X_FORWARDED_PROTO, "x-forwarded-proto", false)                                           \
        X(X_REQUESTED_WITH, "x-requested-with", true)

enum http_field {
        HTTP_FIELD_UNKNOWN,
#define X(id, name, forward) HTTP_FIELD_##id,
        HTTP_FIELD_TABLE(X)
#undef X
                HTTP_FIELD_COUNT,
};

struct http_header {
        struct span name;
        struct span value;
        enum http_field id; /* set by servers; need not be set for output */
};

struct http_request {
        enum http_method method;
        struct span method_text;
        struct span scheme;
        struct span authority;             /* from :authority, else Host */
        struct span path;                  /* as sent, with the query */
        const struct http_header *headers; /* in order, cookies merged by "; " */
        size_t n_headers;
        uint8_t at[HTTP_FIELD_COUNT]; /* 1 + index of the first such header, 0 none */
        int64_t content_length;       /* -1 when not given */
        bool has_body;                /* more than the head was announced */
};

/* The first value of a known field; {NULL, 0} when the field is missing (a
 * present but empty field has p != NULL). */
static inline struct span http_request_field(const struct http_request *r, enum http_field id) {
        return r->at[id] ? r->headers[r->at[id] - 1].value : (struct span){NULL, 0};
}

/* Given more than once, so that which value counts could only be guessed. */
static inline bool http_request_has_two(const struct http_request *r, enum http_field id) {
        size_t n = 0;
        for (size_t i = r->at[id] ? r->at[id] - 1u : r->n_headers; i < r->n_headers; i++)
                n += r->headers[i].id == id;
        return n > 1;
}

/* HTTP_FIELD_UNKNOWN for names not in the table. `name` is lower case. */
enum http_field http_field_of(struct span name);
struct span http_field_name(enum http_field id);
/* True where the table lets the field pass to an application behind. */
bool http_field_is_forwarded(enum http_field id);

enum http_method http_method_of(struct span text);
struct span http_method_name(enum http_method m);

/* False for a path that two programs could read differently: not starting
 * with "/", or, before the first "?", a control byte, space, "#", "\\", 0x7F
 * or above, an empty or dot segment ("//", "/./", "/..;x", "/.." at the end), a
 * broken "%" escape, or one of ".", "/", "\\", "%", ";" or a control byte. */
bool http_path_is_clean(struct span path);
/* And nothing but visible ASCII without "#" behind the "?". */
bool http_target_is_clean(struct span path);
/* A host and perhaps a port, by characters alone. */
bool http_authority_is_clean(struct span authority);

/* The value of cookie `name` in a merged Cookie value, quotes taken off; p is
 * NULL when there is none. Crumbs may be parted by ";" with or without spaces. */
struct span http_cookie(struct span cookies, struct span name);

/* The q-value, 0..1000, that an Accept value gives a media type ("text/html"),
 * by the most specific matching range (RFC 9110, 12.5.1); parameters beside q
 * only make a range yield to one without. A missing or empty value accepts all;
 * a range with a broken q is as if it were not there. */
unsigned http_accept_q(struct span accept, struct span type);

/* True if an If-None-Match value names `etag` (weak comparison, RFC 9110,
 * 13.1.2), "*" included. `etag` comes with its quotes. */
bool http_etag_matches(struct span if_none_match, struct span etag);

#endif
