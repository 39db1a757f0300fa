#include "origin/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/log.h"
#include "net/random.h"
#include "origin/converted.h"
#include "origin/read.h"

#define BODY_MAX ((size_t)64 << 20)
#define PART_MAX ((size_t)16 << 20)
#define TOUCH_GAP_MS 15 /* between two readings, however much is written */
#define STALE_MS 1000   /* older than this is no answer */
#define DIGEST_MAX 48

enum part { PART_SALES, PART_ITEMS, PART_REVOCATIONS, PART_COUNT };
enum column { COL_KIND, COL_A, COL_B, COL_C, COL_NOW, COL_DUE, COL_CURSOR, COL_SEEN };

struct waiter {
        struct org_call *call;
        int64_t until_ms; /* monotonic */
        int64_t came_ms;
        uint64_t after; /* snapshot number; 0: everything */
        struct waiter *next;
};

struct org_snapshot {
        struct org_service *s;
        uint64_t run;    /* this run of the origin: what digests begin with */
        uint64_t number; /* of the newest; 0: none yet */
        struct buf parts[PART_COUNT];
        struct org_converted converted;
        char cursor[24];     /* database transactions seen; "" none */
        struct buf seen;     /* what the database calls the state that the newest shows */
        int64_t read_at_ms;  /* monotonic; when the newest was asked for */
        int64_t next_due_ms; /* the database's clock; 0: none */
        bool is_reading, is_touched;
        struct waiter *waiters;
        size_t n_waiters;
        struct loop_timer timer;
};

static void read_anew(struct org_snapshot *n);
static void on_timer(struct loop_timer *t);

/* ---- answers ---- */

static int put(struct buf *out, const char *text) {
        return buf_append(out, text, strlen(text));
}

static int put_part(struct buf *out, const char *name, const struct buf *part) {
        struct span s = buf_span(part);
        int r = put(out, name);

        return r < 0 ? r : buf_append(out, s.p, s.len);
}

static void write_head(const struct org_snapshot *n, bool unchanged, bool whole, char *out,
                       size_t cap) {
        (void)snprintf(out, cap,
                       "{\"now\":%" PRId64 ",\"digest\":\"%016" PRIx64 ".%" PRIu64
                       "\",\"unchanged\":%s%s",
                       org_service_now_ms(n->s), n->run, n->number, unchanged ? "true" : "false",
                       unchanged ? "}"
                       : whole   ? ",\"converted_whole\":true"
                                 : ",\"converted_whole\":false");
}

static int write_body(const struct org_snapshot *n, uint64_t after, struct buf *out) {
        char head[160];
        int r;

        write_head(n, false, after == 0, head, sizeof(head));
        if ((r = put(out, head)) < 0 ||
            (r = put_part(out, ",\"sales\":", &n->parts[PART_SALES])) < 0 ||
            (r = put_part(out, ",\"items\":", &n->parts[PART_ITEMS])) < 0 ||
            (r = put_part(out, ",\"revocations\":", &n->parts[PART_REVOCATIONS])) < 0 ||
            (r = put(out, ",\"converted\":[")) < 0 ||
            (r = org_converted_write(&n->converted, after, out)) < 0)
                return r;
        return put(out, "]}");
}

static void answer(struct org_snapshot *n, struct org_call *c, uint64_t after) {
        struct buf body;
        char head[160];

        metrics_add(&n->s->metrics.snapshot_answers, 1);
        if (after == n->number) {
                write_head(n, true, false, head, sizeof(head));
                org_call_json(c, 200, span_of(head));
                return;
        }
        buf_init(&body, BODY_MAX);
        if (write_body(n, after, &body) == 0)
                org_call_json(c, 200, buf_span(&body));
        else
                org_call_problem(c, PROBLEM_UNAVAILABLE, "The snapshot is too large.", NULL, NULL);
        buf_fini(&body);
}

static void answer_away(struct org_call *c) {
        org_call_problem(c, PROBLEM_UNAVAILABLE, "The database cannot be reached.", NULL, NULL);
}

/* ---- waiting ---- */

static bool is_fresh(const struct org_snapshot *n, int64_t now_ms) {
        return n->number > 0 && now_ms - n->read_at_ms <= n->s->conf->snapshot.max_age_ms;
}

