#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/memory_meter.h"
#include "net/memory_watch.h"

#define MIB ((uint64_t)1 << 20)

/* ---- stages ---- */

static void test_a_stage_is_entered_at_once_and_left_late(void **state) {
        static const struct {
                uint64_t used; /* of 1,000,000 */
                enum memory_stage then;
                const char *why;
        } rows[] = {
                {0, MEMORY_EASY, "nothing in use"},
                {849000, MEMORY_EASY, "below 85 %"},
                {850100, MEMORY_SHUT, "85 %"},
                {849000, MEMORY_SHUT, "a little less is not enough"},
                {820100, MEMORY_SHUT, "nor is this"},
                {819000, MEMORY_EASY, "three hundredths below"},
                {849000, MEMORY_EASY, "and what held it does not bring it back"},
                {960000, MEMORY_CUT, "three at once"},
                {930000, MEMORY_CUT, "cut until below 92 %"},
                {919000, MEMORY_LEAVE, "one back"},
                {890100, MEMORY_LEAVE, "until below 89 %"},
                {951000, MEMORY_CUT, "up again from the middle"},
                {889000, MEMORY_SHUT, "two back"},
                {2000000, MEMORY_CUT, "past the limit"},
                {100, MEMORY_EASY, "three back"},
        };
        enum memory_stage now = MEMORY_EASY;
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                now = memory_stage_next(now, rows[i].used, 1000000);
                if (now != rows[i].then)
                        fail_msg("%s: %s", rows[i].why, memory_stage_name(now));
        }
}

/* ---- limits ---- */

static char folder[64];

static void put(const char *name, const char *text) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        FILE *to = fopen(path, "w");
        assert_non_null(to);
        fputs(text, to);
        fclose(to);
}

static void put_folder(const char *name) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        assert_int_equal(mkdir(path, 0700), 0);
}

static int setup(void **state) {
        (void)state;
        snprintf(folder, sizeof folder, "/tmp/memory-test-XXXXXX");
        return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state) {
        char command[128];
        (void)state;
        snprintf(command, sizeof command, "rm -r %s", folder);
        return system(command);
}

static void meter(struct memory_meter *m) {
        const struct memory_paths paths = {folder, folder};
        memory_meter_open(m, 0, &paths);
}

static void test_v2_the_lowest_of_all_above_binds(void **state) {
        struct memory_meter m;
        (void)state;
        put("cgroup", "1:name=systemd:/x\n0::/a/b\n");
        put("statm", "9000 300 100 5 0 100 0\n");
        put_folder("a");
        put_folder("a/b");
        put("a/b/memory.max", "max\n");
        put("a/memory.max", "67108864\n");
        put("a/memory.current", "50000000\n");
        put("a/memory.stat", "anon 20000000\nfile 10000000\nkernel 5\nshmem 3000000\n"
                             "slab_reclaimable 1000000\nslab 2000000\n");
        put("memory.max", "99999999\n");
        meter(&m);
        assert_int_equal(m.limit_bytes, 64 * MIB);
        assert_string_equal(m.limit_by, "cgroup");
        assert_int_equal(memory_meter_read(&m), 50000000 - 10000000 - 1000000 + 3000000);
        put("a/memory.current", "5000\n"); /* less than the process's own */
        assert_int_equal(memory_meter_read(&m), 200 * (uint64_t)sysconf(_SC_PAGESIZE));
        memory_meter_close(&m);
}

static void test_v1_in_a_container_is_the_roots(void **state) {
        struct memory_meter m;
        (void)state;
        put("cgroup", "5:cpu:/x\n4:memory:/docker/out-of-sight\n0::/\n");
        put("statm", "9000 300 100 5 0 100 0\n");
        put_folder("memory");
        put("memory/memory.limit_in_bytes", "134217728\n");
        put("memory/memory.usage_in_bytes", "30000000\n");
        put("memory/memory.stat", "cache 1\nshmem 1\ntotal_cache 9000000\ntotal_shmem 1000000\n");
        meter(&m);
        assert_int_equal(m.limit_bytes, 128 * MIB);
        assert_int_equal(memory_meter_read(&m), 30000000 - 9000000 + 1000000);
        memory_meter_close(&m);
}

