#include "loadgen/strategies/way.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TRIES 20 /* of an optimistic sale */

/* ---- what is written ----
 *
 * $1 is the item, $2 the buyer, and what $3 is, each statement says. A statement
 * that takes a unit returns when it had the row, by the server's clock, which is
 * ours too. */

/* clang-format off */
#define HOLD                                                                                       \
        "insert into sluice.hold (tenant, id, item, location, sale, buyer, qty, state, "           \
                "expires_at, created_at, idem_key, request, round) "                               \
        "select 'shop', gen_random_uuid(), $1::text, "
#define WHOSE(buyer)                                                                               \
        ", $1::text, " buyer ", 1, 'held', date_trunc('milliseconds', now()) "                     \
        "+ interval '600 s', date_trunc('milliseconds', now()), " buyer                            \
        ", sha256('one unit'), 1 "
#define BUYER WHOSE("$2::text")
#define KEPT " on conflict do nothing returning *), "
#define NOTED                                                                                      \
        "noted as (insert into sluice.journal (tenant, item, location, hold, to_state, qty, "      \
                "reason, actor) "                                                                  \
        "select tenant, item, location, id, 'held', qty, 'reserved', 'buyer' from born)"
#define ROW " where tenant = 'shop' and item = $1::text and location = "
#define LESS(n)                                                                                    \
        "update sluice.item set available = available - " n ", held = held + " n ", n = n + 1"
#define SINCE "(extract(epoch from clock_timestamp()) * 1000000)::bigint as since"
/* The holds first, the item's row last. */
#define TOOK_AFTER(n, location)                                                                    \
        ", took as (" LESS(n) " from (select count(*) as holds from born) b" ROW location          \
        " and available >= " n " and b.holds > 0 returning available, n, " SINCE ") "
/* Where nothing was taken this fails, and the hold goes with it. */
#define OR_FAIL "select (select since from took), 1 / (select count(*) from took)"

/* Reads, decides by itself, writes what it believes to be left. $3: that. */
#define LOOK "select available, n from sluice.item" ROW "''"
#define NAIVE                                                                                      \
        "with born as (" HOLD "''" BUYER KEPT NOTED                                                \
        ", took as (update sluice.item "                                                           \
                "set available = $3::bigint, held = total - $3::bigint, n = n + 1"                 \
                ROW "'' returning " SINCE ") "                                                     \
        "select since from took"
/* One row version lets one writer through. $3: the version that was read. */
#define OPTIMISTIC                                                                                 \
        "with took as (" LESS("1") ROW "'' and n = $3::bigint and available >= 1 "                 \
                "returning " SINCE "), "                                                           \
        "born as (" HOLD "''" BUYER "from took" KEPT NOTED                                         \
        "select since from took"
/* The rows of the origin's reserve, its key and its allowance, in one statement. $3: none. */
#define CONDITIONAL                                                                                \
        "with born as (" HOLD "''" BUYER                                                           \
                "where (select coalesce(sum(qty), 0) from sluice_api.counted "                     \
                "where turn = sluice_api.buyer_number('shop', $1::text, $2::text) "                \
                "and sale = $1::text and buyer = $2::text) + 1 <= 1 and $3::text is null" KEPT     \
        NOTED TOOK_AFTER("1", "''") OR_FAIL                                                        \
        ", (select available from took), (select n from took), sluice_api.hold_json(h) "           \
        "from (select born::sluice.hold as h from born) told"
/* So many buyers in one statement. $2: their names. $3: how many. */
#define BATCH                                                                                      \
        "with born as (" HOLD "''" WHOSE("who") "from unnest($2::text[]) who" KEPT                 \
        NOTED TOOK_AFTER("$3::bigint", "''") OR_FAIL
/* One of several rows that share the stock. $3: which. */
#define SEGMENT                                                                                    \
        "with born as (" HOLD "$3::text" BUYER KEPT                                                \
        NOTED TOOK_AFTER("1", "$3::text") OR_FAIL
/* A row a unit; those that somebody else has are stepped over. $3: none. */
#define UNIT                                                                                       \
        "with picked as (select no, " SINCE " from strategies.unit where item = $1::text "         \
                "and hold is null and $3::text is null limit 1 for update skip locked), "          \
        "born as (" HOLD "''" BUYER "from picked" KEPT NOTED                                       \
        ", took as (update strategies.unit u set hold = born.id from born, picked "                \
                "where u.item = $1::text and u.no = picked.no) "                                   \
        "select since from picked"