/* Answers those who need not wait any longer. */
static void sweep(struct org_snapshot *n, bool everybody) {
        int64_t now_ms = loop_clock_ms();
        struct waiter **at = &n->waiters;

        while (*at) {
                struct waiter *w = *at;
                bool seen = n->read_at_ms >= w->came_ms || (is_fresh(n, now_ms) && !n->is_touched);
                bool ready = seen && (w->after != n->number || w->until_ms <= now_ms);
                struct org_call *c = w->call;
                uint64_t after = w->after;

                if (!ready && !everybody && c->x) {
                        at = &w->next;
                        continue;
                }
                *at = w->next;
                n->n_waiters--;
                free(w);
                if (n->number > 0 && now_ms - n->read_at_ms <= STALE_MS)
                        answer(n, c, after);
                else
                        answer_away(c);
        }
}

static void plan(struct org_snapshot *n) {
        int64_t now_ms = loop_clock_ms(), age_ms = now_ms - n->read_at_ms, in_ms;

        if (n->is_reading || !n->waiters)
                return;
        in_ms = (n->is_touched ? TOUCH_GAP_MS : (int64_t)n->s->conf->snapshot.max_age_ms) - age_ms;
        if (n->next_due_ms > 0) {
                int64_t due_ms = n->next_due_ms - org_service_now_ms(n->s);

                if (due_ms < in_ms)
                        in_ms = due_ms > TOUCH_GAP_MS - age_ms ? due_ms : TOUCH_GAP_MS - age_ms;
        }
        for (const struct waiter *w = n->waiters; w; w = w->next)
                if (w->until_ms - now_ms < in_ms && n->number == w->after)
                        in_ms = w->until_ms - now_ms;
        loop_timer_start(&n->timer, in_ms > 0 ? in_ms : 0);
}

static void on_timer(struct loop_timer *t) {
        struct org_snapshot *n = NET_CONTAINER_OF(t, struct org_snapshot, timer);

        sweep(n, false);
        if (n->waiters)
                read_anew(n);
}

void org_snapshot_touch(struct org_snapshot *n) {
        if (!n)
                return;
        n->is_touched = true;
        plan(n);
}

/* ---- reading ---- */

static bool set_part(struct buf *part, struct span text) {
        if (span_eq(buf_span(part), text))
                return false;
        buf_eat(part, buf_len(part));
        return buf_append(part, text.p, text.len) == 0;
}

/* A part for which there was no memory is to be read again, not to be "the same". */
static void take_seen(struct org_snapshot *n, struct span seen) {
        (void)set_part(&n->seen, seen);
        for (int i = 0; i < PART_COUNT; i++)
                if (buf_len(&n->parts[i]) == 0)
                        buf_eat(&n->seen, buf_len(&n->seen));
}

static void take_rows(struct org_snapshot *n, const struct org_reply *r) {
        struct span cursor = org_reply_text(r, 0, COL_CURSOR);
        int64_t now_ms = org_reply_int(r, 0, COL_NOW, 0);
        bool changed = n->number == 0;

        if (!r->elsewhere)
                org_service_set_clock(n->s, now_ms);
        if (span_eq(org_reply_text(r, 0, COL_KIND), SPAN("same"))) {
                metrics_add(&n->s->metrics.snapshots_same, 1);
                org_converted_forget(&n->converted, now_ms);
                return;
        }
        /* A standby's word for it means nothing to the primary. */
        (void)set_part(&n->seen, r->elsewhere ? SPAN("") : org_reply_text(r, 0, COL_SEEN));
        n->next_due_ms = org_reply_int(r, 0, COL_DUE, 0);
        for (int i = 0; i < PART_COUNT; i++)
                changed = set_part(&n->parts[i], org_reply_text(r, 0, COL_A + i)) || changed;
        take_seen(n, org_reply_text(r, 0, COL_SEEN));
        for (size_t i = 1; i < r->rows; i++)
                changed = org_converted_add(&n->converted, org_reply_text(r, i, COL_A),
                                            org_reply_text(r, i, COL_B), n->number + 1) ||
                          changed;
        org_converted_forget(&n->converted, now_ms);
        if (cursor.p)
                (void)snprintf(n->cursor, sizeof(n->cursor), "%.*s", (int)cursor.len, cursor.p);
        if (changed)
                n->number++;
}

static void on_read(void *user, const struct org_reply *r) {
        struct org_snapshot *n = user;

        n->is_reading = false;
        if (r->outcome == ORG_DB_DONE && r->rows > 0) {
                metrics_add(&n->s->metrics.snapshots, 1);
                take_rows(n, r);
                sweep(n, false);
        } else {
                /* Those who wait are told at once, not when their time is over. */
                n->read_at_ms = INT64_MIN / 2;
                sweep(n, true);
        }
        plan(n);
}

