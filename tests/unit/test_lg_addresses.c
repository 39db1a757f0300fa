#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "loadgen/addresses.h"

static char folder[] = "/tmp/sluice-addresses-XXXXXX";

static void write_file(const char *name, const char *text) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *out = fopen(path, "we");
        assert_non_null(out);
        fputs(text, out);
        fclose(out);
}

static int make_folder(void **state) {
        (void)state;
        if (!mkdtemp(folder))
                return -1;
        write_file("token", "s3cret\n");
        write_file("two", "one two\n");
        write_file("empty", "\n");
        write_file("key", "{\"kty\":\"oct\",\"alg\":\"HS256\",\"kid\":\"shop-1\","
                          "\"k\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"}");
        return 0;
}

static int remove_folder(void **state) {
        static const char *const names[] = {"token", "two", "empty", "key", "a.json"};
        char path[128];
        (void)state;
        for (size_t i = 0; i < NET_COUNT_OF(names); i++) {
                snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
                unlink(path);
        }
        return rmdir(folder);
}

/* Loads a file whose `%` stand for the folder. */
static int load(const char *text, struct lg_addresses *a, char *why, size_t cap) {
        char whole[4096], path[128];
        size_t n = 0;
        for (; *text && n < sizeof(whole) - 64; text++) {
                if (*text == '%')
                        n += (size_t)snprintf(whole + n, sizeof(whole) - n, "%s", folder);
                else
                        whole[n++] = *text;
        }
        whole[n] = '\0';
        write_file("a.json", whole);
        snprintf(path, sizeof(path), "%s/a.json", folder);
        return lg_addresses_load(a, path, why, cap);
}

#define REST "\"ca\":\"%/ca\",\"service_token\":\"%/token\",\"account_key\":\"%/key\"}"
#define GATEWAY "\"gateway\":\"https://127.0.0.1:8443\","
#define ADMIN "\"admin\":\"https://127.0.0.1:8444\","
#define ORIGIN "\"origin\":\"http://127.0.0.1:8080\","

static void test_what_the_quickstart_writes_is_read(void **state) {
        (void)state;
        struct lg_addresses a;
        char why[256] = "";
        int r = load("{" GATEWAY ADMIN ORIGIN
                     "\"gateways\":[\"https://127.0.0.1:1\",\"https://localhost:2\"],"
                     "\"admins\":[\"https://127.0.0.1:3\"],\"postgres\":\"postgresql://x\","
                     "\"redis\":null," REST,
                     &a, why, sizeof(why));
        if (r != 0)
                fail_msg("%s", why);
        assert_int_equal(a.n_gateways, 2);
        assert_string_equal(a.gateways[1].address, "127.0.0.1:2");
        assert_string_equal(a.gateways[1].host, "localhost");
        assert_true(a.gateways[1].tls);
        assert_int_equal(a.n_admins, 1);
        assert_string_equal(a.origin.address, "127.0.0.1:8080");
        assert_false(a.origin.tls);
        assert_string_equal(a.service_token, "s3cret");
        assert_int_equal(jwt_keys_count(a.account_keys), 1);
        lg_addresses_fini(&a);
        assert_string_equal(a.service_token, "");
}

static void test_without_lists_the_single_ones_serve(void **state) {
        (void)state;
        struct lg_addresses a;
        char why[256] = "";
        assert_int_equal(load("{" GATEWAY ADMIN ORIGIN REST, &a, why, sizeof(why)), 0);
        assert_int_equal(a.n_gateways, 1);
        assert_string_equal(a.gateways[0].address, "127.0.0.1:8443");
        assert_string_equal(a.admins[0].address, "127.0.0.1:8444");
        lg_addresses_fini(&a);
}

