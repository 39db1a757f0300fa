#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/gateway.h"
#include "conf/limits.h"
#include "conf/manual.h"
#include "conf/origin.h"
#include "conf/secret.h"

static char folder[] = "/tmp/sluice-conf-XXXXXX";

static const char *path_of(const char *name) {
        static char path[256];

        (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static void write_file(const char *name, const char *text) {
        FILE *out = fopen(path_of(name), "w");

        assert_non_null(out);
        assert_int_equal(fputs(text, out) < 0, 0);
        assert_int_equal(fclose(out), 0);
}

static int make_folder(void **state) {
        static const char *const names[] = {"server.pem", "server.key",    "account.jwk",
                                            "pass.pem",   "service.token", "operator.token",
                                            "pass.jwks",  "ticket.key"};

        (void)state;
        if (!mkdtemp(folder))
                return -1;
        for (size_t i = 0; i < NET_COUNT_OF(names); i++)
                write_file(names[i], "0123456789abcdef0123456789abcdef\n");
        return mkdir(path_of("state"), 0700);
}

static int remove_folder(void **state) {
        char command[64];

        (void)state;
        (void)snprintf(command, sizeof(command), "rm -r %s", folder);
        return system(command);
}

/* A file that is right; tests add to it or take from it. */
#define GOOD_REST                                                                                  \
        "hosts: [any]\n"                                                                           \
        "state_directory: state\n"                                                                 \
        "tls: {certificate: server.pem, key: server.key}\n"                                        \
        "pass: {keys: [pass.pem]}\n"                                                               \
        "tickets: {keys: [ticket.key]}\n"                                                          \
        "origin: {address: '127.0.0.1:8080', token_file: service.token}\n"                         \
        "admin: {token_file: operator.token}\n"

/* All faults as they are printed, without the folder; "" when there are none. */
static const char *faults_of(const char *text) {
        static char said[16384];
        struct conf_gateway *conf;
        struct conf_faults faults;
        size_t len = strlen(folder) + strlen("/c.yaml:");
        char *whole = NULL;
        size_t size;
        FILE *to = open_memstream(&whole, &size);
        int r;

        write_file("c.yaml", text);
        r = conf_load_gateway(path_of("c.yaml"), &conf, &faults);
        assert_int_equal(r, faults.count ? CONF_FAULTY : 0);
        assert_int_equal(conf == NULL, r != 0);
        conf_faults_print(&faults, to);
        (void)fclose(to);
        said[0] = 0;
        for (char *line = whole; *line; line = strchr(line, '\n') + 1) {
                assert_memory_equal(line, folder, strlen(folder));
                (void)snprintf(said + strlen(said), sizeof(said) - strlen(said), "%.*s",
                               (int)(strchr(line, '\n') + 1 - line - (long)len), line + len);
        }
        free(whole);
        conf_faults_fini(&faults);
        conf_gateway_free(&conf);
        assert_null(conf);
        return said;
}

static const struct {
        const char *why, *text, *said;
} fault_rows[] = {
        {"all is well", "workers: 1\n", ""},
        {"null is as good as nothing", "workers: null\nlimits:\nupstreams: ~\n", ""},
        {"a list of one", "listen: 127.0.0.1:0\n", ""},
        {"an unknown option", "wrokers: 1\n", "1: wrokers: no such option; is `workers` meant?\n"},
        {"nothing like it", "colour: red\n", "1: colour: no such option\n"},
        {"right, but elsewhere", "idle: 1s\n",
         "1: idle: no such option here; is `limits.idle` meant?\n"},
        {"a section by points", "log.level: info\n", "1: log.level: no such option\n"},
        {"unknown in a section", "limits:\n  idel: 1s\n",
         "2: limits.idel: no such option; is `idle` meant?\n"},
        {"no number", "workers: many\n", "1: workers: expected a whole number 0..256\n"},
        {"below zero", "workers: -1\n", "1: workers: expected a whole number 0..256\n"},
        {"too large", "workers: 257\n", "1: workers: expected a whole number 0..256\n"},
        {"very much too large", "workers: 99999999999999999999\n",
         "1: workers: expected a whole number 0..256\n"},
        {"a duration without unit", "drain: 25\n",
         "1: drain: `25` has no unit; expected a duration as 250ms, 10s, 5m or 1h\n"},
        {"a duration in another unit", "drain: 25sec\n",
         "1: drain: expected a duration with a unit (ms, s, m, h), 0ms..1h\n"},
        {"a duration with a fraction", "drain: 2.5s\n",
         "1: drain: expected a duration with a unit (ms, s, m, h), 0ms..1h\n"},
        {"a duration out of range", "limits: {idle: 2h}\n",
         "1: limits.idle: expected a duration 1s..1h\n"},
        {"a size without unit", "limits: {body_bytes: 4096}\n",
         "1: limits.body_bytes: `4096` has no unit; expected a size as 512B, 64KiB or "
         "1MiB\n"},
        {"a size out of range", "limits: {body_bytes: 2MiB}\n",
         "1: limits.body_bytes: expected a size 256B..1MiB\n"},
        {"a choice", "log: {level: loud}\n",
         "1: log.level: expected one of debug, info, warn, error\n"},
        {"a list for one value", "workers: [1]\n",
         "1: workers: expected one value, not a list or a section\n"},
        {"a section for a list", "listen: {a: b}\n", "1: listen: expected a list\n"},
        {"one value for a section", "limits: 5\n", "1: limits: expected options below it\n"},
        {"twice", "workers: 1\nworkers: 2\n", "2: workers: is there twice\n"},
        {"a section twice", "log: {level: info}\nlog: {level: warn}\n", "2: log: is there twice\n"},
        {"addresses", "listen:\n- 127.0.0.1\n- ::1:5\n- 127.0.0.1:70000\n- '[::1]:0'\n- ':5'\n",
         "2: listen[0]: expected HOST:PORT, as 127.0.0.1:8443 or [::1]:8443\n"
         "3: listen[1]: expected HOST:PORT, as 127.0.0.1:8443 or [::1]:8443\n"
         "4: listen[2]: expected a port 0..65535 behind the host\n"
         "6: listen[4]: expected HOST:PORT, as 127.0.0.1:8443 or [::1]:8443\n"},
        {"address blocks", "trusted_proxies: [10.0.0.0/8, 10.0.0.1/8, 1.2.3.4/33, x, '::/0']\n",
         "1: trusted_proxies[1]: expected an address block whose bits behind the length "
         "are zero\n"
         "1: trusted_proxies[2]: expected an address block, as 10.0.0.0/8 or "
         "2001:db8::/32\n"
         "1: trusted_proxies[3]: expected an address block, as 10.0.0.0/8 or "
         "2001:db8::/32\n"},
        {"upstreams",
         "upstreams:\n  shop: {address: '127.0.0.1:0'}\n  Shop: {}\n  b:\n    protocol: "
         "h3\n",
         "2: upstreams.shop.address: expected a port 1..65535 behind the host\n"
         "3: upstreams.Shop: expected a name of 1..63 small letters, digits and -\n"
         "5: upstreams.b.protocol: expected one of h2c, h2, http/1.1\n"
         "5: upstreams.b.address: is missing: Where the shop's own server listens.\n"},
        {"an upstream twice",
         "upstreams:\n  a: {address: '1.2.3.4:5'}\n  a: {address: '1.2.3.4:5'}\n",
         "3: upstreams.a: is there twice\n"},
        {"a cookie's name", "accounts: {cookie: 'a b'}\n",
         "1: accounts.cookie: expected the name of a cookie, 1..64 letters, digits, - or "
         "_\n"},
        {"what only two options show", "snapshot: {wait: 2s}\n",
         "1: snapshot.away_after: expected at least twice snapshot.wait\n"},
        {"a zero byte", "accounts: {issuer: \"a\\0b\"}\n",
         "1: accounts.issuer: expected one value, not a list or a section\n"},
};

static void test_each_fault_says_line_field_and_what_was_expected(void **state) {
        char text[4096];

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(fault_rows); i++) {
                print_message("  %s\n", fault_rows[i].why);
                (void)snprintf(text, sizeof(text), "%s%s", fault_rows[i].text, GOOD_REST);
                assert_string_equal(faults_of(text), fault_rows[i].said);
        }
}

static void test_files_are_looked_at(void **state) {
        char expected[2048];

        (void)state;
        (void)snprintf(
                expected, sizeof(expected),
                "1: state_directory: cannot read folder `%s/no`: No such file or directory\n"
                "1: hosts: is missing: Host names served here; one without a port stands "
                "for every port; `any` alone: all. Others are answered 421.\n"
                "2: tls.certificate: cannot read file `%s/none.pem`: No such file or "
                "directory\n"
                "2: tls.key: `%s/state` is not a file\n"
                "3: pass.keys[1]: cannot read file `%s/none.pem`: No such file or directory\n"
                "4: tickets.keys: expected at least one\n"
                "5: origin.token_file: expected the name of a file or folder\n"
                "6: pages_directory: `%s/server.pem` is not a folder\n",
                folder, folder, folder, folder, folder);
        assert_string_equal(faults_of("state_directory: no/state\n"
                                      "tls: {certificate: none.pem, key: state}\n"
                                      "pass: {keys: [pass.pem, none.pem]}\n"
                                      "tickets: {keys: []}\n"
                                      "origin: {address: '127.0.0.1:8080', token_file: ''}\n"
                                      "pages_directory: server.pem\n"
                                      "admin: {token_file: operator.token}\n"),
                            expected);
}

static void test_short_ticket_secrets_are_refused(void **state) {
        const char *said;

        (void)state;
        write_file("short.key", "0123456789abcdef0123456789abcde");
        said = faults_of("tickets: {keys: short.key}\nhosts: any\nstate_directory: state\n"
                         "tls: {certificate: server.pem, key: server.key}\n"
                         "pass: {keys: pass.pem}\n"
                         "origin: {address: '127.0.0.1:8080', token_file: service.token}\n"
                         "admin: {token_file: operator.token}\n");
        assert_non_null(strstr(said, "1: tickets.keys: expected a file of 32..4096 bytes"));
}

static void test_what_is_no_yaml_says_where(void **state) {
        static const struct {
                const char *why, *text, *begins;
        } rows[] = {
                {"a tab", "a: 1\n\tb: 2\n", "2: expected YAML: "},
                {"an open list", "listen: [a\nhosts: b\n", "2: expected YAML: "},
                {"a second document", "workers: 1\n---\nworkers: 2\n", " expected a single YAML"},
                {"no mapping", "- a\n- b\n",
                 "1: expected options, each a name, a colon and a value\n"},
                {"an alias of nothing", "workers: *a\n", "1: expected YAML: "},
        };

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                const char *said;

                print_message("  %s\n", rows[i].why);
                said = faults_of(rows[i].text);
                assert_memory_equal(said, rows[i].begins, strlen(rows[i].begins));
        }
}

