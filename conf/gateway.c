#include "conf/gateway.h"

#include <errno.h>
#include <stdlib.h>

#include "conf/faults.h"
#include "conf/limits.h"
#include "conf/print.h"
#include "conf/read.h"

#define AT(field) .offset = offsetof(struct conf_gateway, field)

static const char *check_host(const char *text) {
        static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789.-:[]";
        size_t len = strlen(text);

        return len > 0 && len < 260 && strspn(text, good) == len
                       ? NULL
                       : "expected a host in lower case, with or without :PORT, or `any`";
}

static const char *check_cookie(const char *text) {
        static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789!#$%&'*+-.^_`|~";
        size_t len = strlen(text);

        return len > 0 && len <= 64 && strspn(text, good) == len
                       ? NULL
                       : "expected the name of a cookie, 1..64 letters, digits, - or _";
}

static const char *check_name(const char *text) {
        static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
        size_t len = strlen(text);

        return len > 0 && len <= 63 && text[0] != '-' && strspn(text, good) == len
                       ? NULL
                       : "expected a name of 1..63 small letters, digits and -";
}

static const char *const stores[] = {"memory", NULL};
static const char *const protocols[] = {"h2c", "h2", "http/1.1", NULL};

#define UP(field) .offset = offsetof(struct conf_upstream, field)

static const struct conf_option upstream_rows[] = {
        {"address", NULL, CONF_ADDRESS, CONF_REQUIRED, UP(address), .low = 1,
         .sentence = "Where the shop's own server listens."},
        {"protocol", "h2c", CONF_CHOICE, 0, UP(protocol), .choices = protocols,
         .sentence = "What it speaks: HTTP/2 without TLS, HTTP/2 over TLS, or HTTP/1.1."},
        {"ca_file", NULL, CONF_FILE, 0, UP(ca_file), 1, 16777216,
         .sentence = "PEM file: who may sign its certificate. Needed for h2; gives http/1.1 TLS."},
        {"server_name", NULL, CONF_TEXT, 0, UP(server_name), .check = check_host,
         .sentence = "The name in its certificate; none: the host of `address`."},
        {"host", NULL, CONF_TEXT, 0, UP(host), .check = check_host,
         .sentence = "The host it is asked for; none: the one the client asked for."},
        {"connections", "0", CONF_COUNT, 0, UP(connections), 0, 10000,
         .sentence = "Connections that one worker keeps to it; 0: two, or with http/1.1 one for "
                     "each request that is open."},
        {"max_in_flight", "64", CONF_COUNT, 0, UP(max_in_flight), 1, 10000,
         .sentence = "Requests that one worker has open with it."},
        {"connect_timeout", "500ms", CONF_DURATION, 0, UP(connect_timeout_ms), 10, 60000,
         .sentence = "For a new connection."},
        {"request_timeout", "10s", CONF_DURATION, 0, UP(request_timeout_ms), 10, 600000,
         .sentence = "From a request to the head of its answer, and between two pieces of it."},
        {"idle_timeout", "4s", CONF_DURATION, 0, UP(idle_timeout_ms), 10, 3600000,
         .sentence = "With http/1.1: how long a connection is kept unused; shorter than its own."},
        {"read_ahead", "256KiB", CONF_SIZE, 0, UP(read_ahead_bytes), 65536, 524288,
         .sentence = "How much of an answer may wait for a client that reads slowly; the rest "
                     "waits in the upstream and keeps its place there."},
        {"unread_per_client", "4", CONF_COUNT, 0, UP(unread_per_client), 1, 10000,
         .sentence = "Places that one address (IPv6: /64) may keep so, of one worker, while others "
                     "wait for one."},
};
static const struct conf_element upstream = {upstream_rows, NET_COUNT_OF(upstream_rows),
                                             sizeof(struct conf_upstream),
                                             offsetof(struct conf_upstream, name)};

