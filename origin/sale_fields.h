/* origin/sale_fields.h - the fields of a sale's window: defaults, checks, and
 * the one text they are kept as.
 *
 * A window is read from a body (PUT), or from the kept text with a body laid
 * over it (PATCH). Equal windows give equal text.
 *
 * Units      as the names say; instants in ms since the epoch.
 * Ownership  spans and trees point into the bodies they were read from.
 * Context    any thread; pure.
 */
#ifndef ORIGIN_SALE_FIELDS_H
#define ORIGIN_SALE_FIELDS_H

#include "net/json.h"

#define ORG_SALE_RULES_MAX 64 /* of `match`, of `bypass` */
#define ORG_SALE_TEXT_MAX 32768

struct org_sale {
        struct span tenant, item;                          /* item: p NULL when it has none */
        int64_t opens_at_ms, prequeue_at_ms, closes_at_ms; /* JSON_NO_TIME: null */
        int queue;                                         /* fifo draw random passthrough reject */
        double overbook;                                   /* 1..2 */
        int64_t rate_per_minute, max_active;               /* 0: none */
        int64_t per_account;
        int64_t hold_seconds, extend_seconds, first_use_seconds, pass_seconds, skip_seconds,
                forget_seconds;
        const json_t *match, *bypass;                          /* NULL: none */
        struct span upstream, pages, login_url, beacon_source; /* p NULL: null */
        int identity;                                          /* account guest */
        int guest_work;                                        /* none auto */
        int store_loss;                                        /* hold trickle */
        int left;                                              /* hidden exact few */
        bool names_end; /* the last body read had `closes_at` */
};

void org_sale_init(struct org_sale *s);

/* Reads a body: `is_patch` leaves what it does not name as it is. The result
 * is in b->error; json_body_finish has run. Nothing is checked across fields. */
void org_sale_read(struct org_sale *s, struct json_body *b, bool is_patch,
                   int64_t max_hold_seconds);
/* Checks across fields; adds its fault to `b`. */
void org_sale_check(const struct org_sale *s, struct json_body *b);
void org_sale_write(const struct org_sale *s, struct json_out *o);

#endif