static void test_an_empty_file_misses_all_that_is_required(void **state) {
        const char *said = faults_of("");
        size_t lines = 0;

        (void)state;
        for (const char *p = said; *p; p++)
                lines += *p == '\n';
        assert_int_equal(lines, 9);
        assert_non_null(strstr(said, "1: pass.keys: is missing: Private keys of passes"));
}

static void test_a_missing_file_is_a_fault(void **state) {
        struct conf_gateway *conf;
        struct conf_faults faults;

        (void)state;
        assert_int_equal(conf_load_gateway("/nonexistent.yaml", &conf, &faults), CONF_FAULTY);
        assert_int_equal(faults.count, 1);
        assert_string_equal(faults.at[0].text, "cannot read: No such file or directory");
        conf_faults_fini(&faults);
}

static void test_faults_beyond_the_ceiling_are_counted(void **state) {
        static char text[8192];
        struct conf_gateway *conf;
        struct conf_faults faults;

        (void)state;
        text[0] = 0;
        for (int i = 0; i < 300; i++)
                (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "x%d: 1\n", i);
        write_file("c.yaml", text);
        assert_int_equal(conf_load_gateway(path_of("c.yaml"), &conf, &faults), CONF_FAULTY);
        assert_int_equal(faults.count, 309);
        conf_faults_fini(&faults);
}

