#include "origin/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct org_job *org_job_new(enum org_query query) {
        struct org_job *j = calloc(1, sizeof(*j));

        if (j) {
                j->query = query;
                j->lane = org_queries[query].lane;
        }
        return j;
}

static uint32_t mix(uint32_t h, struct span s) {
        for (size_t i = 0; i < s.len; i++)
                h = (h ^ (unsigned char)s.p[i]) * 16777619u;
        return h;
}

uint32_t org_item_hash(struct span tenant, struct span item) {
        return mix(mix(2166136261u, tenant) * 31u, item);
}

void org_job_near(struct org_job *j, struct span tenant, struct span item) {
        if (j)
                j->near = org_item_hash(tenant, item) | 1u << 31;
}

void org_job_elsewhere(struct org_job *j, struct span lsn, struct span timeline, int64_t now_ms) {
        if (!j)
                return;
        j->lane = j->lane == ORG_LANE_SCAN ? ORG_LANE_READ_SCAN : ORG_LANE_READ;
        (void)snprintf(j->guard[0], sizeof(j->guard[0]), "%.*s", (int)lsn.len, lsn.p);
        (void)snprintf(j->guard[1], sizeof(j->guard[1]), "%.*s", (int)timeline.len, timeline.p);
        (void)snprintf(j->guard[2], sizeof(j->guard[2]), "%" PRId64, now_ms);
}

void org_job_free(struct org_job **job) {
        if (!*job)
                return;
        free((*job)->text);
        free(*job);
        *job = NULL;
}

static bool has_room(struct org_job *j, size_t more) {
        size_t want = j->len + more, cap = j->cap ? j->cap : 512;
        char *text;

        if (want <= j->cap)
                return true;
        while (cap < want)
                cap *= 2;
        text = want <= ORG_JOB_TEXT_MAX ? realloc(j->text, cap) : NULL;
        if (!text) {
                j->broken = true;
                return false;
        }
        j->text = text;
        j->cap = cap;
        return true;
}

void org_job_null(struct org_job *j) {
        if (!j)
                return;
        assert(j->n_params < org_queries[j->query].n_params);
        j->at[j->n_params++] = -1;
}

void org_job_text(struct org_job *j, struct span value) {
        if (!j || !value.p) {
                org_job_null(j);
                return;
        }
        assert(j->n_params < org_queries[j->query].n_params);
        if (j->broken || !has_room(j, value.len + 1))
                return;
        j->at[j->n_params++] = (int32_t)j->len;
        memcpy(j->text + j->len, value.p, value.len);
        j->text[j->len + value.len] = '\0';
        j->len += value.len + 1;
}

void org_job_int(struct org_job *j, int64_t value) {
        char text[24];
        int n = snprintf(text, sizeof(text), "%" PRId64, value);

        org_job_text(j, (struct span){text, (size_t)n});
}

void org_job_bool(struct org_job *j, bool value) {
        org_job_text(j, value ? SPAN("t") : SPAN("f"));
}

void org_job_params(const struct org_job *job, const char *values[ORG_PARAMS_MAX]) {
        for (int i = 0; i < job->n_params; i++)
                values[i] = job->at[i] < 0 ? NULL : job->text + job->at[i];
}
