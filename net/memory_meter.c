#include "net/memory_meter.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define TEXT_MAX 8192 /* memory.stat of either version is shorter */
#define PATH_MAX_BYTES 1024

static const struct memory_paths system_paths = {"/proc/self", "/sys/fs/cgroup"};

static int open_in(const char *folder, const char *name) {
        char path[PATH_MAX_BYTES * 2];
        int len = snprintf(path, sizeof path, "%s/%s", folder, name);
        if (len < 0 || (size_t)len >= sizeof path)
                return -1;
        return open(path, O_RDONLY | O_CLOEXEC);
}

/* What there is of the file, ended by a NUL. */
static size_t read_text(int fd, char *text, size_t cap) {
        ssize_t n = fd >= 0 ? pread(fd, text, cap - 1, 0) : 0;
        size_t len = n > 0 ? (size_t)n : 0;
        text[len] = '\0';
        return len;
}

static void close_file(int *fd) {
        if (*fd >= 0)
                (void)close(*fd);
        *fd = -1;
}

static size_t read_file(const char *folder, const char *name, char *text, size_t cap) {
        int fd = open_in(folder, name);
        size_t len = read_text(fd, text, cap);
        close_file(&fd);
        return len;
}

/* The number at the front of a text; UINT64_MAX when there is none ("max"). */
static uint64_t number_of(const char *text) {
        return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* ---- this process ---- */

struct statm {
        uint64_t mapped, own; /* bytes; own: resident, and of no file */
};

static struct statm read_statm(int fd) {
        char text[256];
        char *end;
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        if (read_text(fd, text, sizeof text) == 0)
                return (struct statm){0, 0};
        uint64_t mapped = strtoull(text, &end, 10);
        uint64_t resident = strtoull(end, &end, 10);
        uint64_t files = strtoull(end, NULL, 10);
        return (struct statm){mapped * page, resident > files ? (resident - files) * page : 0};
}

/* ---- its cgroup ---- */

struct version {
        const char *tag;   /* the line of /proc/self/cgroup has it before its path */
        const char *below; /* the mount */
        const char *limit, *usage;
        const char *cached, *shared, *slabs; /* of memory.stat; NULL: none */
};

static const struct version v1 = {
        ":memory:",     "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache ",
        "total_shmem ", NULL,
};
static const struct version v2 = {
        "0::", "", "memory.max", "memory.current", "file ", "shmem ", "slab_reclaimable ",
};

/* Keeps the folder's limit if it is the smallest so far. */
static void take_limit(struct memory_meter *m, const struct version *v, const char *folder) {
        char text[64];
        if (read_file(folder, v->limit, text, sizeof text) == 0)
                return;
        uint64_t limit = number_of(text);
        if (limit >= m->limit_bytes)
                return;
        close_file(&m->usage_fd);
        close_file(&m->stat_fd);
        m->limit_bytes = limit;
        m->limit_by = "cgroup";
        m->is_v2 = v == &v2;
        m->usage_fd = open_in(folder, v->usage);
        m->stat_fd = open_in(folder, "memory.stat");
}

/* From the process's own cgroup up to the mount's root: all of them bind. In a
 * container the first may be out of sight; then the root is its own. */
static void find_cgroup(struct memory_meter *m, const struct version *v,
                        const struct memory_paths *paths) {
        char text[TEXT_MAX], folder[PATH_MAX_BYTES];
        (void)read_file(paths->self, "cgroup", text, sizeof text);
        char *line = strstr(text, v->tag);
        if (!line)
                return;
        char *path = line + strlen(v->tag);
        path[strcspn(path, "\n")] = '\0';
        for (;;) {
                path[strlen(path) - (strlen(path) > 0 && path[strlen(path) - 1] == '/')] = '\0';
                int len = snprintf(folder, sizeof folder, "%s%s%s", paths->mount, v->below, path);
                if (len > 0 && (size_t)len < sizeof folder)
                        take_limit(m, v, folder);
                char *slash = strrchr(path, '/');
                if (!slash)
                        return;
                *slash = '\0';
        }
}

static uint64_t stat_of(const char *text, const char *name) {
        const char *at = text;
        size_t len = name ? strlen(name) : 0;
        while (len > 0 && *at) {
                if (strncmp(at, name, len) == 0)
                        return number_of(at + len);
                at += strcspn(at, "\n");
                at += *at == '\n';
        }
        return 0;
}

/* What the kernel could not take back: all that is charged, less files it has
 * cached and its own caches. Shared memory counts as cached there, and is not. */
static uint64_t read_cgroup(const struct memory_meter *m) {
        const struct version *v = m->is_v2 ? &v2 : &v1;
        char text[TEXT_MAX];
        if (read_text(m->usage_fd, text, sizeof text) == 0)
                return 0;
        uint64_t used = number_of(text);
        (void)read_text(m->stat_fd, text, sizeof text);
        uint64_t cached = stat_of(text, v->cached) + stat_of(text, v->slabs);
        uint64_t back = cached - stat_of(text, v->shared);
        return used > back ? used - back : 0;
}

/* ---- all of it ---- */

static void find_limit(struct memory_meter *m, const struct memory_paths *paths) {
        struct statm now = read_statm(m->statm_fd);
        struct rlimit space;
        m->limit_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        m->limit_by = "machine";
        if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
                uint64_t empty = now.mapped - now.own;
                uint64_t rest = space.rlim_cur > empty ? space.rlim_cur - empty : 1;
                if (rest < m->limit_bytes) {
                        m->limit_bytes = rest;
                        m->limit_by = "address space";
                }
        }
        find_cgroup(m, &v2, paths);
        find_cgroup(m, &v1, paths);
}

void memory_meter_open(struct memory_meter *m, uint64_t limit_bytes,
                       const struct memory_paths *paths) {
        if (!paths)
                paths = &system_paths;
        *m = (struct memory_meter){
                .limit_bytes = limit_bytes,
                .limit_by = "option",
                .statm_fd = open_in(paths->self, "statm"),
                .usage_fd = -1,
                .stat_fd = -1,
        };
        if (limit_bytes == 0)
                find_limit(m, paths);
}

void memory_meter_close(struct memory_meter *m) {
        close_file(&m->statm_fd);
        close_file(&m->usage_fd);
        close_file(&m->stat_fd);
}

uint64_t memory_meter_read(const struct memory_meter *m) {
        uint64_t own = read_statm(m->statm_fd).own;
        uint64_t all = m->usage_fd >= 0 ? read_cgroup(m) : 0;
        return all > own ? all : own;
}
