#include "conf/print.h"

#include <stdlib.h>

#include "conf/values.h"

static size_t section_len(const char *name) {
        const char *point = strchr(name, '.');

        return point ? (size_t)(point - name) : 0;
}

static void print_rows(const struct conf_table *table, const char *base, const char *indent,
                       FILE *to);

static void print_map(const struct conf_option *row, const struct conf_map *map, FILE *to) {
        const struct conf_element *e = row->element;
        const struct conf_part part = {e->rows, e->row_count, 0};
        const struct conf_table table = {.parts = &part, .part_count = 1};

        (void)fprintf(to, "%s:%s\n", row->name, map->count ? "" : " {}");
        for (size_t i = 0; i < map->count; i++) {
                const char *element = (const char *)map->at + i * e->size;

                (void)fprintf(to, "  %s:\n",
                              *(const char *const *)(const void *)(element + e->name_offset));
                print_rows(&table, element, "    ", to);
        }
}

static void print_rows(const struct conf_table *table, const char *base, const char *indent,
                       FILE *to) {
        const struct conf_option *row;
        const char *section = "";
        size_t len = 0, offset;

        for (size_t i = 0; (row = conf_table_row(table, i, &offset)); i++) {
                const char *at = base + offset + row->offset;
                size_t own = section_len(row->name);

                if (own > 0 && (own != len || strncmp(section, row->name, len) != 0))
                        (void)fprintf(to, "%s%.*s:\n", indent, (int)own, row->name);
                section = row->name;
                len = own;
                if (row->type == CONF_MAP) {
                        print_map(row, (const struct conf_map *)(const void *)at, to);
                        continue;
                }
                (void)fprintf(to, "%s%s%s: ", indent, own ? "  " : "", row->name + own + (own > 0));
                conf_value_print(to, row, at);
                (void)fputc('\n', to);
        }
}

void conf_print(const struct conf_table *table, const void *conf, FILE *to) {
        print_rows(table, conf, "", to);
}

static const char *type_name(enum conf_type type) {
        static const char *const names[] = {
                [CONF_BOOL] = "true or false",
                [CONF_COUNT] = "number",
                [CONF_DURATION] = "duration",
                [CONF_SIZE] = "size",
                [CONF_CHOICE] = "one of",
                [CONF_TEXT] = "text",
                [CONF_FILE] = "file",
                [CONF_FOLDER] = "folder",
                [CONF_STATE] = "folder",
                [CONF_OUTPUT] = "file",
                [CONF_ADDRESS] = "host:port",
                [CONF_TEXTS] = "list of texts",
                [CONF_FILES] = "list of files",
                [CONF_ADDRESSES] = "list of host:port",
                [CONF_NETWORKS] = "list of address blocks",
                [CONF_MAP] = "section of names",
        };

        return names[type];
}

static void manual_row(const struct conf_option *row, const char *prefix, FILE *to) {
        (void)fprintf(to, "| `%s%s` | %s | ", prefix, row->name, type_name(row->type));
        conf_value_range(to, row);
        if (row->flags & CONF_REQUIRED)
                (void)fprintf(to, " | required | ");
        else if (row->preset)
                (void)fprintf(to, " | `%s` | ", row->preset);
        else
                (void)fprintf(to, " | – | ");
        (void)fprintf(to, "%s | %s |\n", row->flags & CONF_RELOADABLE ? "SIGHUP" : "restart",
                      row->sentence);
}

void conf_manual(const struct conf_table *table, FILE *to) {
        const struct conf_option *row;
        size_t offset;

        (void)fprintf(to, "| option | value | range | default | takes effect at | meaning |\n"
                          "|---|---|---|---|---|---|\n");
        for (size_t i = 0; (row = conf_table_row(table, i, &offset)); i++) {
                char prefix[64];

                manual_row(row, "", to);
                if (row->type != CONF_MAP)
                        continue;
                (void)snprintf(prefix, sizeof(prefix), "%s.NAME.", row->name);
                for (size_t k = 0; k < row->element->row_count; k++)
                        manual_row(&row->element->rows[k], prefix, to);
        }
}

/* The value of one option as it is printed; the caller frees it. */
static char *value_text(const struct conf_option *row, const char *at) {
        char *text = NULL;
        size_t len;
        FILE *to = open_memstream(&text, &len);

        assert(to);
        if (row->type == CONF_MAP) {
                print_map(row, (const struct conf_map *)(const void *)at, to);
        } else {
                struct conf_option plain = *row;

                plain.flags &= ~(unsigned)CONF_MASKED;
                conf_value_print(to, &plain, at);
        }
        (void)fclose(to);
        assert(text);
        return text;
}

size_t conf_restart_needed(const struct conf_table *table, const void *before, const void *after,
                           FILE *to) {
        const struct conf_option *row;
        size_t offset, count = 0;

        for (size_t i = 0; (row = conf_table_row(table, i, &offset)); i++) {
                char *a, *b;

                if (row->flags & CONF_RELOADABLE)
                        continue;
                a = value_text(row, (const char *)before + offset + row->offset);
                b = value_text(row, (const char *)after + offset + row->offset);
                if (strcmp(a, b) != 0) {
                        (void)fprintf(to, "%s\n", row->name);
                        count++;
                }
                free(a);
                free(b);
        }
        return count;
}
