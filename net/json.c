#include "net/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "net/clock.h"

/* ---- writing ---- */

void json_out_init(struct json_out *o, char *buffer, size_t cap) {
        *o = (struct json_out){.p = buffer, .cap = cap};
}

static void put(struct json_out *o, const char *p, size_t n) {
        if (o->overflow || n > o->cap - o->len) {
                o->overflow = true;
                return;
        }
        memcpy(o->p + o->len, p, n);
        o->len += n;
}

static void put_char(struct json_out *o, char c) {
        put(o, &c, 1);
}

/* Length of the well-formed UTF-8 character at s, 0 if there is none. Neither
 * surrogates nor overlong forms (RFC 3629). */
static size_t utf8_len(const uint8_t *s, size_t left) {
        uint8_t c = s[0];
        size_t n = c < 0x80                ? 1
                   : c >= 0xC2 && c < 0xE0 ? 2
                   : c >= 0xE0 && c < 0xF0 ? 3
                   : c >= 0xF0 && c < 0xF5 ? 4
                                           : 0;

        if (n == 0 || n > left)
                return 0;
        for (size_t i = 1; i < n; i++)
                if ((s[i] & 0xC0) != 0x80)
                        return 0;
        if ((c == 0xE0 && s[1] < 0xA0) || (c == 0xED && s[1] > 0x9F) ||
            (c == 0xF0 && s[1] < 0x90) || (c == 0xF4 && s[1] > 0x8F))
                return 0;
        return n;
}

