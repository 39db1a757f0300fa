#include "origin/sale_fields.h"

#include <stdio.h>

#include "origin/route.h"

static const char *const queues[] = {"fifo", "draw", "random", "passthrough", "reject", NULL};
static const char *const identities[] = {"account", "guest", NULL};
static const char *const works[] = {"none", "auto", NULL};
static const char *const losses[] = {"hold", "trickle", NULL};
static const char *const lefts[] = {"hidden", "exact", "few", NULL};

enum { QUEUE_DRAW = 1, IDENTITY_GUEST = 1, WORK_NONE = 0 };

#define SECONDS_MAX 86400
#define PATH_MAX_BYTES 512
#define HOST_MAX_BYTES 261 /* a name of 255 and a port */

void org_sale_init(struct org_sale *s) {
        *s = (struct org_sale){
                .opens_at_ms = JSON_NO_TIME,
                .prequeue_at_ms = JSON_NO_TIME,
                .closes_at_ms = JSON_NO_TIME,
                .overbook = 1.0,
                .per_account = 1,
                .hold_seconds = 600,
                .extend_seconds = 300,
                .first_use_seconds = 20,
                .pass_seconds = 300,
                .skip_seconds = 15,
                .forget_seconds = 600,
        };
}

/* ---- rules ---- */

static bool is_one_line(struct span s) {
        for (size_t i = 0; i < s.len; i++)
                if (s.p[i] <= 0x20 || s.p[i] > 0x7e)
                        return false;
        return true;
}

static bool path_is_good(struct span path) {
        return path.len > 0 && path.p[0] == '/' && is_one_line(path) &&
               !memchr(path.p, '?', path.len) && !memchr(path.p, '#', path.len);
}

static bool host_is_good(struct span host) {
        for (size_t i = 0; i < host.len; i++) {
                char c = host.p[i];

                if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
                      c == ':' || c == '[' || c == ']'))
                        return false;
        }
        return true;
}

struct rule {
        struct span host, path;
        bool prefix;
};

static void read_rule(struct json_body *b, const json_t *tree, const char *path,
                      struct rule *rule) {
        struct json_body one;

        *rule = (struct rule){0};
        json_body_borrow(&one, tree, path);
        (void)json_read_str(&one, "host", JSON_NULLABLE, 1, HOST_MAX_BYTES, &rule->host);
        (void)json_read_str(&one, "path", JSON_REQUIRED, 1, PATH_MAX_BYTES, &rule->path);
        (void)json_read_bool(&one, "prefix", JSON_OPTIONAL, &rule->prefix);
        if (rule->host.p && !host_is_good(rule->host))
                json_body_fault(&one, "host", "expected a host in small letters, or null");
        if (rule->path.p && !path_is_good(rule->path))
                json_body_fault(&one, "path", "expected a path from / on, without ? and #");
        if (json_body_finish(&one) != 0 && !b->error[0])
                memcpy(b->error, one.error, sizeof(b->error));
        json_body_close(&one);
}

static void read_rules(struct json_body *b, const char *name, const json_t **rules) {
        struct rule rule;
        char path[48];

        if (!json_read_array(b, name, JSON_NULLABLE, ORG_SALE_RULES_MAX, rules))
                return;
        for (size_t i = 0; i < json_array_size(*rules); i++) {
                (void)snprintf(path, sizeof(path), "%s[%zu].", name, i);
                read_rule(b, json_array_get(*rules, i), path, &rule);
        }
}

static void write_rules(struct json_out *o, const char *name, const json_t *rules) {
        struct json_body unused = {0};
        struct rule rule;

        json_out_array(o, name);
        for (size_t i = 0; rules && i < json_array_size(rules); i++) {
                read_rule(&unused, json_array_get(rules, i), "", &rule);
                json_out_object(o, NULL);
                json_out_str(o, "host", rule.host);
                json_out_str(o, "path", rule.path);
                json_out_bool(o, "prefix", rule.prefix);
                json_out_object_end(o);
        }
        json_out_array_end(o);
}

/* ---- reading ---- */

/* Null sets a nullable field back; absent leaves it in a PATCH. */
static void read_text(struct json_body *b, const char *name, size_t max, struct span *out) {
        if (json_read_is_null(b, name))
                *out = (struct span){NULL, 0};
        if (json_read_str(b, name, JSON_NULLABLE, 1, max, out) && !is_one_line(*out))
                json_body_fault(b, name, "expected printable ASCII without spaces, or null");
}

static void read_time(struct json_body *b, const char *name, int64_t *out) {
        if (json_read_is_null(b, name))
                *out = JSON_NO_TIME;
        (void)json_read_time(b, name, JSON_NULLABLE, out);
}

static void read_names(struct org_sale *s, struct json_body *b, enum json_need need) {
        if (json_read_str(b, "tenant", need, 1, 63, &s->tenant) &&
            !org_stock_name_is_good(s->tenant))
                json_body_fault(b, "tenant", ORG_STOCK_NAME_EXPECTED);
        if (json_read_is_null(b, "item"))
                s->item = (struct span){NULL, 0};
        if (json_read_str(b, "item", JSON_NULLABLE, 1, 63, &s->item) &&
            !org_stock_name_is_good(s->item))
                json_body_fault(b, "item", ORG_STOCK_NAME_EXPECTED);
        (void)json_read_time(b, "opens_at", need, &s->opens_at_ms);
        read_time(b, "prequeue_at", &s->prequeue_at_ms);
        read_time(b, "closes_at", &s->closes_at_ms);
        s->names_end = json_read_has(b, "closes_at");
}