static void test_no_cgroup_leaves_the_machine(void **state) {
        struct memory_meter m;
        uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        (void)state;
        put("cgroup", "4:memory:/x\n");
        put_folder("memory");
        put("memory/memory.limit_in_bytes", "9223372036854771712\n");
        meter(&m);
        assert_int_equal(m.limit_bytes, all);
        assert_string_equal(m.limit_by, "machine");
        assert_int_equal(memory_meter_read(&m), 0); /* nothing to read: nothing is in use */
        memory_meter_close(&m);
}

static void test_what_the_operator_says_is_all(void **state) {
        struct memory_meter m;
        (void)state;
        memory_meter_open(&m, 77 * MIB, NULL);
        assert_int_equal(m.limit_bytes, 77 * MIB);
        assert_string_equal(m.limit_by, "option");
        assert_int_equal(m.usage_fd, -1);
        memory_meter_close(&m);
}

static char *mapped(size_t bytes) {
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(p != MAP_FAILED);
        return p;
}

/* Filled memory counts, mapped memory does not: mapped here, since malloc may be told
 * to fill what it gives. The kernel's count of a process is some hundred KiB off, a
 * few pages would not be seen. */
static void test_own_use_follows_what_is_filled(void **state) {
        struct memory_meter m;
        (void)state;
        memory_meter_open(&m, 77 * MIB, NULL);
        char *some = mapped(8 * MIB);
        memset(some, 7, 8 * MIB);
        uint64_t before = memory_meter_read(&m);
        assert_true(before >= 7 * MIB);
        char *much = mapped(32 * MIB);
        assert_true(memory_meter_read(&m) < before + 8 * MIB);
        memset(much, 7, 32 * MIB);
        assert_in_range(memory_meter_read(&m), before + 31 * MIB, before + 40 * MIB);
        munmap(much, 32 * MIB);
        munmap(some, 8 * MIB);
        memory_meter_close(&m);
}

/* What may still be filled, whatever is mapped already. */
static void test_address_space_is_a_limit(void **state) {
        const struct rlimit space = {.rlim_cur = 10000 * MIB, .rlim_max = 10000 * MIB};
        (void)state;
        put("statm", "512000 25600 0 5 0 100 0\n"); /* 2000 MiB mapped, 100 of them filled */
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                struct memory_meter m;
                if (setrlimit(RLIMIT_AS, &space) != 0)
                        _exit(3);
                meter(&m);
                _exit(m.limit_bytes == (10000 - 1900) * MIB ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

/* ---- the watch ---- */

static struct loop *loop;
static unsigned strains;

static void on_strain(struct memory_watch *w) {
        (void)w;
        if (++strains == 3)
                loop_stop(loop);
}

static void test_a_strain_is_told_again_and_again(void **state) {
        static struct memory_watch watch;
        (void)state;
        loop = loop_new();
        assert_non_null(loop);
        memory_watch_start(&watch, loop, 1, on_strain); /* whatever is in use is too much */
        assert_int_equal(memory_told_stage(&watch.told), MEMORY_CUT);
        loop_run(loop);
        assert_int_equal(strains, 3);
        assert_int_equal(atomic_load(&watch.told.round), 3);
        assert_true(atomic_load(&watch.told.excess_bytes) > 0);
        assert_int_equal(metrics_read(&watch.entered[MEMORY_CUT]), 1);
        memory_watch_stop(&watch);
        loop_free(&loop);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_stage_is_entered_at_once_and_left_late),
                cmocka_unit_test_setup_teardown(test_v2_the_lowest_of_all_above_binds, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_v1_in_a_container_is_the_roots, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_no_cgroup_leaves_the_machine, setup, teardown),
                cmocka_unit_test(test_what_the_operator_says_is_all),
                cmocka_unit_test(test_own_use_follows_what_is_filled),
                cmocka_unit_test_setup_teardown(test_address_space_is_a_limit, setup, teardown),
                cmocka_unit_test(test_a_strain_is_told_again_and_again),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
