/* conf/read.h - a YAML file against an option table.
 *
 * Context    start and reload, one thread.
 */
#ifndef CONF_READ_H
#define CONF_READ_H

#include "conf/arena.h"
#include "conf/options.h"

struct conf_reader;

/* Looks at what one row alone cannot say; runs only when no row had a fault. */
typedef void conf_finish(struct conf_reader *reader, void *conf);

/* A fault of the option `name`, with the line where it is written. */
NET_PRINTF(3, 4)
void conf_reader_fault(struct conf_reader *reader, const char *name, const char *format, ...);

/* Fills `conf`, zeroed by the caller. 0 or CONF_FAULTY; `faults` must have
 * been initialised. */
NET_MUST int conf_read(const struct conf_table *table, void *conf, struct conf_arena *arena,
                       struct conf_faults *faults, conf_finish *finish);

#endif
