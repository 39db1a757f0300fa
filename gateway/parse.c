#include "gateway/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "gateway/guest.h"
#include "gateway/hash.h"
#include "gateway/origin_call.h"
#include "gateway/pass.h"
#include "gateway/route.h"
#include "net/json.h"

/* Copies text that fits with its closing zero; false when it does not. */
static bool copy_text(struct span from, char *to, size_t cap) {
        if (!from.p || from.len >= cap || memchr(from.p, 0, from.len))
                return false;
        memcpy(to, from.p, from.len);
        to[from.len] = '\0';
        return true;
}

static bool copy_optional(const json_t *o, const char *name, char *to, size_t cap) {
        struct span from = json_get_str(o, name);
        to[0] = '\0';
        return !from.p || copy_text(from, to, cap);
}

static int choice(const json_t *o, const char *name, const char *const *words, int fallback) {
        struct span text = json_get_str(o, name);
        if (!text.p)
                return fallback;
        for (int i = 0; words[i]; i++)
                if (span_eq(text, span_of(words[i])))
                        return i;
        return -1;
}

static uint32_t count(const json_t *o, const char *name, uint32_t fallback) {
        int64_t n = json_get_int(o, name, fallback);
        return n < 0 || n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static void read_numbers(const json_t *o, struct adm_sale_facts *f) {
        const json_t *overbook = json_object_get(o, "overbook");
        f->round = count(o, "round", 1);
        f->version = (uint64_t)json_get_int(o, "version", 1);
        f->opens_at_ms = json_get_time(o, "opens_at", 0);
        f->prequeue_at_ms = json_get_time(o, "prequeue_at", 0);
        f->closes_at_ms = json_get_time(o, "closes_at", 0);
        if (json_is_number(overbook))
                f->overbook_milli = (uint32_t)lround(json_number_value(overbook) * 1000);
        f->rate_per_minute = count(o, "rate_per_minute", f->rate_per_minute);
        f->max_active = count(o, "max_active", f->max_active);
        f->per_account = count(o, "per_account", f->per_account);
        f->hold_seconds = count(o, "hold_seconds", f->hold_seconds);
        f->extend_seconds = count(o, "extend_seconds", f->extend_seconds);
        f->first_use_seconds = count(o, "first_use_seconds", f->first_use_seconds);
        f->pass_seconds = count(o, "pass_seconds", f->pass_seconds);
        f->skip_seconds = count(o, "skip_seconds", f->skip_seconds);
        f->forget_seconds = count(o, "forget_seconds", f->forget_seconds);
        f->paused = json_get_bool(o, "paused", false);
        f->hard_pause = json_get_bool(o, "hard", false) && f->paused;
        f->closed = json_get_bool(o, "closed", false);
}

static bool read_words(const json_t *o, struct gw_sale *out) {
        static const char *const queues[] = {"fifo",        "draw",   "random",
                                             "passthrough", "reject", NULL};
        static const char *const identities[] = {"account", "guest", NULL};
        static const char *const lefts[] = {"hidden", "exact", "few", NULL};
        int queue = choice(o, "queue", queues, ADM_QUEUE_FIFO);
        int identity = choice(o, "identity", identities, ADM_IDENTITY_ACCOUNT);
        int left = choice(o, "left", lefts, GW_LEFT_HIDDEN);
        if (queue < 0 || identity < 0 || left < 0)
                return false;
        out->facts.queue = (enum adm_queue)queue;
        out->facts.identity = (enum adm_identity)identity;
        out->left = (enum gw_left)left;
        return copy_optional(o, "upstream", out->upstream, sizeof out->upstream) &&
               copy_optional(o, "login_url", out->login_url, sizeof out->login_url);
}

static uint64_t item_hash(struct span tenant, struct span item) {
        return gw_hash(gw_hash(0, tenant.p, tenant.len), item.p, item.len);
}

int gw_items_init(struct gw_items *items, const json_t *rows) {
        size_t i, slots = 8;
        const json_t *row;
        while (slots < json_array_size(rows) * 2)
                slots *= 2;
        items->at = calloc(slots, sizeof *items->at);
        items->mask = slots - 1;
        if (!items->at)
                return -ENOMEM;
        json_array_foreach(rows, i, row) {
                struct span tenant = json_get_str(row, "tenant"), item = json_get_str(row, "item");
                if (!tenant.p || !item.p)
                        continue;
                size_t at = item_hash(tenant, item) & items->mask;
                while (items->at[at])
                        at = (at + 1) & items->mask;
                items->at[at] = row;
        }
        return 0;
}

void gw_items_fini(struct gw_items *items) {
        free(items->at);
        items->at = NULL;
}

static const json_t *find_item(const struct gw_items *items, struct span tenant, struct span item) {
        size_t at = item_hash(tenant, item) & items->mask;
        for (; items->at[at]; at = (at + 1) & items->mask)
                if (span_eq(json_get_str(items->at[at], "tenant"), tenant) &&
                    span_eq(json_get_str(items->at[at], "item"), item))
                        return items->at[at];
        return NULL;
}

static void read_stock(const struct gw_items *items, struct adm_sale_facts *f, int64_t now_ms) {
        const json_t *item = find_item(items, span_of(f->tenant), span_of(f->item));
        struct adm_stock *k = &f->stock;
        if (!item || !gw_version_parse(json_get_str(item, "version"), &k->timeline, &k->n))
                return;
        k->db_now_ms = now_ms;
        k->available = json_get_int(item, "available", 0);
        k->held = json_get_int(item, "held", 0);
        k->sold = json_get_int(item, "sold", 0);
        k->total = json_get_int(item, "total", 0);
}

/* A rule's host is a name; a port behind it says nothing here. */
static struct span host_of(struct span text) {
        if (text.len > 0 && text.p[0] == '[') {
                const char *end = memchr(text.p, ']', text.len);
                return end ? (struct span){text.p, (size_t)(end - text.p) + 1} : text;
        }
        const char *colon = text.len ? memchr(text.p, ':', text.len) : NULL;
        return colon ? (struct span){text.p, (size_t)(colon - text.p)} : text;
}

/* False when a row is none. Adds up what its texts need. */
static bool rule_is_good(const json_t *row, size_t *bytes) {
        struct span path = json_get_str(row, "path");
        *bytes += path.len + json_get_str(row, "host").len;
        return path.p && http_path_is_clean(path);
}

static struct span kept(char **to, struct span text) {
        struct span copy = {text.p ? *to : NULL, text.len};
        if (text.p)
                memcpy(*to, text.p, text.len);
        *to += text.len;
        return copy;
}

/* Copied, rows and texts in one piece: no other thread touches the document. */
static int read_rules(const json_t *rows, struct gw_rules *out) {
        size_t i, n = json_array_size(rows), bytes = 0;
        const json_t *row;
        if (n > GW_RULES_MAX)
                return 1;
        json_array_foreach(rows, i, row) {
                if (!rule_is_good(row, &bytes))
                        return 1;
        }
        if (n == 0)
                return 0;
        out->at = malloc(n * sizeof *out->at + bytes);
        if (!out->at)
                return -ENOMEM;
        char *text = (char *)(out->at + n);
        json_array_foreach(rows, i, row) {
                out->at[out->count++] = (struct gw_rule){
                        .host = kept(&text, host_of(json_get_str(row, "host"))),
                        .path = kept(&text, json_get_str(row, "path")),
                        .prefix = json_get_bool(row, "prefix", false),
                };
        }
        return 0;
}

int gw_parse_sale(const json_t *sale, const struct gw_items *items, int64_t now_ms,
                  struct gw_sale *out) {
        struct adm_sale_facts *f = &out->facts;
        adm_sale_defaults(f);
        if (!copy_text(json_get_str(sale, "sale"), f->id, sizeof f->id) ||
            !gw_sale_id_is_good(span_of(f->id)) ||
            !copy_text(json_get_str(sale, "tenant"), f->tenant, sizeof f->tenant))
                return 1;
        f->has_item = json_get_str(sale, "item").p != NULL;
        if (f->has_item && !copy_text(json_get_str(sale, "item"), f->item, sizeof f->item))
                return 1;
        read_numbers(sale, f);
        if (!read_words(sale, out))
                return 1;
        if (f->has_item)
                read_stock(items, f, now_ms);
        int r = read_rules(json_object_get(sale, "match"), &out->match);
        return r == 0 ? read_rules(json_object_get(sale, "bypass"), &out->bypass) : r;
}

static bool is_of(const json_t *row, const struct gw_sale *sale) {
        return span_eq(json_get_str(row, "sale"), span_of(sale->facts.id)) &&
               json_get_int(row, "round", sale->facts.round) == sale->facts.round;
}

static size_t read_converted(const json_t *rows, const struct gw_sale *sale,
                             struct adm_converted *out) {
        size_t i, n = 0;
        const json_t *row;
        json_array_foreach(rows, i, row) {
                struct adm_converted *c = &out[n];
                struct span state = json_get_str(row, "state");
                bool stands = span_eq(state, SPAN("held")) || span_eq(state, SPAN("sold")) ||
                              span_eq(state, SPAN("shipped"));
                if (!stands || !is_of(row, sale) ||
                    !gw_pass_jti_parse(json_get_str(row, "jti"), c->jti))
                        continue;
                c->qty = count(row, "qty", 1);
                c->hold_end_ms = json_get_int(row, "hold_end_ms", 0);
                n++;
        }
        return n;
}

static size_t read_revoked(const json_t *rows, const struct gw_sale *sale,
                           struct adm_revoked *out) {
        size_t i, n = 0;
        const json_t *row;
        json_array_foreach(rows, i, row) {
                struct span account = json_get_str(row, "account");
                if (!account.p || !is_of(row, sale))
                        continue;
                if (!gw_guest_of_name(account, &out[n].tag))
                        out[n].tag = adm_account_tag(account.p, account.len, false);
                out[n++].at_ms = json_get_int(row, "at_ms", 0);
        }
        return n;
}

int gw_parse_update(const json_t *document, const struct gw_sale *sale,
                    struct adm_sale_update *out) {
        const json_t *converted = json_object_get(document, "converted");
        const json_t *revoked = json_object_get(document, "revocations");
        struct adm_converted *c = calloc(json_array_size(converted) + 1, sizeof *c);
        struct adm_revoked *v = calloc(json_array_size(revoked) + 1, sizeof *v);
        *out = (struct adm_sale_update){.facts = sale->facts, .converted = c, .revoked = v};
        if (!c || !v) {
                gw_parse_free_update(out);
                return -ENOMEM;
        }
        out->n_converted = read_converted(converted, sale, c);
        out->n_revoked = read_revoked(revoked, sale, v);
        return 0;
}

void gw_parse_free_update(struct adm_sale_update *u) {
        free((void *)(uintptr_t)u->converted);
        free((void *)(uintptr_t)u->revoked);
        u->converted = NULL;
        u->revoked = NULL;
}
