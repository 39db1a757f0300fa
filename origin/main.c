/* sluice-origin: owns stock. See docs/configuration.md for its file. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/limits.h"
#include "net/log.h"
#include "origin/service.h"
#include "origin/snapshot.h"

enum { EXIT_USAGE_OR_CONF = 2 };

struct program {
        struct loop *loop;
        const char *file;
        struct conf_origin *conf;
        struct org_service service;
        struct loop_signal term, interrupt, hangup;
        struct loop_timer drain_end;
};

static void on_drained(void *owner) {
        struct org_service *s = owner;

        loop_stop(s->loop);
}

static void on_drain_end(struct loop_timer *t) {
        log_event(LOG_WARN, "main", "stopping with requests under way");
        loop_stop(t->loop);
}

static void stop(struct program *p) {
        if (p->service.is_draining) {
                loop_stop(p->loop);
                return;
        }
        p->service.is_draining = true;
        log_event(LOG_INFO, "main", "draining");
        loop_timer_start(&p->drain_end, p->conf->drain_ms);
        http_server_drain(p->service.server, on_drained);
        org_snapshot_let_go(p->service.snapshot);
}

static void on_term(struct loop_signal *s) {
        stop(NET_CONTAINER_OF(s, struct program, term));
}

static void on_interrupt(struct loop_signal *s) {
        stop(NET_CONTAINER_OF(s, struct program, interrupt));
}

/* Log level, log file and token take effect; what needs a restart is named. A
 * file with faults changes nothing. */
static void on_hangup(struct loop_signal *s) {
        struct program *p = NET_CONTAINER_OF(s, struct program, hangup);
        struct conf_faults faults = {0};
        struct conf_origin *fresh = NULL;
        int r = conf_load_origin(p->file, &fresh, &faults);

        if (r != 0) {
                log_event(LOG_ERROR, "reload", "the file has faults; nothing was changed",
                          LOG_U("faults", faults.count));
                conf_faults_print(&faults, stderr);
                conf_faults_fini(&faults);
                return;
        }
        if (log_init(fresh->log.level, fresh->log.file) < 0)
                log_event(LOG_ERROR, "reload", "the log file cannot be opened");
        org_service_reload(&p->service);
        if (conf_origin_restart_needed(p->conf, fresh, stderr) > 0)
                log_event(LOG_WARN, "reload", "some options need a restart");
        log_event(LOG_INFO, "reload", "done");
        conf_origin_free(&fresh);
        conf_faults_fini(&faults);
}

static int serve(struct program *p) {
        int r;

        (void)conf_raise_file_limit();
        (void)signal(SIGPIPE, SIG_IGN);
        p->loop = loop_new();
        if (!p->loop) {
                fprintf(stderr, "sluice-origin: cannot make an event loop\n");
                return 1;
        }
        loop_timer_init(p->loop, &p->drain_end, on_drain_end);
        loop_signal_start(p->loop, &p->term, SIGTERM, on_term);
        loop_signal_start(p->loop, &p->interrupt, SIGINT, on_interrupt);
        loop_signal_start(p->loop, &p->hangup, SIGHUP, on_hangup);
        r = org_service_open(&p->service, p->loop, p->conf);
        if (r == 0) {
                watchdog_start(&p->service.watchdog, p->loop, "origin", &p->conf->watchdog);
                loop_run(p->loop);
                watchdog_stop(&p->service.watchdog);
        }
        org_service_close(&p->service);
        loop_timer_cancel(&p->drain_end);
        loop_signal_cancel(&p->term);
        loop_signal_cancel(&p->interrupt);
        loop_signal_cancel(&p->hangup);
        loop_free(&p->loop);
        if (r == 0)
                log_event(LOG_INFO, "main", "stopped");
        return r;
}

static int usage(FILE *to) {
        fprintf(to, "usage: sluice-origin -c FILE [-t | --init]\n"
                    "       sluice-origin --version\n"
                    "  -c FILE    the configuration\n"
                    "  -t         check it, print it, and exit\n"
                    "  --init     create or migrate the database's schema, and exit\n");
        return EXIT_USAGE_OR_CONF;
}

struct wish {
        const char *file;
        bool check, init;
};

/* 0: go on; else leave with *code. */
static int parse(int argc, char **argv, struct wish *w, int *code) {
        static const struct option longs[] = {{"init", no_argument, NULL, 'i'},
                                              {"version", no_argument, NULL, 'v'},
                                              {"help", no_argument, NULL, 'h'},
                                              {NULL, 0, NULL, 0}};
        int o;

        while ((o = getopt_long(argc, argv, "c:th", longs, NULL)) != -1) {
                if (o == 'c') {
                        w->file = optarg;
                } else if (o == 't') {
                        w->check = true;
                } else if (o == 'i') {
                        w->init = true;
                } else if (o == 'v') {
                        printf("sluice-origin %s\n", SLUICE_VERSION);
                        *code = 0;
                        return 1;
                } else {
                        *code = o == 'h' ? (usage(stdout), 0) : usage(stderr);
                        return 1;
                }
        }
        if (w->file && optind == argc)
                return 0;
        *code = usage(stderr);
        return 1;
}

int main(int argc, char **argv) {
        struct conf_faults faults = {0};
        struct program p = {0};
        struct wish wish = {0};
        int code, r;

        if (parse(argc, argv, &wish, &code) != 0)
                return code;
        log_program_set("sluice-origin");
        p.file = wish.file;
        r = conf_load_origin(wish.file, &p.conf, &faults);
        if (r != 0) {
                if (r < 0)
                        fprintf(stderr, "sluice-origin: %s: %s\n", wish.file, strerror(-r));
                conf_faults_print(&faults, stderr);
                conf_faults_fini(&faults);
                return EXIT_USAGE_OR_CONF;
        }
        conf_faults_fini(&faults);
        r = log_init(p.conf->log.level, p.conf->log.file);
        if (r < 0) {
                fprintf(stderr, "sluice-origin: log.file %s: %s\n", p.conf->log.file, strerror(-r));
                code = EXIT_USAGE_OR_CONF;
        } else if (wish.check) {
                conf_print_origin(p.conf, stdout);
                code = 0;
        } else if (wish.init) {
                code = org_db_init_schema(p.conf);
        } else {
                code = serve(&p);
        }
        conf_origin_free(&p.conf);
        return code;
}
