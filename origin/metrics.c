#include "origin/metrics.h"

#include <stdio.h>

#include "origin/batch.h"
#include "origin/read.h"
#include "origin/look.h"
#include "origin/relay.h"
#include "origin/snapshot.h"
#include "origin/watch.h"

#define TEXT_MAX ((size_t)256 << 10)
#define US_PER_S 1e6

static void one(struct metrics_out *o, const char *name, enum metrics_type type, const char *help,
                uint64_t value) {
        metrics_family(o, name, type, help);
        metrics_sample(o, name, NULL, 0, value);
}

static void histogram(struct metrics_out *o, const char *name, const char *help,
                      const struct metrics_histogram *h) {
        metrics_family(o, name, METRICS_HISTOGRAM, help);
        metrics_sample_histogram(o, name, NULL, &h, 1);
}

static void write_holds(struct metrics_out *o, const struct org_metrics *m) {
        static const char *const words[ORG_OUTCOME_COUNT] = {
#define X(id, word) word,
                ORG_OUTCOME_TABLE(X)
#undef X
        };

        metrics_family(o, "sluice_holds_total", METRICS_COUNTER,
                       "Attempts to hold, by what became of them.");
        for (int i = 0; i < ORG_OUTCOME_COUNT; i++) {
                struct metrics_label l = {"outcome", span_of(words[i])};

                metrics_sample(o, "sluice_holds_total", &l, 1, metrics_read(&m->holds[i]));
        }
        one(o, "sluice_hold_expired_total", METRICS_COUNTER,
            "Holds that fell due and were tidied away.", metrics_read(&m->expired));
        histogram(o, "sluice_hold_to_confirm_seconds", "From the hold to its payment.",
                  &m->hold_to_confirm);
        histogram(o, "sluice_lock_wait_seconds", "Waiting for the item's row.", &m->lock_wait);
        histogram(o, "sluice_lock_held_seconds",
                  "From getting the item's row to the answer, the way back included.",
                  &m->lock_held);
}

static void write_sizes(struct metrics_out *o, const struct org_batch_counters *n) {
        const char *name = "sluice_batch_size_bucket";
        char end[24];
        struct metrics_label le = {"le", {NULL, 0}};
        uint64_t seen = 0;

        metrics_family(o, "sluice_batch_size", METRICS_HISTOGRAM,
                       "Asks for a hold of one item that one transaction decided.");
        for (size_t i = 0; i < ORG_BATCH_BUCKETS; i++) {
                (void)snprintf(end, sizeof(end), "%u", 1u << i);
                le.value = span_of(end);
                seen += metrics_read(&n->sizes[i]);
                metrics_sample(o, name, &le, 1, seen);
        }
        seen += metrics_read(&n->sizes[ORG_BATCH_BUCKETS]);
        le.value = SPAN("+Inf");
        metrics_sample(o, name, &le, 1, seen);
        metrics_sample(o, "sluice_batch_size_sum", NULL, 0, metrics_read(&n->holds));
        metrics_sample(o, "sluice_batch_size_count", NULL, 0, seen);
}

static void write_batches(struct metrics_out *o, const struct org_batch *b) {
        const struct org_batch_counters *n = org_batch_counters(b);

        write_sizes(o, n);
        one(o, "sluice_batch_gathered", METRICS_GAUGE, "Asks that wait for the turn of their item.",
            org_batch_gathered(b));
        one(o, "sluice_batch_apart_total", METRICS_COUNTER,
            "Batches that failed as a whole and were decided one by one.", metrics_read(&n->apart));
        one(o, "sluice_batch_again_total", METRICS_COUNTER,
            "Asks that a batch left to be decided alone.", metrics_read(&n->again));
        one(o, "sluice_batch_refused_total", METRICS_COUNTER,
            "Asks refused because too many had gathered.", metrics_read(&n->full));
        one(o, "sluice_batch_beyond_total", METRICS_COUNTER,
            "Asks decided alone because too many items were at work.", metrics_read(&n->items));
}

static void write_look(struct metrics_out *o, const struct org_service *s) {
        const struct org_look_counters *n = org_look_counters(s->look);

        one(o, "sluice_invariant_violations", METRICS_GAUGE,
            "Broken rules at the last look at the invariant, and refused by a CHECK since.",
            metrics_read(&n->wrong));
        one(o, "sluice_invariant_looks_total", METRICS_COUNTER, "Looks from here, by the clock.",
            metrics_read(&n->looks));
        one(o, "sluice_invariant_failures_total", METRICS_COUNTER, "Those that found out nothing.",
            metrics_read(&n->failures));
        metrics_family(o, "sluice_invariant_age_seconds", METRICS_GAUGE,
                       "Since the last such look of any origin; 0: none yet.");
        metrics_sample_real(o, "sluice_invariant_age_seconds", NULL, 0,
                            (double)metrics_read(&n->age_ms) / 1000);
        metrics_family(o, "sluice_invariant_look_seconds", METRICS_GAUGE, "What it took.");
        metrics_sample_real(o, "sluice_invariant_look_seconds", NULL, 0,
                            (double)metrics_read(&n->took_ms) / 1000);
        one(o, "sluice_check_violations_total", METRICS_COUNTER,
            "Writes that a CHECK of the schema refused.",
            metrics_read(&org_db_counters(s->db)->violations));
        one(o, "sluice_items_paused", METRICS_GAUGE, "Items that a violated rule has paused.",
            metrics_read(&n->paused));
        one(o, "sluice_journal_unprotected", METRICS_GAUGE,
            "1 where the role that serves could change the journal.",
            metrics_read(&n->unprotected));
}