static struct conf_gateway *load(const char *text) {
        struct conf_gateway *conf;
        struct conf_faults faults;
        int r;

        write_file("c.yaml", text);
        r = conf_load_gateway(path_of("c.yaml"), &conf, &faults);
        conf_faults_print(&faults, stderr);
        conf_faults_fini(&faults);
        assert_int_equal(r, 0);
        return conf;
}

static void test_values_arrive_in_their_fields(void **state) {
        struct conf_gateway *c = load("listen: ['127.0.0.1:0', '[::1]:8443', 'localhost:1']\n"
                                      "drain: 1m\nlimits: {header_bytes: 8KiB, idle: 1500ms, "
                                      "forward_body_bytes: 2MiB}\n"
                                      "accounts: {keys: [account.jwk], cookie: s, leeway: 0s}\n"
                                      "upstreams: {shop: {address: '127.0.0.1:81'}, "
                                      "b: {address: '[::1]:82', max_in_flight: 5}}\n"
                                      "log: {level: warn, file: out.log}\n" GOOD_REST);

        (void)state;
        assert_int_equal(c->listen.count, 3);
        assert_string_equal(c->listen.at[0].text, "127.0.0.1:0");
        assert_string_equal(c->listen.at[1].text, "[::1]:8443");
        assert_int_equal(c->listen.at[1].port, 8443);
        assert_string_equal(c->listen.at[2].text, "127.0.0.1:1");
        assert_string_equal(c->listen.at[2].written, "localhost:1");
        assert_true(c->hosts_any);
        assert_true(c->workers >= 1);
        assert_int_equal(c->drain_ms, 60000);
        assert_int_equal(c->limits.header_bytes, 8192);
        assert_int_equal(c->limits.idle_ms, 1500);
        assert_int_equal(c->forward_body_bytes, 2 << 20);
        assert_int_equal(c->limits.max_connections, 100000);
        assert_string_equal(c->accounts.cookie, "s");
        assert_null(c->accounts.issuer);
        assert_int_equal(c->accounts.leeway_ms, 0);
        assert_string_equal(c->accounts.keys.at[0], path_of("account.jwk"));
        assert_int_equal(c->upstreams.count, 2);
        assert_string_equal(conf_gateway_upstream(c, SPAN("b"))->address.text, "[::1]:82");
        assert_int_equal(conf_gateway_upstream(c, SPAN("b"))->max_in_flight, 5);
        assert_int_equal(conf_gateway_upstream(c, SPAN("shop"))->request_timeout_ms, 10000);
        assert_null(conf_gateway_upstream(c, SPAN("c")));
        assert_string_equal(c->admin.certificate, path_of("server.pem"));
        assert_string_equal(c->admin.listen.at[0].text, "127.0.0.1:9443");
        assert_int_equal(c->log.level, LOG_WARN);
        assert_string_equal(c->log.file, path_of("out.log"));
        conf_gateway_free(&c);
}

