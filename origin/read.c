#include "origin/read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/log.h"

#define REST_MS 1000

struct org_reader {
        struct org_service *s;
        int64_t rests_until_ms; /* monotonic */
        bool told;              /* that it is not read from */
        struct org_read_counters counters;
};

struct read {
        struct org_reader *reader;
        enum org_query query;
        struct span param[ORG_READ_PARAMS]; /* into text */
        org_job_done *done;
        void *user;
        char text[];
};

enum column { COL_LSN, COL_TIMELINE, COL_NOW };

static struct org_job *job_of(const struct read *r) {
        struct org_job *j = org_job_new(r->query);

        for (int i = 0; i < org_queries[r->query].n_params; i++)
                org_job_text(j, r->param[i]);
        return j;
}

static void finish(struct read *r, const struct org_reply *reply) {
        r->done(r->user, reply);
        free(r);
}

static void on_primary(void *user, const struct org_reply *reply) {
        struct read *r = user;

        metrics_add(&r->reader->counters.primary, reply->outcome == ORG_DB_DONE);
        finish(r, reply);
}

static void ask_primary(struct read *r) {
        org_db_run(r->reader->s->db, job_of(r), on_primary, r);
}

const char *org_read_why_text(enum org_read_why why) {
        static const char *const words[ORG_READ_WHY_COUNT] = {
#define X(id, word) word,
                ORG_READ_WHY_TABLE(X)
#undef X
        };

        return words[why];
}

static enum org_read_why why_of(const struct org_reply *reply) {
        for (int i = 0; i < ORG_READ_AWAY && reply->outcome == ORG_DB_REFUSED; i++)
                if (span_eq(reply->code, span_of(org_read_why_text((enum org_read_why)i))))
                        return (enum org_read_why)i;
        return ORG_READ_AWAY;
}

/* One that was not fit to answer has a rest, so that not every question waits for
 * its refusal first. */
static void rest(struct org_reader *reader, const struct org_reply *reply) {
        enum org_read_why why = why_of(reply);

        metrics_add(&reader->counters.why[why], 1);
        reader->rests_until_ms = loop_clock_ms() + REST_MS;
        if (!reader->told)
                log_event(LOG_WARN, "database", "the standby is not read from; the primary is",
                          LOG_S("why", org_read_why_text(why)));
        reader->told = true;
}

static void on_standby(void *user, const struct org_reply *reply) {
        struct read *r = user;
        struct org_reader *reader = r->reader;

        if (reply->outcome == ORG_DB_DONE) {
                if (reader->told)
                        log_event(LOG_INFO, "database", "the standby is read from again");
                reader->told = false;
                metrics_add(&reader->counters.standby, 1);
                finish(r, reply);
        } else if (org_db_is_closing(reader->s->db)) {
                finish(r, reply);
        } else {
                rest(reader, reply);
                ask_primary(r);
        }
}

static void on_position(void *user, const struct org_reply *reply) {
        struct read *r = user;
        struct org_service *s = r->reader->s;
        struct org_job *j;

        if (reply->outcome != ORG_DB_DONE || reply->rows != 1) {
                finish(r, reply);
                return;
        }
        org_service_set_clock(s, org_reply_int(reply, 0, COL_NOW, 0));
        j = job_of(r);
        org_job_elsewhere(j, org_reply_text(reply, 0, COL_LSN),
                          org_reply_text(reply, 0, COL_TIMELINE), org_service_now_ms(s));
        org_db_run(s->db, j, on_standby, r);
}

void org_read_run(struct org_service *s, enum org_query query, const struct span *params,
                  org_job_done *done, void *user) {
        struct org_reader *reader = s->reader;
        size_t n = (size_t)org_queries[query].n_params, len = 0;
        struct read *r;
        bool rests;

        assert(n <= ORG_READ_PARAMS);
        for (size_t i = 0; i < n; i++)
                len += params[i].len;
        r = malloc(sizeof(*r) + len);
        if (!r) {
                done(user, &(struct org_reply){.outcome = ORG_DB_BUSY});
                return;
        }
        *r = (struct read){.reader = reader, .query = query, .done = done, .user = user};
        len = 0;
        for (size_t i = 0; i < n && params; i++) {
                if (!params[i].p)
                        continue;
                r->param[i] = (struct span){r->text + len, params[i].len};
                memcpy(r->text + len, params[i].p, params[i].len);
                len += params[i].len;
        }
        rests = loop_clock_ms() < reader->rests_until_ms;
        if (!s->conf->database.read_url || rests) {
                ask_primary(r);
        } else if (!org_db_has_standby(s->db)) {
                rest(reader, &(struct org_reply){.outcome = ORG_DB_AWAY});
                ask_primary(r);
        } else {
                org_db_run(s->db, org_job_new(ORG_Q_POSITION), on_position, r);
        }
}

int org_reader_new(struct org_service *s, struct org_reader **out) {
        struct org_reader *r = calloc(1, sizeof(*r));

        *out = r;
        if (!r)
                return -ENOMEM;
        r->s = s;
        return 0;
}

void org_reader_free(struct org_reader **r) {
        free(*r);
        *r = NULL;
}

const struct org_read_counters *org_reader_counters(const struct org_reader *r) {
        return &r->counters;
}
