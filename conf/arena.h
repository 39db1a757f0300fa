/* conf/arena.h - memory that dies with its configuration.
 *
 * Ownership  conf_arena_fini frees all that was given.
 * Context    start and reload; running out of memory there ends the program.
 */
#ifndef CONF_ARENA_H
#define CONF_ARENA_H

#include "net/base.h"

struct conf_arena {
        struct conf_chunk *chunks;
};

/* Zeroed; never NULL. */
void *conf_arena_take(struct conf_arena *a, size_t bytes);
/* A terminated copy. */
const char *conf_arena_text(struct conf_arena *a, struct span text);
void conf_arena_fini(struct conf_arena *a);

#endif