static char *printed(const struct conf_gateway *conf) {
        char *text = NULL;
        size_t len;
        FILE *to = open_memstream(&text, &len);

        conf_print_gateway(conf, to);
        (void)fclose(to);
        return text;
}

static void test_what_is_printed_loads_as_the_same(void **state) {
        struct conf_gateway *first = load("trusted_proxies: [10.0.0.0/8, '2001:db8::/32', '::1']\n"
                                          "accounts: {issuer: \"a \\\"b\\\" \\\\ é\\x01\"}\n"
                                          "upstreams: {a: {address: '127.0.0.1:1'}}\n" GOOD_REST);
        struct conf_gateway *second;
        char *text = printed(first), *again;

        (void)state;
        second = load(text);
        again = printed(second);
        assert_string_equal(text, again);
        assert_string_equal(first->accounts.issuer, second->accounts.issuer);
        assert_int_equal(conf_gateway_restart_needed(first, second, stderr), 0);
        free(text);
        free(again);
        conf_gateway_free(&first);
        conf_gateway_free(&second);
}

static void test_options_that_need_a_restart_are_named(void **state) {
        struct conf_gateway *before = load("log: {level: info}\n" GOOD_REST);
        struct conf_gateway *after = load("log: {level: debug}\nworkers: 3\nlimits: {idle: 9s}\n"
                                          "upstreams: {a: {address: '127.0.0.1:1'}}\n" GOOD_REST);
        char *text = NULL;
        size_t len;
        FILE *to = open_memstream(&text, &len);

        (void)state;
        assert_int_equal(conf_gateway_restart_needed(before, after, to), 3);
        (void)fclose(to);
        assert_string_equal(text, "workers\nlimits.idle\nupstreams\n");
        free(text);
        conf_gateway_free(&before);
        conf_gateway_free(&after);
}

