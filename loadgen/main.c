/* loadgen/main.c - sluice-load: shoppers against a sale, and the judgement. */
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "loadgen/addresses.h"
#include "loadgen/options.h"
#include "loadgen/race.h"
#include "loadgen/strategies/strategies.h"

#define FILES_BESIDES 64 /* descriptors that are no shoppers' connections */

static int usage(FILE *out) {
        fprintf(out,
                "usage: sluice-load COMMAND [OPTION ...]\n\n"
                "  race       buyers against a sale; `sluice-load race --help` tells more\n"
                "  strategies ways to hold a unit, side by side; `--help` behind it tells more\n"
                "  --help     this text\n"
                "  --version  the version\n");
        return out == stdout ? 0 : 2;
}

/* The soft limit of open files becomes the hard one; returns what it is. */
static int64_t raise_file_limit(void) {
        struct rlimit files;
        if (getrlimit(RLIMIT_NOFILE, &files) != 0)
                return 0;
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
        if (getrlimit(RLIMIT_NOFILE, &files) != 0)
                return 0;
        return files.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t)files.rlim_cur;
}

static int run_race(int argc, char *const argv[]) {
        struct lg_options options;
        struct lg_addresses addresses;
        char why[512];
        if (lg_options_parse(&options, argc, argv, stderr) != 0)
                return 2;
        if (options.help) {
                lg_options_help(stdout);
                return 0;
        }
        int64_t files = raise_file_limit();
        if (lg_options_connections(&options) + FILES_BESIDES > files) {
                fprintf(stderr, "sluice-load: --connections: %lld files may be open here\n",
                        (long long)files);
                return 2;
        }
        if (lg_addresses_load(&addresses, options.addresses, why, sizeof(why)) != 0) {
                fprintf(stderr, "sluice-load: %s\n", why);
                return 2;
        }
        int code = lg_race_run(&options, &addresses);
        lg_addresses_fini(&addresses);
        return code;
}

int main(int argc, char *argv[]) {
        signal(SIGPIPE, SIG_IGN);
        if (argc < 2)
                return usage(stderr);
        if (strcmp(argv[1], "race") == 0)
                return run_race(argc - 2, argv + 2);
        if (strcmp(argv[1], "strategies") == 0)
                return lg_strategies_main(argc - 2, argv + 2);
        if (strcmp(argv[1], "--help") == 0)
                return usage(stdout);
        if (strcmp(argv[1], "--version") == 0) {
                printf("sluice-load %s\n", SLUICE_VERSION);
                return 0;
        }
        fprintf(stderr, "sluice-load: %s: no such command\n", argv[1]);
        return usage(stderr);
}
