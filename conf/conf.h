/* conf/conf.h - what both configurations share: values, faults, the manual.
 *
 * A YAML file is read against one option table a program (conf/options.h)
 * into one struct that nobody changes afterwards. Every fault of the file is
 * collected in one run: FILE:LINE: field: what was expected.
 *
 * Times and sizes carry a unit in the file (10s, 250ms, 64KiB); here they are
 * milliseconds and bytes. File names are relative to the folder of the
 * configuration file and are absolute, or resolved that way, here.
 *
 * Ownership  a configuration owns all it points to, until its free.
 * Context    loading: any thread; a loaded one: all threads, read only.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdio.h>

#include "net/base.h"
#include "net/log.h"

#define CONF_FAULTS_MAX 100 /* kept; more are only counted */

/* The file has faults: the one positive outcome of loading. */
enum conf_outcome { CONF_FAULTY = 1 };

struct conf_fault {
        unsigned line; /* from 1; 0: the file as a whole */
        char *text;    /* "limits.idle: expected a duration …" */
};

struct conf_faults {
        char *file;
        struct conf_fault at[CONF_FAULTS_MAX];
        size_t count; /* found; those above CONF_FAULTS_MAX have no text */
};

/* One line a fault, FILE:LINE: text. */
void conf_faults_print(const struct conf_faults *faults, FILE *to);
void conf_faults_fini(struct conf_faults *faults);

struct conf_texts {
        const char **at;
        size_t count;
};

/* host:port. A name is looked up once, when the file is read. */
struct conf_address {
        const char *text;    /* numeric: 127.0.0.1:8443, [::1]:8443 */
        const char *written; /* as in the file */
        uint16_t port;       /* 0 (listeners only): any free one */
};

struct conf_addresses {
        struct conf_address *at;
        size_t count;
};

/* An address block; IPv4 is mapped into ::ffff:0:0/96. */
struct conf_network {
        uint8_t address[16];
        uint8_t bits; /* 0..128 */
};

struct conf_networks {
        struct conf_network *at;
        size_t count;
};

/* `address` as above (IPv4 mapped). */
bool conf_networks_hold(const struct conf_networks *networks, const uint8_t address[16]);

/* What a listener bears, the same in both programs. */
struct conf_limits {
        uint32_t max_connections;             /* each process */
        uint32_t max_streams;                 /* at once, a connection */
        uint32_t max_requests_per_connection; /* then GOAWAY */
        uint32_t handshakes_in_progress;      /* then accepting waits */
        uint32_t handshakes_per_turn;         /* of one loop: accepts, and steps */
        uint32_t repeated_heads;              /* kept in one worker */
        uint32_t header_fields;
        size_t header_bytes;
        size_t body_bytes;   /* of requests to our own API */
        size_t queued_bytes; /* output waiting in one connection */
        size_t memory_bytes; /* of the process; 0: what the system allows */
        uint32_t idle_ms;
        uint32_t handshake_timeout_ms;
        uint32_t header_timeout_ms;
        uint32_t body_timeout_ms;
        uint32_t write_stall_ms;
        uint32_t glitch_burst; /* weighted protocol oddities of a connection */
        uint32_t glitch_per_s;
        uint32_t reset_burst; /* premature stream resets of a connection */
        uint32_t reset_per_s;
        uint32_t handshake_slow_ms; /* then it counts as failed */
        uint32_t network_strikes;   /* 0: none */
        uint32_t network_closed_ms;
        uint32_t accept_wait_ms;
        uint32_t turn_ms; /* of a loop; 0: no limit */
};

struct conf_log {
        enum log_level level;
        const char *file; /* NULL: stderr */
};

#endif
