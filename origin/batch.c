#include "origin/batch.h"

#include <errno.h>
#include <stdlib.h>

#include "origin/answer.h"
#include "origin/hold.h"
#include "origin/wish.h"

/* The database plans anew after this many asks, when the tables are no longer
 * empty, and after so many times as many. */
#define LEARN_FIRST 200
#define LEARN_AGAIN 50

/* An item somebody is at work on; else it is not here. */
struct org_batch_item {
        struct org_batch *b;
        struct org_batch_item *next; /* in its bucket, or free */
        char tenant[64], item[64];
        size_t under_way; /* jobs, the turn's included */
        bool is_at_work;  /* the turn is taken */
        bool is_apart;    /* `batch` is off, as the last answer said */
        size_t n_gathered;
        struct org_wish *gathered, **last;
        struct org_wish *deciding; /* by the batch under way */
};

struct org_batch {
        struct org_service *s;
        struct org_batch_item *items, *free;
        struct org_batch_item **buckets;
        size_t n_buckets; /* a power of two */
        size_t n_gathered;
        char *scratch;
        uint64_t learn_at; /* holds asked for */
        struct org_batch_counters counters;
};

/* ---- the table ---- */

static struct org_batch_item **bucket_of(struct org_batch *b, const char *tenant,
                                         const char *item) {
        struct span t = {tenant, strlen(tenant)}, i = {item, strlen(item)};

        return &b->buckets[org_item_hash(t, i) & (b->n_buckets - 1)];
}

static struct org_batch_item *find(struct org_batch *b, const struct org_call *c) {
        struct org_batch_item **bucket = bucket_of(b, c->tenant, c->item);
        struct org_batch_item *i = *bucket;

        while (i && (strcmp(i->tenant, c->tenant) != 0 || strcmp(i->item, c->item) != 0))
                i = i->next;
        if (i || !b->free)
                return i;
        i = b->free;
        b->free = i->next;
        *i = (struct org_batch_item){.b = b, .next = *bucket, .last = &i->gathered};
        memcpy(i->tenant, c->tenant, sizeof(i->tenant));
        memcpy(i->item, c->item, sizeof(i->item));
        *bucket = i;
        return i;
}

static void leave_if_idle(struct org_batch_item *i) {
        struct org_batch_item **at;

        if (i->under_way > 0 || i->n_gathered > 0)
                return;
        at = bucket_of(i->b, i->tenant, i->item);
        while (*at != i)
                at = &(*at)->next;
        *at = i->next;
        i->next = i->b->free;
        i->b->free = i;
}

/* ---- gathering ---- */

static void refuse(struct org_call *c, enum org_db_outcome outcome) {
        metrics_add(&c->s->metrics.holds[ORG_OUTCOME_UNKNOWN], 1);
        org_call_db_failed(c, outcome);
}

static void gather(struct org_batch_item *i, const struct org_wish *w) {
        struct org_batch *b = i->b;
        struct org_wish *kept = NULL;

        if (i->n_gathered < b->s->conf->reserve.gather_item_max &&
            b->n_gathered < b->s->conf->reserve.gather_max)
                kept = org_wish_keep(w);
        if (!kept) {
                metrics_add(&b->counters.full, 1);
                refuse(w->call, ORG_DB_BUSY);
                return;
        }
        *i->last = kept;
        i->last = &kept->next;
        i->n_gathered++;
        b->n_gathered++;
}

static struct org_wish *take_first(struct org_batch_item *i) {
        struct org_wish *w = i->gathered;

        i->gathered = w->next;
        if (!w->next)
                i->last = &i->gathered;
        w->next = NULL;
        i->n_gathered--;
        i->b->n_gathered--;
        return w;
}

/* As long as a query may wait for a connection. */
static void refuse_late(struct org_batch_item *i) {
        int64_t since_ms = loop_clock_ms() - i->b->s->conf->database.statement_timeout_ms;

        while (i->gathered && i->gathered->since_ms < since_ms) {
                struct org_wish *w = take_first(i);

                refuse(w->call, ORG_DB_BUSY);
                free(w);
        }
}

/* The next ones to be decided together, in order of arrival. */
static struct org_wish *take_some(struct org_batch_item *i, size_t *n) {
        struct org_wish *first = NULL, **last = &first;
        size_t bytes = 0;

        *n = 0;
        while (i->gathered && *n < i->b->s->conf->reserve.batch_max &&
               (*n == 0 || bytes + i->gathered->bytes <= ORG_WISHES_BYTES_MAX)) {
                bytes += i->gathered->bytes;
                *last = take_first(i);
                last = &(*last)->next;
                (*n)++;
        }
        return first;
}

/* ---- deciding ---- */

static void on_learned(void *user, const struct org_reply *r) {
        (void)user;
        (void)r; /* a failure is in the log, and only costs time */
}

static void count_size(struct org_batch *b, size_t n) {
        size_t i = 0;

        while (i < ORG_BATCH_BUCKETS && n > (size_t)1 << i)
                i++;
        metrics_add(&b->counters.sizes[i], 1);
        metrics_add(&b->counters.holds, n);
}

static void learn_if_due(struct org_batch *b) {
        if (metrics_read(&b->counters.holds) < b->learn_at)
                return;
        b->learn_at *= LEARN_AGAIN;
        org_db_run(b->s->db, org_job_new(ORG_Q_LEARN), on_learned, b);
}

static void next_turn(struct org_batch_item *i);

static void on_alone(void *user, const struct org_reply *r) {
        struct org_call *c = user;
        struct org_batch_item *i = c->batch_item;
        struct span together = org_reply_text(r, 0, ORG_ANSWER_BATCH);

        if (i) {
                if (together.p)
                        i->is_apart = span_eq(together, SPAN("f"));
                if (c->has_turn)
                        next_turn(i);
                /* Only now: without memory the next one has ended already, and must not
                 * take the item away from under us. */
                i->under_way--;
                leave_if_idle(i);
        }
        org_hold_reserved(c, r);
}