static void write_relay(struct metrics_out *o, const struct org_relay *relay) {
        const struct org_relay_counters *n = org_relay_counters(relay);
        const struct {
                const char *word;
                const struct metrics_counter *count;
        } failures[] = {{"refused", &n->refused},
                        {"late", &n->late},
                        {"fenced", &n->fenced},
                        {"database", &n->database}};

        one(o, "sluice_relay_backlog", METRICS_GAUGE,
            "Events of the journal without a mark, counted up to 100000.",
            metrics_read(&n->backlog));
        metrics_family(o, "sluice_relay_delay_seconds", METRICS_GAUGE,
                       "Age of the oldest of them.");
        metrics_sample_real(o, "sluice_relay_delay_seconds", NULL, 0,
                            (double)metrics_read(&n->oldest_ms) / 1000);
        one(o, "sluice_relay_in_flight", METRICS_GAUGE, "Events on the way to Redis or its mark.",
            metrics_read(&n->in_flight));
        one(o, "sluice_relay_duty", METRICS_GAUGE, "1 where the journal is relayed from here.",
            metrics_read(&n->has_duty));
        one(o, "sluice_relay_takings_total", METRICS_COUNTER, "Times the duty was taken.",
            metrics_read(&n->takings));
        one(o, "sluice_relay_sent_total", METRICS_COUNTER,
            "Events that Redis has taken, those that came again among them.",
            metrics_read(&n->sent));
        metrics_family(o, "sluice_relay_failures_total", METRICS_COUNTER,
                       "Batches that came to nothing, by cause.");
        for (size_t i = 0; i < NET_COUNT_OF(failures); i++) {
                struct metrics_label l = {"cause", span_of(failures[i].word)};

                metrics_sample(o, "sluice_relay_failures_total", &l, 1,
                               metrics_read(failures[i].count));
        }
}

/* How long a connection was taken by queries of each tag. */
static void write_held(struct metrics_out *o, const struct org_db_counters *n) {
        metrics_family(o, "sluice_pool_held_seconds", METRICS_HISTOGRAM,
                       "Time that a query had a connection to itself, by its tag.");
        for (int i = 0; i < ORG_QUERY_COUNT; i++) {
                struct metrics_label l = {"tag", span_of(org_queries[i].tag)};
                const struct metrics_histogram *h = &n->held[i];

                metrics_sample_histogram(o, "sluice_pool_held_seconds", &l, &h, 1);
        }
        metrics_family(o, "sluice_pool_held_seconds_total", METRICS_COUNTER,
                       "Time that queries had a connection to themselves.");
        for (int i = 0; i < ORG_QUERY_COUNT; i++) {
                struct metrics_label l = {"tag", span_of(org_queries[i].tag)};

                metrics_sample_real(
                        o, "sluice_pool_held_seconds_total", &l, 1,
                        (double)atomic_load_explicit(&n->held[i].sum_us, memory_order_relaxed) /
                                US_PER_S);
        }
        metrics_family(o, "sluice_queries_total", METRICS_COUNTER, "Queries answered.");
        for (int i = 0; i < ORG_QUERY_COUNT; i++) {
                struct metrics_label l = {"tag", span_of(org_queries[i].tag)};

                metrics_sample(o, "sluice_queries_total", &l, 1,
                               metrics_histogram_count(&n->held[i]));
        }
}

static void write_db(struct metrics_out *o, const struct org_db *db) {
        const struct org_db_counters *n = org_db_counters(db);

        write_held(o, n);
        one(o, "sluice_query_retries_total", METRICS_COUNTER,
            "Deadlocks and serialization failures tried again.", metrics_read(&n->retries));
        one(o, "sluice_query_unknown_total", METRICS_COUNTER, "Queries sent and never answered.",
            metrics_read(&n->unknown));
        one(o, "sluice_query_refused_total", METRICS_COUNTER,
            "Queries refused because too many waited.", metrics_read(&n->refused_full));
        one(o, "sluice_pool_connects_total", METRICS_COUNTER, "Connections made.",
            metrics_read(&n->connects));
        one(o, "sluice_pool_drops_total", METRICS_COUNTER, "Connections lost or refused.",
            metrics_read(&n->drops));
        one(o, "sluice_pool_servers_left_total", METRICS_COUNTER,
            "Servers left because they took no writes any more.", metrics_read(&n->left));
        one(o, "sluice_pool_connections", METRICS_GAUGE, "Connections ready.",
            org_db_connected(db));
        one(o, "sluice_pool_waiting", METRICS_GAUGE, "Queries waiting for a connection.",
            org_db_waiting(db));
}

