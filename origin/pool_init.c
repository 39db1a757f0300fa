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
        "md5($1 || $2 || $3 || $4) || ' ' || (select count(*) from pg_proc where pronamespace in " \
        "(to_regnamespace('sluice'), to_regnamespace('sluice_api'))) || ' ' || "                   \
        "(select count(*) from pg_class where relnamespace = to_regnamespace('sluice') "           \
        "and relname <> '" RELAYED "')"

static PGresult *ask_texts(PGconn *pg, const char *sql) {
        const char *values[4] = {org_sql_schema, org_sql_stock, org_sql_sales, org_sql_duty};
        return PQexecParams(pg, sql, 4, NULL, values, NULL, NULL, 0);
}

static int is_made(PGconn *pg, bool *yes) {
        PGresult *r = ask_texts(pg, "select obj_description(to_regnamespace('sluice_api'), "
                                    "'pg_namespace') is not distinct from " MADE);
        if (PQresultStatus(r) != PGRES_TUPLES_OK)
                return fail(pg, r, "looking at what is there");
        *yes = PQgetvalue(r, 0, 0)[0] == 't';
        PQclear(r);
        return 0;
}

static int mark_made(PGconn *pg) {
        PGresult *r =
                ask_texts(pg, "select format('comment on schema sluice_api is %L', " MADE ")");
        if (PQresultStatus(r) != PGRES_TUPLES_OK)
                return fail(pg, r, "marking the functions");
        int failed = run(pg, PQgetvalue(r, 0, 0), "marking the functions");
        PQclear(r);
        return failed;
}

static int make_functions(PGconn *pg) {
        if (run(pg, org_sql_stock, "making functions") != 0 ||
            run(pg, org_sql_sales, "making functions") != 0 ||
            run(pg, org_sql_duty, "making functions") != 0)
                return 1;
        return mark_made(pg);
}

static int migrate(PGconn *pg) {
        bool made = false, newer = false;

        if (run(pg, "begin", "beginning") != 0 || run(pg, SETTLE, "settling") != 0 ||
            run(pg, LOCK, "waiting for another --init") != 0 || is_made(pg, &made) != 0)
                return 1;
        if (!made && run(pg, org_sql_schema, "making tables") != 0)
                return 1;
        if (ask_version(pg, NEWER, &newer) != 0)
                return 1;
        if (newer) {
                fprintf(stderr, "sluice-origin: database: its schema is newer than this program\n");
                return 1;
        }
        if ((!made && make_functions(pg) != 0) || ask_version(pg, MARK, &newer) != 0)
                return 1;
        return run(pg, "commit", "committing");
}

int org_db_init_schema(const struct conf_origin *conf) {
        const char *keywords[] = {"dbname", "application_name", "target_session_attrs",
                                  "connect_timeout", NULL};
        const char *values[] = {conf->database.url, "sluice-origin init", "read-write", "10", NULL};
        PGconn *pg = PQconnectdbParams(keywords, values, 1);
        int r = 1;

        if (PQstatus(pg) != CONNECTION_OK)
                r = fail(pg, NULL, "connecting");
        else
                r = migrate(pg);
        if (r == 0 && conf->relay.redis)
                r = index_outbox(pg);
        PQfinish(pg);
        return r;
}
