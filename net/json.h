/* net/json.h - JSON written into a caller's buffer, and request bodies read
 * strictly.
 *
 * Writing: `struct json_out` never allocates. Each call takes the member's
 * name, or NULL inside an array and at the top. The first thing that does not
 * fit sets `overflow`, which stays; nothing after it is written. Commas are
 * its own business.
 *
 * Reading: `struct json_body` wraps one object of jansson. The first fault
 * stays in `error`, a sentence such as "field `qty`: expected an integer
 * 1..100"; later calls then do nothing. Names that nobody asked for are a
 * fault found by json_body_finish.
 *
 * Ownership  json_out borrows the buffer. json_body_open owns a parsed tree
 *            until json_body_close; spans it gives out live as long.
 * Context    any thread, one at a time.
 */
#ifndef NET_JSON_H
#define NET_JSON_H

#include <jansson.h>

#include "net/base.h"

struct json_out {
        char *p;       /* the caller's buffer */
        size_t cap;    /* its size, bytes */
        size_t len;    /* written so far */
        bool overflow; /* something did not fit: the text is unusable */
        bool comma;    /* the next value needs a comma before it */
};

void json_out_init(struct json_out *o, char *buffer, size_t cap);

void json_out_object(struct json_out *o, const char *name);
void json_out_object_end(struct json_out *o);
void json_out_array(struct json_out *o, const char *name);
void json_out_array_end(struct json_out *o);

/* Quotes and escapes. Bytes that are no UTF-8 become U+FFFD; a span whose
 * pointer is NULL, and a NULL text, become null. */
void json_out_str(struct json_out *o, const char *name, struct span value);
void json_out_text(struct json_out *o, const char *name, const char *value);
void json_out_int(struct json_out *o, const char *name, int64_t value);
void json_out_uint(struct json_out *o, const char *name, uint64_t value);
/* Up to `decimals` (0..9) digits behind the point; not finite becomes null. */
void json_out_real(struct json_out *o, const char *name, double value, int decimals);
void json_out_bool(struct json_out *o, const char *name, bool value);
void json_out_null(struct json_out *o, const char *name);
/* RFC 3339 in UTC; JSON_NO_TIME becomes null. */
void json_out_time(struct json_out *o, const char *name, int64_t at_ms);
/* A value that is JSON already. */
void json_out_raw(struct json_out *o, const char *name, struct span json);
/* A tree of jansson, written compactly. */
void json_out_tree(struct json_out *o, const char *name, const json_t *tree);

#define JSON_NO_TIME INT64_MIN

/* The text, or a span with NULL and 0 after an overflow. */
struct span json_out_done(const struct json_out *o);

/* ---- reading ---- */

#define JSON_DEPTH_MAX 16  /* nested objects and arrays in a body */
#define JSON_FIELDS_MAX 48 /* names asked for in one object */
#define JSON_ERROR_MAX 192

enum json_need {
        JSON_REQUIRED, /* absent or null is a fault */
        JSON_OPTIONAL, /* absent leaves *out alone; null is a fault */
        JSON_NULLABLE, /* absent or null leaves *out alone */
};

struct json_body {
        json_t *root; /* owned unless `borrowed` */
        bool borrowed;
        char path[64];                      /* put before field names: "lines[2]." */
        const char *asked[JSON_FIELDS_MAX]; /* names the caller knows; literals */
        size_t asked_count;
        char error[JSON_ERROR_MAX]; /* "" while all is well */
};

/* Parses one object: UTF-8, no duplicate keys, nothing behind it, at most
 * JSON_DEPTH_MAX deep. 0, or 1 with `error` set. An empty body is an empty
 * object. Always followed by json_body_close. */
NET_MUST int json_body_open(struct json_body *b, struct span text);
/* The object `tree` of another body, which must outlive this one. */
void json_body_borrow(struct json_body *b, const json_t *tree, const char *path);
void json_body_close(struct json_body *b);

/* Each returns true when a value was stored into *out. `name` must be a
 * literal or live as long as the body. */
bool json_read_int(struct json_body *b, const char *name, enum json_need need, int64_t low,
                   int64_t high, int64_t *out);
bool json_read_real(struct json_body *b, const char *name, enum json_need need, double low,
                    double high, double *out);
bool json_read_bool(struct json_body *b, const char *name, enum json_need need, bool *out);
/* Length in bytes; a zero byte inside is a fault. The span is terminated. */
bool json_read_str(struct json_body *b, const char *name, enum json_need need, size_t min_len,
                   size_t max_len, struct span *out);
/* One of `choices` (ended by NULL); *out is its index. */
bool json_read_choice(struct json_body *b, const char *name, enum json_need need,
                      const char *const *choices, int *out);
bool json_read_time(struct json_body *b, const char *name, enum json_need need, int64_t *at_ms);
/* An array of at most `max` elements, borrowed. */
bool json_read_array(struct json_body *b, const char *name, enum json_need need, size_t max,
                     const json_t **out);
bool json_read_object(struct json_body *b, const char *name, enum json_need need,
                      const json_t **out);

/* Present, whatever its value; and present with null. */
bool json_read_has(const struct json_body *b, const char *name);
bool json_read_is_null(const struct json_body *b, const char *name);

/* Sets the first fault of the caller's own, in the same words. */
void json_body_fault(struct json_body *b, const char *name, const char *expected);

/* Names an unknown field, if there is one. 0 when the body was right in
 * everything, else 1 with `error`. */
NET_MUST int json_body_finish(struct json_body *b);

/* One field without rules, for snapshots and replies of our own programs: the
 * fallback (for text a NULL span) when it is absent or of another type. */
int64_t json_get_int(const json_t *object, const char *name, int64_t fallback);
bool json_get_bool(const json_t *object, const char *name, bool fallback);
struct span json_get_str(const json_t *object, const char *name);
int64_t json_get_time(const json_t *object, const char *name, int64_t fallback_ms);

#endif
