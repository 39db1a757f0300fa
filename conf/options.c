#include "conf/options.h"

#include "conf/read.h"
#include "net/watchdog.h"

#define ROW(field, kind, given, from, to, says)                                                    \
        {                                                                                          \
                .name = "limits." #field, .type = (kind), .preset = (given), .low = (from),        \
                .high = (to), .offset = offsetof(struct conf_limits, field), .sentence = (says)    \
        }
#define TIMED(word, given, from, to, says)                                                         \
        {                                                                                          \
                .name = "limits." #word, .type = CONF_DURATION, .preset = (given), .low = (from),  \
                .high = (to), .offset = offsetof(struct conf_limits, word##_ms),                   \
                .sentence = (says)                                                                 \
        }

const struct conf_option conf_limit_rows[CONF_LIMIT_ROWS] = {
        ROW(max_connections, CONF_COUNT, "100000", 1, 10000000,
            "Connections of the process; further ones are closed at once."),
        ROW(max_streams, CONF_COUNT, "100", 1, 100, "Requests at the same time on one connection."),
        ROW(max_requests_per_connection, CONF_COUNT, "100000", 1, 100000000,
            "Requests on one connection before it is asked to come back on a new one."),
        ROW(handshakes_in_progress, CONF_COUNT, "1000", 1, 100000,
            "TLS handshakes under way in one worker; above it accepting waits."),
        ROW(handshakes_per_turn, CONF_COUNT, "8", 1, 10000,
            "New connections taken, and steps of handshakes done, in one turn of a worker's loop."),
        ROW(repeated_heads, CONF_COUNT, "1024", 0, 65536,
            "Heads kept in one worker for connections that send the same one again."),
        ROW(header_fields, CONF_COUNT, "100", 10, 1000, "Header fields of one request."),
        ROW(header_bytes, CONF_SIZE, "16KiB", 1024, 65536,
            "Size of a request's header fields, 32 bytes added for each."),
        ROW(body_bytes, CONF_SIZE, "4KiB", 256, 1 << 20,
            "Size of a request body to sluice's own interface."),
        ROW(queued_bytes, CONF_SIZE, "64KiB", 16384, 16 << 20,
            "Output that may wait in one connection before its requests wait."),
        {.name = "limits.memory",
         .preset = "auto",
         .type = CONF_SIZE,
         .flags = CONF_AUTO,
         .low = 32 << 20,
         .high = 1ull << 44,
         .offset = offsetof(struct conf_limits, memory_bytes),
         .sentence = "Memory of the process. At 85 % of it nobody is accepted, at 92 % idle "
                     "connections are sent away, at 95 % the dearest are cut. auto: the least of "
                     "its cgroup's limit, its address space and the machine's memory."},
        TIMED(idle, "150s", 1000, 3600000, "A connection without requests is closed after this."),
        TIMED(handshake_timeout, "5s", 100, 60000, "From accepting to the end of the handshake."),
        TIMED(header_timeout, "5s", 100, 60000, "For the header fields of one request."),
        TIMED(body_timeout, "10s", 100, 600000, "For the body of one request."),
        TIMED(write_stall, "10s", 100, 600000,
              "Output that makes no progress for so long ends the connection; half of that, "
              "for want of window, ends the stream."),
        ROW(glitch_burst, CONF_COUNT, "1000", 10, 1000000,
            "Protocol oddities, weighted, that one connection may show at once."),
        ROW(glitch_per_s, CONF_COUNT, "100", 1, 100000, "Oddities forgiven each second."),
};

#define RESETS(burst, per_s)                                                                       \
        ROW(reset_burst, CONF_COUNT, burst, 10, 1000000,                                           \
            "Requests a connection may reset before their answer is complete."),                   \
                ROW(reset_per_s, CONF_COUNT, per_s, 1, 100000, "Resets forgiven each second.")

const struct conf_option conf_reset_rows[CONF_RESET_ROWS] = {RESETS("100", "20")};

/* Many shoppers share the connection of a gateway, and each that leaves early is
 * a request reset; one of them must not end it for all. */
const struct conf_option conf_inner_reset_rows[CONF_RESET_ROWS] = {RESETS("10000", "1000")};

const struct conf_option conf_crowd_rows[CONF_CROWD_ROWS] = {
        TIMED(handshake_slow, "2s", 100, 60000,
              "A handshake that takes longer counts as failed for its network."),
        ROW(network_strikes, CONF_COUNT, "20", 0, 1000000,
            "Failed handshakes of one network (IPv4 /24, IPv6 /56) that close it in one worker; "
            "each good one takes one back. 0: never."),
        TIMED(network_closed, "10s", 100, 3600000,
              "For how long new connections of such a network are closed at once."),
        TIMED(accept_wait, "2s", 10, 60000,
              "New connections that come faster than they can be taken, for longer than this, "
              "are closed at once."),
        TIMED(turn, "25ms", 0, 60000,
              "Once a turn of a worker's loop has served hundreds of requests and is older than "
              "this, its further requests are answered 503; while it goes on, their connections "
              "are sent away and new ones closed. 0: never."),
};

#define WATCHED(word, given, to, says)                                                             \
        {                                                                                          \
                .name = "watchdog." #word, .type = CONF_DURATION, .preset = (given), .high = (to), \
                .offset = offsetof(struct watchdog_conf, word##_ms), .sentence = (says)            \
        }

const struct conf_option conf_watchdog_rows[CONF_WATCHDOG_ROWS] = {
        WATCHED(report, "1s", 60000,
                "A turn of a loop that has taken so much processor time, and has not ended, is "
                "logged with where it is. 0: never."),
        WATCHED(abort, "5s", 600000,
                "After so much the process ends, to be started anew. 0: never."),
};

void conf_watchdog_finish(struct conf_reader *reader, const struct watchdog_conf *conf) {
        if (conf->abort_ms > 0 && conf->abort_ms <= conf->report_ms)
                conf_reader_fault(reader, "watchdog.abort", "expected more than watchdog.report");
}

static const char *const levels[] = {"debug", "info", "warn", "error", NULL};

const struct conf_option conf_log_rows[CONF_LOG_ROWS] = {
        {.name = "log.level",
         .type = CONF_CHOICE,
         .preset = "info",
         .choices = levels,
         .flags = CONF_RELOADABLE,
         .offset = offsetof(struct conf_log, level),
         .sentence = "The least weighty lines that are written."},
        {.name = "log.file",
         .type = CONF_OUTPUT,
         .flags = CONF_RELOADABLE,
         .offset = offsetof(struct conf_log, file),
         .sentence = "Appended to, and opened again at SIGHUP; none: standard error."},
};

const struct conf_option *conf_table_row(const struct conf_table *table, size_t n, size_t *offset) {
        for (size_t i = 0; i < table->part_count; i++) {
                const struct conf_part *part = &table->parts[i];

                if (n < part->row_count) {
                        *offset = part->offset;
                        return &part->rows[n];
                }
                n -= part->row_count;
        }
        return NULL;
}
