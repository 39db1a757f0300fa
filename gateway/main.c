#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf/limits.h"
#include "gateway/control.h"
#include "net/log.h"

static const char usage[] =
        "usage: sluice -c FILE        serve\n"
        "       sluice -c FILE -t     check FILE, print what it comes to, and exit\n"
        "       sluice --version\n";

enum { EXIT_START = 1, EXIT_CONF = 2 };

struct arguments {
        const char *file;
        bool check;
};

/* 0, or the exit status plus one. */
static int read_arguments(int argc, char **argv, struct arguments *a) {
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--version") == 0) {
                        printf("sluice %s\n", SLUICE_VERSION);
                        return 1 + EXIT_SUCCESS;
                }
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
                        fputs(usage, stdout);
                        return 1 + EXIT_SUCCESS;
                }
                if (strcmp(argv[i], "-c") == 0 && i + 1 < argc) {
                        a->file = argv[++i];
                } else if (strcmp(argv[i], "-t") == 0) {
                        a->check = true;
                        /* `-t FILE` is what the hand types. */
                        if (!a->file && i + 1 < argc && argv[i + 1][0] != '-')
                                a->file = argv[++i];
                } else {
                        fprintf(stderr, "sluice: unknown argument %s\n%s", argv[i], usage);
                        return 1 + EXIT_CONF;
                }
        }
        if (a->file)
                return 0;
        fputs(usage, stderr);
        return 1 + EXIT_CONF;
}

static int serve(const char *file, struct gw_settings *settings) {
        char why[512];
        struct gw_control *c = NULL;
        int r = log_init(settings->conf->log.level, settings->conf->log.file);
        if (r < 0) {
                fprintf(stderr, "sluice: log.file: %s: %s\n", settings->conf->log.file,
                        strerror(-r));
                return EXIT_START;
        }
        if (gw_control_new(file, settings, &c, why, sizeof why) != 0) {
                fprintf(stderr, "sluice: %s\n", why);
                return EXIT_START;
        }
        gw_control_run(c);
        gw_control_free(&c);
        return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        struct arguments a = {0};
        struct gw_settings *settings = NULL;
        int r = read_arguments(argc, argv, &a);
        if (r > 0)
                return r - 1;
        log_program_set("sluice");
        (void)signal(SIGPIPE, SIG_IGN);
        (void)conf_raise_file_limit();
        r = gw_settings_load(a.file, NULL, &settings, stderr);
        if (r != 0)
                return r > 0 ? EXIT_CONF : EXIT_START;
        if (a.check)
                conf_print_gateway(settings->conf, stdout);
        int status = a.check ? EXIT_SUCCESS : serve(a.file, settings);
        gw_settings_free(&settings);
        return status;
}