static void test_the_origin_file(void **state) {
        struct conf_origin *conf;
        struct conf_faults faults;
        char *text = NULL;
        size_t len;
        FILE *to = open_memstream(&text, &len);

        (void)state;
        write_file("o.yaml", "token_file: service.token\nlisten: 127.0.0.1:0\n"
                             "pass_jwks: pass.jwks\ndemo_page: true\nexpiry: {enabled: false}\n"
                             "database: {url: 'postgresql://u:secret@h:5/d'}\n");
        assert_int_equal(conf_load_origin(path_of("o.yaml"), &conf, &faults), 0);
        assert_true(conf->demo_page);
        assert_false(conf->expiry.enabled);
        assert_string_equal(conf->group_prefix, "a");
        assert_string_equal(conf->database.url, "postgresql://u:secret@h:5/d");
        assert_int_equal(conf->database.lock_timeout_ms, 1000);
        conf_print_origin(conf, to);
        (void)fclose(to);
        assert_null(strstr(text, "secret"));
        assert_non_null(strstr(text, "postgresql://u:***@h:5/d"));
        free(text);
        conf_origin_free(&conf);
        conf_faults_fini(&faults);
        write_file("o.yaml", "token_file: service.token\ngroup_prefix: A1\ndemo_page: yes\n");
        assert_int_equal(conf_load_origin(path_of("o.yaml"), &conf, &faults), CONF_FAULTY);
        assert_int_equal(faults.count, 3);
        conf_faults_fini(&faults);
}

/* The files in conf/ name keys that stand beside them; here they do. */
static void test_the_example_files_are_right(void **state) {
        char command[256];
        struct conf_gateway *gateway;
        struct conf_origin *origin;
        struct conf_faults faults;
        int r;

        (void)state;
        (void)snprintf(command, sizeof(command), "cp %s/conf/gateway.yaml %s/conf/origin.yaml %s",
                       SOURCE_ROOT, SOURCE_ROOT, folder);
        assert_int_equal(system(command), 0);
        r = conf_load_gateway(path_of("gateway.yaml"), &gateway, &faults);
        conf_faults_print(&faults, stderr);
        conf_faults_fini(&faults);
        assert_int_equal(r, 0);
        conf_gateway_free(&gateway);
        r = conf_load_origin(path_of("origin.yaml"), &origin, &faults);
        conf_faults_print(&faults, stderr);
        conf_faults_fini(&faults);
        assert_int_equal(r, 0);
        conf_origin_free(&origin);
}

