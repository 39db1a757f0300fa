#include "conf/limits.h"

#include <sched.h>
#include <sys/resource.h>

size_t conf_raise_file_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
                return 1024;
        if (limit.rlim_cur < limit.rlim_max) {
                struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};

                if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
                        limit = raised;
        }
        return limit.rlim_cur;
}

uint32_t conf_cores(void) {
        cpu_set_t set;

        CPU_ZERO(&set);
        if (sched_getaffinity(0, sizeof(set), &set) != 0)
                return 1;
        return CPU_COUNT(&set) > 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

struct http_server_limits conf_server_limits(const struct conf_limits *l, uint32_t loops) {
        return (struct http_server_limits){
                .connections = (l->max_connections + loops - 1) / loops,
                .handshakes = (l->handshakes_in_progress + loops - 1) / loops,
                .handshakes_per_turn = l->handshakes_per_turn,
                .network_strikes = l->network_strikes,
                .streams = l->max_streams,
                .requests_per_connection = l->max_requests_per_connection,
                .repeated_heads = l->repeated_heads,
                .header_fields = l->header_fields,
                .header_bytes = (uint32_t)l->header_bytes,
                .queued_bytes = (uint32_t)l->queued_bytes,
                .glitch_burst = l->glitch_burst,
                .glitch_per_s = l->glitch_per_s,
                .reset_burst = l->reset_burst,
                .reset_per_s = l->reset_per_s,
                .handshake_ms = l->handshake_timeout_ms,
                .handshake_slow_ms = l->handshake_slow_ms,
                .network_closed_ms = l->network_closed_ms,
                .accept_wait_ms = l->accept_wait_ms,
                .turn_ms = l->turn_ms,
                .header_ms = l->header_timeout_ms,
                .body_ms = l->body_timeout_ms,
                .stall_ms = l->write_stall_ms,
                .idle_ms = l->idle_ms,
        };
}
