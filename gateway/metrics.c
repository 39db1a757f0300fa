#include "gateway/metrics.h"

#include "admission/store.h"
#include "gateway/control.h"
#include "net/log.h"

#define WORKERS_MAX 256

static void per_answer(const struct gw_control *c, struct metrics_out *o) {
        metrics_family(o, "sluice_requests_total", METRICS_COUNTER,
                       "Requests by the kind of their answer.");
        for (uint32_t slot = 0; slot < gw_control_slots(c); slot++)
                for (int a = 0; a < GW_ANSWERS; a++) {
                        uint64_t n = gw_control_requests(c, slot, (enum gw_answer)a);
                        struct metrics_label labels[] = {
                                {"sale", span_of(gw_control_slot_name(c, slot))},
                                {"answer", span_of(gw_answer_name((enum gw_answer)a))},
                        };
                        metrics_sample(o, "sluice_requests_total", labels, 2, n);
                }
}

static void behind(const struct gw_control *c, struct metrics_out *o) {
        metrics_family(o, "sluice_origin_requests_total", METRICS_COUNTER,
                       "Requests sent to what stands behind the gateway.");
        for (int k = 0; k < GW_ORIGIN_KINDS; k++) {
                struct metrics_label label = {"kind",
                                              span_of(gw_origin_kind_name((enum gw_origin_kind)k))};
                metrics_sample(o, "sluice_origin_requests_total", &label, 1,
                               gw_control_origin_requests(c, (enum gw_origin_kind)k));
        }
        metrics_family(o, "sluice_store_calls_total", METRICS_COUNTER,
                       "Calls to the admission store.");
        for (int k = 0; k < GW_STORE_OPS; k++) {
                struct metrics_label label = {"op", span_of(gw_store_op_name((enum gw_store_op)k))};
                metrics_sample(o, "sluice_store_calls_total", &label, 1,
                               gw_control_store_calls(c, (enum gw_store_op)k));
        }
}

static int64_t outstanding_of(const struct adm_view *v) {
        return (int64_t)v->passes_outstanding;
}
static int64_t active_of(const struct adm_view *v) {
        return (int64_t)v->passes_active;
}
static int64_t issued_of(const struct adm_view *v) {
        return (int64_t)v->passes_issued_total;
}
static int64_t available_of(const struct adm_view *v) {
        return v->stock.available;
}
static int64_t gap_of(const struct adm_view *v) {
        return v->gate_gap;
}
static int64_t waiting_of(const struct adm_view *v) {
        return (int64_t)v->line_waiting;
}
static int64_t live_of(const struct adm_view *v) {
        return (int64_t)v->line_live;
}
static int64_t invited_of(const struct adm_view *v) {
        return (int64_t)v->line_invited;
}
static int64_t number_of(const struct adm_view *v) {
        return (int64_t)v->last_number;
}
static int64_t missed_of(const struct adm_view *v) {
        return (int64_t)v->turns_missed_total;
}
static int64_t joins_of(const struct adm_view *v) {
        return (int64_t)v->joins_total;
}
static int64_t full_of(const struct adm_view *v) {
        return (int64_t)v->line_full_total;
}
static int64_t epoch_of(const struct adm_view *v) {
        return (int64_t)v->epoch;
}
static int64_t state_of(const struct adm_view *v) {
        return (int64_t)v->state;
}