static void test_the_manual_is_up_to_date(void **state) {
        char *text = NULL, *stored;
        size_t len;
        FILE *to = open_memstream(&text, &len);
        FILE *in = fopen(SOURCE_ROOT "/docs/configuration.md", "r");

        (void)state;
        conf_manual_page(to);
        (void)fclose(to);
        assert_non_null(in);
        stored = calloc(1, len + 2);
        assert_non_null(stored);
        (void)fread(stored, 1, len + 1, in);
        (void)fclose(in);
        assert_string_equal(stored,
                            text); /* else: build/conf/conf-manual > docs/configuration.md */
        free(stored);
        free(text);
}

static void test_networks_hold_their_addresses(void **state) {
        static const struct {
                uint8_t address[16];
                bool held;
        } rows[] = {
                {{[10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = 1}, true},
                {{[10] = 0xFF, [11] = 0xFF, [12] = 11, [15] = 1}, false},
                {{[10] = 0xFF, [11] = 0xFF, [12] = 192, [13] = 168, [14] = 3, [15] = 255}, true},
                {{[10] = 0xFF, [11] = 0xFF, [12] = 192, [13] = 168, [14] = 4, [15] = 0}, false},
                {{[15] = 1}, true},
                {{[15] = 2}, false},
                {{[12] = 10, [15] = 1}, false},
        };
        struct conf_gateway *c =
                load("trusted_proxies: [10.0.0.0/8, 192.168.0.0/22, '::1']\n" GOOD_REST);

        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++)
                assert_int_equal(conf_networks_hold(&c->trusted_proxies, rows[i].address),
                                 rows[i].held);
        conf_gateway_free(&c);
}

static void test_secrets_lose_one_line_end(void **state) {
        char out[8];
        size_t len;

        (void)state;
        write_file("secret", "abc\n");
        assert_int_equal(conf_secret_read(path_of("secret"), out, sizeof(out), &len), 0);
        assert_int_equal(len, 3);
        assert_memory_equal(out, "abc", 3);
        write_file("secret", "abc\n\n");
        assert_int_equal(conf_secret_read(path_of("secret"), out, sizeof(out), &len), 0);
        assert_int_equal(len, 4);
        write_file("secret", "12345678");
        assert_int_equal(conf_secret_read(path_of("secret"), out, sizeof(out), &len), 0);
        assert_int_equal(len, 8);
        write_file("secret", "123456789");
        assert_int_equal(conf_secret_read(path_of("secret"), out, sizeof(out), &len), -EFBIG);
        assert_int_equal(out[0], 0); /* wiped */
        write_file("secret", "\n");
        assert_int_equal(conf_secret_read(path_of("secret"), out, sizeof(out), &len), -ENODATA);
        assert_int_equal(conf_secret_read("/nonexistent", out, sizeof(out), &len), -ENOENT);
}

static void test_the_file_limit_is_raised_to_the_hard_one(void **state) {
        struct rlimit limit;

        (void)state;
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        limit.rlim_cur = 64;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(conf_raise_file_limit(), limit.rlim_max);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(limit.rlim_cur, limit.rlim_max);
        assert_true(conf_cores() >= 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_fault_says_line_field_and_what_was_expected),
                cmocka_unit_test(test_files_are_looked_at),
                cmocka_unit_test(test_short_ticket_secrets_are_refused),
                cmocka_unit_test(test_what_is_no_yaml_says_where),
                cmocka_unit_test(test_an_empty_file_misses_all_that_is_required),
                cmocka_unit_test(test_a_missing_file_is_a_fault),
                cmocka_unit_test(test_faults_beyond_the_ceiling_are_counted),
                cmocka_unit_test(test_values_arrive_in_their_fields),
                cmocka_unit_test(test_what_is_printed_loads_as_the_same),
                cmocka_unit_test(test_options_that_need_a_restart_are_named),
                cmocka_unit_test(test_the_origin_file),
                cmocka_unit_test(test_the_example_files_are_right),
                cmocka_unit_test(test_the_manual_is_up_to_date),
                cmocka_unit_test(test_networks_hold_their_addresses),
                cmocka_unit_test(test_secrets_lose_one_line_end),
                cmocka_unit_test(test_the_file_limit_is_raised_to_the_hard_one),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
