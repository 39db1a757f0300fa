/* gateway/sluicectl.c - the operator's command line. Each command is a row of
 * one table: its words, what it needs, what it does. Exit: 0 done or
 * unchanged, 1 refused or unreachable, 2 usage. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "conf/gateway.h"
#include "conf/origin.h"
#include "gateway/ctl_call.h"
#include "gateway/ctl_sale.h"
#include "net/jwt.h"

#define PATH_MAX_BYTES 512

struct command {
        const char *name;
        int min, max; /* words after the name */
        const char *usage, *help;
        int (*run)(struct ctl *c, char **word, int n);
};

static int usage_of(const char *what) {
        fprintf(stderr, "sluicectl: %s; see sluicectl --help\n", what);
        return 2;
}

static bool is_name(const char *s) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");
        return n > 0 && n <= 63 && s[n] == '\0' && s[0] != '-';
}

static const char *text_of(const json_t *tree, const char *name, char out[64]) {
        const json_t *v = json_object_get(tree, name);
        if (json_is_string(v))
                return json_string_value(v);
        if (json_is_integer(v))
                snprintf(out, 64, "%lld", (long long)json_integer_value(v));
        else if (json_is_real(v))
                snprintf(out, 64, "%g", json_real_value(v));
        else
                snprintf(out, 64, "%s", json_is_true(v) ? "yes" : json_is_false(v) ? "no" : "-");
        return out;
}

/* Says the answer: as JSON if asked, the refusal as one line, else through
 * `print`. Ends the answer. */
static int settle(struct ctl *c, struct ctl_answer *a, void (*print)(const json_t *)) {
        char code[64], detail[64];
        int r = a->status >= 200 && a->status < 300 ? 0 : 1;
        if (c->json)
                printf("%s\n", a->text);
        else if (r == 0 && print && a->tree)
                print(a->tree);
        else if (r != 0)
                fprintf(stderr, "sluicectl: refused: %d %s: %s\n", a->status,
                        text_of(a->tree, "code", code), text_of(a->tree, "detail", detail));
        ctl_answer_fini(a);
        return r;
}

static void print_sales(const json_t *tree) {
        static const char *const columns[] = {"sale",  "tenant",   "item",
                                              "queue", "opens_at", "closes_at"};
        char text[64];
        size_t i;
        json_t *sale;
        printf("%-24s %-12s %-16s %-11s %-22s %s\n", "SALE", "TENANT", "ITEM", "QUEUE", "OPENS",
               "CLOSES");
        json_array_foreach(json_object_get(tree, "sales"), i, sale) {
                static const int width[] = {24, 12, 16, 11, 22, 1};
                for (size_t k = 0; k < NET_COUNT_OF(columns); k++)
                        printf("%-*s%s", width[k], text_of(sale, columns[k], text),
                               k + 1 < NET_COUNT_OF(columns) ? " " : "\n");
        }
}

static void print_members(const json_t *tree) {
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)tree, name, value) {
                char text[64];
                if (json_is_object(value) || json_is_array(value)) {
                        char *dump = json_dumps(value, JSON_COMPACT);
                        printf("%-20s %s\n", name, dump ? dump : "");
                        free(dump);
                } else {
                        printf("%-20s %s\n", name, text_of(tree, name, text));
                }
        }
}

static void print_changed(const json_t *tree) {
        puts(json_is_false(json_object_get(tree, "changed")) ? "unchanged" : "done");
}

static void print_audit(const json_t *tree) {
        char at[64], sale[64], verb[64], actor[64];
        size_t i;
        json_t *row;
        json_array_foreach(json_object_get(tree, "audit"), i, row) {
                char *detail = json_dumps(json_object_get(row, "detail"), JSON_COMPACT);
                printf("%-26s %-24s %-8s %-10s %s\n", text_of(row, "at", at),
                       text_of(row, "sale", sale), text_of(row, "verb", verb),
                       text_of(row, "actor", actor), detail ? detail : "");
                free(detail);
        }
}

static void print_locks(const json_t *tree) {
        static const char *const columns[] = {"held_seconds", "waiting", "waited_seconds", "tag",
                                              "application",  "state",   "since"};
        static const int width[] = {9, 8, 9, 12, 22, 20, 26};
        char text[64], tenant[64], item[64];
        size_t i;
        json_t *lock;

        printf("%-9s %-8s %-9s %-12s %-22s %-20s %-26s %-8s %s\n", "HELD", "WAITING", "WAITED",
               "TAG", "APPLICATION", "STATE", "SINCE", "PID", "ROW");
        json_array_foreach(json_object_get(tree, "locks"), i, lock) {
                const json_t *row = json_object_get(lock, "row");

                for (size_t k = 0; k < NET_COUNT_OF(columns); k++)
                        printf("%-*s ", width[k], text_of(lock, columns[k], text));
                printf("%-8s ", text_of(lock, "pid", text));
                printf("%s%s%s\n", text_of(row, "tenant", tenant), json_is_object(row) ? "/" : "",
                       json_is_object(row) ? text_of(row, "item", item) : "");
        }
}