static void write_reads(struct metrics_out *o, const struct org_read_counters *n) {
        struct metrics_label at = {"at", SPAN("primary")};

        metrics_family(o, "sluice_reads_total", METRICS_COUNTER,
                       "Questions that a standby may answer, by who did.");
        metrics_sample(o, "sluice_reads_total", &at, 1, metrics_read(&n->primary));
        at.value = SPAN("standby");
        metrics_sample(o, "sluice_reads_total", &at, 1, metrics_read(&n->standby));
        metrics_family(o, "sluice_read_fallbacks_total", METRICS_COUNTER,
                       "Times the standby was not fit to answer, by cause.");
        for (int i = 0; i < ORG_READ_WHY_COUNT; i++) {
                struct metrics_label l = {"why", span_of(org_read_why_text((enum org_read_why)i))};

                metrics_sample(o, "sluice_read_fallbacks_total", &l, 1, metrics_read(&n->why[i]));
        }
}

static void write_watch(struct metrics_out *o, const struct org_watch_counters *n) {
        one(o, "sluice_lock_looks_total", METRICS_COUNTER,
            "Looks at who waits for a lock in the database, while a sale was open.",
            metrics_read(&n->looks));
        one(o, "sluice_lock_waiting", METRICS_GAUGE,
            "Sessions that waited for a lock at the last look.", metrics_read(&n->waiting));
        one(o, "sluice_lock_holding", METRICS_GAUGE, "Sessions that they waited for.",
            metrics_read(&n->holding));
        metrics_family(o, "sluice_lock_oldest_seconds", METRICS_GAUGE,
                       "Age of the oldest transaction among those.");
        metrics_sample_real(o, "sluice_lock_oldest_seconds", NULL, 0,
                            (double)metrics_read(&n->held_us) / US_PER_S);
}

/* By the names that the gateway has for them. */
static void write_memory(struct metrics_out *o, const struct org_service *s,
                         const struct http_server_stats *h) {
        metrics_family(o, "sluice_connections_cut_total", METRICS_COUNTER,
                       "Connections ended by us, by reason.");
        metrics_sample(o, "sluice_connections_cut_total",
                       &(struct metrics_label){"reason", SPAN("memory")}, 1, h->closed_memory);
        metrics_family(o, "sluice_connections_shed_total", METRICS_COUNTER,
                       "Connections closed at once, by cause.");
        metrics_sample(o, "sluice_connections_shed_total",
                       &(struct metrics_label){"by", SPAN("memory")}, 1, h->refused_memory);
        one(o, "sluice_idle_sent_away_total", METRICS_COUNTER,
            "Idle connections asked to leave because memory was short.", h->sent_away_memory);
        memory_watch_render(&s->memory, o);
}

static void write_http(struct metrics_out *o, const struct org_service *s) {
        struct http_server_stats h;

        http_server_stats(s->server, &h);
        one(o, "sluice_snapshots_total", METRICS_COUNTER, "Snapshots read from the database.",
            metrics_read(&s->metrics.snapshots));
        one(o, "sluice_snapshots_same_total", METRICS_COUNTER,
            "Snapshots that the database found to be as the one before.",
            metrics_read(&s->metrics.snapshots_same));
        one(o, "sluice_snapshot_answers_total", METRICS_COUNTER, "Snapshots given out.",
            metrics_read(&s->metrics.snapshot_answers));
        one(o, "sluice_snapshot_waiters", METRICS_GAUGE, "Callers waiting for news.",
            org_snapshot_waiters(s->snapshot));
        one(o, "sluice_connections", METRICS_GAUGE, "Open connections.", h.connections_open);
        write_memory(o, s, &h);
        one(o, "sluice_late_turns_total", METRICS_COUNTER,
            "Turns of the loop that took longer than watchdog.report.",
            metrics_read(&s->watchdog.late));
        one(o, "sluice_exchanges", METRICS_GAUGE, "Requests under way.", h.exchanges_open);
        one(o, "sluice_requests_total", METRICS_COUNTER, "Requests.", h.requests_total);
        one(o, "sluice_pages_total", METRICS_COUNTER, "Pages of the demo shop.",
            metrics_read(&s->metrics.pages));
}

void org_metrics_get(struct org_call *c) {
        struct metrics_out o;

        metrics_out_init(&o, TEXT_MAX);
        write_holds(&o, &c->s->metrics);
        write_batches(&o, c->s->batch);
        write_db(&o, c->s->db);
        write_look(&o, c->s);
        write_relay(&o, c->s->relay);
        write_reads(&o, org_reader_counters(c->s->reader));
        write_watch(&o, org_watch_counters(c->s->watch));
        write_http(&o, c->s);
        if (o.overflow)
                org_call_problem(c, PROBLEM_INTERNAL, NULL, NULL, NULL);
        else
                org_call_answer(c, 200, METRICS_MEDIA_TYPE, metrics_out_done(&o));
        metrics_out_fini(&o);
}
