/* origin/read.h - questions that a standby may answer (`database.read_url`).
 *
 * The primary is asked where it is in its log; the standby answers when it has
 * got there too, is on the primary's timeline and has its time, else the primary
 * does. So an answer is never older than the moment of asking, whoever gives it,
 * and versions do not go backwards. After a refusal the standby has a second's
 * rest. While the primary is away nobody answers: what the standby has may be old.
 *
 * Context    the loop's thread.
 */
#ifndef ORIGIN_READ_H
#define ORIGIN_READ_H

#include "origin/service.h"

#define ORG_READ_PARAMS 3

/* Why the primary had to answer. */
#define ORG_READ_WHY_TABLE(X)                                                                      \
        X(BEHIND, "behind")     /* has not got so far in 100 ms */                                 \
        X(TIMELINE, "timeline") /* follows another primary, or did */                              \
        X(CLOCK, "clock")       /* its clock is another */                                         \
        X(AWAY, "away")         /* no connection, no answer, an error */

enum org_read_why {
#define X(id, word) ORG_READ_##id,
        ORG_READ_WHY_TABLE(X)
#undef X
                ORG_READ_WHY_COUNT,
};

struct org_reader; /* what is known of the standby */

struct org_read_counters {
        struct metrics_counter primary, standby; /* answers */
        struct metrics_counter why[ORG_READ_WHY_COUNT];
};

NET_MUST int org_reader_new(struct org_service *s, struct org_reader **out);
void org_reader_free(struct org_reader **r);
const struct org_read_counters *org_reader_counters(const struct org_reader *r);

const char *org_read_why_text(enum org_read_why why);

/* As org_db_run; `params` are copied; p NULL is null. reply.elsewhere: its times are by the
 * standby's clock. */
void org_read_run(struct org_service *s, enum org_query query, const struct span *params,
                  org_job_done *done, void *user);

#endif
