/* conf/options.h - the option table: one row an option, from which the
 * parser, the range check, the printed configuration and the manual grow.
 *
 * A row's name is its path in the file, dotted. Its default stands as it would
 * be written there, and is read by the same code. A table is made of parts,
 * so that what both programs share is written once.
 *
 * Ownership  tables are constant; values live in the arena of their
 *            configuration.
 * Context    start and reload, one thread.
 */
#ifndef CONF_OPTIONS_H
#define CONF_OPTIONS_H

#include "conf/conf.h"

enum conf_type {
        CONF_BOOL,      /* bool */
        CONF_COUNT,     /* uint32_t; low..high */
        CONF_DURATION,  /* uint32_t, ms; low..high in ms */
        CONF_SIZE,      /* size_t, bytes; low..high in bytes */
        CONF_CHOICE,    /* an enum from 0; `choices` */
        CONF_TEXT,      /* const char * */
        CONF_FILE,      /* const char *; readable, low..high bytes if high > 0 */
        CONF_FOLDER,    /* const char *; exists */
        CONF_STATE,     /* const char *; a folder that the program may make */
        CONF_OUTPUT,    /* const char *; a file that the program may make */
        CONF_ADDRESS,   /* struct conf_address; port low..65535 */
        CONF_TEXTS,     /* struct conf_texts */
        CONF_FILES,     /* struct conf_texts; each as CONF_FILE */
        CONF_ADDRESSES, /* struct conf_addresses */
        CONF_NETWORKS,  /* struct conf_networks */
        CONF_MAP,       /* struct conf_map; each element as `element` says */
};

enum {
        CONF_REQUIRED = 1,   /* no default; for lists: at least one */
        CONF_RELOADABLE = 2, /* SIGHUP is enough */
        CONF_MASKED = 4,     /* a password inside is not printed */
        CONF_AUTO = 8,       /* a size: the word `auto` is taken too, as 0 */
};

/* A named list of structs, laid out like the anonymous ones in configs. */
struct conf_map {
        void *at;
        size_t count;
};

struct conf_element {
        const struct conf_option *rows;
        size_t row_count;
        size_t size;        /* of one struct */
        size_t name_offset; /* of its const char *name */
};

struct conf_option {
        const char *name;
        const char *preset; /* NULL: none */
        enum conf_type type;
        unsigned flags;
        size_t offset; /* in the struct of its part */
        uint64_t low, high;
        const char *const *choices;             /* ended by NULL */
        const char *(*check)(const char *text); /* of texts: NULL, or what was expected */
        const struct conf_element *element;
        const char *sentence; /* for the manual */
};

struct conf_part {
        const struct conf_option *rows;
        size_t row_count;
        size_t offset; /* of its struct in the whole one */
};

struct conf_table {
        const char *program;
        const struct conf_part *parts;
        size_t part_count;
};

/* The n-th row of the table and where its part begins; NULL after the last. */
const struct conf_option *conf_table_row(const struct conf_table *table, size_t n, size_t *offset);

/* Shared parts: struct conf_limits, watchdog_conf, conf_log. The limits of resets
 * are a part of their own: they differ by who calls, shoppers or gateways. */
#define CONF_LIMIT_ROWS 18
#define CONF_RESET_ROWS 2
#define CONF_CROWD_ROWS 5 /* limits for those whom shoppers call themselves */
#define CONF_WATCHDOG_ROWS 2
#define CONF_LOG_ROWS 2
extern const struct conf_option conf_limit_rows[CONF_LIMIT_ROWS];
extern const struct conf_option conf_crowd_rows[CONF_CROWD_ROWS];
extern const struct conf_option conf_reset_rows[CONF_RESET_ROWS];
extern const struct conf_option conf_inner_reset_rows[CONF_RESET_ROWS];
extern const struct conf_option conf_watchdog_rows[CONF_WATCHDOG_ROWS];
extern const struct conf_option conf_log_rows[CONF_LOG_ROWS];

struct conf_reader;
struct watchdog_conf;

/* What one row of the watchdog's alone cannot say; a part of conf_finish. */
void conf_watchdog_finish(struct conf_reader *reader, const struct watchdog_conf *conf);

#endif