/* What the store says of a sale, one row a family. */
static const struct {
        const char *name, *help;
        enum metrics_type type;
        int64_t (*of)(const struct adm_view *v);
} view_rows[] = {
        {"sluice_passes_outstanding", "Units that passes in force may still take.", METRICS_GAUGE,
         outstanding_of},
        {"sluice_passes_active", "Passes that take a slot.", METRICS_GAUGE, active_of},
        {"sluice_passes_issued_total", "Passes issued.", METRICS_COUNTER, issued_of},
        {"sluice_available", "Units free, as the gate knows.", METRICS_GAUGE, available_of},
        {"sluice_gate_gap", "The gate's available minus the last snapshot's.", METRICS_GAUGE,
         gap_of},
        {"sluice_line_waiting", "Places not served and not left.", METRICS_GAUGE, waiting_of},
        {"sluice_line_live", "Of these, heard of in time.", METRICS_GAUGE, live_of},
        {"sluice_line_invited", "Of these, invited and not yet in.", METRICS_GAUGE, invited_of},
        {"sluice_line_last_number", "The last number given.", METRICS_GAUGE, number_of},
        {"sluice_turns_missed_total", "Invitations that lapsed.", METRICS_COUNTER, missed_of},
        {"sluice_joins_total", "Places given.", METRICS_COUNTER, joins_of},
        {"sluice_line_full_total", "Joins refused because the line is full.", METRICS_COUNTER,
         full_of},
        {"sluice_store_epoch", "Which life of the gate's counters.", METRICS_GAUGE, epoch_of},
        {"sluice_sale_state",
         "0 scheduled, 1 prequeue, 2 open, 3 paused, 4 all_held, 5 sold_out, 6 closed.",
         METRICS_GAUGE, state_of},
};

static bool view_of(const struct gw_control *c, uint32_t i, struct adm_view *v) {
        uint32_t handle;
        int64_t now_ms = gw_sale_time_ms(&c->shared, loop_now_ms(c->loop));
        return adm_store_find(c->shared.store, c->snapshot->sales[i].facts.id, &handle) == 0 &&
               adm_store_view(c->shared.store, handle, now_ms, v) == 0;
}

static void per_sale(const struct gw_control *c, struct metrics_out *o) {
        for (size_t row = 0; row < NET_COUNT_OF(view_rows); row++) {
                metrics_family(o, view_rows[row].name, view_rows[row].type, view_rows[row].help);
                for (uint32_t i = 0; i < c->snapshot->n_sales; i++) {
                        struct adm_view v;
                        struct metrics_label label = {"sale",
                                                      span_of(c->snapshot->sales[i].facts.id)};
                        if (view_of(c, i, &v))
                                metrics_sample_int(o, view_rows[row].name, &label, 1,
                                                   view_rows[row].of(&v));
                }
        }
}

static void one(struct metrics_out *o, const char *name, enum metrics_type type, const char *help,
                uint64_t value) {
        metrics_family(o, name, type, help);
        metrics_sample(o, name, NULL, 0, value);
}

static void add_stats(struct http_server_stats *sum, const struct http_server_stats *s) {
        /* every member is a count */
        uint64_t *to = (uint64_t *)(void *)sum;
        const uint64_t *from = (const uint64_t *)(const void *)s;
        for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
                to[i] += from[i];
}

static void shed(const struct http_server_stats *sum, struct metrics_out *o) {
        metrics_family(o, "sluice_connections_shed_total", METRICS_COUNTER,
                       "Connections closed before their handshake.");
        metrics_sample(o, "sluice_connections_shed_total",
                       &(struct metrics_label){"by", SPAN("network")}, 1, sum->refused_network);
        metrics_sample(o, "sluice_connections_shed_total",
                       &(struct metrics_label){"by", SPAN("overload")}, 1, sum->refused_overload);
        metrics_sample(o, "sluice_connections_shed_total",
                       &(struct metrics_label){"by", SPAN("memory")}, 1, sum->refused_memory);
        one(o, "sluice_requests_shed_total", METRICS_COUNTER,
            "Requests answered 503 because a worker could not keep up.", sum->requests_shed);
        one(o, "sluice_connections_sent_away_total", METRICS_COUNTER,
            "Connections asked to leave because a worker could not keep up.",
            sum->connections_sent_away);
        one(o, "sluice_idle_sent_away_total", METRICS_COUNTER,
            "Idle connections asked to leave because memory was short.", sum->sent_away_memory);
        one(o, "sluice_networks_closed_total", METRICS_COUNTER,
            "Times a network was closed to for its failed handshakes.", sum->networks_closed);
        one(o, "sluice_connections_abandoned_total", METRICS_COUNTER,
            "Connections whose client left before their handshake could begin.", sum->abandoned);
        one(o, "sluice_networks_unknown_total", METRICS_COUNTER,
            "Connections of networks there was no room to remember.", sum->networks_unknown);
}

