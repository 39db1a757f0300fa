#include "origin/relay_redis.h"

#include <errno.h>
#include <hiredis/async.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/redis.h"

#define ARGS_HEAD 7 /* XADD key MAXLEN ~ n id, and one more */

struct org_redis {
        struct loop *loop;
        const struct conf_origin *conf;
        struct conf_redis address;
        redisAsyncContext *ac; /* NULL: not connected */
        struct loop_io io;
        unsigned wanted;
        struct loop_timer deadline;
        struct loop_defer finish;
        bool is_sending; /* from begin to `done` */
        bool is_connected;
        enum org_redis_outcome outcome;
        char why[160]; /* the first fault of the batch; "" none */
        char id[32];   /* of each entry: "EPOCH-*" */
        char stream_max[16];
        org_redis_done *done;
        void *user;
};

static void note(struct org_redis *r, const char *why) {
        if (r->why[0])
                return;
        (void)snprintf(r->why, sizeof(r->why), "%s", why);
        r->why[strcspn(r->why, "\r\n")] = '\0';
}

/* ---- the end of a batch ---- */

static void on_finish(struct loop_defer *d) {
        struct org_redis *r = NET_CONTAINER_OF(d, struct org_redis, finish);

        loop_timer_cancel(&r->deadline);
        r->is_sending = false;
        if (r->outcome != ORG_REDIS_DONE && r->ac)
                redisAsyncFree(r->ac); /* cleanup forgets it */
        r->done(r->user, r->outcome, r->why);
}

static void finish(struct org_redis *r, enum org_redis_outcome outcome) {
        if (!r->is_sending || r->finish.queued)
                return;
        r->outcome = outcome;
        loop_defer(r->loop, &r->finish, on_finish);
}

static void on_deadline(struct loop_timer *t) {
        struct org_redis *r = NET_CONTAINER_OF(t, struct org_redis, deadline);

        note(r, r->is_connected ? "no answer in time" : "cannot connect in time");
        finish(r, ORG_REDIS_LATE);
}

/* ---- hiredis on our loop ---- */

static void want(struct org_redis *r, unsigned events) {
        r->wanted = events;
        loop_io_want(&r->io, events);
}

static void on_want_read(void *user) {
        struct org_redis *r = user;

        want(r, r->wanted | LOOP_READ);
}

static void on_no_read(void *user) {
        struct org_redis *r = user;

        want(r, r->wanted & ~(unsigned)LOOP_READ);
}

static void on_want_write(void *user) {
        struct org_redis *r = user;

        want(r, r->wanted | LOOP_WRITE);
}

static void on_no_write(void *user) {
        struct org_redis *r = user;

        want(r, r->wanted & ~(unsigned)LOOP_WRITE);
}

/* The context goes, for whatever reason. */
static void on_cleanup(void *user) {
        struct org_redis *r = user;

        want(r, 0);
        if (r->is_sending)
                note(r, r->ac->errstr && r->ac->errstr[0] ? r->ac->errstr
                                                          : "the connection was closed");
        r->ac = NULL;
        r->is_connected = false;
        finish(r, ORG_REDIS_FAILED);
}

static void on_ready(struct loop_io *io, unsigned events) {
        struct org_redis *r = NET_CONTAINER_OF(io, struct org_redis, io);

        if (events & LOOP_READ)
                redisAsyncHandleRead(r->ac);
        if ((events & LOOP_WRITE) && r->ac)
                redisAsyncHandleWrite(r->ac);
}

static void on_connect(const redisAsyncContext *ac, int status) {
        struct org_redis *r = ac->data;

        r->is_connected = status == REDIS_OK;
        if (r->is_connected && r->is_sending && !r->finish.queued)
                loop_timer_start(&r->deadline, r->conf->relay.deadline_ms);
}

/* ---- commands ---- */

/* Of AUTH, SELECT, MULTI and each XADD, which is only queued. */
static void on_queued(redisAsyncContext *ac, void *answer, void *user) {
        struct org_redis *r = ac->data;
        const redisReply *reply = answer;

        (void)user;
        if (reply && reply->type == REDIS_REPLY_ERROR)
                note(r, reply->str);
}

static bool is_fence(const redisReply *reply) {
        return reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "equal or smaller");
}

static void on_exec(redisAsyncContext *ac, void *answer, void *user) {
        struct org_redis *r = ac->data;
        const redisReply *reply = answer;
        enum org_redis_outcome outcome = ORG_REDIS_DONE;

        (void)user;
        if (!reply) /* the context goes: cleanup tells */
                return;
        if (reply->type != REDIS_REPLY_ARRAY) {
                note(r, reply->type == REDIS_REPLY_ERROR ? reply->str : "an odd answer to EXEC");
                finish(r, ORG_REDIS_FAILED);
                return;
        }
        for (size_t i = 0; i < reply->elements; i++) {
                const redisReply *one = reply->element[i];

                if (one->type == REDIS_REPLY_STRING)
                        continue;
                note(r, one->type == REDIS_REPLY_ERROR ? one->str : "an odd answer to XADD");
                outcome = is_fence(one) ? ORG_REDIS_FENCED : ORG_REDIS_FAILED;
        }
        finish(r, outcome);
}

