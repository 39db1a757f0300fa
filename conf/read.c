#include "conf/read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <yaml.h>

#include "conf/faults.h"
#include "conf/values.h"

#define ROWS_MAX 96
#define NAME_MAX_BYTES 160
#define FILE_MAX_BYTES (1 << 20)

struct conf_reader {
        yaml_document_t *document;
        struct conf_place place;
        struct conf_faults *faults;
};

/* One struct that is being filled: the whole configuration, or an element of
 * a map. */
struct scope {
        const struct conf_table *table;
        yaml_node_t *node; /* the mapping it is read from */
        char *base;
        const char *label; /* before names in faults: "" or "upstreams.shop." */
        bool seen[ROWS_MAX];
};

static unsigned line_of(const yaml_node_t *node) {
        return (unsigned)node->start_mark.line + 1;
}

static const char *scalar_of(const yaml_node_t *node) {
        return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

/* libyaml's text may hold zero bytes; ours may not. */
static bool is_text(const yaml_node_t *node) {
        return node->type == YAML_SCALAR_NODE &&
               strlen((const char *)node->data.scalar.value) == node->data.scalar.length;
}

static bool is_null(const yaml_node_t *node) {
        static const char *const words[] = {"", "~", "null", "Null", "NULL"};

        if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
                return false;
        for (size_t i = 0; i < NET_COUNT_OF(words); i++)
                if (strcmp(scalar_of(node), words[i]) == 0)
                        return true;
        return false;
}

/* The pair of `name` in a mapping, NULL if there is none. */
static const yaml_node_pair_t *find_pair(struct conf_reader *r, const yaml_node_t *mapping,
                                         struct span name) {
        if (!mapping || mapping->type != YAML_MAPPING_NODE)
                return NULL;
        for (yaml_node_pair_t *p = mapping->data.mapping.pairs.start;
             p < mapping->data.mapping.pairs.top; p++) {
                const char *key = scalar_of(yaml_document_get_node(r->document, p->key));

                if (key && span_eq(span_of(key), name))
                        return p;
        }
        return NULL;
}

/* Where an option stands, or the section it is missing from. */
static unsigned line_of_option(struct conf_reader *r, const yaml_node_t *mapping,
                               const char *name) {
        unsigned line = mapping ? line_of(mapping) : 1;

        while (mapping && *name) {
                size_t len = strcspn(name, ".");
                const yaml_node_pair_t *p = find_pair(r, mapping, (struct span){name, len});

                if (!p)
                        break;
                line = line_of(yaml_document_get_node(r->document, p->key));
                mapping = yaml_document_get_node(r->document, p->value);
                name += len + (name[len] == '.');
        }
        return line;
}

void conf_reader_fault(struct conf_reader *r, const char *name, const char *format, ...) {
        char text[320];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        conf_fault_add(r->faults, line_of_option(r, yaml_document_get_root_node(r->document), name),
                       "%s: %s", name, text);
}

static const struct conf_option *find_row(const struct scope *s, const char *name, size_t *index,
                                          size_t *offset) {
        const struct conf_option *row;

        for (size_t i = 0; (row = conf_table_row(s->table, i, offset)); i++)
                if (strcmp(row->name, name) == 0) {
                        *index = i;
                        return row;
                }
        return NULL;
}

static bool is_section(const struct scope *s, const char *name) {
        size_t len = strlen(name), offset;
        const struct conf_option *row;

        for (size_t i = 0; (row = conf_table_row(s->table, i, &offset)); i++)
                if (strncmp(row->name, name, len) == 0 && row->name[len] == '.')
                        return true;
        return false;
}

/* ---- what was meant ---- */

/* Levenshtein's distance; words longer than 31 bytes are cut. */
static size_t distance(const char *a, const char *b) {
        size_t row[32], la = strnlen(a, 31), lb = strnlen(b, 31);

        for (size_t j = 0; j <= lb; j++)
                row[j] = j;
        for (size_t i = 1; i <= la; i++) {
                size_t corner = row[0];

                row[0] = i;
                for (size_t j = 1; j <= lb; j++) {
                        size_t change = corner + (a[i - 1] != b[j - 1]);
                        size_t step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

                        corner = row[j];
                        row[j] = change < step ? change : step;
                }
        }
        return row[lb];
}

/* The name at this level of the table that is nearest to `key`. */
static bool nearest(const struct scope *s, const char *prefix, const char *key,
                    char best[NAME_MAX_BYTES]) {
        size_t least = strlen(key) / 3 + 2, plen = strlen(prefix), offset;
        const struct conf_option *row;
        bool found = false;

        for (size_t i = 0; (row = conf_table_row(s->table, i, &offset)); i++) {
                char word[NAME_MAX_BYTES];
                size_t d;

                if (strncmp(row->name, prefix, plen) != 0)
                        continue;
                (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(row->name + plen, "."),
                               row->name + plen);
                d = distance(key, word);
                if (d < least) {
                        least = d;
                        found = true;
                        memcpy(best, word, sizeof(word));
                }
        }
        return found;
}

/* The section in which an unknown key would have been right. */
static const char *elsewhere(const struct scope *s, const char *key) {
        const struct conf_option *row;
        size_t offset;

        for (size_t i = 0; (row = conf_table_row(s->table, i, &offset)); i++) {
                const char *point = strrchr(row->name, '.');

                if (strcmp(point ? point + 1 : row->name, key) == 0)
                        return row->name;
        }
        return NULL;
}

static void fault_unknown(struct conf_reader *r, const struct scope *s, const char *prefix,
                          const yaml_node_t *key) {
        const char *word = scalar_of(key);
        const char *known = elsewhere(s, word);
        char best[NAME_MAX_BYTES];

        if (known)
                conf_fault_add(r->faults, line_of(key),
                               "%s%s%.64s: no such option here; is `%s` meant?", s->label, prefix,
                               word, known);
        else if (nearest(s, prefix, word, best))
                conf_fault_add(r->faults, line_of(key), "%s%s%.64s: no such option; is `%s` meant?",
                               s->label, prefix, word, best);
        else
                conf_fault_add(r->faults, line_of(key), "%s%s%.64s: no such option", s->label,
                               prefix, word);
}

/* ---- values ---- */

static void read_value(struct conf_reader *r, const char *field, const struct conf_option *row,
                       const yaml_node_t *node, void *out) {
        const char *wrong;

        if (!is_text(node))
                wrong = "expected one value, not a list or a section";
        else
                wrong = conf_value_parse(&r->place, row, scalar_of(node), out);
        if (wrong)
                conf_fault_add(r->faults, line_of(node), "%s: %s", field, wrong);
}

/* A single value stands for a list of one. */
static void read_list(struct conf_reader *r, const char *field, const struct conf_option *row,
                      const yaml_node_t *node, struct conf_map *out) {
        size_t size = conf_value_element_size(row->type);
        size_t count;
        char *at;

        if (node->type == YAML_SCALAR_NODE) {
                *out = (struct conf_map){conf_arena_take(r->place.arena, size), 1};
                read_value(r, field, row, node, out->at);
                return;
        }
        if (node->type != YAML_SEQUENCE_NODE) {
                conf_fault_add(r->faults, line_of(node), "%s: expected a list", field);
                return;
        }
        count = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
        at = conf_arena_take(r->place.arena, size * count);
        *out = (struct conf_map){at, count};
        for (size_t i = 0; i < count; i++) {
                char name[NAME_MAX_BYTES];

                (void)snprintf(name, sizeof(name), "%.130s[%zu]", field, i);
                read_value(r, name, row,
                           yaml_document_get_node(r->document, node->data.sequence.items.start[i]),
                           at + i * size);
        }
        if (count == 0 && (row->flags & CONF_REQUIRED))
                conf_fault_add(r->faults, line_of(node), "%s: expected at least one", field);
}

static void read_scope(struct conf_reader *r, struct scope *s);

/* Names chosen by the writer of the file, each a struct of its own. */
static void read_map(struct conf_reader *r, const struct conf_option *row, const yaml_node_t *node,
                     struct conf_map *out) {
        const struct conf_element *e = row->element;
        const struct conf_part part = {e->rows, e->row_count, 0};
        const struct conf_table table = {.parts = &part, .part_count = 1};
        size_t count;
        char *at;

        if (node->type != YAML_MAPPING_NODE) {
                conf_fault_add(r->faults, line_of(node),
                               "%s: expected names with options below them", row->name);
                return;
        }
        count = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
        at = conf_arena_take(r->place.arena, e->size * count);
        *out = (struct conf_map){at, count};
        for (size_t i = 0; i < count; i++) {
                const yaml_node_pair_t *p = &node->data.mapping.pairs.start[i];
                const yaml_node_t *key = yaml_document_get_node(r->document, p->key);
                const char *name = is_text(key) ? scalar_of(key) : NULL;
                const char *wrong = name && row->check ? row->check(name) : NULL;
                char label[NAME_MAX_BYTES];
                struct scope s = {.table = &table,
                                  .base = at + i * e->size,
                                  .label = label,
                                  .node = yaml_document_get_node(r->document, p->value)};

                if (!name || wrong || find_pair(r, node, span_of(name)) != p) {
                        conf_fault_add(r->faults, line_of(key), "%s.%.64s: %s", row->name,
                                       name ? name : "?",
                                       wrong  ? wrong
                                       : name ? "is there twice"
                                              : "expected a name");
                        continue;
                }
                (void)snprintf(label, sizeof(label), "%s.%.64s.", row->name, name);
                *(const char **)(void *)(s.base + e->name_offset) =
                        conf_arena_text(r->place.arena, span_of(name));
                read_scope(r, &s);
        }
}

static bool is_list(enum conf_type type) {
        return conf_value_element_size(type) > 0;
}

static void read_option(struct conf_reader *r, struct scope *s, const struct conf_option *row,
                        const yaml_node_t *node, void *out) {
        char field[NAME_MAX_BYTES];

        (void)snprintf(field, sizeof(field), "%s%s", s->label, row->name);
        if (row->type == CONF_MAP)
                read_map(r, row, node, out);
        else if (is_list(row->type))
                read_list(r, field, row, node, out);
        else
                read_value(r, field, row, node, out);
}

/* A name with what stands behind it: an option, or a section to go into. */
static const yaml_node_t *read_pair(struct conf_reader *r, struct scope *s, const char *prefix,
                                    const yaml_node_t *mapping, const yaml_node_pair_t *p) {
        const yaml_node_t *key = yaml_document_get_node(r->document, p->key);
        const yaml_node_t *value = yaml_document_get_node(r->document, p->value);
        char name[NAME_MAX_BYTES];
        const struct conf_option *row;
        size_t index, offset;

        if (!is_text(key)) {
                conf_fault_add(r->faults, line_of(key), "%s%s: expected a name", s->label, prefix);
                return NULL;
        }
        if (find_pair(r, mapping, span_of(scalar_of(key))) != p) {
                conf_fault_add(r->faults, line_of(key), "%s%s%.64s: is there twice", s->label,
                               prefix, scalar_of(key));
                return NULL;
        }
        (void)snprintf(name, sizeof(name), "%s%.64s", prefix, scalar_of(key));
        if (strchr(scalar_of(key), '.')) { /* `tls.key: x` is no way to write a section */
                fault_unknown(r, s, prefix, key);
                return NULL;
        }
        row = find_row(s, name, &index, &offset);
        if (!row && !is_section(s, name)) {
                fault_unknown(r, s, prefix, key);
                return NULL;
        }
        if (is_null(value))
                return NULL;
        if (!row)
                return value;
        s->seen[index] = true;
        read_option(r, s, row, value, s->base + offset + row->offset);
        return NULL;
}

static void read_section(struct conf_reader *r, struct scope *s, const char *prefix,
                         const yaml_node_t *mapping) {
        char where[NAME_MAX_BYTES];

        if (mapping->type != YAML_MAPPING_NODE) {
                size_t len = (size_t)snprintf(where, sizeof(where), "%s%s", s->label, prefix);

                if (len == 0)
                        conf_fault_add(r->faults, line_of(mapping),
                                       "expected options, each a name, a colon and a value");
                else /* without the point it ends with */
                        conf_fault_add(r->faults, line_of(mapping),
                                       "%.*s: expected options below it", (int)len - 1, where);
                return;
        }
        for (yaml_node_pair_t *p = mapping->data.mapping.pairs.start;
             p < mapping->data.mapping.pairs.top; p++) {
                const yaml_node_t *below = read_pair(r, s, prefix, mapping, p);
                char deeper[NAME_MAX_BYTES];

                if (!below)
                        continue;
                (void)snprintf(deeper, sizeof(deeper), "%s%.64s.", prefix,
                               scalar_of(yaml_document_get_node(r->document, p->key)));
                read_section(r, s, deeper, below);
        }
}

/* What the file leaves out. A default is read by the code that reads files;
 * one that does not parse is a bug of the table. */
static void fill_defaults(struct conf_reader *r, struct scope *s) {
        const struct conf_option *row;
        size_t offset;

        for (size_t i = 0; (row = conf_table_row(s->table, i, &offset)); i++) {
                char *out = s->base + offset + row->offset;
                const char *wrong = NULL;

                assert(i < ROWS_MAX);
                if (s->seen[i])
                        continue;
                if (row->flags & CONF_REQUIRED) {
                        conf_fault_add(r->faults, line_of_option(r, s->node, row->name),
                                       "%s%s: is missing: %s", s->label, row->name, row->sentence);
                } else if (row->preset && is_list(row->type)) {
                        struct conf_map *list = (struct conf_map *)(void *)out;

                        list->at =
                                conf_arena_take(r->place.arena, conf_value_element_size(row->type));
                        list->count = 1;
                        wrong = conf_value_parse(&r->place, row, row->preset, list->at);
                } else if (row->preset) {
                        wrong = conf_value_parse(&r->place, row, row->preset, out);
                }
                assert(!wrong);
        }
}

static void read_scope(struct conf_reader *r, struct scope *s) {
        if (s->node && !is_null(s->node))
                read_section(r, s, "", s->node);
        fill_defaults(r, s);
}

/* ---- the file ---- */

/* Loads the only document of the file; says what is wrong with it. */
static bool load_document(yaml_parser_t *parser, yaml_document_t *document,
                          struct conf_faults *faults) {
        yaml_document_t second;
        bool is_single;

        if (!yaml_parser_load(parser, document)) {
                conf_fault_add(faults, (unsigned)parser->problem_mark.line + 1,
                               "expected YAML: %s%s%s", parser->problem ? parser->problem : "?",
                               parser->context ? ", " : "", parser->context ? parser->context : "");
                return false;
        }
        if (!yaml_parser_load(parser, &second)) {
                conf_fault_add(faults, (unsigned)parser->problem_mark.line + 1, "expected YAML: %s",
                               parser->problem ? parser->problem : "?");
                yaml_document_delete(document);
                return false;
        }
        is_single = !yaml_document_get_root_node(&second);
        yaml_document_delete(&second);
        if (!is_single) {
                conf_fault_add(faults, 0, "expected a single YAML document");
                yaml_document_delete(document);
        }
        return is_single;
}

static FILE *open_file(struct conf_faults *faults) {
        struct stat st;
        FILE *in = fopen(faults->file, "re");

        if (!in || fstat(fileno(in), &st) != 0) {
                conf_fault_add(faults, 0, "cannot read: %s", strerror(errno));
        } else if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX_BYTES) {
                conf_fault_add(faults, 0, "expected a file of at most %d bytes", FILE_MAX_BYTES);
        } else {
                return in;
        }
        if (in)
                (void)fclose(in);
        return NULL;
}