static void read_anew(struct org_snapshot *n) {
        char most[24];
        struct span params[] = {{NULL, 0}, {most, 0}, {NULL, 0}};

        if (n->is_reading)
                return;
        n->is_reading = true;
        n->is_touched = false;
        n->read_at_ms = loop_clock_ms();
        loop_timer_cancel(&n->timer);
        params[1].len = (size_t)snprintf(most, sizeof(most), "%d", ORG_CONVERTED_MAX);
        if (n->cursor[0])
                params[0] = span_of(n->cursor);
        if (buf_len(&n->seen) > 0)
                params[2] = buf_span(&n->seen);
        org_read_run(n->s, ORG_Q_SNAPSHOT, params, on_read, n);
}

/* ---- the request ---- */

/* The number in a digest of this run; 0: of another, or none. */
static uint64_t number_of(const struct org_snapshot *n, struct span digest) {
        char own[24], text[24];
        uint64_t number;
        char *end;
        int len = snprintf(own, sizeof(own), "%016" PRIx64 ".", n->run);
        struct span prefix = {own, (size_t)len};

        if (!digest.p || !span_starts(digest, prefix) || digest.len - prefix.len >= sizeof(text))
                return 0;
        (void)snprintf(text, sizeof(text), "%.*s", (int)(digest.len - prefix.len),
                       digest.p + prefix.len);
        number = strtoull(text, &end, 10);
        return *end || number > n->number ? 0 : number;
}

static bool read_wait(struct org_call *c, int64_t *wait_ms) {
        struct span text = org_query_value(c->route.query, SPAN("wait"));

        *wait_ms = 0;
        for (size_t i = 0; i < text.len; i++) {
                if (text.p[i] < '0' || text.p[i] > '9' || text.len > 9) {
                        org_call_bad_field(c, "wait", "expected milliseconds");
                        return false;
                }
                *wait_ms = *wait_ms * 10 + (text.p[i] - '0');
        }
        if (c->s->is_draining)
                *wait_ms = 0;
        else if (*wait_ms > c->s->conf->snapshot.max_wait_ms)
                *wait_ms = c->s->conf->snapshot.max_wait_ms;
        return true;
}

void org_snapshot_get(struct org_call *c) {
        struct org_snapshot *n = c->s->snapshot;
        int64_t now_ms = loop_clock_ms(), wait_ms;
        uint64_t after = number_of(n, org_query_value(c->route.query, SPAN("after")));
        struct waiter *w;

        if (!read_wait(c, &wait_ms))
                return;
        if (is_fresh(n, now_ms) && !n->is_touched && !n->is_reading &&
            (after != n->number || wait_ms == 0)) {
                answer(n, c, after);
                return;
        }
        w = n->n_waiters < ORG_SNAPSHOT_WAITERS ? malloc(sizeof(*w)) : NULL;
        if (!w) {
                org_call_problem(c, PROBLEM_UNAVAILABLE, NULL, NULL, NULL);
                return;
        }
        *w = (struct waiter){.call = c,
                             .until_ms = now_ms + wait_ms,
                             .came_ms = now_ms,
                             .after = after,
                             .next = n->waiters};
        n->waiters = w;
        n->n_waiters++;
        if (is_fresh(n, now_ms))
                plan(n);
        else
                read_anew(n);
}

void org_snapshot_let_go(struct org_snapshot *n) {
        if (n)
                sweep(n, true);
}

size_t org_snapshot_waiters(const struct org_snapshot *n) {
        return n->n_waiters;
}

int org_snapshot_new(struct org_service *s, struct org_snapshot **out) {
        struct org_snapshot *n = calloc(1, sizeof(*n));

        *out = n;
        if (!n)
                return -ENOMEM;
        n->s = s;
        n->read_at_ms = INT64_MIN / 2;
        random_bytes(&n->run, sizeof(n->run));
        for (int i = 0; i < PART_COUNT; i++)
                buf_init(&n->parts[i], PART_MAX);
        buf_init(&n->seen, PART_MAX);
        loop_timer_init(s->loop, &n->timer, on_timer);
        return org_converted_init(&n->converted);
}

void org_snapshot_free(struct org_snapshot **n) {
        struct org_snapshot *o = *n;

        if (!o)
                return;
        sweep(o, true);
        loop_timer_cancel(&o->timer);
        for (int i = 0; i < PART_COUNT; i++)
                buf_fini(&o->parts[i]);
        buf_fini(&o->seen);
        org_converted_fini(&o->converted);
        free(o);
        *n = NULL;
}