static void command(struct org_redis *r, redisCallbackFn *on_answer, const struct span *args,
                    size_t n) {
        const char *argv[ORG_REDIS_FIELDS + ARGS_HEAD];
        size_t len[ORG_REDIS_FIELDS + ARGS_HEAD];

        assert(n <= NET_COUNT_OF(argv));
        for (size_t i = 0; i < n; i++) {
                argv[i] = args[i].p;
                len[i] = args[i].len;
        }
        if (!r->ac)
                return;
        if (redisAsyncCommandArgv(r->ac, on_answer, NULL, (int)n, argv, len) != REDIS_OK) {
                note(r, "a command cannot be queued");
                finish(r, ORG_REDIS_FAILED);
        }
}

static void set_up(struct org_redis *r) {
        const struct conf_redis *a = &r->address;
        char database[16];
        struct span auth[3] = {SPAN("AUTH"), span_of(a->user), span_of(a->password)};
        struct span choose[2] = {SPAN("SELECT"), {database, 0}};

        if (a->password[0] && a->user[0]) {
                command(r, on_queued, auth, 3);
        } else if (a->password[0]) {
                auth[1] = auth[2];
                command(r, on_queued, auth, 2);
        }
        if (a->database > 0) {
                choose[1].len = (size_t)snprintf(database, sizeof(database), "%u", a->database);
                command(r, on_queued, choose, 2);
        }
}

/* A host's name is looked up here, which may take as long as the machine's
 * resolver does: an address asks nobody. */
static void start_connecting(struct org_redis *r) {
        redisAsyncContext *ac = redisAsyncConnect(r->address.host, (int)r->address.port);

        r->is_connected = false;
        if (!ac || ac->err) {
                note(r, ac ? ac->errstr : "out of memory");
                if (ac)
                        redisAsyncFree(ac);
                finish(r, ORG_REDIS_FAILED);
                return;
        }
        r->ac = ac;
        ac->data = r;
        loop_io_init(r->loop, &r->io, ac->c.fd, on_ready);
        r->wanted = 0;
        ac->ev.data = r;
        ac->ev.addRead = on_want_read;
        ac->ev.delRead = on_no_read;
        ac->ev.addWrite = on_want_write;
        ac->ev.delWrite = on_no_write;
        ac->ev.cleanup = on_cleanup;
        if (redisAsyncSetConnectCallback(ac, on_connect) != REDIS_OK) {
                note(r, "cannot connect");
                finish(r, ORG_REDIS_FAILED);
                return;
        }
        set_up(r);
}

void org_redis_begin(struct org_redis *r, int64_t epoch) {
        struct span multi = SPAN("MULTI");

        assert(!r->is_sending);
        r->is_sending = true;
        r->why[0] = '\0';
        (void)snprintf(r->id, sizeof(r->id), "%" PRId64 "-*", epoch);
        loop_timer_start(&r->deadline, r->conf->relay.deadline_ms);
        if (!r->ac)
                start_connecting(r);
        command(r, on_queued, &multi, 1);
}

void org_redis_add(struct org_redis *r, const struct span *fields, size_t n) {
        struct span args[ORG_REDIS_FIELDS + ARGS_HEAD] = {SPAN("XADD"),
                                                          span_of(r->conf->relay.stream)};
        size_t at = 2;

        assert(r->is_sending && n <= ORG_REDIS_FIELDS && n % 2 == 0);
        if (r->conf->relay.stream_max > 0) {
                args[at++] = SPAN("MAXLEN");
                args[at++] = SPAN("~");
                args[at++] = span_of(r->stream_max);
        }
        args[at++] = span_of(r->id);
        memcpy(args + at, fields, n * sizeof(fields[0]));
        command(r, on_queued, args, at + n);
}

void org_redis_end(struct org_redis *r) {
        struct span exec = SPAN("EXEC");

        command(r, on_exec, &exec, 1);
}

int org_redis_new(struct loop *l, const struct conf_origin *conf, org_redis_done *done, void *user,
                  struct org_redis **out) {
        struct org_redis *r = calloc(1, sizeof(*r));

        *out = r;
        if (!r)
                return -ENOMEM;
        r->loop = l;
        r->conf = conf;
        r->done = done;
        r->user = user;
        (void)snprintf(r->stream_max, sizeof(r->stream_max), "%u", conf->relay.stream_max);
        loop_timer_init(l, &r->deadline, on_deadline);
        return conf_redis_parse(conf->relay.redis, &r->address) ? -EINVAL : 0;
}

void org_redis_free(struct org_redis **r) {
        struct org_redis *d = *r;

        if (!d)
                return;
        d->is_sending = false;
        if (d->ac)
                redisAsyncFree(d->ac);
        loop_timer_cancel(&d->deadline);
        loop_defer_cancel(d->loop, &d->finish);
        explicit_bzero(&d->address, sizeof(d->address));
        free(d);
        *r = NULL;
}
