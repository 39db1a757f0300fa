/* conf/gateway.h - the gateway's configuration.
 *
 * Field for field the file conf/gateway.yaml; what each means stands in the
 * option table (conf/gateway.c) and in docs/configuration.md.
 *
 * Units      in the names; bytes for sizes.
 * Ownership  conf_load_gateway .. conf_gateway_free.
 */
#ifndef CONF_GATEWAY_H
#define CONF_GATEWAY_H

#include "conf/conf.h"
#include "net/watchdog.h"

enum conf_store_kind { CONF_STORE_MEMORY };
enum conf_protocol { CONF_PROTOCOL_H2C, CONF_PROTOCOL_H2, CONF_PROTOCOL_HTTP11 };

struct conf_upstream {
        const char *name; /* as sales name it: [a-z0-9][a-z0-9-]{0,62} */
        struct conf_address address;
        enum conf_protocol protocol;
        const char *ca_file;     /* NULL: in the clear */
        const char *server_name; /* NULL: the host of `address` */
        const char *host;        /* NULL: as the client asked */
        uint32_t connections;    /* a worker; 0: as many as suit the protocol */
        uint32_t max_in_flight;  /* requests, a worker */
        uint32_t connect_timeout_ms;
        uint32_t request_timeout_ms;
        uint32_t idle_timeout_ms; /* HTTP/1.1 */
        size_t read_ahead_bytes;  /* of an answer its client does not take */
        uint32_t unread_per_client;
};

struct conf_gateway {
        struct conf_addresses listen; /* >= 1 */
        struct conf_texts hosts;      /* lower case, as in :authority; >= 1 */
        bool hosts_any;               /* `hosts: [any]` */
        uint32_t workers;             /* threads, >= 1; default: the machine's cores */
        const char *state_directory;
        const char *pages_directory; /* NULL: the built-in pages */
        uint32_t drain_ms;
        uint32_t poll_budget_per_s;
        uint32_t max_event_streams;
        struct conf_networks trusted_proxies;

        struct {
                const char *certificate; /* PEM chain */
                const char *key;         /* PEM */
                uint32_t ticket_rotation_ms;
        } tls;

        struct conf_limits limits;
        size_t forward_body_bytes;   /* of a request that is forwarded */
        uint32_t requests_waiting;   /* for body, origin or application, a worker */
        size_t forward_unread_bytes; /* of answers read ahead, a worker */

        struct {
                uint32_t network_failures_per_minute; /* an address or /64 */
                uint32_t network_guest_joins_per_minute;
                uint32_t account_requests_per_s; /* an account and sale */
                uint32_t account_burst;
                uint32_t entries; /* of the shared table */
        } limiter;

        struct {
                const char *cookie;     /* NULL: bearer only */
                struct conf_texts keys; /* JWK, JWK Set or PEM files; may be none */
                const char *issuer;     /* NULL: not looked at */
                const char *audience;   /* NULL: not looked at */
                uint32_t leeway_ms;
                uint32_t cache_entries; /* verified tokens, a worker */
        } accounts;

        struct {
                struct conf_texts keys; /* PEM files, the first signs; >= 1 */
        } pass;

        struct {
                struct conf_texts keys; /* secret files, the first signs; >= 1 */
        } tickets;

        struct {
                enum conf_store_kind kind;
                uint32_t max_sales;
                uint32_t max_numbers;  /* places given, a sale */
                uint32_t max_accounts; /* accounts known, a sale */
        } store;

        struct {
                struct conf_address address;
                const char *token_file;
                uint32_t connections;   /* a worker */
                uint32_t max_in_flight; /* requests, a worker */
                uint32_t connect_timeout_ms;
                uint32_t request_timeout_ms;
        } origin;

        struct {
                uint32_t wait_ms;       /* long poll */
                uint32_t away_after_ms; /* without one: the origin is away */
        } snapshot;

        struct {
                struct conf_upstream *at;
                size_t count;
        } upstreams;

        struct {
                struct conf_addresses listen;
                const char *token_file;
                const char *certificate; /* default: tls.certificate */
                const char *key;
        } admin;

        struct watchdog_conf watchdog;
        struct conf_log log;
};

/* 0, CONF_FAULTY with the faults, or -errno. `faults` is initialised here and
 * needs conf_faults_fini in every case; *conf is NULL unless 0. */
NET_MUST int conf_load_gateway(const char *path, struct conf_gateway **conf,
                               struct conf_faults *faults);
void conf_gateway_free(struct conf_gateway **conf);

/* The effective configuration as YAML that would load again. Names of secret
 * files are shown, never what is in them. */
void conf_print_gateway(const struct conf_gateway *conf, FILE *to);

/* The names of options that differ and take effect only at a restart, one a
 * line; returns how many. */
size_t conf_gateway_restart_needed(const struct conf_gateway *before,
                                   const struct conf_gateway *after, FILE *to);

const struct conf_upstream *conf_gateway_upstream(const struct conf_gateway *conf,
                                                  struct span name);

/* The options as a Markdown table. */
void conf_manual_gateway(FILE *to);

#endif
