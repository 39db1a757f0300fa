#include "loadgen/strategies/strategies.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "loadgen/strategies/through.h"
#include "net/json.h"

#ifndef LG_SCRIPT
#define LG_SCRIPT "loadgen/strategies/run"
#endif

#define ROW_BYTES 1024
#define LINE_BYTES 4096

struct words {
        int64_t units, seconds, connections, buyers, rate;
        const char *servers, *only, *tag;
};

struct stage {
        struct words words;
        struct lg_servers servers;
        struct lg_endpoint origin;
        char token[LG_TOKEN_MAX];
        PGconn *pg;
        redisContext *redis;
        bool begun; /* a row was printed */
};

/* What became of the units, by the tables. */
struct books {
        int64_t sold, gone;
};

/* ---- servers ---- */

static bool text_of(const json_t *root, const char *name, char *out, size_t cap) {
        struct span value = json_get_str(root, name);
        if (!value.p || value.len >= cap)
                return false;
        memcpy(out, value.p, value.len);
        out[value.len] = '\0';
        return true;
}

/* The token itself, from the file that is named. */
static bool token_of(const json_t *root, char *out, size_t cap) {
        char path[LG_FILE_MAX];
        FILE *file = text_of(root, "service_token", path, sizeof(path)) ? fopen(path, "re") : NULL;
        if (!file)
                return false;
        bool good = fgets(out, (int)cap, file) != NULL;
        fclose(file);
        out[good ? strcspn(out, "\n") : 0] = '\0';
        return good;
}

static int servers_read(struct stage *s) {
        char origin[128], why[128];
        json_t *root = json_load_file(s->words.servers, 0, NULL);
        bool good = text_of(root, "postgres", s->servers.postgres, sizeof(s->servers.postgres)) &&
                    text_of(root, "origin", origin, sizeof(origin)) &&
                    token_of(root, s->token, sizeof(s->token)) &&
                    lg_endpoint_parse(&s->origin, span_of(origin), why, sizeof(why)) == 0;
        (void)text_of(root, "redis", s->servers.redis, sizeof(s->servers.redis));
        json_decref(root);
        if (!good)
                fprintf(stderr, "sluice-load: %s: expected postgres, origin, service_token\n",
                        s->words.servers);
        return !good;
}

/* ---- stock, and the books ---- */

static int run_sql(struct stage *s, const char *sql, const char *item, int64_t number,
                   struct books *out) {
        char text[24];
        const char *values[2] = {item, text};
        (void)snprintf(text, sizeof(text), "%lld", (long long)number);
        PGresult *r = PQexecParams(s->pg, sql, 2, NULL, values, NULL, NULL, 0);
        bool good = PQresultStatus(r) == PGRES_TUPLES_OK || PQresultStatus(r) == PGRES_COMMAND_OK;
        if (!good)
                fprintf(stderr, "sluice-load: %s: %s", item, PQresultErrorMessage(r));
        if (good && out && PQntuples(r) == 1)
                *out = (struct books){strtoll(PQgetvalue(r, 0, 0), NULL, 10),
                                      strtoll(PQgetvalue(r, 0, 1), NULL, 10)};
        PQclear(r);
        return !good;
}

/* Rows of the item as the way wants them: one, one a segment, one a unit. */
static int stock_lay(struct stage *s, const struct lg_way *way, const char *item) {
        static const char one[] = "insert into sluice.item (tenant, item, total, available) "
                                  "values ('shop', $1, $2::bigint, $2::bigint)";
        static const char split[] =
                "insert into sluice.item (tenant, item, location, total, available) "
                "select 'shop', $1, no::text, share, share from generate_series(0, 15) no, "
                "lateral (select $2::bigint / 16 + (no < $2::bigint % 16)::int as share) shares";
        static const char rows[] = "insert into strategies.unit (item, no) "
                                   "select $1, generate_series(1, $2::bigint)";
        static const char table[] =
                "create schema if not exists strategies; create table if not exists "
                "strategies.unit (item text, no bigint, hold uuid, primary key (item, no)); create "
                "index if not exists unit_free on strategies.unit (item) where hold is null";
        if (way->rows == LG_SEGMENTS)
                return run_sql(s, split, item, s->words.units, NULL);
        if (way->rows != 0)
                return run_sql(s, one, item, s->words.units, NULL);
        PGresult *r = PQexec(s->pg, table);
        int bad = PQresultStatus(r) != PGRES_COMMAND_OK;
        PQclear(r);
        return bad || run_sql(s, rows, item, s->words.units, NULL);
}

