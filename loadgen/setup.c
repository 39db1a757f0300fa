#include "loadgen/setup.h"

#include <stdio.h>

#include "loadgen/wire.h"
#include "net/clock.h"

#define PATIENCE_MS 10000
#define FLAG_GAP_MS 20
#define FLAG_WAIT_MS 20000
#define BODY_BYTES 1024

static int call(struct lg_sale *s, const char *method, const char *path, const char *body,
                struct lg_wire_answer *answer) {
        struct lg_wire_request r = {
                .link = s->origin,
                .method = method,
                .path = path,
                .token = s->token,
                .body = body,
                .patience_ms = PATIENCE_MS,
        };
        return lg_wire_call(s->loop, &r, answer);
}

/* A write that must succeed. */
static int put(struct lg_sale *s, const char *path, const char *body) {
        struct lg_wire_answer answer;
        int r = call(s, "PUT", path, body, &answer);
        bool done = r == 0 && (answer.status == 200 || answer.status == 201);
        if (r != 0)
                snprintf(s->why, sizeof(s->why), "PUT %s: the origin does not answer", path);
        else if (!done)
                snprintf(s->why, sizeof(s->why), "PUT %s was answered %d %s", path, answer.status,
                         answer.text);
        lg_wire_answer_fini(&answer);
        return !done;
}

int lg_sale_make(struct lg_sale *s, const struct lg_options *o, int64_t opens_in_ms) {
        char path[160], text[BODY_BYTES];
        struct json_out body;
        snprintf(s->tenant, sizeof(s->tenant), "shop");
        snprintf(s->item, sizeof(s->item), "%s", s->id);
        s->per_account = o->qty_high;
        s->hold_seconds = lg_options_hold_seconds(o);

        snprintf(path, sizeof(path), "/v1/tenants/%s/items/%s", s->tenant, s->item);
        snprintf(text, sizeof(text), "{\"total\":%lld}", (long long)o->units);
        if (put(s, path, text) != 0)
                return 1;

        int64_t now_ms = clock_wall_ms();
        bool prequeue = o->arrival == LG_ARRIVAL_PREQUEUE;
        s->opens_at_ms = prequeue ? now_ms + opens_in_ms : now_ms - 1000;
        json_out_init(&body, text, sizeof(text) - 1);
        json_out_object(&body, NULL);
        json_out_text(&body, "tenant", s->tenant);
        json_out_text(&body, "item", s->item);
        json_out_text(&body, "queue", "fifo");
        json_out_text(&body, "identity", "account");
        json_out_time(&body, "opens_at", s->opens_at_ms);
        if (prequeue)
                json_out_time(&body, "prequeue_at", now_ms - 1000);
        json_out_real(&body, "overbook", 1.0, 1);
        json_out_int(&body, "per_account", s->per_account);
        json_out_int(&body, "hold_seconds", s->hold_seconds);
        json_out_object_end(&body);
        struct span done = json_out_done(&body);
        assert(done.p);
        text[done.len] = '\0';
        snprintf(path, sizeof(path), "/v1/sales/%s", s->id);
        return put(s, path, text);
}

static bool copy_text(const json_t *root, const char *name, char *out, size_t cap) {
        struct span value = json_get_str(root, name);
        if (!value.p || value.len == 0 || value.len >= cap)
                return false;
        memcpy(out, value.p, value.len);
        out[value.len] = '\0';
        return true;
}

int lg_sale_find(struct lg_sale *s) {
        char path[96];
        struct lg_wire_answer answer;
        snprintf(path, sizeof(path), "/v1/sales/%s", s->id);
        int bad = 1;
        if (call(s, "GET", path, NULL, &answer) != 0)
                snprintf(s->why, sizeof(s->why), "GET %s: the origin does not answer", path);
        else if (answer.status != 200)
                snprintf(s->why, sizeof(s->why), "GET %s was answered %d", path, answer.status);
        else if (!copy_text(answer.root, "tenant", s->tenant, sizeof(s->tenant)) ||
                 !copy_text(answer.root, "item", s->item, sizeof(s->item)))
                snprintf(s->why, sizeof(s->why), "sale %s has no item: nothing to race for", s->id);
        else
                bad = 0;
        s->per_account = json_get_int(answer.root, "per_account", 1);
        s->hold_seconds = json_get_int(answer.root, "hold_seconds", 600);
        s->opens_at_ms = json_get_time(answer.root, "opens_at", clock_wall_ms());
        lg_wire_answer_fini(&answer);
        return bad;
}

static bool is_among(struct span state, const char *wanted) {
        for (const char *at = wanted; *at;) {
                size_t len = strcspn(at, "|");
                if (span_eq(state, (struct span){at, len}))
                        return true;
                at += len;
                at += *at == '|';
        }
        return false;
}

int lg_sale_await(struct lg_sale *s, struct lg_links *gateways, size_t n_gateways,
                  const char *wanted, struct lg_histogram *flags) {
        char path[96];
        int64_t until_ms = loop_clock_ms() + FLAG_WAIT_MS;
        snprintf(path, sizeof(path), "/_sluice/v1/sales/%s", s->id);
        for (size_t i = 0; i < n_gateways && i < lg_links_count(gateways);) {
                struct lg_wire_answer answer;
                struct lg_wire_request r = {
                        .link = lg_links_at(gateways, i),
                        .method = "GET",
                        .path = path,
                };
                int lost = lg_wire_call(s->loop, &r, &answer);
                struct span state = json_get_str(answer.root, "state");
                bool told = answer.status == 200 && state.p && is_among(state, wanted);
                if (lost == 0)
                        lg_histogram_add(flags, (uint64_t)answer.took_us);
                if (!told)
                        snprintf(s->why, sizeof(s->why),
                                 "the flag of %s never told %s: last answer %d %s", s->id, wanted,
                                 answer.status, answer.text);
                lg_wire_answer_fini(&answer);
                if (told)
                        i++;
                else if (loop_clock_ms() >= until_ms)
                        return 1;
                else
                        lg_wire_sleep(s->loop, FLAG_GAP_MS);
        }
        return 0;
}

int lg_sale_stock(struct lg_sale *s, int64_t patience_ms, struct lg_stock *out) {
        char path[160];
        struct lg_wire_answer answer;
        snprintf(path, sizeof(path), "/v1/tenants/%s/items/%s", s->tenant, s->item);
        struct lg_wire_request r = {
                .link = s->origin,
                .method = "GET",
                .path = path,
                .token = s->token,
                .patience_ms = patience_ms,
        };
        int lost = lg_wire_call(s->loop, &r, &answer);
        bool known = lost == 0 && answer.status == 200;
        *out = (struct lg_stock){
                .total = json_get_int(answer.root, "total", 0),
                .available = json_get_int(answer.root, "available", 0),
                .held = json_get_int(answer.root, "held", 0),
                .sold = json_get_int(answer.root, "sold", 0),
        };
        lg_wire_answer_fini(&answer);
        return !known;
}

void lg_sale_invariant(struct lg_sale *s, int64_t patience_ms, bool *known, bool *ok) {
        struct lg_wire_answer answer;
        struct lg_wire_request r = {
                .link = s->origin,
                .method = "GET",
                .path = "/v1/invariant",
                .token = s->token,
                .patience_ms = patience_ms,
        };
        int lost = lg_wire_call(s->loop, &r, &answer);
        *known = lost == 0 && answer.status == 200;
        *ok = *known && json_get_bool(answer.root, "ok", false);
        lg_wire_answer_fini(&answer);
}