static const struct conf_option first_rows[] = {
        {"listen", "127.0.0.1:8443", CONF_ADDRESSES, 0, AT(listen),
         .sentence = "Where shoppers and CDNs connect (HTTP/2 over TLS); port 0: any free one."},
        {"hosts", NULL, CONF_TEXTS, CONF_REQUIRED, AT(hosts), .check = check_host,
         .sentence = "Host names served here; one without a port stands for every port; "
                     "`any` alone: all. Others are answered 421."},
        {"workers", "0", CONF_COUNT, 0, AT(workers), 0, 256,
         .sentence = "Threads that serve connections; 0: one for each core."},
        {"state_directory", NULL, CONF_STATE, CONF_REQUIRED, AT(state_directory),
         .sentence = "The line's memory and the last snapshot; must be on a local disk."},
        {"pages_directory", NULL, CONF_FOLDER, 0, AT(pages_directory),
         .sentence = "Pages of the shop's own; none: the built-in ones."},
        {"drain", "25s", CONF_DURATION, 0, AT(drain_ms), 0, 3600000,
         .sentence = "How long SIGTERM waits for open requests."},
        {"poll_budget_per_s", "30000", CONF_COUNT, 0, AT(poll_budget_per_s), 10, 10000000,
         .sentence = "Polls of waiting shoppers a second that the machine shall bear."},
        {"max_event_streams", "10000", CONF_COUNT, 0, AT(max_event_streams), 0, 10000000,
         .sentence = "Event streams open at once; above it shoppers poll."},
        {"trusted_proxies", NULL, CONF_NETWORKS, 0, AT(trusted_proxies),
         .sentence = "Peers whose X-Forwarded-For is believed, from the right."},
        {"tls.certificate", NULL, CONF_FILE, CONF_REQUIRED | CONF_RELOADABLE, AT(tls.certificate),
         .sentence = "PEM file: the certificate, then its chain."},
        {"tls.key", NULL, CONF_FILE, CONF_REQUIRED | CONF_RELOADABLE, AT(tls.key),
         .sentence = "PEM file: the private key, ECDSA P-256."},
        {"tls.ticket_rotation", "12h", CONF_DURATION, CONF_RELOADABLE, AT(tls.ticket_rotation_ms),
         1000, 30ull * 24 * 3600 * 1000,
         .sentence = "Between two changes of the key of session tickets; the key before still "
                     "opens. A ticket lives as long, but no longer than two hours."},
};

