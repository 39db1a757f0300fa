/* origin/relay_redis.h - one connection to Redis that appends to one stream;
 * hides hiredis, which has no deadlines of its own.
 *
 * A batch is one MULTI … EXEC of XADDs: all of it is in the stream, in its
 * order, or nothing is. Each entry's id begins with the epoch of whoever
 * sends, so Redis itself refuses what an earlier epoch sends late (an id of
 * a stream never falls).
 *
 * Connects when there is something to send. Whatever fails ends the
 * connection: the next batch makes a new one.
 *
 * Units      milliseconds.
 * Ownership  org_redis_new .. org_redis_free; what is added is copied.
 * Context    the loop's thread; `done` runs at the end of a turn, once a batch.
 */
#ifndef ORIGIN_RELAY_REDIS_H
#define ORIGIN_RELAY_REDIS_H

#include "conf/origin.h"
#include "net/loop.h"

struct org_redis;

enum org_redis_outcome {
        ORG_REDIS_DONE,   /* all of it is there */
        ORG_REDIS_FENCED, /* a later epoch has written: nothing of it is there */
        ORG_REDIS_LATE,   /* no answer in time: nobody knows */
        ORG_REDIS_FAILED, /* refused, or the connection went: nobody knows */
};

/* `why` is for people, and lives during the call. */
typedef void org_redis_done(void *user, enum org_redis_outcome outcome, const char *why);

NET_MUST int org_redis_new(struct loop *l, const struct conf_origin *conf, org_redis_done *done,
                           void *user, struct org_redis **out);
/* A batch under way is forgotten; `done` does not run. */
void org_redis_free(struct org_redis **r);

/* One batch at a time: begin, add at least once, end. */
void org_redis_begin(struct org_redis *r, int64_t epoch);
/* One entry: names and values in turn, an even number up to ORG_REDIS_FIELDS. */
void org_redis_add(struct org_redis *r, const struct span *fields, size_t n);
void org_redis_end(struct org_redis *r);

#define ORG_REDIS_FIELDS 32

#endif
