/* conf/print.h - a configuration and its table, for people.
 *
 * Context    any thread; reads only.
 */
#ifndef CONF_PRINT_H
#define CONF_PRINT_H

#include "conf/options.h"

/* YAML of every option, in the table's order. */
void conf_print(const struct conf_table *table, const void *conf, FILE *to);

/* The options as a Markdown table. */
void conf_manual(const struct conf_table *table, FILE *to);

/* Names of the options that differ and are not reloadable, one a line. */
size_t conf_restart_needed(const struct conf_table *table, const void *before, const void *after,
                           FILE *to);

#endif