static int redis_lay(struct stage *s, const char *item) {
        static const char script[] = "for i = 1, ARGV[1] do redis.call('SADD', KEYS[1], i) end";
        redisReply *r = redisCommand(s->redis, "EVAL %s 1 %s %lld", script, item,
                                     (long long)s->words.units);
        int bad = !r || r->type == REDIS_REPLY_ERROR;
        if (bad)
                fprintf(stderr, "sluice-load: redis: %s\n", r ? r->str : s->redis->errstr);
        freeReplyObject(r);
        return bad;
}

static int64_t redis_number(struct stage *s, const char *format, const char *item) {
        redisReply *r = redisCommand(s->redis, format, item);
        int64_t n = r && r->type == REDIS_REPLY_INTEGER ? r->integer : -1;
        freeReplyObject(r);
        return n;
}

/* How long Redis, which does one thing at a time, has been at it. */
static double redis_spop_us(struct stage *s) {
        redisReply *r = redisCommand(s->redis, "INFO commandstats");
        const char *at = r && r->str ? strstr(r->str, "cmdstat_spop:") : NULL;
        at = at ? strstr(at, "usec_per_call=") : NULL;
        double us = at ? strtod(at + strlen("usec_per_call="), NULL) : 0;
        freeReplyObject(r);
        return us;
}

static int books_read(struct stage *s, const struct lg_way *way, const char *item,
                      struct books *out) {
        static const char items[] =
                "select (select coalesce(sum(qty), 0) from sluice.hold where tenant = 'shop' and "
                "item = $1), sum(total - available) from sluice.item "
                "where tenant = 'shop' and item = $1 and $2::text is not null";
        static const char rows[] =
                "select (select coalesce(sum(qty), 0) from sluice.hold where tenant = 'shop' and "
                "item = $1), count(hold) from strategies.unit "
                "where item = $1 and $2::text is not null";
        int bad = run_sql(s, way && way->rows == 0 ? rows : items, item, 0, out);
        if (!bad && way && way->is_redis)
                out->gone = s->words.units - redis_number(s, "SCARD %s", item);
        return bad;
}

/* ---- one way ---- */

/* What goes through it at once, and for how long it is held. */
struct lg_lock {
        double sales, held_us;
};

static struct lg_lock lock_of(const struct lg_sales *sales) {
        double locks = (double)sales->locks;
        if (sales->locks == 0)
                return (struct lg_lock){0, 0};
        return (struct lg_lock){(double)sales->sold / locks, (double)sales->held_us / locks};
}

/* By one buyer alone, for a twentieth of the stock or a second: with all of them what
 * is seen is also how long an answer waits for a processor. */
static int measure_lock(const struct lg_crew *crew, struct lg_sales *sales, struct lg_lock *out) {
        uint32_t each = crew->way->sales ? crew->way->sales : 1;
        struct lg_crew alone = *crew;
        alone.connections = 1;
        alone.first = LG_CREW_MAX;
        alone.seconds = 1;
        alone.most = (uint64_t)crew->units / 20 / each + 1;
        int bad = lg_crew_run(&alone, sales);
        *out = lock_of(sales);
        return bad;
}

