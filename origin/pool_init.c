#include <stdio.h>
#include <stdlib.h>

#include <libpq-fe.h>

#include "origin/db.h"
#include "origin/sql.h"

/* One --init at a time; the number is ours alone ("sluice" as bytes). */
#define LOCK "select pg_advisory_xact_lock(126931195519845)"
#define SETTLE "set local client_min_messages = warning; set local lock_timeout = '10s'"
#define MARK                                                                                       \
        "insert into sluice.schema_version (version) values ($1::int) "                            \
        "on conflict (version) do nothing"
/* A newer program's tables are not ours to touch. */
#define NEWER "select coalesce(max(version), 0) > $1::int from sluice.schema_version"

static int fail(PGconn *pg, PGresult *r, const char *doing) {
        const char *why = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;

        if (!why || !why[0])
                why = PQerrorMessage(pg);
        fprintf(stderr, "sluice-origin: database, %s: %.*s\n", doing, (int)strcspn(why, "\n"), why);
        PQclear(r);
        return 1;
}

static int run(PGconn *pg, const char *sql, const char *doing) {
        PGresult *r = PQexec(pg, sql);
        ExecStatusType s = PQresultStatus(r);

        if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK)
                return fail(pg, r, doing);
        PQclear(r);
        return 0;
}

static int ask_version(PGconn *pg, const char *sql, bool *yes) {
        char version[16];
        const char *values[1] = {version};
        PGresult *r;

        (void)snprintf(version, sizeof(version), "%d", ORG_SCHEMA_VERSION);
        r = PQexecParams(pg, sql, 1, NULL, values, NULL, NULL, 0);
        if (PQresultStatus(r) != PGRES_TUPLES_OK && PQresultStatus(r) != PGRES_COMMAND_OK)
                return fail(pg, r, "reading the version");
        *yes = PQntuples(r) == 1 && PQgetvalue(r, 0, 0)[0] == 't';
        PQclear(r);
        return 0;
}

/* Only who relays pays for the index of what is still to be relayed: each event
 * enters it and leaves it. It is made beside the sale, which nobody waits for,
 * and once made it stays. One whose making was cut off is of no use. */
#define RELAYED "journal_unrelayed"
#define RELAYED_IS_GOOD                                                                            \
        "select coalesce((select indisvalid from pg_index where indexrelid = "                     \
        "to_regclass('sluice." RELAYED "')), false)"

static int ask_yes(PGconn *pg, const char *sql, bool *yes) {
        PGresult *r = PQexec(pg, sql);

        if (PQresultStatus(r) != PGRES_TUPLES_OK)
                return fail(pg, r, "looking at what is there");
        *yes = PQntuples(r) == 1 && PQgetvalue(r, 0, 0)[0] == 't';
        PQclear(r);
        return 0;
}

static int index_outbox(PGconn *pg) {
        bool good = false;

        if (ask_yes(pg, RELAYED_IS_GOOD, &good) != 0)
                return 1;
        if (good)
                return 0;
        if (run(pg, "set client_min_messages = warning", "settling") != 0 ||
            run(pg, "drop index concurrently if exists sluice." RELAYED, "dropping an index") != 0)
                return 1;
        return run(pg,
                   "create index concurrently if not exists " RELAYED
                   " on sluice.journal (seq) where relayed_at is null",
                   "making an index");
}

/* The schema of the functions carries a mark: a hash of all our texts and how
 * many things they made. Where it stands as it would be written, nothing is
 * touched: making tables and triggers again waits for every open transaction,
 * and making functions again drops them under an origin that is running. */
#define MADE                                                                                       \
        "md5($1 || $2 || $3 || $4 || $5 || $6) || ' ' || (select count(*) from pg_proc where "     \
        "pronamespace in "                                                                         \
        "(to_regnamespace('sluice'), to_regnamespace('sluice_api'))) || ' ' || "                   \
        "(select count(*) from pg_class where relnamespace = to_regnamespace('sluice') "           \
        "and relname <> '" RELAYED "')"

/* Whether the role that serves, if it is another, still has what it was given. */
#define GRANTED                                                                                    \
        " and ($6 = '' or exists (select from pg_roles where rolname = $6 and "                    \
        "has_table_privilege(oid, to_regclass('sluice.journal'), 'INSERT')))"

/* Who serves, as database.url has it. */
struct service {
        char *role; /* "": whoever runs --init */
        char *secret;
};

static PGresult *ask_texts(PGconn *pg, const char *sql, const struct service *s) {
        const char *values[6] = {org_sql_schema, org_sql_stock,  org_sql_sales,
                                 org_sql_duty,   org_sql_grants, s->role};
        return PQexecParams(pg, sql, 6, NULL, values, NULL, NULL, 0);
}