static int get(struct ctl *c, const char *path, void (*print)(const json_t *)) {
        struct ctl_answer a;
        if (ctl_call(c, "GET", path, NULL, NULL, &a) != 0)
                return 1;
        return settle(c, &a, print);
}

static int cmd_sales(struct ctl *c, char **word, int n) {
        (void)word;
        (void)n;
        return get(c, "/v1/sales", print_sales);
}

static int cmd_show(struct ctl *c, char **word, int n) {
        (void)n;
        char path[PATH_MAX_BYTES];
        struct ctl_answer a;
        snprintf(path, sizeof path, "/v1/sales/%s", word[0]);
        if (ctl_call(c, "GET", path, NULL, NULL, &a) != 0)
                return 1;
        const char *t = a.tree ? json_string_value(json_object_get(a.tree, "tenant")) : NULL;
        const char *i = a.tree ? json_string_value(json_object_get(a.tree, "item")) : NULL;
        bool has_item = a.status == 200 && t && i;
        snprintf(path, sizeof path, "/v1/tenants/%s/items/%s", t ? t : "", i ? i : "");
        int r = settle(c, &a, print_members);
        return r == 0 && has_item && !c->json ? get(c, path, print_members) : r;
}

static int cmd_create(struct ctl *c, char **word, int n) {
        char path[PATH_MAX_BYTES];
        struct ctl_answer a;
        json_t *fields;
        int r = ctl_sale_fields(word + 1, (size_t)(n - 1), &fields);
        if (r != 0)
                return r;
        snprintf(path, sizeof path, "/v1/sales/%s", word[0]);
        r = ctl_call(c, "GET", path, NULL, NULL, &a);
        if (r == 0 && a.status == 200) {
                bool equal = ctl_sale_has(a.tree, fields);
                if (equal)
                        puts(c->json ? a.text : "unchanged");
                else
                        fprintf(stderr,
                                "sluicectl: refused: sale %s exists and differs; change it with "
                                "set\n",
                                word[0]);
                r = equal ? 0 : 1;
                ctl_answer_fini(&a);
        } else if (r == 0) {
                ctl_answer_fini(&a);
                r = ctl_call(c, "PUT", path, fields, NULL, &a);
                if (r == 0)
                        r = settle(c, &a, print_changed);
        }
        json_decref(fields);
        return r;
}

static int cmd_set(struct ctl *c, char **word, int n) {
        char path[PATH_MAX_BYTES];
        struct ctl_answer a;
        json_t *fields;
        int r = ctl_sale_fields(word + 1, (size_t)(n - 1), &fields);
        if (r != 0)
                return r;
        snprintf(path, sizeof path, "/v1/sales/%s", word[0]);
        r = ctl_call(c, "PATCH", path, fields, NULL, &a);
        json_decref(fields);
        return r == 0 ? settle(c, &a, print_changed) : r;
}

static int cmd_stock(struct ctl *c, char **word, int n) {
        (void)n;
        char path[PATH_MAX_BYTES], *end;
        errno = 0;
        long long total = strtoll(word[2], &end, 10);
        if (*end || end == word[2] || errno || total < 0)
                return usage_of("stock T I N: N is a whole number, 0 or more");
        if (!is_name(word[0]) || !is_name(word[1]))
                return usage_of("stock T I N: names are a-z, 0-9 and -, at most 63");
        snprintf(path, sizeof path, "/v1/tenants/%s/items/%s", word[0], word[1]);
        json_t *body = json_pack("{s:I}", "total", (json_int_t)total);
        struct ctl_answer a;
        int r = ctl_call(c, "PUT", path, body, NULL, &a);
        json_decref(body);
        return r == 0 ? settle(c, &a, print_members) : r;
}

static int verb(struct ctl *c, const char *sale, const char *name, json_t *body,
                const char *if_match) {
        char path[PATH_MAX_BYTES];
        struct ctl_answer a;
        snprintf(path, sizeof path, "/v1/sales/%s/%s", sale, name);
        int r = ctl_call(c, "POST", path, body, if_match, &a);
        json_decref(body);
        return r == 0 ? settle(c, &a, print_changed) : r;
}

static int cmd_open(struct ctl *c, char **word, int n) {
        (void)n;
        return verb(c, word[0], "open", NULL, NULL);
}