static void sockets(const struct gw_control *c, struct metrics_out *o) {
        struct http_server_stats sum = {0};
        for (size_t i = 0; i < c->n_workers; i++) {
                struct http_server_stats s;
                http_server_stats(c->workers[i]->server, &s);
                add_stats(&sum, &s);
        }
        one(o, "sluice_connections", METRICS_GAUGE, "Open connections of shoppers.",
            sum.connections_open);
        one(o, "sluice_connections_total", METRICS_COUNTER, "Connections accepted.",
            sum.connections_total);
        one(o, "sluice_connections_refused_total", METRICS_COUNTER, "Connections over the ceiling.",
            sum.connections_refused);
        shed(&sum, o);
        one(o, "sluice_exchanges_open", METRICS_GAUGE, "Requests without their whole answer.",
            sum.exchanges_open);
        metrics_family(o, "sluice_handshakes_total", METRICS_COUNTER, "TLS handshakes done.");
        metrics_sample(o, "sluice_handshakes_total", &(struct metrics_label){"resumed", SPAN("no")},
                       1, sum.handshakes_full);
        metrics_sample(o, "sluice_handshakes_total",
                       &(struct metrics_label){"resumed", SPAN("yes")}, 1, sum.handshakes_resumed);
        one(o, "sluice_handshakes_failed_total", METRICS_COUNTER,
            "TLS handshakes that failed or came to no end.", sum.handshakes_failed);
        metrics_family(o, "sluice_connections_cut_total", METRICS_COUNTER,
                       "Connections ended by us, by reason.");
        const struct {
                const char *reason;
                uint64_t n;
        } cuts[] = {
                {"glitches", sum.closed_glitches}, {"resets", sum.closed_resets},
                {"timeout", sum.closed_timeouts},  {"protocol", sum.closed_protocol},
                {"memory", sum.closed_memory},
        };
        for (size_t i = 0; i < NET_COUNT_OF(cuts); i++)
                metrics_sample(o, "sluice_connections_cut_total",
                               &(struct metrics_label){"reason", span_of(cuts[i].reason)}, 1,
                               cuts[i].n);
        one(o, "sluice_header_limit_total", METRICS_COUNTER, "Heads over their budget.",
            sum.header_limit_hits);
        one(o, "sluice_queue_limit_total", METRICS_COUNTER,
            "Times a connection was not read because its output queue was full.",
            sum.queue_limit_hits);
        one(o, "sluice_repeated_heads_evicted_total", METRICS_COUNTER,
            "Heads forgotten because limits.repeated_heads were kept.", sum.repeats_evicted);
        one(o, "sluice_accept_errors_total", METRICS_COUNTER, "Failed accepts.", sum.accept_errors);
}

static void cancelled(const struct gw_control *c, struct metrics_out *o) {
        static const char name[] = "sluice_calls_cancelled_total";
        uint64_t run = 0, resets = 0, given_up = 0;
        for (size_t i = 0; i < c->n_workers; i++) {
                const struct http_client_counters *k = &c->workers[i]->counters.calls;
                run += metrics_read(&k->let_run);
                resets += metrics_read(&k->resets);
                given_up += metrics_read(&k->given_up);
        }
        metrics_family(o, name, METRICS_COUNTER,
                       "HTTP/2 answers from behind that nobody waited for any more: left to end, "
                       "reset, and connections given up for them.");
        metrics_sample(o, name, &(struct metrics_label){"how", SPAN("ended")}, 1, run);
        metrics_sample(o, name, &(struct metrics_label){"how", SPAN("reset")}, 1, resets);
        metrics_sample(o, name, &(struct metrics_label){"how", SPAN("connection")}, 1, given_up);
}

