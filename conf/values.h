/* conf/values.h - one value: from its text in a file, and back.
 *
 * Each parser returns NULL, or what was expected as a sentence that ends
 * "FIELD: " well; it lives until the next call of that thread.
 *
 * Ownership  texts go into the arena.
 * Context    start and reload.
 */
#ifndef CONF_VALUES_H
#define CONF_VALUES_H

#include "conf/arena.h"
#include "conf/options.h"

/* Where a value is read: file names are relative to `folder`. */
struct conf_place {
        struct conf_arena *arena;
        const char *folder;
};

/* Reads one scalar of a row's type (of an element of it, for lists) into
 * `out`, which has room for that type. */
const char *conf_value_parse(const struct conf_place *place, const struct conf_option *option,
                             const char *text, void *out);

/* The element's bytes for list types, 0 for others. */
size_t conf_value_element_size(enum conf_type type);

/* Writes the value at `at` as YAML that reads back as the same. Maps are the
 * caller's. */
void conf_value_print(FILE *to, const struct conf_option *option, const void *at);

/* "1s..1h", "1..65535"; "" when the type has no range. */
void conf_value_range(FILE *to, const struct conf_option *option);

#endif
