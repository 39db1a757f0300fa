/* net/http_head.h - a request's head put together from fields as they are
 * decoded, under a budget, and judged when it is complete.
 *
 * Both sessions use it. Fields nobody may see are dropped at once; a head over
 * its budget stores nothing from then on (decoding goes on, because header
 * compression is shared by the streams of a connection).
 *
 * Units      bytes; a field costs name + value + 32.
 * Ownership  a value to embed; what it stores lives in the arena given.
 * Source     RFC 9113 section 8, RFC 9110.
 */
#ifndef NET_HTTP_HEAD_H
#define NET_HTTP_HEAD_H

#include "net/http.h"
#include "net/pool.h"

struct http_head_limits {
        uint32_t fields; /* at most HTTP_HEAD_FIELDS_MAX; crumbs one by one */
        uint32_t bytes;
        bool keep_unknown;
};

#define HTTP_HEAD_FIELDS_MAX 250

struct http_head {
        struct http_request request; /* complete after http_head_end() */
        struct http_header *headers;
        uint32_t capacity;
        uint32_t fields; /* seen, without pseudo-fields */
        uint32_t bytes;  /* seen, by their cost */
        uint16_t crumbs; /* Cookie fields */
        bool over_budget;
        bool is_malformed;
        bool no_memory;
        bool is_judged;
        int outcome; /* of that, enum http_head_outcome */
};

enum http_head_outcome {
        HTTP_HEAD_GOOD = 0,
        HTTP_HEAD_MALFORMED = 400,
        HTTP_HEAD_METHOD = 405, /* CONNECT */
        HTTP_HEAD_TOO_LARGE = 431,
        HTTP_HEAD_NO_MEMORY = 503,
};

enum http_pseudo {
        HTTP_PSEUDO_NONE, /* an ordinary field */
        HTTP_PSEUDO_METHOD,
        HTTP_PSEUDO_SCHEME,
        HTTP_PSEUDO_AUTHORITY,
        HTTP_PSEUDO_PATH,
        HTTP_PSEUDO_UNKNOWN,
};

/* A field as it came, looked up once. */
struct http_field_seen {
        struct span name; /* in lower case */
        struct span value;
        enum http_field id;
        enum http_pseudo pseudo;
};

struct http_field_seen http_field_see(struct span name, struct span value);

void http_head_init(struct http_head *h);
void http_head_add(struct http_head *h, struct arena *a, const struct http_head_limits *limits,
                   const struct http_field_seen *f);
/* Judges it, merges cookies, fills `request`; enum http_head_outcome. Asked
 * again, it gives the same answer. */
NET_MUST int http_head_end(struct http_head *h, struct arena *a, bool is_tls, bool has_body);
/* A copy of a head judged good, its bytes in `a`; false without memory. */
NET_MUST bool http_head_copy(struct http_head *to, struct arena *a, const struct http_head *from);

#endif
