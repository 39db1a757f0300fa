/* origin/job.h - one query on its way through the database; only for the
 * pool's own files.
 */
#ifndef ORIGIN_JOB_H
#define ORIGIN_JOB_H

#include "origin/db.h"

#define ORG_JOB_TEXT_MAX 262144 /* bytes of all parameters together */

struct org_job {
        enum org_query query;
        int n_params;
        int32_t at[ORG_PARAMS_MAX]; /* into text; -1: null */
        char *text;
        size_t len, cap;
        enum org_lane lane;
        char guard[3][24];     /* for a standby: lsn, timeline, time; "": none */
        uint32_t near;         /* which connections of the lane; 0: any */
        bool broken;           /* out of memory or too large: never sent */
        unsigned tries;        /* failed ones that may be repeated */
        int64_t give_up_at_ms; /* waiting for a connection */
        org_job_done *done;
        void *user;
        struct org_db *db;
        struct org_job *next;    /* in the queue of its lane */
        struct loop_timer again; /* until the next try */
};

void org_job_free(struct org_job **job);
/* The parameters as libpq wants them. */
void org_job_params(const struct org_job *job, const char *values[ORG_PARAMS_MAX]);

#endif
