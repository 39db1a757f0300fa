#include "gateway/ctl_sale.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/clock.h"

enum kind { TEXT, TIME, WHOLE, REAL, RULE };

static const struct {
        const char *name;
        enum kind kind;
} fields[] = {
        {"tenant", TEXT},
        {"item", TEXT},
        {"opens_at", TIME},
        {"prequeue_at", TIME},
        {"closes_at", TIME},
        {"queue", TEXT},
        {"overbook", REAL},
        {"rate_per_minute", WHOLE},
        {"max_active", WHOLE},
        {"per_account", WHOLE},
        {"hold_seconds", WHOLE},
        {"extend_seconds", WHOLE},
        {"first_use_seconds", WHOLE},
        {"pass_seconds", WHOLE},
        {"skip_seconds", WHOLE},
        {"forget_seconds", WHOLE},
        {"match", RULE},
        {"bypass", RULE},
        {"upstream", TEXT},
        {"pages", TEXT},
        {"identity", TEXT},
        {"guest_work", TEXT},
        {"login_url", TEXT},
        {"store_loss", TEXT},
        {"beacon_source", TEXT},
        {"left", TEXT},
};

static int fault(const char *name, const char *value, const char *expected) {
        fprintf(stderr, "sluicectl: %s=%s: expected %s\n", name, value, expected);
        return 2;
}

static json_t *rule_of(const char *value) {
        const char *path = strchr(value, '/');
        if (!path)
                return NULL;
        size_t len = strlen(path);
        bool prefix = len >= 2 && strcmp(path + len - 2, "/*") == 0;
        if (prefix)
                len = len == 2 ? 1 : len - 2;
        json_t *host = path == value ? json_null() : json_stringn(value, (size_t)(path - value));
        return json_pack("{s:o,s:o,s:b}", "host", host, "path", json_stringn(path, len), "prefix",
                         prefix);
}

static json_t *number_of(const char *value, enum kind kind) {
        char *end;
        errno = 0;
        if (kind == WHOLE) {
                long long n = strtoll(value, &end, 10);
                return *end || end == value || errno ? NULL : json_integer(n);
        }
        double d = strtod(value, &end);
        return *end || end == value || errno ? NULL : json_real(d);
}

static json_t *time_of(const char *value) {
        char now[CLOCK_TEXT_MAX];
        int64_t at_ms;
        if (strcmp(value, "now") == 0) {
                (void)clock_format_rfc3339(now, clock_wall_ms());
                return json_string(now);
        }
        return clock_parse_rfc3339(span_of(value), &at_ms) == 0 ? json_string(value) : NULL;
}

static int put(json_t *out, const char *name, enum kind kind, const char *value) {
        json_t *v = NULL;
        if (strcmp(value, "null") == 0) {
                v = json_null();
        } else {
                switch (kind) {
                case TEXT:
                        v = json_string(value);
                        if (!v)
                                return fault(name, value, "UTF-8 text");
                        break;
                case TIME:
                        v = time_of(value);
                        if (!v)
                                return fault(name, value,
                                             "a time with an offset, such as "
                                             "2026-11-29T09:00:00+01:00, or now");
                        break;
                case WHOLE:
                case REAL:
                        v = number_of(value, kind);
                        if (!v)
                                return fault(name, value,
                                             kind == WHOLE ? "a whole number" : "a number");
                        break;
                case RULE:
                        v = rule_of(value);
                        if (!v)
                                return fault(name, value, "/path, /path/* or HOST/path");
                        break;
                }
        }
        if (kind != RULE || json_is_null(v))
                return json_object_set_new(out, name, kind == RULE ? json_array() : v);
        json_t *list = json_object_get(out, name);
        if (!list) {
                list = json_array();
                json_object_set_new(out, name, list);
        }
        return json_array_append_new(list, v);
}

int ctl_sale_fields(char *const *words, size_t n, json_t **out) {
        json_t *tree = json_object();
        int r = 0;
        for (size_t i = 0; i < n && r == 0; i++) {
                const char *eq = strchr(words[i], '=');
                size_t f = 0, len = eq ? (size_t)(eq - words[i]) : 0;
                while (f < NET_COUNT_OF(fields) && !(strlen(fields[f].name) == len &&
                                                     strncmp(fields[f].name, words[i], len) == 0))
                        f++;
                if (!eq || f == NET_COUNT_OF(fields)) {
                        fprintf(stderr, "sluicectl: %s: expected FIELD=VALUE with a sale's field\n",
                                words[i]);
                        r = 2;
                } else {
                        r = put(tree, fields[f].name, fields[f].kind, eq + 1);
                }
        }
        if (r != 0)
                json_decref(tree);
        *out = r == 0 ? tree : NULL;
        return r;
}

static bool same(const json_t *a, const json_t *b) {
        int64_t ta, tb;
        if (json_is_string(a) && json_is_string(b) &&
            clock_parse_rfc3339(span_of(json_string_value(a)), &ta) == 0 &&
            clock_parse_rfc3339(span_of(json_string_value(b)), &tb) == 0)
                return ta == tb;
        if (json_is_number(a) && json_is_number(b))
                return json_number_value(a) == json_number_value(b);
        return json_equal(a, b);
}

bool ctl_sale_has(const json_t *have, const json_t *want) {
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)want, name,
                            value) if (!same(json_object_get(have, name), value)) return false;
        return true;
}