static const struct conf_option last_rows[] = {
        {"limits.forward_body_bytes", "1MiB", CONF_SIZE, 0, AT(forward_body_bytes), 4096,
         1ull << 30, .sentence = "Size of a request body that is forwarded."},
        {"limits.requests_waiting", "4096", CONF_COUNT, 0, AT(requests_waiting), 1, 1000000,
         .sentence = "Requests that wait for their body, the origin or an application, a worker; "
                     "further ones that would have to wait are answered 503."},
        {"limits.forward_unread_bytes", "32MiB", CONF_SIZE, 0, AT(forward_unread_bytes), 65536,
         1ull << 34,
         .sentence = "Forwarded answers that wait for slow clients, together, a worker; above it "
                     "none is read ahead, and the longest unread are cut."},
        {"limiter.network_failures_per_minute", "50", CONF_COUNT, 0,
         AT(limiter.network_failures_per_minute), 1, 1000000,
         .sentence =
                 "Bad account tokens, tickets and passes of one address (IPv6: /64) before it is "
                 "answered 429."},
        {"limiter.network_guest_joins_per_minute", "200", CONF_COUNT, 0,
         AT(limiter.network_guest_joins_per_minute), 1, 1000000,
         .sentence = "New guests of one address (IPv6: /64)."},
        {"limiter.account_requests_per_s", "20", CONF_COUNT, 0, AT(limiter.account_requests_per_s),
         1, 100000, .sentence = "Requests of one account to one sale, lasting."},
        {"limiter.account_burst", "200", CONF_COUNT, 0, AT(limiter.account_burst), 1, 100000,
         .sentence = "Requests of one account to one sale, at once."},
        {"limiter.entries", "65536", CONF_COUNT, 0, AT(limiter.entries), 1024, 16777216,
         .sentence = "Addresses and accounts the limiter remembers."},
        {"accounts.cookie", NULL, CONF_TEXT, 0, AT(accounts.cookie), .check = check_cookie,
         .sentence = "Cookie with the shop's account token; none: only `Authorization: Bearer`."},
        {"accounts.keys", NULL, CONF_FILES, 0, AT(accounts.keys), 1, 65536,
         .sentence = "Keys of account tokens: JWK, JWK Set or PEM files. None: guests only."},
        {"accounts.issuer", NULL, CONF_TEXT, 0, AT(accounts.issuer),
         .sentence = "Required `iss` of account tokens; none: not looked at."},
        {"accounts.audience", NULL, CONF_TEXT, 0, AT(accounts.audience),
         .sentence = "Required among `aud` of account tokens; none: not looked at."},
        {"accounts.leeway", "2s", CONF_DURATION, 0, AT(accounts.leeway_ms), 0, 300000,
         .sentence = "How far the shop's clock may be off."},
        {"accounts.cache_entries", "4096", CONF_COUNT, 0, AT(accounts.cache_entries), 16, 1048576,
         .sentence = "Verified tokens that one worker remembers."},
        {"pass.keys", NULL, CONF_FILES, CONF_REQUIRED, AT(pass.keys), 1, 65536,
         .sentence = "Private keys of passes, PEM, P-256; the first signs, all are accepted."},
        {"tickets.keys", NULL, CONF_FILES, CONF_REQUIRED, AT(tickets.keys), 32, 4096,
         .sentence = "Secrets of tickets, 32 bytes or more; the first signs, all are accepted."},
        {"store.kind", "memory", CONF_CHOICE, 0, AT(store.kind), .choices = stores,
         .sentence = "Where the line lives."},
        {"store.max_sales", "64", CONF_COUNT, 0, AT(store.max_sales), 1, 4096,
         .sentence = "Sales at the same time."},
        {"store.max_numbers", "2000000", CONF_COUNT, 0, AT(store.max_numbers), 1000, 100000000,
         .sentence = "Places in the line of one sale; above it `line_full`."},
        {"store.max_accounts", "2000000", CONF_COUNT, 0, AT(store.max_accounts), 1000, 100000000,
         .sentence = "Accounts known in one sale."},
        {"origin.address", NULL, CONF_ADDRESS, CONF_REQUIRED, AT(origin.address), .low = 1,
         .sentence = "Where the origin listens."},
        {"origin.token_file", NULL, CONF_FILE, CONF_REQUIRED, AT(origin.token_file), 1, 4096,
         .sentence = "The bearer token for the origin."},
        {"origin.connections", "2", CONF_COUNT, 0, AT(origin.connections), 1, 64,
         .sentence = "Connections that one worker keeps to the origin."},
        {"origin.max_in_flight", "64", CONF_COUNT, 0, AT(origin.max_in_flight), 1, 10000,
         .sentence = "Requests that one worker has open with the origin."},
        {"origin.connect_timeout", "500ms", CONF_DURATION, 0, AT(origin.connect_timeout_ms), 10,
         60000, .sentence = "For a new connection to the origin."},
        {"origin.request_timeout", "2s", CONF_DURATION, 0, AT(origin.request_timeout_ms), 10, 60000,
         .sentence = "From sending a request to the end of the origin's answer."},
        {"snapshot.wait", "200ms", CONF_DURATION, 0, AT(snapshot.wait_ms), 10, 30000,
         .sentence = "How long the origin may keep a snapshot request that has no news."},
        {"snapshot.away_after", "3s", CONF_DURATION, 0, AT(snapshot.away_after_ms), 100, 600000,
         .sentence = "Without a snapshot for so long, the origin counts as away."},
        {"upstreams", NULL, CONF_MAP, 0, AT(upstreams), .check = check_name, .element = &upstream,
         .sentence = "Servers that gated requests are forwarded to, by the name sales use."},
        {"admin.listen", "127.0.0.1:9443", CONF_ADDRESSES, 0, AT(admin.listen),
         .sentence = "Where operators and Prometheus connect (TLS)."},
        {"admin.token_file", NULL, CONF_FILE, CONF_REQUIRED, AT(admin.token_file), 1, 4096,
         .sentence = "The operators' bearer tokens, one a line; a name and a blank before one is "
                     "what the audit tells, else `operator`."},
        {"admin.certificate", NULL, CONF_FILE, CONF_RELOADABLE, AT(admin.certificate),
         .sentence = "PEM file; none: tls.certificate."},
        {"admin.key", NULL, CONF_FILE, CONF_RELOADABLE, AT(admin.key),
         .sentence = "PEM file; none: tls.key."},
};