static void workers(const struct gw_control *c, struct metrics_out *o) {
        const struct metrics_histogram *parts[WORKERS_MAX];
        size_t n = c->n_workers < WORKERS_MAX ? c->n_workers : WORKERS_MAX;
        uint64_t parked = 0, failed = 0, network = 0, account = 0, render = 0, cut = 0,
                 not_parked = 0;
        for (size_t i = 0; i < n; i++) {
                const struct gw_counters *k = &c->workers[i]->counters;
                parts[i] = &k->answer_seconds;
                parked += metrics_read(&k->parked);
                not_parked += metrics_read(&k->not_parked);
                failed += metrics_read(&k->forward_failed);
                cut += metrics_read(&k->forward_cut);
                network += metrics_read(&k->limited_network);
                account += metrics_read(&k->limited_account);
                render += metrics_read(&k->render_failed);
        }
        metrics_family(o, "sluice_answer_seconds", METRICS_HISTOGRAM,
                       "From a request's head to its answer.");
        metrics_sample_histogram(o, "sluice_answer_seconds", NULL, parts, n);
        one(o, "sluice_requests_parked", METRICS_GAUGE,
            "Requests waiting for their body, the origin or an application.", parked);
        one(o, "sluice_requests_not_parked_total", METRICS_COUNTER,
            "Requests answered 503 because limits.requests_waiting waited already.", not_parked);
        one(o, "sluice_forward_failed_total", METRICS_COUNTER,
            "Forwarded requests lost, late or malformed.", failed);
        one(o, "sluice_forward_cut_total", METRICS_COUNTER,
            "Forwarded answers that nobody read, cut because others needed the place.", cut);
        metrics_family(o, "sluice_limited_total", METRICS_COUNTER, "Requests over a limit.");
        metrics_sample(o, "sluice_limited_total", &(struct metrics_label){"by", SPAN("network")}, 1,
                       network);
        metrics_sample(o, "sluice_limited_total", &(struct metrics_label){"by", SPAN("account")}, 1,
                       account);
        one(o, "sluice_render_failed_total", METRICS_COUNTER,
            "Answers that did not fit their buffer.", render);
}

void gw_metrics_render(const struct gw_control *c, struct metrics_out *o) {
        per_answer(c, o);
        behind(c, o);
        per_sale(c, o);
        sockets(c, o);
        workers(c, o);
        cancelled(c, o);
        memory_watch_render(&c->memory, o);
        uint64_t late = metrics_read(&c->watchdog.late);
        for (size_t i = 0; i < c->n_workers; i++)
                late += metrics_read(&c->workers[i]->watchdog.late);
        one(o, "sluice_late_turns_total", METRICS_COUNTER,
            "Turns of a loop that took longer than watchdog.report.", late);
        int64_t at_ms = atomic_load_explicit(&c->shared.snapshot_at_ms, memory_order_relaxed);
        metrics_family(o, "sluice_snapshot_age_seconds", METRICS_GAUGE,
                       "Since the origin was last heard; -1 never.");
        metrics_sample_real(o, "sluice_snapshot_age_seconds", NULL, 0,
                            at_ms == GW_NEVER_MS ? -1.0
                                                 : (double)(loop_now_ms(c->loop) - at_ms) / 1000.0);
        one(o, "sluice_reloads_total", METRICS_COUNTER, "Configurations taken over.", c->reloads);
        one(o, "sluice_reloads_refused_total", METRICS_COUNTER, "Configurations refused.",
            c->reloads_refused);
        one(o, "sluice_store_broken_total", METRICS_COUNTER,
            "Maps of the line put aside, since no store can have written them.", c->stores_broken);
        one(o, "sluice_log_dropped_total", METRICS_COUNTER, "Log lines that could not be written.",
            log_dropped());
}
