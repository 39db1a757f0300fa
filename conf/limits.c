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