static int cmd_pause(struct ctl *c, char **word, int n) {
        bool hard = n == 2;
        if (hard && strcmp(word[1], "hard") != 0 && strcmp(word[1], "--hard") != 0)
                return usage_of("pause S [hard]");
        return verb(c, word[0], "pause", json_pack("{s:b}", "hard", hard), NULL);
}

static int cmd_resume(struct ctl *c, char **word, int n) {
        (void)n;
        return verb(c, word[0], "resume", NULL, NULL);
}

static int cmd_close(struct ctl *c, char **word, int n) {
        (void)n;
        return verb(c, word[0], "close", NULL, NULL);
}

/* A reset names the version it was decided on; here the present one. */
static int cmd_reset(struct ctl *c, char **word, int n) {
        (void)n;
        char path[PATH_MAX_BYTES], etag[96];
        struct ctl_answer a;
        snprintf(path, sizeof path, "/v1/sales/%s", word[0]);
        if (ctl_call(c, "GET", path, NULL, NULL, &a) != 0)
                return 1;
        if (a.status != 200)
                return settle(c, &a, NULL);
        snprintf(etag, sizeof etag, "%s", a.etag);
        ctl_answer_fini(&a);
        return verb(c, word[0], "reset", NULL, etag);
}

static int cmd_revoke(struct ctl *c, char **word, int n) {
        (void)n;
        return verb(c, word[0], "revoke", json_pack("{s:s}", "account", word[1]), NULL);
}

static int cmd_audit(struct ctl *c, char **word, int n) {
        char path[PATH_MAX_BYTES];
        if (n == 0)
                return get(c, "/v1/audit", print_audit);
        snprintf(path, sizeof path, "/v1/sales/%s/audit", word[0]);
        return get(c, path, print_audit);
}

static int cmd_locks(struct ctl *c, char **word, int n) {
        (void)word;
        (void)n;
        return get(c, "/v1/locks", print_locks);
}

static int print_token(const char *account, const char *key_file, long ttl) {
        struct jwt_keys *keys = NULL;
        struct jwt_claims claims;
        char why[256] = "", token[JWT_MAX_BYTES + 1];
        size_t len = 0;
        if (!jwt_sub_is_good(span_of(account)))
                return usage_of("token account A: 1 to 128 printable characters without comma, "
                                "quote and backslash");
        int r = jwt_keys_new(&keys);
        if (r == 0)
                r = jwt_keys_add_file(keys, key_file, why, sizeof why);
        if (r == 0) {
                jwt_claims_init(&claims);
                snprintf(claims.sub, sizeof claims.sub, "%s", account);
                claims.iat = (int64_t)time(NULL);
                claims.exp = claims.iat + ttl;
                r = jwt_sign(keys, NULL, &claims, token, sizeof token - 1, &len);
        }
        if (r == 0)
                printf("%.*s\n", (int)len, token);
        else
                fprintf(stderr, "sluicectl: %s: %s\n", key_file, r < 0 ? strerror(-r) : why);
        jwt_keys_free(&keys);
        return r == 0 ? 0 : 1;
}

static int cmd_token(struct ctl *c, char **word, int n) {
        (void)c;
        const char *key = NULL;
        long ttl = 3600;
        if (strcmp(word[0], "account") != 0 || n < 2 || n % 2 != 0)
                return usage_of("token account A --account-key FILE [--ttl SECONDS]");
        for (int i = 2; i + 1 < n; i += 2) {
                char *end = NULL;
                if (strcmp(word[i], "--account-key") == 0) {
                        key = word[i + 1];
                } else if (strcmp(word[i], "--ttl") == 0) {
                        ttl = strtol(word[i + 1], &end, 10);
                        if (*end || ttl < 1 || ttl > 366L * 86400)
                                return usage_of("--ttl: expected seconds, 1 to 31622400");
                } else {
                        return usage_of("token account A --account-key FILE [--ttl SECONDS]");
                }
        }
        return key ? print_token(word[1], key, ttl)
                   : usage_of("token account: --account-key FILE is missing");
}

/* Which of the two programs a file is for shows in its `database` section. */
static bool is_origin_file(const char *path) {
        char line[256];
        bool found = false;
        FILE *f = fopen(path, "re");
        while (f && !found && fgets(line, sizeof line, f))
                found = strncmp(line, "database:", 9) == 0;
        if (f)
                (void)fclose(f);
        return found;
}

static int cmd_config(struct ctl *c, char **word, int n) {
        (void)c;
        (void)n;
        if (strcmp(word[0], "check") != 0)
                return usage_of("config check FILE");
        struct conf_faults faults;
        struct conf_gateway *gateway = NULL;
        struct conf_origin *origin = NULL;
        int r = is_origin_file(word[1]) ? conf_load_origin(word[1], &origin, &faults)
                                        : conf_load_gateway(word[1], &gateway, &faults);
        if (r == 0)
                printf("%s: good\n", word[1]);
        else if (r < 0)
                fprintf(stderr, "sluicectl: %s: %s\n", word[1], strerror(-r));
        else
                conf_faults_print(&faults, stderr);
        conf_faults_fini(&faults);
        conf_gateway_free(&gateway);
        conf_origin_free(&origin);
        return r == 0 ? 0 : 1;
}

