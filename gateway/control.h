/* gateway/control.h - the control thread: it starts and ends the workers,
 * pulls snapshots, publishes them, keeps the store, serves operators and takes
 * signals.
 *
 * The struct is open to the admin listener, which runs on the same loop and
 * reads what it shows from here.
 *
 * Ownership  gw_control_new .. gw_control_free.
 * Context    everything here belongs to the control thread, except what the
 *            headers of the parts say of themselves.
 */
#ifndef GATEWAY_CONTROL_H
#define GATEWAY_CONTROL_H

#include "gateway/counters.h"
#include "gateway/settings.h"
#include "gateway/shared.h"
#include "gateway/snapshot.h"
#include "gateway/worker.h"
#include "net/http_pool.h"
#include "net/loop.h"
#include "net/memory_watch.h"

struct gw_admin;
struct gw_pull;
struct gw_keeper;
struct gw_slots;
struct gw_disk;

struct gw_control {
        struct loop *loop;
        const char *conf_file;
        struct gw_settings *settings; /* of the last good load */
        struct gw_shared shared;
        struct gw_snapshot *snapshot; /* as last published; never NULL while running */
        json_t *document;             /* what it was made of; NULL before the first */
        bool document_is_saved;       /* from disk: the store may know better */
        struct gw_worker **workers;
        size_t n_workers;
        struct gw_counters counters; /* this thread's own */
        struct http_pool *origin;    /* this thread's own connections */
        struct gw_pull *pull;        /* snapshots */
        struct gw_keeper *keeper;    /* the store's upkeep */
        struct gw_disk *disk;        /* writes the last snapshot */
        struct gw_slots *slots;      /* what is remembered of each sale */
        struct gw_admin *admin;
        struct memory_watch memory;
        struct watchdog watchdog;
        struct loop_signal on_term, on_int, on_hup;
        struct loop_wake on_worker_ended;
        struct loop_timer drain_end; /* what is open then is cut off */
        bool draining;               /* SIGTERM came */
        uint64_t reloads, reloads_refused;
        bool store_is_fresh;       /* there was no map, or none of use, when it was opened */
        uint64_t stores_broken;    /* maps put aside that no store can have written */
        int64_t first_heard_at_ms; /* monotonic; 0 not yet */
};

/* Opens everything: store, listeners, threads. 0; 1 with one line in `why` when
 * something the operator can mend is in the way; -errno with one as well. */
NET_MUST int gw_control_new(const char *conf_file, struct gw_settings *settings,
                            struct gw_control **out, char *why, size_t why_cap);
/* Runs until SIGTERM or SIGINT has been obeyed. */
void gw_control_run(struct gw_control *c);
void gw_control_free(struct gw_control **c);

/* Sums over workers and the control thread. */
uint64_t gw_control_requests(const struct gw_control *c, uint32_t slot, enum gw_answer a);
uint64_t gw_control_origin_requests(const struct gw_control *c, enum gw_origin_kind k);
uint64_t gw_control_store_calls(const struct gw_control *c, enum gw_store_op op);

/* The id under which a slot is counted; "" for slot 0. Slots run from 0 to
 * gw_control_slots()-1. A sale keeps its slot after it is gone. */
size_t gw_control_slots(const struct gw_control *c);
const char *gw_control_slot_name(const struct gw_control *c, uint32_t slot);

/* Asks for a fresh snapshot now: after an operator's verb was done. */
void gw_control_pull_now(struct gw_control *c);

/* Ready to serve: workers run, there is a snapshot to answer from, and a store
 * begun anew has seen the seconds in which it lets nobody in. */
bool gw_control_is_ready(const struct gw_control *c);

#endif
