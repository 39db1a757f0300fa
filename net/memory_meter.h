/* net/memory_meter.h - how much memory this process may have, and has.
 *
 * The limit is the smallest of
 *   - what memory.max (cgroup v2) or memory.limit_in_bytes (v1) allow, of the
 *     process's own cgroup (/proc/self/cgroup) and of every one above it;
 *   - RLIMIT_AS, less the addresses that were mapped but not filled when the
 *     meter was opened, so that it, too, is a limit of filled memory;
 *   - the machine's memory;
 * or a number that the operator gives, and then none of these is read.
 *
 * What it has is the resident memory less its pages of files
 * (/proc/self/statm): those the kernel takes back by itself, the map of the line
 * among them. If a cgroup is the limit, everything charged to that counts, other
 * processes and the kernel's buffers too, but for cached files, since the OOM
 * killer does not ask whose it is; the larger of both is what counts.
 *
 * Units      bytes.
 * Ownership  a plain value; memory_meter_close() closes its files.
 * Context    one thread at a time; reading is a few system calls.
 */
#ifndef NET_MEMORY_METER_H
#define NET_MEMORY_METER_H

#include "net/base.h"

struct memory_meter {
        uint64_t limit_bytes;
        const char *limit_by; /* "option", "cgroup", "address space", "machine" */
        int statm_fd;
        int usage_fd, stat_fd; /* of the cgroup that is the limit; else -1 */
        bool is_v2;
};

/* Where it looks; the defaults, or a test's own files. */
struct memory_paths {
        const char *self;  /* "/proc/self": cgroup, statm */
        const char *mount; /* "/sys/fs/cgroup" */
};

/* `limit_bytes` 0: finds it. `paths` NULL: the system's. It cannot fail: what
 * cannot be read limits nothing. */
void memory_meter_open(struct memory_meter *m, uint64_t limit_bytes,
                       const struct memory_paths *paths);
void memory_meter_close(struct memory_meter *m);
/* Bytes in use; 0 when nothing could be read. */
uint64_t memory_meter_read(const struct memory_meter *m);

#endif