static void put_control(struct json_out *o, uint8_t c) {
        static const char *const names[] = {
                ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r"};
        char text[8];

        if (c < NET_COUNT_OF(names) && names[c]) {
                put(o, names[c], 2);
                return;
        }
        (void)snprintf(text, sizeof(text), "\\u%04x", c);
        put(o, text, 6);
}

static void put_quoted(struct json_out *o, struct span v) {
        const uint8_t *s = (const uint8_t *)v.p;
        size_t i = 0;

        put_char(o, '"');
        while (i < v.len && !o->overflow) {
                size_t n = utf8_len(s + i, v.len - i);

                if (n == 0) {
                        put(o, "\xEF\xBF\xBD", 3);
                        i++;
                        continue;
                }
                if (s[i] == '"' || s[i] == '\\') {
                        put_char(o, '\\');
                        put_char(o, v.p[i]);
                } else if (s[i] < 0x20 || s[i] == 0x7F) {
                        put_control(o, s[i]);
                } else {
                        put(o, v.p + i, n);
                }
                i += n;
        }
        put_char(o, '"');
}

/* What stands before every value: a comma where one is due, and the name. */
static void lead(struct json_out *o, const char *name) {
        if (o->comma)
                put_char(o, ',');
        if (name) {
                put_quoted(o, span_of(name));
                put_char(o, ':');
        }
        o->comma = true;
}

void json_out_object(struct json_out *o, const char *name) {
        lead(o, name);
        put_char(o, '{');
        o->comma = false;
}

void json_out_object_end(struct json_out *o) {
        put_char(o, '}');
        o->comma = true;
}

void json_out_array(struct json_out *o, const char *name) {
        lead(o, name);
        put_char(o, '[');
        o->comma = false;
}

void json_out_array_end(struct json_out *o) {
        put_char(o, ']');
        o->comma = true;
}

void json_out_str(struct json_out *o, const char *name, struct span value) {
        lead(o, name);
        if (value.p)
                put_quoted(o, value);
        else
                put(o, "null", 4);
}

void json_out_text(struct json_out *o, const char *name, const char *value) {
        json_out_str(o, name, span_of(value));
}

void json_out_uint(struct json_out *o, const char *name, uint64_t value) {
        char digits[20];
        size_t at = sizeof(digits);

        do {
                digits[--at] = (char)('0' + value % 10);
                value /= 10;
        } while (value > 0);
        lead(o, name);
        put(o, digits + at, sizeof(digits) - at);
}

void json_out_int(struct json_out *o, const char *name, int64_t value) {
        if (value >= 0) {
                json_out_uint(o, name, (uint64_t)value);
                return;
        }
        lead(o, name);
        put_char(o, '-');
        o->comma = false;
        json_out_uint(o, NULL, 0 - (uint64_t)value);
}

void json_out_real(struct json_out *o, const char *name, double value, int decimals) {
        char text[352]; /* DBL_MAX has 309 digits before the point */
        int n;

        assert(decimals >= 0 && decimals <= 9);
        if (!isfinite(value)) {
                json_out_null(o, name);
                return;
        }
        n = snprintf(text, sizeof(text), "%.*f", decimals, value);
        assert(n > 0 && (size_t)n < sizeof(text));
        lead(o, name);
        if (decimals > 0) {
                while (text[n - 1] == '0')
                        n--;
                if (text[n - 1] == '.')
                        n--;
        }
        put(o, text, (size_t)n);
}

void json_out_bool(struct json_out *o, const char *name, bool value) {
        lead(o, name);
        put(o, value ? "true" : "false", value ? 4 : 5);
}

void json_out_null(struct json_out *o, const char *name) {
        lead(o, name);
        put(o, "null", 4);
}

void json_out_time(struct json_out *o, const char *name, int64_t at_ms) {
        char text[CLOCK_TEXT_MAX];

        if (at_ms == JSON_NO_TIME) {
                json_out_null(o, name);
                return;
        }
        json_out_str(o, name, (struct span){text, clock_format_rfc3339(text, at_ms)});
}

void json_out_raw(struct json_out *o, const char *name, struct span json) {
        lead(o, name);
        put(o, json.p, json.len);
}

void json_out_tree(struct json_out *o, const char *name, const json_t *tree) {
        size_t n;

        lead(o, name);
        if (o->overflow)
                return;
        n = json_dumpb(tree, o->p + o->len, o->cap - o->len, JSON_COMPACT | JSON_ENCODE_ANY);
        if (n == 0 || n > o->cap - o->len)
                o->overflow = true;
        else
                o->len += n;
}

struct span json_out_done(const struct json_out *o) {
        if (o->overflow)
                return (struct span){NULL, 0};
        return (struct span){o->p, o->len};
}

/* ---- reading ---- */

NET_PRINTF(2, 3) static void fault(struct json_body *b, const char *format, ...) {
        va_list args;

        if (b->error[0])
                return;
        va_start(args, format);
        (void)vsnprintf(b->error, sizeof(b->error), format, args);
        va_end(args);
}

/* jansson's own limit is 2048 levels and not ours to set. */
static bool is_too_deep(struct span text) {
        size_t depth = 0;
        bool in_string = false;

        for (size_t i = 0; i < text.len; i++) {
                char c = text.p[i];

                if (in_string && c == '\\')
                        i++;
                else if (c == '"')
                        in_string = !in_string;
                else if (!in_string && (c == '{' || c == '['))
                        depth++;
                else if (!in_string && (c == '}' || c == ']') && depth > 0)
                        depth--;
                if (depth > JSON_DEPTH_MAX)
                        return true;
        }
        return false;
}

int json_body_open(struct json_body *b, struct span text) {
        json_error_t error;

        *b = (struct json_body){0};
        if (text.len == 0)
                text = SPAN("{}");
        if (is_too_deep(text)) {
                fault(b, "body: expected at most %d levels", JSON_DEPTH_MAX);
                return 1;
        }
        b->root = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
        if (!b->root && json_error_code(&error) == json_error_duplicate_key)
                fault(b, "body: a field occurs twice");
        else if (!b->root)
                fault(b, "body: expected JSON; it breaks at byte %d", error.position);
        else if (!json_is_object(b->root))
                fault(b, "body: expected a JSON object");
        return b->error[0] ? 1 : 0;
}

void json_body_borrow(struct json_body *b, const json_t *tree, const char *path) {
        *b = (struct json_body){.root = (json_t *)(uintptr_t)tree, .borrowed = true};
        (void)snprintf(b->path, sizeof(b->path), "%s", path);
        if (!json_is_object(tree)) /* the path ends in a point: lines[2]. */
                fault(b, "field `%.*s`: expected an object",
                      (int)strlen(b->path) - (b->path[0] ? 1 : 0), b->path);
}

void json_body_close(struct json_body *b) {
        if (!b->borrowed)
                json_decref(b->root);
        b->root = NULL;
}

void json_body_fault(struct json_body *b, const char *name, const char *expected) {
        fault(b, "field `%s%s`: %s", b->path, name, expected);
}

/* The value, or NULL when there is none to read; notes the name as known. */
static json_t *ask(struct json_body *b, const char *name, enum json_need need,
                   const char *expected) {
        json_t *value;

        if (b->error[0])
                return NULL;
        assert(b->asked_count < JSON_FIELDS_MAX);
        b->asked[b->asked_count++] = name;
        value = json_object_get(b->root, name);
        if (value && !json_is_null(value))
                return value;
        if (need == JSON_REQUIRED || (need == JSON_OPTIONAL && value))
                json_body_fault(b, name, expected);
        return NULL;
}

bool json_read_int(struct json_body *b, const char *name, enum json_need need, int64_t low,
                   int64_t high, int64_t *out) {
        char expected[80];
        json_t *value;
        int64_t got;

        (void)snprintf(expected, sizeof(expected), "expected an integer %lld..%lld", (long long)low,
                       (long long)high);
        value = ask(b, name, need, expected);
        if (!value)
                return false;
        got = json_integer_value(value);
        if (!json_is_integer(value) || got < low || got > high) {
                json_body_fault(b, name, expected);
                return false;
        }
        *out = got;
        return true;
}

bool json_read_real(struct json_body *b, const char *name, enum json_need need, double low,
                    double high, double *out) {
        char expected[80];
        json_t *value;
        double got;

        (void)snprintf(expected, sizeof(expected), "expected a number %g..%g", low, high);
        value = ask(b, name, need, expected);
        if (!value)
                return false;
        got = json_number_value(value);
        if (!json_is_number(value) || got < low || got > high) {
                json_body_fault(b, name, expected);
                return false;
        }
        *out = got;
        return true;
}

bool json_read_bool(struct json_body *b, const char *name, enum json_need need, bool *out) {
        json_t *value = ask(b, name, need, "expected true or false");

        if (!value)
                return false;
        if (!json_is_boolean(value)) {
                json_body_fault(b, name, "expected true or false");
                return false;
        }
        *out = json_is_true(value);
        return true;
}

bool json_read_str(struct json_body *b, const char *name, enum json_need need, size_t min_len,
                   size_t max_len, struct span *out) {
        char expected[80];
        json_t *value;
        size_t len;

        (void)snprintf(expected, sizeof(expected), "expected a string of %zu..%zu bytes", min_len,
                       max_len);
        value = ask(b, name, need, expected);
        if (!value)
                return false;
        len = json_string_length(value);
        if (!json_is_string(value) || len < min_len || len > max_len) {
                json_body_fault(b, name, expected);
                return false;
        }
        *out = (struct span){json_string_value(value), len};
        return true;
}

bool json_read_choice(struct json_body *b, const char *name, enum json_need need,
                      const char *const *choices, int *out) {
        char expected[JSON_ERROR_MAX] = "expected one of";
        size_t n = strlen(expected);
        json_t *value;

        for (int i = 0; choices[i]; i++) {
                int more = snprintf(expected + n, sizeof(expected) - n, "%s %s", i ? "," : "",
                                    choices[i]);

                assert(more > 0 && (size_t)more < sizeof(expected) - n);
                n += (size_t)more;
        }
        value = ask(b, name, need, expected);
        if (!value)
                return false;
        for (int i = 0; json_is_string(value) && choices[i]; i++)
                if (strcmp(choices[i], json_string_value(value)) == 0) {
                        *out = i;
                        return true;
                }
        json_body_fault(b, name, expected);
        return false;
}

bool json_read_time(struct json_body *b, const char *name, enum json_need need, int64_t *at_ms) {
        struct span text;
        json_t *value = ask(b, name, need, clock_outcome_text(CLOCK_MALFORMED));
        int r;

        if (!value)
                return false;
        text = (struct span){json_string_value(value), json_string_length(value)};
        r = json_is_string(value) ? clock_parse_rfc3339(text, at_ms) : CLOCK_MALFORMED;
        if (r != 0)
                json_body_fault(b, name, clock_outcome_text(r));
        return r == 0;
}

bool json_read_array(struct json_body *b, const char *name, enum json_need need, size_t max,
                     const json_t **out) {
        char expected[64];
        json_t *value;

        (void)snprintf(expected, sizeof(expected), "expected an array of at most %zu", max);
        value = ask(b, name, need, expected);
        if (!value)
                return false;
        if (!json_is_array(value) || json_array_size(value) > max) {
                json_body_fault(b, name, expected);
                return false;
        }
        *out = value;
        return true;
}

bool json_read_object(struct json_body *b, const char *name, enum json_need need,
                      const json_t **out) {
        json_t *value = ask(b, name, need, "expected an object");

        if (!value)
                return false;
        if (!json_is_object(value)) {
                json_body_fault(b, name, "expected an object");
                return false;
        }
        *out = value;
        return true;
}

bool json_read_has(const struct json_body *b, const char *name) {
        return json_object_get(b->root, name) != NULL;
}

bool json_read_is_null(const struct json_body *b, const char *name) {
        return json_is_null(json_object_get(b->root, name));
}

int json_body_finish(struct json_body *b) {
        const char *name;
        json_t *value;

        if (b->error[0])
                return 1;
        json_object_foreach(b->root, name, value) {
                size_t i = 0;

                while (i < b->asked_count && strcmp(b->asked[i], name) != 0)
                        i++;
                if (i == b->asked_count) {
                        fault(b, "field `%s%.64s`: unknown", b->path, name);
                        return 1;
                }
        }
        return 0;
}

int64_t json_get_int(const json_t *object, const char *name, int64_t fallback) {
        const json_t *value = json_object_get(object, name);

        return json_is_integer(value) ? json_integer_value(value) : fallback;
}

bool json_get_bool(const json_t *object, const char *name, bool fallback) {
        const json_t *value = json_object_get(object, name);

        return json_is_boolean(value) ? json_is_true(value) : fallback;
}

struct span json_get_str(const json_t *object, const char *name) {
        const json_t *value = json_object_get(object, name);

        if (!json_is_string(value))
                return (struct span){NULL, 0};
        return (struct span){json_string_value(value), json_string_length(value)};
}

int64_t json_get_time(const json_t *object, const char *name, int64_t fallback_ms) {
        int64_t at_ms;
        struct span text = json_get_str(object, name);

        return text.p && clock_parse_rfc3339(text, &at_ms) == 0 ? at_ms : fallback_ms;
}