static void test_each_fault_names_its_field_or_file(void **state) {
        (void)state;
        static const struct {
                const char *text, *word;
        } rows[] = {
                {"{", "line 1"},
                {"{" ADMIN ORIGIN REST, "`gateway`"},
                {"{" GATEWAY ORIGIN REST, "`admin`"},
                {"{" GATEWAY ADMIN REST, "`origin`"},
                {"{\"gateways\":[]," ADMIN ORIGIN REST, "`gateways`"},
                {"{\"gateways\":[1]," ADMIN ORIGIN REST, "`gateways`"},
                {"{\"gateway\":\"http://127.0.0.1:1\"," ADMIN ORIGIN REST, "https://"},
                {"{\"gateway\":\"https://192.0.2.1:1\"," ADMIN ORIGIN REST, "loopback"},
                {"{" GATEWAY ADMIN "\"origin\":\"https://127.0.0.1:1\"," REST, "`origin`"},
                {"{" GATEWAY ADMIN ORIGIN "\"ca\":\"\"}", "`ca`"},
                {"{" GATEWAY ADMIN ORIGIN "\"ca\":\"x\"}", "`service_token`"},
                {"{" GATEWAY ADMIN ORIGIN "\"ca\":\"x\",\"service_token\":\"%/none\"}", "none: "},
                {"{" GATEWAY ADMIN ORIGIN "\"ca\":\"x\",\"service_token\":\"%/two\"}", "one token"},
                {"{" GATEWAY ADMIN ORIGIN "\"ca\":\"x\",\"service_token\":\"%/empty\"}",
                 "one token"},
                {"{" GATEWAY ADMIN ORIGIN "\"ca\":\"x\",\"service_token\":\"%/token\"}",
                 "`account_key`"},
                {"{" GATEWAY ADMIN ORIGIN "\"ca\":\"x\",\"service_token\":\"%/token\","
                 "\"account_key\":\"%/token\"}",
                 "token: "},
        };
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct lg_addresses a;
                char why[256] = "";
                int r = load(rows[i].text, &a, why, sizeof(why));
                if (r != 1 || !strstr(why, rows[i].word))
                        fail_msg("row %zu, wanted %s: %d %s", i, rows[i].word, r, why);
        }
        struct lg_addresses a;
        char why[256] = "";
        assert_int_equal(lg_addresses_load(&a, "/nonexistent/a.json", why, sizeof(why)), 1);
        assert_non_null(strstr(why, "/nonexistent/a.json"));
}

static void test_only_loopback_endpoints_are_taken(void **state) {
        (void)state;
        static const struct {
                const char *url, *address; /* NULL: refused */
        } rows[] = {
                {"https://127.0.0.1:443", "127.0.0.1:443"},
                {"http://127.255.0.9:1/", "127.255.0.9:1"},
                {"http://localhost:65535", "127.0.0.1:65535"},
                {"https://[::1]:8", "[::1]:8"},
                {"https://[::2]:8", NULL},
                {"https://10.0.0.1:8", NULL},
                {"https://0.0.0.0:8", NULL},
                {"https://127.0.0.1.example.com:8", NULL},
                {"https://127.0.0.256:8", NULL},
                {"https://localhost.example.com:8", NULL},
                {"https://example.com:8", NULL},
                {"https://user@127.0.0.1:8", NULL},
                {"https://127.0.0.1", NULL},
                {"https://127.0.0.1:", NULL},
                {"https://127.0.0.1:0", NULL},
                {"https://127.0.0.1:65536", NULL},
                {"https://127.0.0.1:8/path", NULL},
                {"https://:8", NULL},
                {"ftp://127.0.0.1:8", NULL},
                {"https://", NULL},
                {"", NULL},
        };
        for (size_t i = 0; i < NET_COUNT_OF(rows); i++) {
                struct lg_endpoint e;
                char why[128] = "";
                int r = lg_endpoint_parse(&e, span_of(rows[i].url), why, sizeof(why));
                if ((r == 0) != (rows[i].address != NULL))
                        fail_msg("%s: %d %s", rows[i].url, r, why);
                if (rows[i].address)
                        assert_string_equal(e.address, rows[i].address);
                else
                        assert_string_not_equal(why, "");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_the_quickstart_writes_is_read),
                cmocka_unit_test(test_without_lists_the_single_ones_serve),
                cmocka_unit_test(test_each_fault_names_its_field_or_file),
                cmocka_unit_test(test_only_loopback_endpoints_are_taken),
        };
        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
