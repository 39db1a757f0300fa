/* A configuration file, read against both programs' tables. Names are not
 * looked up: the target is linked with a getaddrinfo that takes numbers alone.
 * What was read must print as a file that reads as the same. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conf/gateway.h"
#include "conf/origin.h"
#include "tests/fuzz/fuzz.h"

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found) {
        struct addrinfo numeric = *hints;
        numeric.ai_flags |= AI_NUMERICHOST;
        return __real_getaddrinfo(node, service, &numeric, found);
}

static char folder[] = "/tmp/sluice-fuzz-XXXXXX";

static const char *path_of(const char *name) {
        static char path[256];
        (void)snprintf(path, sizeof path, "%s/%s", folder, name);
        return path;
}

static void put(const char *name, const void *data, size_t n) {
        FILE *f = fopen(path_of(name), "w");
        FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static const char *const names[] = {
        "server.pem",     "server.key", "account.jwk",    "pass.pem",  "service.token",
        "operator.token", "ticket.key", "pass.jwks.json", "conf.yaml", "printed.yaml"};

static void clean_up(void) {
        for (size_t i = 0; i < NET_COUNT_OF(names); i++)
                (void)unlink(path_of(names[i]));
        (void)rmdir(path_of("state"));
        (void)rmdir(folder);
}

static void setup(void) {
        static const char text[] = "thirty-two bytes and some more of them";
        FUZZ_CHECK(mkdtemp(folder));
        for (size_t i = 0; i < NET_COUNT_OF(names); i++)
                put(names[i], text, sizeof text - 1);
        (void)atexit(clean_up);
}

static void faults_check(const struct conf_faults *faults, int r, size_t lines) {
        FUZZ_CHECK((r == CONF_FAULTY) == (faults->count > 0));
        for (size_t i = 0; i < faults->count && i < CONF_FAULTS_MAX; i++)
                FUZZ_CHECK(faults->at[i].text && faults->at[i].line <= lines + 1);
}

/* What is printed, which the caller frees. */
static char *print_gateway(const struct conf_gateway *conf, size_t *n) {
        char *text = NULL;
        FILE *f = open_memstream(&text, n);
        FUZZ_CHECK(f);
        conf_print_gateway(conf, f);
        (void)fclose(f);
        return text;
}

static void gateway_run(size_t lines) {
        struct conf_gateway *conf;
        struct conf_gateway *again;
        struct conf_faults faults;
        int r = conf_load_gateway(path_of("conf.yaml"), &conf, &faults);
        faults_check(&faults, r, lines);
        conf_faults_fini(&faults);
        FUZZ_CHECK((r == 0) == (conf != NULL));
        if (r != 0)
                return;
        size_t n;
        size_t m;
        char *text = print_gateway(conf, &n);
        put("printed.yaml", text, n);
        r = conf_load_gateway(path_of("printed.yaml"), &again, &faults);
        if (r != 0)
                conf_faults_print(&faults, stderr);
        FUZZ_CHECK(r == 0);
        conf_faults_fini(&faults);
        char *twice = print_gateway(again, &m);
        FUZZ_CHECK(span_eq((struct span){text, n}, (struct span){twice, m}));
        (void)conf_gateway_upstream(conf, SPAN("shop"));
        free(text);
        free(twice);
        conf_gateway_free(&conf);
        conf_gateway_free(&again);
}

static void origin_run(size_t lines) {
        struct conf_origin *conf;
        struct conf_faults faults;
        int r = conf_load_origin(path_of("conf.yaml"), &conf, &faults);
        faults_check(&faults, r, lines);
        conf_faults_fini(&faults);
        FUZZ_CHECK((r == 0) == (conf != NULL));
        if (r == 0)
                conf_origin_free(&conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static bool is_ready;
        size_t lines = 1;
        if (!is_ready)
                setup();
        is_ready = true;
        for (size_t i = 0; i < size; i++)
                lines += data[i] == '\n' || data[i] == '\r' || data[i] >= 0x80;
        put("conf.yaml", data, size);
        gateway_run(lines);
        origin_run(lines);
        return 0;
}