/* What GET shows and nobody sets: a document may come back as it went out. */
static void skip_shown(struct json_body *b) {
        static const char *const shown[] = {"sale", "state",  "round",   "version",  "paused",
                                            "hard", "closed", "changed", "paused_at"};

        for (size_t i = 0; i < NET_COUNT_OF(shown); i++)
                if (json_read_has(b, shown[i]) && b->asked_count < JSON_FIELDS_MAX)
                        b->asked[b->asked_count++] = shown[i];
}

void org_sale_read(struct org_sale *s, struct json_body *b, bool is_patch,
                   int64_t max_hold_seconds) {
        enum json_need opt = JSON_OPTIONAL;

        read_names(s, b, is_patch ? JSON_OPTIONAL : JSON_REQUIRED);
        (void)json_read_choice(b, "queue", opt, queues, &s->queue);
        (void)json_read_real(b, "overbook", opt, 1.0, 2.0, &s->overbook);
        (void)json_read_int(b, "rate_per_minute", opt, 0, 10000000, &s->rate_per_minute);
        (void)json_read_int(b, "max_active", opt, 0, 10000000, &s->max_active);
        (void)json_read_int(b, "per_account", opt, 1, 1000000, &s->per_account);
        (void)json_read_int(b, "hold_seconds", opt, 1, max_hold_seconds, &s->hold_seconds);
        (void)json_read_int(b, "extend_seconds", opt, 0, 1800, &s->extend_seconds);
        (void)json_read_int(b, "first_use_seconds", opt, 1, SECONDS_MAX, &s->first_use_seconds);
        (void)json_read_int(b, "pass_seconds", opt, 1, SECONDS_MAX, &s->pass_seconds);
        (void)json_read_int(b, "skip_seconds", opt, 1, SECONDS_MAX, &s->skip_seconds);
        (void)json_read_int(b, "forget_seconds", opt, 1, SECONDS_MAX, &s->forget_seconds);
        read_rules(b, "match", &s->match);
        read_rules(b, "bypass", &s->bypass);
        read_text(b, "upstream", 63, &s->upstream);
        read_text(b, "pages", 63, &s->pages);
        (void)json_read_choice(b, "identity", opt, identities, &s->identity);
        (void)json_read_choice(b, "guest_work", opt, works, &s->guest_work);
        read_text(b, "login_url", 512, &s->login_url);
        (void)json_read_choice(b, "store_loss", opt, losses, &s->store_loss);
        read_text(b, "beacon_source", 512, &s->beacon_source);
        (void)json_read_choice(b, "left", opt, lefts, &s->left);
        skip_shown(b);
        (void)!json_body_finish(b);
}

static bool name_is_plain(struct span name) {
        return !name.p || org_stock_name_is_good(name);
}

void org_sale_check(const struct org_sale *s, struct json_body *b) {
        if (s->closes_at_ms != JSON_NO_TIME && s->closes_at_ms <= s->opens_at_ms)
                json_body_fault(b, "closes_at", "expected a time after opens_at, or null");
        if (s->prequeue_at_ms != JSON_NO_TIME && s->prequeue_at_ms > s->opens_at_ms)
                json_body_fault(b, "prequeue_at", "expected a time not after opens_at, or null");
        if (s->queue == QUEUE_DRAW && s->identity == IDENTITY_GUEST && s->guest_work == WORK_NONE)
                json_body_fault(b, "guest_work", "expected auto: a draw with guests needs work");
        if (!name_is_plain(s->upstream))
                json_body_fault(b, "upstream", "expected a name of the configuration, or null");
        if (!name_is_plain(s->pages))
                json_body_fault(b, "pages", "expected the name of a directory, or null");
        if (s->login_url.p && !span_starts(s->login_url, SPAN("https://")) &&
            !span_starts(s->login_url, SPAN("/")))
                json_body_fault(b, "login_url", "expected an https URL or a path, or null");
}

void org_sale_write(const struct org_sale *s, struct json_out *o) {
        json_out_object(o, NULL);
        json_out_str(o, "tenant", s->tenant);
        json_out_str(o, "item", s->item);
        json_out_time(o, "opens_at", s->opens_at_ms);
        json_out_time(o, "prequeue_at", s->prequeue_at_ms);
        json_out_time(o, "closes_at", s->closes_at_ms);
        json_out_text(o, "queue", queues[s->queue]);
        json_out_real(o, "overbook", s->overbook, 4);
        json_out_int(o, "rate_per_minute", s->rate_per_minute);
        json_out_int(o, "max_active", s->max_active);
        json_out_int(o, "per_account", s->per_account);
        json_out_int(o, "hold_seconds", s->hold_seconds);
        json_out_int(o, "extend_seconds", s->extend_seconds);
        json_out_int(o, "first_use_seconds", s->first_use_seconds);
        json_out_int(o, "pass_seconds", s->pass_seconds);
        json_out_int(o, "skip_seconds", s->skip_seconds);
        json_out_int(o, "forget_seconds", s->forget_seconds);
        write_rules(o, "match", s->match);
        write_rules(o, "bypass", s->bypass);
        json_out_str(o, "upstream", s->upstream);
        json_out_str(o, "pages", s->pages);
        json_out_text(o, "identity", identities[s->identity]);
        json_out_text(o, "guest_work", works[s->guest_work]);
        json_out_str(o, "login_url", s->login_url);
        json_out_text(o, "store_loss", losses[s->store_loss]);
        json_out_str(o, "beacon_source", s->beacon_source);
        json_out_text(o, "left", lefts[s->left]);
        json_out_object_end(o);
}
