#include "conf/values.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/address.h"

struct unit {
        const char *name;
        uint64_t factor;
};

static const struct unit duration_units[] = {
        {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {NULL, 0}};
static const struct unit size_units[] = {
        {"GiB", 1u << 30}, {"MiB", 1u << 20}, {"KiB", 1u << 10}, {"B", 1}, {NULL, 0}};

static _Thread_local char expected[320];

NET_PRINTF(1, 2) static const char *expect(const char *format, ...) {
        va_list args;

        va_start(args, format);
        (void)vsnprintf(expected, sizeof(expected), format, args);
        va_end(args);
        return expected;
}

static void print_united(FILE *to, const struct unit *units, uint64_t value) {
        while (units->factor > 1 && (value == 0 || value % units->factor != 0))
                units++;
        (void)fprintf(to, "%llu%s", (unsigned long long)(value / units->factor), units->name);
}

static const struct unit *units_of(enum conf_type type) {
        return type == CONF_DURATION ? duration_units : type == CONF_SIZE ? size_units : NULL;
}

void conf_value_range(FILE *to, const struct conf_option *o) {
        const struct unit *units = units_of(o->type);

        if (o->type == CONF_COUNT) {
                (void)fprintf(to, "%llu..%llu", (unsigned long long)o->low,
                              (unsigned long long)o->high);
        } else if (units) {
                if (o->flags & CONF_AUTO)
                        (void)fprintf(to, "auto, ");
                print_united(to, units, o->low);
                (void)fprintf(to, "..");
                print_united(to, units, o->high);
        } else if (o->type == CONF_CHOICE) {
                for (size_t i = 0; o->choices[i]; i++)
                        (void)fprintf(to, "%s%s", i ? ", " : "", o->choices[i]);
        }
}

static const char *expect_in_range(const struct conf_option *o, const char *what) {
        char range[128] = "";
        FILE *to = fmemopen(range, sizeof(range) - 1, "w");

        assert(to);
        conf_value_range(to, o);
        (void)fclose(to);
        return expect("expected %s %s", what, range);
}

/* Digits at the front; NULL when there are none or too many. */
static const char *take_number(const char *text, uint64_t *value) {
        const char *p = text;

        *value = 0;
        for (; *p >= '0' && *p <= '9'; p++) {
                if (p - text >= 9)
                        return NULL;
                *value = *value * 10 + (uint64_t)(*p - '0');
        }
        return p == text ? NULL : p;
}

static const char *parse_count(const struct conf_option *o, const char *text, void *out) {
        uint64_t value;
        const char *rest = take_number(text, &value);

        if (!rest || *rest || value < o->low || value > o->high)
                return expect_in_range(o, "a whole number");
        *(uint32_t *)out = (uint32_t)value;
        return NULL;
}

static const char *parse_united(const struct conf_option *o, const char *text, uint64_t *value) {
        const struct unit *units = units_of(o->type);
        bool is_size = o->type == CONF_SIZE;
        const char *rest = take_number(text, value);
        size_t i = 0;

        if (rest && !*rest)
                return expect("`%.40s` has no unit; expected %s", text,
                              is_size ? "a size as 512B, 64KiB or 1MiB"
                                      : "a duration as 250ms, 10s, 5m or 1h");
        while (rest && units[i].name && strcmp(units[i].name, rest) != 0)
                i++;
        if (!rest || !units[i].name)
                return expect_in_range(o, is_size ? "a size with a unit (B, KiB, MiB, GiB),"
                                                  : "a duration with a unit (ms, s, m, h),");
        *value *= units[i].factor; /* nine digits: < 10^9 x 2^30, no overflow */
        return NULL;
}

static const char *parse_measure(const struct conf_option *o, const char *text, void *out) {
        uint64_t value;
        const char *wrong = parse_united(o, text, &value);

        if (wrong)
                return wrong;
        if (value < o->low || value > o->high)
                return expect_in_range(o, o->type == CONF_SIZE ? "a size" : "a duration");
        if (o->type == CONF_SIZE)
                *(size_t *)out = value;
        else
                *(uint32_t *)out = (uint32_t)value;
        return NULL;
}

static bool is_auto(const struct conf_option *o, const char *text) {
        return (o->flags & CONF_AUTO) && strcmp(text, "auto") == 0;
}

static const char *parse_auto(void *out) {
        *(size_t *)out = 0;
        return NULL;
}

static const char *parse_bool(const char *text, void *out) {
        bool yes = strcmp(text, "true") == 0;

        if (!yes && strcmp(text, "false") != 0)
                return "expected true or false";
        *(bool *)out = yes;
        return NULL;
}

static const char *parse_choice(const struct conf_option *o, const char *text, void *out) {
        for (int i = 0; o->choices[i]; i++)
                if (strcmp(o->choices[i], text) == 0) {
                        memcpy(out, &i, sizeof(i));
                        return NULL;
                }
        return expect_in_range(o, "one of");
}

static const char *parse_text(const struct conf_place *place, const struct conf_option *o,
                              const char *text, void *out) {
        const char *wrong = o->check ? o->check(text) : NULL;

        if (wrong)
                return wrong;
        if (!*text)
                return "expected a text that is not empty";
        *(const char **)out = conf_arena_text(place->arena, span_of(text));
        return NULL;
}

static const char *resolve(const struct conf_place *place, const char *name) {
        size_t len = strlen(place->folder) + 1 + strlen(name) + 1;
        char *path;

        if (name[0] == '/' || strcmp(place->folder, ".") == 0)
                return conf_arena_text(place->arena, span_of(name));
        path = conf_arena_take(place->arena, len);
        (void)snprintf(path, len, "%s/%s", place->folder, name);
        return path;
}

static const char *file_fault(const struct conf_option *o, const char *path) {
        struct stat st;

        if (stat(path, &st) != 0)
                return expect("cannot read file `%s`: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode))
                return expect("`%s` is not a file", path);
        if (access(path, R_OK) != 0)
                return expect("cannot read file `%s`: %s", path, strerror(errno));
        if (o->high > 0 && ((uint64_t)st.st_size < o->low || (uint64_t)st.st_size > o->high))
                return expect("expected a file of %llu..%llu bytes, `%s` has %lld",
                              (unsigned long long)o->low, (unsigned long long)o->high, path,
                              (long long)st.st_size);
        return NULL;
}

static const char *folder_fault(const char *path) {
        struct stat st;

        if (stat(path, &st) != 0)
                return expect("cannot read folder `%s`: %s", path, strerror(errno));
        return S_ISDIR(st.st_mode) ? NULL : expect("`%s` is not a folder", path);
}

/* What the program may make itself: it is there already, or its parent is. */
static const char *made_fault(const char *path, bool is_folder) {
        char parent[4096];
        char *slash;
        struct stat st;

        if (stat(path, &st) == 0 && is_folder)
                return S_ISDIR(st.st_mode) ? NULL : expect("`%s` is not a folder", path);
        if (access(path, W_OK) == 0)
                return NULL;
        if (errno != ENOENT)
                return expect("cannot write `%s`: %s", path, strerror(errno));
        if ((size_t)snprintf(parent, sizeof(parent), "%s", path) >= sizeof(parent))
                return "expected a shorter path";
        slash = strrchr(parent, '/');
        if (!slash || slash == parent)
                return NULL;
        *slash = 0;
        return folder_fault(parent);
}

static const char *parse_path(const struct conf_place *place, const struct conf_option *o,
                              const char *text, void *out) {
        const char *path;

        if (!*text)
                return "expected the name of a file or folder";
        path = resolve(place, text);
        *(const char **)out = path;
        if (o->type == CONF_FOLDER)
                return folder_fault(path);
        if (o->type == CONF_STATE || o->type == CONF_OUTPUT)
                return made_fault(path, o->type == CONF_STATE);
        return file_fault(o, path);
}

const char *conf_value_parse(const struct conf_place *place, const struct conf_option *o,
                             const char *text, void *out) {
        switch (o->type) {
        case CONF_BOOL:
                return parse_bool(text, out);
        case CONF_COUNT:
                return parse_count(o, text, out);
        case CONF_DURATION:
        case CONF_SIZE:
                return is_auto(o, text) ? parse_auto(out) : parse_measure(o, text, out);
        case CONF_CHOICE:
                return parse_choice(o, text, out);
        case CONF_TEXT:
        case CONF_TEXTS:
                return parse_text(place, o, text, out);
        case CONF_FILE:
        case CONF_FILES:
        case CONF_FOLDER:
        case CONF_STATE:
        case CONF_OUTPUT:
                return parse_path(place, o, text, out);
        case CONF_ADDRESS:
        case CONF_ADDRESSES:
                return conf_address_parse(place->arena, text, o->type == CONF_ADDRESSES, out);
        case CONF_NETWORKS:
                return conf_network_parse(text, out);
        case CONF_MAP:
                break;
        }
        return "expected names with options below them";
}

size_t conf_value_element_size(enum conf_type type) {
        if (type == CONF_TEXTS || type == CONF_FILES)
                return sizeof(const char *);
        if (type == CONF_ADDRESSES)
                return sizeof(struct conf_address);
        return type == CONF_NETWORKS ? sizeof(struct conf_network) : 0;
}

/* Double-quoted YAML; bytes that need an escape get one. */
static void print_text(FILE *to, const char *text) {
        if (!text) {
                (void)fprintf(to, "null");
                return;
        }
        (void)fputc('"', to);
        for (; *text; text++) {
                uint8_t c = (uint8_t)*text;

                if (c == '"' || c == '\\')
                        (void)fprintf(to, "\\%c", c);
                else if (c < 0x20 || c == 0x7F)
                        (void)fprintf(to, "\\x%02x", c);
                else
                        (void)fputc(c, to);
        }
        (void)fputc('"', to);
}

/* What stands between the user's name and the @ of a URL, and the value of
 * password= among libpq's words. */
static void print_masked(FILE *to, const char *text) {
        const char *scheme = strstr(text, "://");
        const char *at = scheme ? strchr(scheme, '@') : NULL;
        const char *colon = at ? memchr(scheme + 3, ':', (size_t)(at - scheme - 3)) : NULL;
        const char *word = strstr(text, "password=");

        if (colon)
                (void)fprintf(to, "\"%.*s***%s\"", (int)(colon + 1 - text), text, at);
        else if (word)
                (void)fprintf(to, "\"%.*s***%s\"", (int)(word + 9 - text), text,
                              word + strcspn(word, " &"));
        else
                print_text(to, text);
}

static void print_list(FILE *to, const struct conf_option *o, const void *at) {
        const struct conf_texts *texts = at;
        char network[64];

        (void)fputc('[', to);
        for (size_t i = 0; i < texts->count; i++) {
                (void)fprintf(to, "%s", i ? ", " : "");
                if (o->type == CONF_ADDRESSES) {
                        print_text(to, ((const struct conf_addresses *)at)->at[i].written);
                } else if (o->type == CONF_NETWORKS) {
                        conf_network_text(&((const struct conf_networks *)at)->at[i], network,
                                          sizeof(network));
                        print_text(to, network);
                } else {
                        print_text(to, texts->at[i]);
                }
        }
        (void)fputc(']', to);
}

void conf_value_print(FILE *to, const struct conf_option *o, const void *at) {
        int choice;

        switch (o->type) {
        case CONF_BOOL:
                (void)fprintf(to, "%s", *(const bool *)at ? "true" : "false");
                break;
        case CONF_COUNT:
                (void)fprintf(to, "%u", *(const uint32_t *)at);
                break;
        case CONF_DURATION:
                print_united(to, duration_units, *(const uint32_t *)at);
                break;
        case CONF_SIZE:
                if ((o->flags & CONF_AUTO) && *(const size_t *)at == 0)
                        (void)fprintf(to, "auto");
                else
                        print_united(to, size_units, *(const size_t *)at);
                break;
        case CONF_CHOICE:
                memcpy(&choice, at, sizeof(choice));
                (void)fprintf(to, "%s", o->choices[choice]);
                break;
        case CONF_TEXT:
        case CONF_FILE:
        case CONF_FOLDER:
        case CONF_STATE:
        case CONF_OUTPUT:
                if ((o->flags & CONF_MASKED) && *(const char *const *)at)
                        print_masked(to, *(const char *const *)at);
                else
                        print_text(to, *(const char *const *)at);
                break;
        case CONF_ADDRESS:
                print_text(to, ((const struct conf_address *)at)->written);
                break;
        case CONF_TEXTS:
        case CONF_FILES:
        case CONF_ADDRESSES:
        case CONF_NETWORKS:
                print_list(to, o, at);
                break;
        case CONF_MAP:
                break;
        }
}
