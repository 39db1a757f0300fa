#include "tests/unit/lg_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "loadgen/line.h"

#define GUARD_MS 8000

static const char account_key[] = "{\"kty\":\"oct\",\"alg\":\"HS256\",\"kid\":\"shop-1\","
                                  "\"k\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"}";

static void keep(char *out, size_t cap, struct span value) {
        snprintf(out, cap, "%.*s", (int)value.len, value.p ? value.p : "");
}

static void open_server(struct stage *s);

static void cut_all(struct loop_defer *d) {
        struct stage *s = NET_CONTAINER_OF(d, struct stage, cut);
        http_server_free(&s->server);
        open_server(s);
}

static void on_request(void *owner, struct http_exchange *x) {
        struct stage *s = owner;
        const struct http_request *r = &x->request;
        char request[64];
        const char *slash = memrchr(r->path.p, '/', r->path.len);
        size_t word = r->path.len - (size_t)(slash + 1 - r->path.p);
        snprintf(request, sizeof(request), "%.*s %.*s", (int)r->method_text.len, r->method_text.p,
                 (int)word, slash + 1);
        bool expected = s->n_seen < s->n_rows && strcmp(request, s->rows[s->n_seen].request) == 0;
        if (!expected) {
                snprintf(s->wrong, sizeof(s->wrong), "request %zu was %s", s->n_seen, request);
                http_answer(x, 500, NULL, 0, SPAN(""));
                loop_stop(s->loop);
                return;
        }
        struct stage_seen *seen = &s->seen[s->n_seen];
        const struct stage_row *row = &s->rows[s->n_seen++];
        keep(seen->key, sizeof(seen->key), http_request_field(r, HTTP_FIELD_IDEMPOTENCY_KEY));
        keep(seen->ticket, sizeof(seen->ticket), http_request_field(r, HTTP_FIELD_SLUICE_TICKET));
        keep(seen->pass, sizeof(seen->pass), http_request_field(r, HTTP_FIELD_SLUICE_PASS));
        seen->bearer = http_request_field(r, HTTP_FIELD_AUTHORIZATION).len > 0;
        if (row->status == 0) {
                loop_defer(s->loop, &s->cut, cut_all);
                return;
        }
        struct http_header field = {.name = SPAN("retry-after"),
                                    .value = span_of(row->retry_after)};
        http_answer(x, row->status, &field, row->retry_after ? 1 : 0, span_of(row->body));
}

static void on_gone(struct http_exchange *x) {
        (void)x;
}

static const struct http_exchange_events exchange_events = {.on_gone = on_gone};

static void on_request_kept(void *owner, struct http_exchange *x) {
        x->events = &exchange_events;
        on_request(owner, x);
}

static void open_server(struct stage *s) {
        struct http_server_conf conf = {
                .on_request = on_request_kept,
                .owner = s,
                .limits =
                        {
                                .connections = 100,
                                .handshakes = 100,
                                .handshakes_per_turn = 50,
                                .streams = 100,
                                .requests_per_connection = 1000,
                                .header_fields = 100,
                                .header_bytes = 16384,
                                .queued_bytes = 1 << 20,
                                .glitch_burst = 1000,
                                .glitch_per_s = 100,
                                .reset_burst = 100,
                                .reset_per_s = 100,
                                .handshake_ms = 5000,
                                .header_ms = 5000,
                                .body_ms = 5000,
                                .stall_ms = 5000,
                                .idle_ms = 60000,
                        },
        };
        assert_int_equal(http_server_new(s->loop, &conf, &s->server), 0);
        const char *address = s->endpoint.address[0] ? s->endpoint.address : "127.0.0.1:0";
        assert_int_equal(http_server_listen(s->server, address, true), 0);
        snprintf(s->endpoint.address, sizeof(s->endpoint.address), "127.0.0.1:%u",
                 http_server_port(s->server, 0));
}

static void on_guard(struct loop_timer *t) {
        struct stage *s = NET_CONTAINER_OF(t, struct stage, guard);
        s->stuck = true;
        loop_stop(s->loop);
}

static void on_all_ended(struct lg_crowd *c) {
        loop_stop(c->loop);
}

void stage_open(struct stage *s, const struct stage_row *rows, size_t n) {
        char why[128];
        assert_true(n <= STAGE_ROWS);
        *s = (struct stage){
                .loop = loop_new(),
                .rows = rows,
                .n_rows = n,
                .seed = 1,
                .options = {.buyers = 1,
                            .units = 1,
                            .tabs = 1,
                            .qty_low = 1,
                            .qty_high = 1,
                            .spread_s = 1},
                .endpoint = {.host = "127.0.0.1"},
        };
        assert_non_null(s->loop);
        open_server(s);
        assert_int_equal(jwt_keys_new(&s->addresses.account_keys), 0);
        assert_int_equal(jwt_keys_add_text(s->addresses.account_keys, span_of(account_key), why,
                                           sizeof(why)),
                         0);
}

static void open_crowd(struct stage *s) {
        struct lg_crowd *c = &s->crowd;
        c->loop = s->loop;
        c->options = &s->options;
        c->addresses = &s->addresses;
        c->seed = s->seed;
        c->line_path = SPAN("/_sluice/v1/sales/s/line");
        c->holds_path = SPAN("/_sluice/v1/sales/s/holds");
        c->service_token = SPAN("service");
        c->per_account = s->options.qty_high;
        c->hold_seconds = 1;
        c->answers = s->answers;
        c->on_all_ended = on_all_ended;
        assert_int_equal(lg_links_new(s->loop, &s->endpoint, 1, 1, NULL, &c->gateways), 0);
        assert_int_equal(lg_links_new(s->loop, &s->endpoint, 1, 1, NULL, &c->origin), 0);
        assert_int_equal(lg_crowd_init(c), 0);
}

void stage_run(struct stage *s, enum lg_end end) {
        struct lg_buyer *b;
        open_crowd(s);
        b = &s->crowd.buyers[0];
        loop_timer_init(s->loop, &s->guard, on_guard);
        loop_timer_start(&s->guard, GUARD_MS);
        lg_line_join(&s->crowd.tabs[0]);
        loop_run(s->loop);
        loop_timer_cancel(&s->guard);
        if (s->wrong[0] || s->stuck || s->n_seen != s->n_rows)
                fail_msg("%s; %zu of %zu rows played%s", s->wrong, s->n_seen, s->n_rows,
                         s->stuck ? ", then nothing" : "");
        assert_int_equal(b->state, LG_BUYER_ENDED);
        assert_int_equal(b->end, end);
}

void stage_close(struct stage *s) {
        lg_links_free(&s->crowd.gateways);
        lg_links_free(&s->crowd.origin);
        lg_crowd_fini(&s->crowd);
        jwt_keys_free(&s->addresses.account_keys);
        loop_defer_cancel(s->loop, &s->cut);
        http_server_free(&s->server);
        loop_free(&s->loop);
}