/* Absolute, so that a printed configuration loads from anywhere. */
static const char *folder_of(struct conf_arena *arena, const char *file) {
        char *whole = realpath(file, NULL);
        const char *folder = ".";

        if (whole) {
                size_t len = (size_t)(strrchr(whole, '/') - whole);

                folder = conf_arena_text(arena, (struct span){whole, len});
                free(whole);
        }
        return folder;
}

int conf_read(const struct conf_table *table, void *conf, struct conf_arena *arena,
              struct conf_faults *faults, conf_finish *finish) {
        yaml_parser_t parser;
        yaml_document_t document;
        FILE *in = open_file(faults);

        if (!in)
                return CONF_FAULTY;
        if (yaml_parser_initialize(&parser)) {
                yaml_parser_set_input_file(&parser, in);
                if (load_document(&parser, &document, faults)) {
                        struct conf_reader r = {.document = &document,
                                                .place = {arena, folder_of(arena, faults->file)},
                                                .faults = faults};
                        struct scope s = {.table = table,
                                          .base = conf,
                                          .label = "",
                                          .node = yaml_document_get_root_node(&document)};

                        read_scope(&r, &s);
                        if (faults->count == 0 && finish)
                                finish(&r, conf);
                        yaml_document_delete(&document);
                }
                yaml_parser_delete(&parser);
        } else {
                conf_fault_add(faults, 0, "out of memory");
        }
        (void)fclose(in);
        conf_faults_sort(faults);
        return faults->count ? CONF_FAULTY : 0;
}