static const struct command commands[] = {
        {"sales", 0, 0, "sales", "all sales with their windows", cmd_sales},
        {"show", 1, 1, "show S", "one sale and its stock", cmd_show},
        {"create", 2, 64, "create S KEY=VALUE...", "make a sale", cmd_create},
        {"set", 2, 64, "set S KEY=VALUE...", "change fields of a sale", cmd_set},
        {"stock", 3, 3, "stock TENANT ITEM N", "set an item's total", cmd_stock},
        {"open", 1, 1, "open S", "open now", cmd_open},
        {"pause", 1, 2, "pause S [hard]", "let nobody in; hard: also stop those inside", cmd_pause},
        {"resume", 1, 1, "resume S", "end a pause", cmd_resume},
        {"close", 1, 1, "close S", "end the sale", cmd_close},
        {"reset", 1, 1, "reset S", "a new round: old tickets and passes are refused", cmd_reset},
        {"revoke", 2, 2, "revoke S ACCOUNT", "end an account's pass", cmd_revoke},
        {"audit", 0, 1, "audit [S]", "what operators did", cmd_audit},
        {"locks", 0, 0, "locks", "who holds what others wait for in the database", cmd_locks},
        {"token", 2, 6, "token account A --account-key FILE [--ttl SECONDS]",
         "sign a test account's token", cmd_token},
        {"config", 2, 2, "config check FILE", "name every fault of a configuration", cmd_config},
};

static int print_help(FILE *to) {
        fprintf(to,
                "usage: sluicectl [-u URL] [-k TOKENFILE] [--ca FILE] [--json] COMMAND ...\n\n");
        for (size_t i = 0; i < NET_COUNT_OF(commands); i++)
                fprintf(to, "  %-52s %s\n", commands[i].usage, commands[i].help);
        fprintf(to, "\n  -u URL        the admin listener (or SLUICE_URL), https://127.0.0.1:9443\n"
                    "  -k TOKENFILE  the operator's token (or SLUICE_TOKEN_FILE)\n"
                    "  --ca FILE     authority of its certificate (or SLUICE_CA)\n"
                    "  --json        print the answer as it came\n"
                    "\nExit: 0 done or unchanged, 1 refused, 2 usage.\n");
        return 0;
}

static int dispatch(struct ctl *c, char **word, int n) {
        for (size_t i = 0; i < NET_COUNT_OF(commands); i++) {
                const struct command *k = &commands[i];
                if (strcmp(k->name, word[0]) != 0)
                        continue;
                if (n - 1 < k->min || n - 1 > k->max)
                        return usage_of(k->usage);
                bool names_sale = strncmp(k->usage + strlen(k->name), " S", 2) == 0 ||
                                  strncmp(k->usage + strlen(k->name), " [S]", 4) == 0;
                if (names_sale && n > 1 && !is_name(word[1]))
                        return usage_of("a sale is a-z, 0-9 and -, at most 63 characters");
                return k->run(c, word + 1, n - 1);
        }
        return usage_of("unknown command");
}

int main(int argc, char **argv) {
        static const struct option options[] = {
                {"url", required_argument, NULL, 'u'},
                {"token", required_argument, NULL, 'k'},
                {"ca", required_argument, NULL, 'c'},
                {"json", no_argument, NULL, 'j'},
                {"help", no_argument, NULL, 'h'},
                {"version", no_argument, NULL, 'V'},
                {NULL, 0, NULL, 0},
        };
        const char *url = getenv("SLUICE_URL");
        struct ctl c = {.url = url ? url : "https://127.0.0.1:9443",
                        .token_file = getenv("SLUICE_TOKEN_FILE"),
                        .ca_file = getenv("SLUICE_CA")};
        int o;
        while ((o = getopt_long(argc, argv, "+u:k:h", options, NULL)) != -1) {
                switch (o) {
                case 'u':
                        c.url = optarg;
                        break;
                case 'k':
                        c.token_file = optarg;
                        break;
                case 'c':
                        c.ca_file = optarg;
                        break;
                case 'j':
                        c.json = true;
                        break;
                case 'h':
                        return print_help(stdout);
                case 'V':
                        puts("sluicectl " SLUICE_VERSION);
                        return 0;
                default:
                        return 2;
                }
        }
        if (optind == argc)
                return usage_of("a command is missing");
        int r = dispatch(&c, argv + optind, argc - optind);
        ctl_fini(&c);
        return r;
}