/* The hold alone: the unit was taken elsewhere. $3: none. */
#define RECORD                                                                                     \
        "with born as (" HOLD "''" BUYER "where $3::text is null" KEPT NOTED "select 0"
/* clang-format on */

/* ---- asking ---- */

int64_t lg_wall_us(void) {
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void held_since(struct lg_buyer *b, int64_t since_us) {
        int64_t us = lg_wall_us() - since_us;
        b->locks++;
        b->held_us += us > 0 ? (uint64_t)us : 0;
}

/* What an error means to a sale. */
static enum lg_sale_end end_of(const struct lg_buyer *b, const PGresult *r) {
        const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
        if (state && strcmp(state, "22012") == 0)
                return LG_SALE_REFUSED;
        if (state && (strcmp(state, "55P03") == 0 || strcmp(state, "57014") == 0 ||
                      strncmp(state, "40", 2) == 0))
                return LG_SALE_GAVE_UP;
        fprintf(stderr, "sluice-load: %s: %s", b->way->name, PQresultErrorMessage(r));
        return LG_SALE_BROKEN;
}

/* `numbers` gets the first columns of the only row; -1 in all where there is none. */
static enum lg_sale_end ask(struct lg_buyer *b, const char *statement, const char *buyer,
                            const char *third, int64_t numbers[2]) {
        const char *values[3] = {b->item, buyer, third};
        PGresult *r = PQexecPrepared(b->pg, statement, buyer ? 3 : 1, values, NULL, NULL, 0);
        ExecStatusType status = PQresultStatus(r);
        enum lg_sale_end end = LG_SALE_SOLD;
        numbers[0] = numbers[1] = -1;
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
                end = end_of(b, r);
        for (int i = 0; i < 2 && PQntuples(r) == 1 && i < PQnfields(r); i++)
                numbers[i] = strtoll(PQgetvalue(r, 0, i), NULL, 10);
        PQclear(r);
        return end;
}

struct name {
        char text[96];
};

static struct name name_of(const struct lg_buyer *b, uint64_t serial) {
        struct name n;
        (void)snprintf(n.text, sizeof(n.text), "%s-%u-%llu", b->item, b->number,
                       (unsigned long long)serial);
        return n;
}

/* One statement that takes the unit, in a transaction of its own. No row: nothing was taken. */
static enum lg_sale_end take(struct lg_buyer *b, const char *buyer, const char *third) {
        int64_t told[2];
        enum lg_sale_end end = ask(b, "take", buyer, third, told);
        if (end == LG_SALE_SOLD && told[0] < 0)
                return LG_SALE_REFUSED;
        if (end == LG_SALE_SOLD && told[0] > 0)
                held_since(b, told[0]);
        return end;
}

/* ---- the ways ---- */

static enum lg_sale_end sell_naive(struct lg_buyer *b) {
        char left[24];
        int64_t seen[2];
        enum lg_sale_end end = ask(b, "look", NULL, NULL, seen);
        if (end != LG_SALE_SOLD || seen[0] <= 0)
                return end != LG_SALE_SOLD ? end : LG_SALE_REFUSED;
        (void)snprintf(left, sizeof(left), "%lld", (long long)seen[0] - 1);
        return take(b, name_of(b, b->serial).text, left);
}

static enum lg_sale_end plain(struct lg_buyer *b, const char *sql) {
        PGresult *r = PQexec(b->pg, sql);
        ExecStatusType status = PQresultStatus(r);
        enum lg_sale_end end = status == PGRES_COMMAND_OK ? LG_SALE_SOLD : end_of(b, r);
        PQclear(r);
        return end;
}

/* The rest of a locked sale, its row in hand. */
static enum lg_sale_end finish_locked(struct lg_buyer *b) {
        int64_t none[2];
        struct timespec pause = {.tv_sec = b->way->pause_ms / 1000,
                                 .tv_nsec = (long)(b->way->pause_ms % 1000) * 1000000};
        (void)nanosleep(&pause, NULL);
        enum lg_sale_end end = ask(b, "take", name_of(b, b->serial).text, NULL, none);
        if (end == LG_SALE_SOLD)
                end = ask(b, "less", NULL, NULL, none);
        return end == LG_SALE_SOLD ? plain(b, "commit") : end;
}

/* SELECT FOR UPDATE, then whatever the application does, then the writing. */
static enum lg_sale_end sell_locked(struct lg_buyer *b) {
        int64_t seen[2];
        enum lg_sale_end end = plain(b, "begin");
        if (end == LG_SALE_SOLD)
                end = ask(b, "lock", NULL, NULL, seen);
        if (end == LG_SALE_SOLD) {
                int64_t since_us = lg_wall_us();
                end = seen[0] > 0 ? finish_locked(b) : LG_SALE_REFUSED;
                if (end == LG_SALE_SOLD)
                        held_since(b, since_us);
        }
        if (end != LG_SALE_SOLD && plain(b, "rollback") != LG_SALE_SOLD)
                return LG_SALE_BROKEN;
        return end;
}

static enum lg_sale_end sell_optimistic(struct lg_buyer *b) {
        char version[24];
        int64_t seen[2];
        for (int i = 0; i < TRIES; i++) {
                enum lg_sale_end end = ask(b, "look", NULL, NULL, seen);
                if (end != LG_SALE_SOLD || seen[0] <= 0)
                        return end != LG_SALE_SOLD ? end : LG_SALE_REFUSED;
                (void)snprintf(version, sizeof(version), "%lld", (long long)seen[1]);
                end = take(b, name_of(b, b->serial).text, version);
                if (end != LG_SALE_REFUSED) /* else somebody else was faster */
                        return end;
                b->retries++;
        }
        return LG_SALE_GAVE_UP;
}

static enum lg_sale_end sell_once(struct lg_buyer *b) {
        return take(b, name_of(b, b->serial).text, NULL);
}

static enum lg_sale_end sell_batch(struct lg_buyer *b) {
        char names[LG_BATCH * sizeof(struct name) + 2], many[24];
        size_t len = 0;
        for (uint64_t i = 0; i < LG_BATCH; i++)
                len += (size_t)snprintf(names + len, sizeof(names) - len, "%c%s", i ? ',' : '{',
                                        name_of(b, b->serial * LG_BATCH + i).text);
        (void)snprintf(names + len, sizeof(names) - len, "}");
        (void)snprintf(many, sizeof(many), "%d", LG_BATCH);
        return take(b, names, many);
}

/* By chance, then the next ones, until one has something left. */
static enum lg_sale_end sell_segments(struct lg_buyer *b) {
        char which[16];
        b->chance = b->chance * 1664525u + 1013904223u;
        for (uint32_t i = 0; i < LG_SEGMENTS; i++) {
                (void)snprintf(which, sizeof(which), "%u", ((b->chance >> 16) + i) % LG_SEGMENTS);
                enum lg_sale_end end = take(b, name_of(b, b->serial).text, which);
                if (end != LG_SALE_REFUSED)
                        return end;
                b->retries++;
        }
        return LG_SALE_REFUSED;
}

/* Two steps in two places: whoever dies in between has taken a unit that nobody has. */
static enum lg_sale_end sell_spop(struct lg_buyer *b) {
        redisReply *unit = redisCommand(b->redis, "SPOP %s", b->item);
        if (!unit || unit->type == REDIS_REPLY_ERROR) {
                fprintf(stderr, "sluice-load: %s: redis: %s\n", b->way->name,
                        unit ? unit->str : b->redis->errstr);
                freeReplyObject(unit);
                return LG_SALE_BROKEN;
        }
        bool none = unit->type == REDIS_REPLY_NIL;
        freeReplyObject(unit);
        if (none)
                return LG_SALE_REFUSED;
        if (b->between)
                b->between(b);
        return take(b, name_of(b, b->serial).text, NULL);
}

static const struct lg_way ways[] = {
        {.name = "naive", .sell = sell_naive, .rows = 1, .takes = NAIVE},
        {.name = "lock_pay_500", .sell = sell_locked, .rows = 1, .pause_ms = 500, .takes = RECORD},
        {.name = "lock_pay_200", .sell = sell_locked, .rows = 1, .pause_ms = 200, .takes = RECORD},
        {.name = "lock_logic", .sell = sell_locked, .rows = 1, .pause_ms = 5, .takes = RECORD},
        {.name = "optimistic", .sell = sell_optimistic, .rows = 1, .takes = OPTIMISTIC},
        {.name = "conditional", .sell = sell_once, .rows = 1, .takes = CONDITIONAL},
        {.name = "batch",
         .sell = sell_batch,
         .sales = LG_BATCH,
         .rows = 1,
         .most = 2,
         .takes = BATCH},
        {.name = "segments", .sell = sell_segments, .rows = LG_SEGMENTS, .takes = SEGMENT},
        {.name = "units", .sell = sell_once, .takes = UNIT},
        {.name = "spop", .sell = sell_spop, .rows = 1, .is_redis = true, .takes = RECORD},
};

const struct lg_way *lg_way_at(size_t i) {
        return i < NET_COUNT_OF(ways) ? &ways[i] : NULL;
}

const struct lg_way *lg_way_named(const char *name) {
        for (size_t i = 0; i < NET_COUNT_OF(ways); i++)
                if (strcmp(ways[i].name, name) == 0)
                        return &ways[i];
        return NULL;
}

/* ---- connections ---- */

/* As the origin's own sessions are. */
static const char settings[] =
        "-c default_transaction_isolation=read\\ committed -c lock_timeout=2s "
        "-c statement_timeout=2s -c enable_seqscan=off -c jit=off -c sluice.prefix=a "
        "-c sluice.timeline=1 -c client_min_messages=warning";

PGconn *lg_way_connect(const char *url) {
        const char *keywords[] = {"dbname", "application_name", "options", "target_session_attrs",
                                  NULL};
        const char *values[] = {url, "sluice-load strategies", settings, "read-write", NULL};
        PGconn *pg = PQconnectdbParams(keywords, values, 1);
        if (PQstatus(pg) == CONNECTION_OK)
                return pg;
        fprintf(stderr, "sluice-load: %s", PQerrorMessage(pg));
        PQfinish(pg);
        return NULL;
}

redisContext *lg_way_redis(const char *url) {
        char password[128], host[64];
        int port;
        struct timeval patience = {.tv_sec = 10};
        if (sscanf(url, "redis://:%127[^@]@%63[^:]:%5d", password, host, &port) != 3) {
                fprintf(stderr, "sluice-load: redis: expected redis://:PASSWORD@HOST:PORT\n");
                return NULL;
        }
        redisContext *redis = redisConnectWithTimeout(host, port, patience);
        redisReply *r = redis && redis->err == 0 ? redisCommand(redis, "AUTH %s", password) : NULL;
        bool good =
                r && r->type != REDIS_REPLY_ERROR && redisSetTimeout(redis, patience) == REDIS_OK;
        explicit_bzero(password, sizeof(password));
        freeReplyObject(r);
        if (good)
                return redis;
        fprintf(stderr, "sluice-load: redis at %s:%d lets nobody in\n", host, port);
        if (redis)
                redisFree(redis);
        return NULL;
}

static int prepare(struct lg_buyer *b, const char *name, const char *sql) {
        PGresult *r = PQprepare(b->pg, name, sql, 0, NULL);
        int failed = PQresultStatus(r) != PGRES_COMMAND_OK;
        if (failed)
                fprintf(stderr, "sluice-load: %s, %s: %s", b->way->name, name,
                        PQresultErrorMessage(r));
        PQclear(r);
        return failed;
}

int lg_buyer_open(struct lg_buyer *b, const char *url, const char *redis) {
        b->pg = lg_way_connect(url);
        b->chance = b->number;
        if (!b->pg)
                return 1;
        if (b->way->is_redis) {
                b->redis = redis ? lg_way_redis(redis) : NULL;
                if (!b->redis)
                        return 1;
        }
        return prepare(b, "take", b->way->takes) || prepare(b, "look", LOOK) ||
               prepare(b, "lock", LOOK " for update") || prepare(b, "less", LESS("1") ROW "''");
}

void lg_buyer_close(struct lg_buyer *b) {
        PQfinish(b->pg);
        if (b->redis)
                redisFree(b->redis);
        b->pg = NULL;
        b->redis = NULL;
}