/* `i` NULL: of no item we keep an eye on. */
static void run_alone(struct org_batch *b, struct org_batch_item *i, const struct org_wish *w,
                      bool has_turn) {
        struct org_call *c = w->call;

        c->batch_item = i;
        c->has_turn = has_turn;
        if (i) {
                i->under_way++;
                i->is_at_work = i->is_at_work || has_turn;
        }
        count_size(b, 1);
        learn_if_due(b);
        org_db_run(b->s->db, org_wish_job(w, b->s->conf->max_hold_seconds), on_alone, c);
}

/* The answers of a batch, in its order. */
static void tell_rows(struct org_batch_item *i, struct org_wish *w, const struct org_reply *r) {
        for (size_t row = 0; w; row++) {
                struct org_wish *next = w->next;
                struct org_answer a;

                if (!org_answer_read(&a, r, row)) {
                        refuse(w->call, ORG_DB_FAILED);
                } else if (span_eq(a.code, SPAN("again"))) {
                        metrics_add(&i->b->counters.again, 1);
                        run_alone(i->b, i, w, false);
                } else {
                        if (row == 0)
                                org_answer_count(i->b->s, &a, r->took_us);
                        org_hold_answered(w->call, &a);
                }
                org_answer_fini(&a);
                free(w);
                w = next;
        }
}

/* No rows: each alone, or all hear the same. */
static void tell_all(struct org_batch_item *i, struct org_wish *w, const struct org_reply *r) {
        bool apart = r->outcome == ORG_DB_FAILED || r->outcome == ORG_DB_VIOLATED ||
                     r->outcome == ORG_DB_REFUSED || r->may_divide;

        if (apart)
                metrics_add(&i->b->counters.apart, 1);
        while (w) {
                struct org_wish *next = w->next;

                if (apart)
                        run_alone(i->b, i, w, false);
                else
                        refuse(w->call, r->outcome);
                free(w);
                w = next;
        }
}

static void on_together(void *user, const struct org_reply *r) {
        struct org_batch_item *i = user;
        struct org_wish *decided = i->deciding;

        i->deciding = NULL;
        if (r->outcome == ORG_DB_DONE)
                i->is_apart = span_eq(org_reply_text(r, 0, ORG_ANSWER_BATCH), SPAN("f"));
        /* First the next one, so that it is under way while we write answers. */
        next_turn(i);
        if (r->outcome == ORG_DB_DONE)
                tell_rows(i, decided, r);
        else
                tell_all(i, decided, r);
        i->under_way--;
        leave_if_idle(i);
}

static void run_together(struct org_batch_item *i, struct org_wish *first, size_t n) {
        struct org_batch *b = i->b;

        i->deciding = first;
        i->is_at_work = true;
        i->under_way++;
        count_size(b, n);
        learn_if_due(b);
        org_db_run(b->s->db,
                   org_wishes_job(first, n, b->s->conf->max_hold_seconds, b->scratch,
                                  ORG_WISHES_BYTES_MAX),
                   on_together, i);
}

static void next_turn(struct org_batch_item *i) {
        struct org_wish *w;
        size_t n;

        i->is_at_work = false;
        refuse_late(i);
        if (!i->gathered)
                return;
        if (!i->is_apart) {
                w = take_some(i, &n);
                if (n > 1) {
                        run_together(i, w, n);
                } else {
                        run_alone(i->b, i, w, true);
                        free(w);
                }
                return;
        }
        while (i->gathered) {
                w = take_first(i);
                run_alone(i->b, i, w, false);
                free(w);
        }
}

/* ---- the interface ---- */

void org_batch_reserve(struct org_batch *b, struct org_call *c, const struct org_ask *a) {
        struct org_batch_item *i = b->s->conf->reserve.batch_max > 1 ? find(b, c) : NULL;
        char text[ORG_ASK_TEXT_MAX];
        struct org_wish w;

        org_wish_of(&w, c, a, text);
        if (!i && b->s->conf->reserve.batch_max > 1)
                metrics_add(&b->counters.items, 1);
        if (i && i->is_at_work && !i->is_apart)
                gather(i, &w);
        else
                run_alone(b, i, &w, i && !i->is_apart);
}

int org_batch_new(struct org_service *s, struct org_batch **out) {
        struct org_batch *b = calloc(1, sizeof(*b));
        size_t n = s->conf->reserve.items_max;

        *out = b;
        if (!b)
                return -ENOMEM;
        b->s = s;
        b->learn_at = LEARN_FIRST;
        b->n_buckets = 1;
        while (b->n_buckets < n)
                b->n_buckets *= 2;
        b->items = calloc(n, sizeof(*b->items));
        b->buckets = calloc(b->n_buckets, sizeof(struct org_batch_item *));
        b->scratch = malloc(ORG_WISHES_BYTES_MAX);
        if (!b->items || !b->buckets || !b->scratch)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                b->items[i].next = b->free;
                b->free = &b->items[i];
        }
        return 0;
}

void org_batch_free(struct org_batch **b) {
        if (!*b)
                return;
        assert((*b)->n_gathered == 0); /* the database answers all before it closes */
        free((*b)->items);
        free((*b)->buckets);
        free((*b)->scratch);
        free(*b);
        *b = NULL;
}

const struct org_batch_counters *org_batch_counters(const struct org_batch *b) {
        return &b->counters;
}

size_t org_batch_gathered(const struct org_batch *b) {
        return b->n_gathered;
}