static void row_print(struct stage *s, const char *name, const struct lg_sales *sales,
                      const struct books *books, struct lg_lock lock) {
        char text[ROW_BYTES];
        struct json_out o;
        int64_t over = books->sold - books->gone;
        json_out_init(&o, text, sizeof(text));
        json_out_object(&o, NULL);
        json_out_text(&o, "strategy", name);
        json_out_real(&o, "sales_per_s",
                      sales->seconds > 0 ? (double)sales->sold / sales->seconds : 0, 1);
        json_out_real(&o, "ceiling_per_s", lock.held_us > 0 ? lock.sales * 1e6 / lock.held_us : 0,
                      1);
        json_out_real(&o, "lock_held_us", lock.held_us, 1);
        json_out_uint(&o, "retries", sales->retries);
        json_out_uint(&o, "gave_up", sales->gave_up);
        json_out_uint(&o, "p99_us", lg_histogram_at(&sales->took, 990));
        json_out_int(&o, "oversold", over > 0 ? over : 0);
        json_out_int(&o, "lost", over < 0 ? -over : 0);
        json_out_uint(&o, "sold", sales->sold);
        json_out_uint(&o, "locks", sales->locks);
        json_out_uint(&o, "p50_us", lg_histogram_at(&sales->took, 500));
        json_out_object_end(&o);
        struct span done = json_out_done(&o);
        assert(done.p);
        printf("%s%.*s", s->begun ? ",\n" : "[", (int)done.len, done.p);
        s->begun = true;
}

static int run_way(struct stage *s, const struct lg_way *way, const char *item) {
        uint32_t n = (uint32_t)s->words.connections;
        struct lg_crew crew = {
                .way = way,
                .servers = &s->servers,
                .item = item,
                .units = s->words.units,
                .connections = way->most > 0 && n > way->most ? way->most : n,
                .seconds = s->words.seconds,
                .is_killed = way->is_redis,
        };
        struct lg_sales *sales = calloc(1, sizeof(*sales));
        struct lg_lock lock = {0, 0};
        struct books books = {0, 0};
        if (way->is_redis && !s->redis)
                s->redis = lg_way_redis(s->servers.redis);
        int bad = !sales || stock_lay(s, way, item) != 0 ||
                  (way->is_redis && (!s->redis || redis_lay(s, item) != 0)) ||
                  (!way->is_redis && measure_lock(&crew, sales, &lock) != 0) ||
                  lg_crew_run(&crew, sales) != 0 || books_read(s, way, item, &books) != 0;
        if (!bad && way->is_redis) {
                lock = (struct lg_lock){1, redis_spop_us(s)};
                sales->locks = sales->sold;
        }
        if (!bad)
                row_print(s, way->name, sales, &books,
                          (struct lg_lock){lock.sales * (way->rows ? way->rows : crew.connections),
                                           lock.held_us});
        free(sales);
        return bad;
}

static int run_through(struct stage *s, const char *name, const char *item) {
        struct lg_through what = {
                .origin = &s->origin,
                .token = s->token,
                .item = item,
                .units = s->words.units,
                .is_together = strcmp(name, "origin_batch") == 0,
                .buyers = (uint32_t)s->words.buyers,
                .per_s = (uint32_t)s->words.rate,
                .seconds = s->words.seconds,
        };
        struct lg_sales *sales = calloc(1, sizeof(*sales));
        struct books books = {0, 0};
        int bad = !sales || lg_through_run(&what, sales) != 0 ||
                  books_read(s, NULL, item, &books) != 0;
        if (!bad)
                row_print(s, name, sales, &books, lock_of(sales));
        free(sales);
        return bad;
}

static int run_named(struct stage *s, const char *name) {
        char item[64], *at;
        const struct lg_way *way = lg_way_named(name);
        (void)snprintf(item, sizeof(item), "%s-%s", name, s->words.tag);
        while ((at = strchr(item, '_'))) /* a sale's name has none */
                *at = '-';
        if (way)
                return run_way(s, way, item);
        if (strcmp(name, "origin_batch") == 0 || strcmp(name, "origin_off") == 0)
                return run_through(s, name, item);
        fprintf(stderr, "sluice-load: strategies: %s: no such strategy\n", name);
        return 1;
}

