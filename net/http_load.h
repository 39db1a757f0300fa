/* net/http_load.h - whether a loop keeps up with what its clients ask.
 *
 * The measure is the age of the turn: whatever became ready while a turn is
 * under way waits for the next, so no request waits much longer than two turns
 * take. A turn that has served many requests and is older than it may be is
 * busy: its further requests are answered 503 without asking anybody, and what
 * was answered before leaves in between. One that follows a long turn may be
 * less old: together they make twice the ceiling.
 *
 * A refusal costs nearly as much as an answer from memory, so refusing alone
 * does not help for long. A busy loop that has worked for another four times the
 * ceiling sends connections that go on asking away as well; time for which it
 * had no processor does not count. New ones are not taken for a moment; when the
 * loop has been busy for as long as that, they are closed instead of kept waiting.
 *
 * A turn with few requests is never busy: then the machine was away, and it
 * is not the clients that have to be fewer.
 *
 * Units      milliseconds of the loop.
 * Ownership  a plain value to embed.
 * Context    the loop's thread.
 */
#ifndef NET_HTTP_LOAD_H
#define NET_HTTP_LOAD_H

#include "net/loop.h"

enum http_load_level {
        HTTP_LOAD_FINE,
        HTTP_LOAD_BUSY,     /* refuse the request */
        HTTP_LOAD_TOO_BUSY, /* and send the connection away */
};

struct http_load {
        int64_t ceiling_ms;       /* of a turn's age; 0: none */
        int64_t turn_ms;          /* the turn that is counted */
        int64_t age_ms;           /* of it, when last looked at; 0: not yet */
        int64_t flushed_ms;       /* its age when output last was to leave */
        int64_t allowed_ms;       /* its age above which it is busy */
        int64_t busy_since_ms;    /* the turn in which it became so */
        int64_t worked_before_ms; /* by the loop's thread, until then */
        int64_t busy_at_ms;       /* when it last was seen to be; 0: never */
        uint32_t requests;        /* of it so far */
        uint32_t sent_away;       /* connections, in it */
        enum http_load_level level;
        bool wants_flush; /* whoever flushes what is answered sets it back */
};

/* Counts a request of the present turn and says what is to become of it. */
enum http_load_level http_load_add(struct http_load *l, const struct loop *loop);
/* True when it was busy less than `within_ms` before `now_ms`, an instant of the loop. */
bool http_load_was_busy(const struct http_load *l, int64_t now_ms, int64_t within_ms);
/* True when it was busy within a quarter of a second. */
bool http_load_is_busy(const struct http_load *l, int64_t now_ms);
/* True when it has been so for longer than that quarter of a second. */
bool http_load_is_shut(const struct http_load *l, int64_t now_ms);

#endif
