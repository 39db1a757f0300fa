/* loadgen/strategies/way.h - the ways to hold a unit that are plain SQL, each as
 * one buyer's sale on one connection.
 *
 * They write the origin's own tables: a sale is a hold, its journal row, and one
 * unit less of the item, so that only the way of holding the row differs. What
 * each does, and where its lock begins and ends, stands beside its statements.
 *
 * Units      microseconds; the wall clock where the server's is compared with it.
 * Ownership  a buyer borrows everything; lg_buyer_close ends what it opened.
 * Context    a process of its own, blocking.
 */
#ifndef LOADGEN_STRATEGIES_WAY_H
#define LOADGEN_STRATEGIES_WAY_H

#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#include "net/base.h"

#define LG_BATCH 100   /* sales of one lock where buyers are gathered */
#define LG_SEGMENTS 16 /* rows that share the stock of one item */

enum lg_sale_end {
        LG_SALE_SOLD,
        LG_SALE_REFUSED, /* nothing is left */
        LG_SALE_GAVE_UP, /* waited or tried too long */
        LG_SALE_BROKEN,  /* an error that is none of the way's own; told on stderr */
};

struct lg_buyer;

struct lg_way {
        const char *name;
        enum lg_sale_end (*sell)(struct lg_buyer *b);
        uint32_t sales;    /* of one sell(); 0: one */
        uint32_t rows;     /* that can be locked at the same time; 0: as many as buyers */
        uint32_t most;     /* connections that make sense; 0: as many as there are */
        uint32_t pause_ms; /* in the middle, with the row locked */
        bool is_redis;     /* the unit is taken there, in a set by the item's name */
        const char *takes; /* its main statement */
};

struct lg_buyer {
        const struct lg_way *way;
        const char *item;
        PGconn *pg;
        redisContext *redis; /* NULL: not needed */
        uint32_t number;     /* of the connection */
        uint32_t chance;     /* for choosing a segment */
        uint64_t serial;     /* of the sale */
        uint64_t retries, locks, held_us;
        void (*between)(struct lg_buyer *b); /* two steps in two places; NULL: no hurry */
        void *owner;
};

/* NULL: no such. */
const struct lg_way *lg_way_named(const char *name);
const struct lg_way *lg_way_at(size_t i);

/* Connects and prepares. 0, or 1 after a line on stderr. */
NET_MUST int lg_buyer_open(struct lg_buyer *b, const char *url, const char *redis);
void lg_buyer_close(struct lg_buyer *b);

/* Connects as the buyers do. NULL after a line on stderr. */
PGconn *lg_way_connect(const char *url);
/* redis://:PASSWORD@HOST:PORT. NULL after a line on stderr. */
redisContext *lg_way_redis(const char *url);

int64_t lg_wall_us(void);

#endif