static int run_all(struct stage *s) {
        char *names = strdup(s->words.only), *rest = names, *name;
        int bad = !names;
        while (!bad && (name = strsep(&rest, ",")))
                bad = run_named(s, name);
        free(names);
        if (s->begun)
                printf("]\n");
        return bad;
}

/* ---- words ---- */

static bool number_read(const char *text, int64_t low, int64_t high, int64_t *out) {
        char *rest;
        errno = 0;
        long long n = strtoll(text, &rest, 10);
        *out = n;
        return errno == 0 && *rest == '\0' && rest != text && n >= low && n <= high;
}

static bool words_read(struct words *w, int argc, char *const argv[]) {
        static const struct option options[] = {
                {"servers", required_argument, NULL, 'f'},
                {"only", required_argument, NULL, 'o'},
                {"tag", required_argument, NULL, 't'},
                {"units", required_argument, NULL, 'u'},
                {"seconds", required_argument, NULL, 's'},
                {"buyers", required_argument, NULL, 'b'},
                {"rate", required_argument, NULL, 'r'},
                {"connections", required_argument, NULL, 'c'},
                {NULL, 0, NULL, 0},
        };
        int c;
        bool good = true;
        while (good && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
                good = c == 'f'   ? (w->servers = optarg) != NULL
                       : c == 'o' ? (w->only = optarg) != NULL
                       : c == 't' ? (w->tag = optarg) != NULL && strlen(optarg) < 40
                       : c == 'u' ? number_read(optarg, 1, 10000000, &w->units)
                       : c == 's' ? number_read(optarg, 1, 600, &w->seconds)
                       : c == 'b' ? number_read(optarg, 1, LG_THROUGH_MAX, &w->buyers)
                       : c == 'r'
                               ? number_read(optarg, 1, 1000000, &w->rate)
                               : c == 'c' && number_read(optarg, 1, LG_CREW_MAX, &w->connections);
        }
        return good && optind == argc;
}

/* The script, with the folder of this very build before the user's own words. */
static int call_script(int argc, char *const argv[]) {
        char build[LINE_BYTES];
        ssize_t len = readlink("/proc/self/exe", build, sizeof(build) - 1);
        char **words = calloc((size_t)argc + 4, sizeof(*words));
        int n = 0;
        if (len <= 0 || !words) {
                free(words);
                return 1;
        }
        build[len] = '\0';
        for (int up = 0; up < 2 && strrchr(build, '/'); up++)
                *strrchr(build, '/') = '\0';
        words[n++] = (char[]){LG_SCRIPT};
        words[n++] = (char[]){"--build"};
        words[n++] = build;
        for (int i = 0; i < argc; i++)
                words[n++] = argv[i];
        (void)execv(LG_SCRIPT, words);
        fprintf(stderr, "sluice-load: %s: %s\n", LG_SCRIPT, strerror(errno));
        free(words);
        return 2;
}

static bool names_servers(int argc, char *const argv[]) {
        for (int i = 0; i < argc; i++)
                if (strcmp(argv[i], "--servers") == 0)
                        return true;
        return false;
}

int lg_strategies_main(int argc, char *const argv[]) {
        struct stage s = {.words = {.units = 200000,
                                    .seconds = 5,
                                    .connections = 16,
                                    .buyers = 256,
                                    .tag = "1",
                                    .only = "conditional,origin_batch,origin_off"}};
        if (!names_servers(argc, argv))
                return call_script(argc, argv);
        /* getopt looks behind the first word */
        if (!words_read(&s.words, argc + 1, argv - 1) || servers_read(&s) != 0)
                return 2;
        s.pg = lg_way_connect(s.servers.postgres);
        int bad = !s.pg || run_all(&s);
        PQfinish(s.pg);
        if (s.redis)
                redisFree(s.redis);
        explicit_bzero(s.token, sizeof(s.token));
        return bad;
}
