/* conf/origin.h - the origin's configuration.
 *
 * Field for field the file conf/origin.yaml; what each means stands in the
 * option table (conf/origin.c) and in docs/configuration.md.
 *
 * Units      in the names; bytes for sizes.
 * Ownership  conf_load_origin .. conf_origin_free.
 */
#ifndef CONF_ORIGIN_H
#define CONF_ORIGIN_H

#include "conf/conf.h"
#include "net/watchdog.h"

struct conf_origin {
        struct conf_addresses listen; /* >= 1 */
        const char *token_file;       /* bearer of gateways, payers, operators */
        const char *pass_jwks;        /* public keys of passes; NULL: not checked here */
        const char *group_prefix;     /* of hold ids, [a-z0-9]{1,8} */
        uint32_t max_hold_seconds;    /* ceiling of a sale's hold_seconds */
        uint32_t drain_ms;
        bool demo_page; /* serves the quickstart's product page */

        struct {
                const char *url;      /* libpq: postgresql://… or key=value words */
                const char *read_url; /* a standby; NULL: none */
                const char *init_url; /* the owner's; NULL: as url */
                uint32_t connections;
                uint32_t pipeline_depth; /* queries in flight, a connection */
                uint32_t max_waiting;    /* requests waiting for a connection */
                uint32_t connect_timeout_ms;
                uint32_t statement_timeout_ms;
                uint32_t lock_timeout_ms;
                bool pooler; /* a pooler in transaction mode stands between */
        } database;

        struct {
                uint32_t batch_max;       /* holds a transaction; 1: each alone */
                uint32_t gather_item_max; /* waiting for one item's turn */
                uint32_t gather_max;      /* for all items' */
                uint32_t items_max;       /* at work on at once */
        } reserve;

        struct {
                bool enabled;
                uint32_t batch; /* holds a transaction */
                uint32_t interval_ms;
        } expiry;

        struct {
                uint32_t max_age_ms;
                uint32_t max_wait_ms; /* of a long poll */
        } snapshot;

        struct {
                uint32_t interval_ms; /* between two looks; 0: never */
        } invariant;

        struct {
                const char *redis;   /* URL; NULL: off */
                const char *stream;  /* key of the stream */
                uint32_t stream_max; /* entries kept, about; 0: all */
                uint32_t batch;      /* events on the way at once */
                uint32_t interval_ms;
                uint32_t deadline_ms; /* of one command, of connecting */
                uint32_t backoff_first_ms, backoff_last_ms;
                uint32_t lease_ms; /* of the duty to relay */
        } relay;

        struct {
                uint32_t interval_ms; /* between two looks at locks; 0: none */
        } watch;

        struct conf_limits limits;
        struct watchdog_conf watchdog;
        struct conf_log log;
};

/* As conf_load_gateway. */
NET_MUST int conf_load_origin(const char *path, struct conf_origin **conf,
                              struct conf_faults *faults);
void conf_origin_free(struct conf_origin **conf);
/* A password inside database.url is shown as ***. */
void conf_print_origin(const struct conf_origin *conf, FILE *to);
size_t conf_origin_restart_needed(const struct conf_origin *before, const struct conf_origin *after,
                                  FILE *to);
void conf_manual_origin(FILE *to);

#endif
