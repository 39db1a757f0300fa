/* tests/unit/adm_world.h - a store with one sale and shoppers, for tests.
 *
 * Units      ms of sale time, which starts at WORLD_T0 and is a variable.
 * Ownership  open/close; the directory is removed at close.
 * Context    one thread, except where a test says otherwise.
 */
#ifndef TESTS_UNIT_ADM_WORLD_H
#define TESTS_UNIT_ADM_WORLD_H

#include "admission/store_memory.h"

#define WORLD_T0 INT64_C(1800000000000)

struct world {
        char dir[64];
        struct adm_store *store;
        struct adm_store_conf conf;
        struct adm_sale_update update;
        uint32_t sale;
        int64_t now_ms;
        uint64_t seed;
};

/* A shopper: what they carry. */
struct shopper {
        struct adm_tag tag;
        bool guest;
        bool has_ticket;
        struct adm_ticket ticket;
        bool has_pass;
        struct adm_pass pass;
        struct adm_place place; /* the last answer */
};

uint64_t world_random(struct world *w);

/* An open fifo sale of `units`, opened a minute ago, known and alive. */
void world_open(struct world *w, int64_t units);
void world_close(struct world *w);

/* Close and open the store on the same directory; -> outcome of open. */
int world_reopen(struct world *w);

/* Tells the store the update as it stands, and that the origin lives. */
void world_tell(struct world *w);

/* Stock changes by these, with a new version, and is told. */
void world_stock(struct world *w, int64_t available, int64_t held, int64_t sold);

/* Time passes in ticks of 100 ms, the origin alive. */
void world_pass(struct world *w, int64_t ms);

struct shopper world_shopper(uint32_t n, bool guest);
int world_join(struct world *w, struct shopper *s);
int world_poll(struct world *w, struct shopper *s);
int world_use(struct world *w, struct shopper *s);

/* A new account that joins: it must be let in, or must wait. */
struct shopper world_admitted(struct world *w, uint32_t n);
struct shopper world_waiting(struct world *w, uint32_t n);

/* Looks the shopper's pass up; -> the store's outcome. */
int world_look(struct world *w, struct shopper *s);

/* Units that passes in force may still take. */
uint64_t world_outstanding(struct world *w);

/* The pass as the shopper shows it. */
struct adm_shown world_shown(const struct shopper *s);

/* Begin and end of a hold that the origin grants until `end_ms`. */
int world_hold(struct world *w, struct shopper *s, uint32_t qty, int64_t end_ms);

struct adm_view world_view(struct world *w);

#endif