static int is_made(PGconn *pg, const struct service *s, bool *yes) {
        PGresult *r = ask_texts(pg,
                                "select obj_description(to_regnamespace('sluice_api'), "
                                "'pg_namespace') is not distinct from " MADE GRANTED,
                                s);
        if (PQresultStatus(r) != PGRES_TUPLES_OK)
                return fail(pg, r, "looking at what is there");
        *yes = PQgetvalue(r, 0, 0)[0] == 't';
        PQclear(r);
        return 0;
}

static int mark_made(PGconn *pg, const struct service *s) {
        PGresult *r =
                ask_texts(pg, "select format('comment on schema sluice_api is %L', " MADE ")", s);
        if (PQresultStatus(r) != PGRES_TUPLES_OK)
                return fail(pg, r, "marking the functions");
        int failed = run(pg, PQgetvalue(r, 0, 0), "marking the functions");
        PQclear(r);
        return failed;
}

/* The password itself never reaches the server, nor its log. */
static int grant(PGconn *pg, const struct service *s) {
        char *secret = s->secret ? PQencryptPasswordConn(pg, s->secret, s->role, NULL) : NULL;
        const char *values[2] = {s->role, secret ? secret : ""};
        PGresult *r = NULL;
        int failed = 1;

        if (!s->secret || secret)
                r = PQexecParams(pg,
                                 "select set_config('sluice.service', $1, true), "
                                 "set_config('sluice.secret', $2, true)",
                                 2, NULL, values, NULL, NULL, 0);
        if (PQresultStatus(r) != PGRES_TUPLES_OK) {
                failed = fail(pg, r, "naming the role that serves");
        } else {
                PQclear(r);
                failed = run(pg, org_sql_grants, "granting");
        }
        PQfreemem(secret);
        return failed;
}

static int make_functions(PGconn *pg, const struct service *s) {
        if (run(pg, org_sql_stock, "making functions") != 0 ||
            run(pg, org_sql_sales, "making functions") != 0 ||
            run(pg, org_sql_duty, "making functions") != 0 || (s->role[0] && grant(pg, s) != 0))
                return 1;
        return mark_made(pg, s);
}

static int migrate(PGconn *pg, const struct service *s) {
        bool made = false, newer = false;

        if (run(pg, "begin", "beginning") != 0 || run(pg, SETTLE, "settling") != 0 ||
            run(pg, LOCK, "waiting for another --init") != 0 || is_made(pg, s, &made) != 0)
                return 1;
        if (!made && run(pg, org_sql_schema, "making tables") != 0)
                return 1;
        if (ask_version(pg, NEWER, &newer) != 0)
                return 1;
        if (newer) {
                fprintf(stderr, "sluice-origin: database: its schema is newer than this program\n");
                return 1;
        }
        if ((!made && make_functions(pg, s) != 0) || ask_version(pg, MARK, &newer) != 0)
                return 1;
        return run(pg, "commit", "committing");
}

static void service_fini(struct service *s) {
        free(s->role);
        if (s->secret)
                explicit_bzero(s->secret, strlen(s->secret));
        free(s->secret);
}

/* Of a connection's options; NULL: not given, or out of memory. */
static char *copy_option(const PQconninfoOption *o, const char *keyword) {
        while (o && o->keyword && strcmp(o->keyword, keyword) != 0)
                o++;
        return o && o->keyword && o->val ? strdup(o->val) : NULL;
}

/* The role and password of database.url, when --init has a URL of its own. */
static int service_init(struct service *s, const struct conf_origin *conf) {
        PQconninfoOption *options;
        char *why = NULL;
        bool out_of_memory;

        *s = (struct service){.role = NULL};
        if (!conf->database.init_url) {
                s->role = strdup("");
                return s->role ? 0 : 1;
        }
        options = PQconninfoParse(conf->database.url, &why);
        s->role = copy_option(options, "user");
        s->secret = copy_option(options, "password");
        out_of_memory = !options && !why;
        PQconninfoFree(options);
        if (s->role && s->role[0])
                return 0;
        fprintf(stderr, "sluice-origin: database.url: %.*s\n", why ? (int)strcspn(why, "\n") : 80,
                why             ? why
                : out_of_memory ? "out of memory"
                                : "names no role that --init could grant to");
        PQfreemem(why);
        service_fini(s);
        return 1;
}

int org_db_init_schema(const struct conf_origin *conf) {
        const char *url = conf->database.init_url ? conf->database.init_url : conf->database.url;
        const char *keywords[] = {"dbname", "application_name", "target_session_attrs",
                                  "connect_timeout", NULL};
        const char *values[] = {url, "sluice-origin init", "read-write", "10", NULL};
        struct service service;
        PGconn *pg;
        int r;

        if (service_init(&service, conf) != 0)
                return 1;
        pg = PQconnectdbParams(keywords, values, 1);
        if (PQstatus(pg) != CONNECTION_OK)
                r = fail(pg, NULL, "connecting");
        else
                r = migrate(pg, &service);
        if (r == 0 && conf->relay.redis)
                r = index_outbox(pg);
        PQfinish(pg);
        service_fini(&service);
        return r;
}