static const struct conf_part parts[] = {
        {first_rows, NET_COUNT_OF(first_rows), 0},
        {conf_limit_rows, CONF_LIMIT_ROWS, offsetof(struct conf_gateway, limits)},
        {conf_reset_rows, CONF_RESET_ROWS, offsetof(struct conf_gateway, limits)},
        {conf_crowd_rows, CONF_CROWD_ROWS, offsetof(struct conf_gateway, limits)},
        {last_rows, NET_COUNT_OF(last_rows), 0},
        {conf_watchdog_rows, CONF_WATCHDOG_ROWS, offsetof(struct conf_gateway, watchdog)},
        {conf_log_rows, CONF_LOG_ROWS, offsetof(struct conf_gateway, log)},
};
static const struct conf_table table = {"sluice", parts, NET_COUNT_OF(parts)};

struct whole {
        struct conf_arena arena;
        struct conf_gateway conf;
};

static void finish_upstreams(struct conf_reader *r, const struct conf_gateway *g) {
        char name[128];

        for (size_t i = 0; i < g->upstreams.count; i++) {
                const struct conf_upstream *up = &g->upstreams.at[i];
                bool is_h2 = up->protocol == CONF_PROTOCOL_H2;

                (void)snprintf(name, sizeof(name), "upstreams.%s.protocol", up->name);
                if (is_h2 && !up->ca_file)
                        conf_reader_fault(r, name, "expected ca_file beside h2");
                if (up->protocol == CONF_PROTOCOL_H2C && up->ca_file)
                        conf_reader_fault(r, name, "expected h2 or http/1.1 beside ca_file");
        }
}

static void finish(struct conf_reader *r, void *conf) {
        struct conf_gateway *g = conf;

        for (size_t i = 0; i < g->hosts.count; i++)
                g->hosts_any |= strcmp(g->hosts.at[i], "any") == 0;
        if (g->hosts_any && g->hosts.count > 1)
                conf_reader_fault(r, "hosts", "expected `any` alone, or names");
        if (!g->admin.certificate != !g->admin.key)
                conf_reader_fault(r, g->admin.key ? "admin.key" : "admin.certificate",
                                  "expected admin.certificate and admin.key together");
        if (!g->admin.certificate) {
                g->admin.certificate = g->tls.certificate;
                g->admin.key = g->tls.key;
        }
        for (size_t i = 0; i < g->listen.count; i++)
                for (size_t k = 0; k < g->admin.listen.count; k++)
                        if (g->listen.at[i].port > 0 &&
                            strcmp(g->listen.at[i].text, g->admin.listen.at[k].text) == 0)
                                conf_reader_fault(r, "admin.listen",
                                                  "expected another address than `listen`");
        if (g->snapshot.away_after_ms < 2 * g->snapshot.wait_ms)
                conf_reader_fault(r, "snapshot.away_after",
                                  "expected at least twice snapshot.wait");
        finish_upstreams(r, g);
        conf_watchdog_finish(r, &g->watchdog);
        if (g->workers == 0)
                g->workers = conf_cores();
}

int conf_load_gateway(const char *path, struct conf_gateway **conf, struct conf_faults *faults) {
        struct whole *w = calloc(1, sizeof(*w));
        int r;

        *conf = NULL;
        conf_faults_init(faults, path);
        if (!w)
                return -ENOMEM;
        *conf = &w->conf;
        r = conf_read(&table, &w->conf, &w->arena, faults, finish);
        if (r != 0)
                conf_gateway_free(conf);
        return r;
}

void conf_gateway_free(struct conf_gateway **conf) {
        if (*conf) {
                struct whole *w = NET_CONTAINER_OF(*conf, struct whole, conf);

                conf_arena_fini(&w->arena);
                free(w);
        }
        *conf = NULL;
}

void conf_print_gateway(const struct conf_gateway *conf, FILE *to) {
        conf_print(&table, conf, to);
}

size_t conf_gateway_restart_needed(const struct conf_gateway *before,
                                   const struct conf_gateway *after, FILE *to) {
        return conf_restart_needed(&table, before, after, to);
}

const struct conf_upstream *conf_gateway_upstream(const struct conf_gateway *conf,
                                                  struct span name) {
        for (size_t i = 0; i < conf->upstreams.count; i++)
                if (span_eq(span_of(conf->upstreams.at[i].name), name))
                        return &conf->upstreams.at[i];
        return NULL;
}

void conf_manual_gateway(FILE *to) {
        conf_manual(&table, to);
}
