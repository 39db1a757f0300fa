#include "gateway/publish.h"

#include <errno.h>
#include <stdlib.h>

#include "gateway/flag.h"
#include "gateway/parse.h"
#include "gateway/rule.h"
#include "gateway/slots.h"
#include "net/json.h"
#include "net/log.h"

#define GW_REMEMBERED_MAX 1024 /* as many as a store holds */

static int64_t sale_now(const struct gw_control *c) {
        return gw_sale_time_ms(&c->shared, loop_clock_ms());
}

/* ---- pages ---- */

static struct http_page *shared_page(struct http_page *p) {
        if (p)
                http_page_take(p);
        return p;
}

/* Pages say nothing but the flag's fields, so an equal flag has equal pages. */
static void share_pages(struct gw_sale *s, const struct gw_pages *from) {
        s->pages = *from;
        (void)shared_page(s->pages.flag);
        (void)shared_page(s->pages.flag_304);
        (void)shared_page(s->pages.end_hold);
        for (size_t i = 0; i < 2; i++) {
                (void)shared_page(s->pages.end_line[i]);
                (void)shared_page(s->pages.end_gated[i]);
        }
}

static bool is_told(const struct adm_told *t, const struct gw_flag *f) {
        return t->version > 0 && t->state == (uint64_t)f->state && t->left == f->left &&
               t->opens_at_ms == f->opens_at_ms && t->closes_at_ms == f->closes_at_ms;
}

/* A flag that is not the slot's gets the next version, and the store keeps it
 * before anybody sees it. The store may have a later one, of a gateway before
 * or beside this: that is gone on from. */
static void next_flag(struct gw_control *c, struct gw_slot *slot, const struct gw_flag *flag) {
        struct adm_view v;
        bool is_kept = slot->is_stored &&
                       adm_store_view(c->shared.store, slot->handle, sale_now(c), &v) == ADM_DONE;
        struct adm_told told = is_kept ? v.told : (struct adm_told){0};
        slot->has_flag = true;
        slot->flag = *flag;
        if (told.version > slot->flag_version && is_told(&told, flag)) {
                slot->flag_version = told.version;
                slot->flag_as_of_ms = told.as_of_ms;
                return;
        }
        slot->flag_version =
                (told.version > slot->flag_version ? told.version : slot->flag_version) + 1;
        slot->flag_as_of_ms = sale_now(c);
        if (is_kept)
                adm_store_tell(c->shared.store, slot->handle,
                               &(struct adm_told){.version = slot->flag_version,
                                                  .as_of_ms = slot->flag_as_of_ms,
                                                  .left = flag->left,
                                                  .opens_at_ms = flag->opens_at_ms,
                                                  .closes_at_ms = flag->closes_at_ms,
                                                  .state = flag->state});
}

static int render(struct gw_control *c, struct gw_sale *s) {
        struct gw_slot *slot = s->slot ? &c->slots->at[s->slot] : NULL;
        struct gw_flag flag = gw_flag_of(s);
        const struct gw_sale *before =
                c->snapshot ? gw_snapshot_sale(c->snapshot, span_of(s->facts.id)) : NULL;
        bool same = slot && slot->has_flag && gw_flag_equal(&slot->flag, &flag);
        if (slot && !same)
                next_flag(c, slot, &flag);
        s->flag_version = slot ? slot->flag_version : 1;
        s->flag_as_of_ms = slot ? slot->flag_as_of_ms : s->facts.opens_at_ms;
        bool may_share =
                same && before && before->flag_version == s->flag_version &&
                (before->facts.queue == ADM_QUEUE_REJECT) == (s->facts.queue == ADM_QUEUE_REJECT);
        if (may_share) {
                share_pages(s, &before->pages);
                return 0;
        }
        return gw_flag_pages(s);
}

/* ---- facts ---- */

static void judge_state(struct gw_control *c, struct gw_sale *s) {
        struct gw_slot *slot = s->slot ? &c->slots->at[s->slot] : NULL;
        s->state = adm_sale_state(&s->facts, slot ? &slot->shown : NULL, sale_now(c));
        s->handle = slot ? slot->handle : 0;
        s->is_stored = slot && slot->is_stored;
}

static int tell_store(struct gw_control *c, const json_t *document, struct gw_sale *s) {
        struct gw_slot *slot = s->slot ? &c->slots->at[s->slot] : NULL;
        struct adm_sale_update u;
        int r = gw_parse_update(document, s, &u);
        if (r < 0)
                return r;
        uint32_t handle = 0;
        r = adm_store_sale(c->shared.store, &u, sale_now(c), &handle);
        gw_parse_free_update(&u);
        if (slot) {
                slot->is_stored = r == ADM_DONE || r == ADM_STALE;
                slot->handle = handle;
        }
        if (r != ADM_DONE && r != ADM_STALE)
                log_event_limited(1, LOG_WARN, "sale", "the store does not take it",
                                  LOG_S("sale", s->facts.id), LOG_I("outcome", r));
        return 0;
}

/* ---- after a restart, until the origin is heard ---- */

/* The file on disk is some moments older than the store: what was learnt in
 * between stands, and no flag goes back. Stock that was just being written when
 * the end came is not known; a sale is not called sold out on a guess. */
static void remember(struct gw_control *c, struct gw_sale *s) {
        struct gw_slot *slot = s->slot ? &c->slots->at[s->slot] : NULL;
        struct adm_view v;
        if (!slot || !slot->is_stored ||
            adm_store_view(c->shared.store, slot->handle, sale_now(c), &v) != ADM_DONE)
                return;
        s->facts = v.facts;
        if (!v.known && v.facts.has_item) {
                s->facts.stock = (struct adm_stock){.held = 1, .total = 1};
                s->facts.paused = true;
        }
        if (v.told.version <= slot->flag_version)
                return;
        slot->has_flag = true;
        slot->flag = (struct gw_flag){
                .state = (enum adm_sale_state)v.told.state,
                .left = v.told.left,
                .opens_at_ms = v.told.opens_at_ms,
                .closes_at_ms = v.told.closes_at_ms,
        };
        slot->flag_version = v.told.version;
        slot->flag_as_of_ms = v.told.as_of_ms;
}

static bool has_sale(const struct gw_snapshot *s, const char *id) {
        for (size_t i = 0; i < s->n_sales; i++)
                if (strcmp(s->sales[i].facts.id, id) == 0)
                        return true;
        return false;
}

/* Sales that the store has heard of and the file has not. Their rules and pages
 * come with the next snapshot. */
static int add_remembered(struct gw_control *c, struct gw_snapshot *s) {
        uint32_t handles[GW_REMEMBERED_MAX];
        size_t n = adm_store_all(c->shared.store, handles, GW_REMEMBERED_MAX);
        int r = 0;
        for (size_t i = 0; i < n && r == 0; i++) {
                struct adm_view v;
                if (adm_store_view(c->shared.store, handles[i], sale_now(c), &v) != ADM_DONE ||
                    has_sale(s, v.id))
                        continue;
                struct gw_sale *sale = &s->sales[s->n_sales];
                sale->slot = gw_slots_of(c->slots, v.id);
                if (sale->slot == 0)
                        continue;
                s->n_sales++;
                c->slots->at[sale->slot].handle = handles[i];
                c->slots->at[sale->slot].is_stored = true;
                remember(c, sale);
                judge_state(c, sale);
                r = render(c, sale);
        }
        return r;
}

/* ---- a snapshot ---- */

static void forget_missing(struct gw_control *c, const struct gw_snapshot *next) {
        const struct gw_snapshot *before = c->snapshot;
        for (size_t i = 0; before && i < before->n_sales; i++) {
                const struct gw_sale *s = &before->sales[i];
                if (!s->is_stored || gw_snapshot_sale(next, span_of(s->facts.id)))
                        continue;
                adm_store_forget_sale(c->shared.store, s->handle);
                c->slots->at[s->slot].is_stored = false;
        }
}

/* What a snapshot is built from. */
struct source {
        const json_t *document;
        struct gw_items items;
        bool is_new;   /* the store has not heard of it */
        bool is_saved; /* from disk */
};

/* One sale of the document behind those already in `s`. */
static int add_sale(struct gw_control *c, struct gw_snapshot *s, const struct source *from,
                    const json_t *row) {
        struct gw_sale *sale = &s->sales[s->n_sales];
        int r = gw_parse_sale(row, &from->items, s->now_ms, sale);
        s->n_sales++; /* from here on the snapshot frees it */
        if (r != 0) {
                log_event_limited(1, LOG_WARN, "sale", "unusable in the snapshot",
                                  LOG_SPAN("sale", json_get_str(row, "sale")));
                free(sale->match.at);
                free(sale->bypass.at);
                memset(sale, 0, sizeof *sale);
                s->n_sales--;
                return r < 0 ? r : 0;
        }
        const struct gw_sale *before =
                c->snapshot ? gw_snapshot_sale(c->snapshot, span_of(sale->facts.id)) : NULL;
        sale->slot = before && before->slot ? before->slot : gw_slots_of(c->slots, sale->facts.id);
        r = from->is_new ? tell_store(c, from->document, sale) : 0;
        if (r < 0)
                return r;
        if (from->is_saved)
                remember(c, sale);
        judge_state(c, sale);
        return render(c, sale);
}

static int add_sales(struct gw_control *c, struct gw_snapshot *s, struct source *from) {
        size_t i;
        const json_t *row;
        int r = gw_items_init(&from->items, json_object_get(from->document, "items"));
        json_array_foreach(json_object_get(from->document, "sales"), i, row) {
                if (r < 0 || i >= GW_SALES_MAX)
                        break;
                r = add_sale(c, s, from, row);
        }
        gw_items_fini(&from->items);
        return r == 0 && from->is_saved ? add_remembered(c, s) : r;
}

static int fill(struct gw_control *c, struct gw_snapshot *s, struct source *from) {
        int r = add_sales(c, s, from);
        if (r == 0)
                r = gw_snapshot_index(s);
        if (r == 0)
                r = gw_rules_build(s);
        return r == 0 ? gw_flag_list(s) : r;
}

static void hand_over(struct gw_control *c, struct gw_snapshot *s) {
        struct gw_snapshot *before = c->snapshot;
        c->snapshot = s;
        for (size_t i = 0; i < c->n_workers; i++) {
                gw_snapshot_take(s);
                gw_worker_publish(c->workers[i], s);
        }
        gw_snapshot_free(&before);
}

static int build(struct gw_control *c, struct source *from, struct span digest) {
        const json_t *sales = json_object_get(from->document, "sales");
        size_t more = from->is_saved ? GW_REMEMBERED_MAX : 0;
        struct gw_snapshot *s = gw_snapshot_new(c->settings, json_array_size(sales) + more);
        if (!s)
                return -ENOMEM;
        s->known = from->document != NULL;
        s->now_ms = json_get_int(from->document, "now", 0);
        if (digest.len < sizeof s->digest && digest.len > 0)
                memcpy(s->digest, digest.p, digest.len);
        int r = fill(c, s, from);
        if (r < 0) {
                gw_snapshot_free(&s);
                return r;
        }
        if (from->is_new && !from->is_saved)
                forget_missing(c, s);
        hand_over(c, s);
        return 0;
}

int gw_publish_document(struct gw_control *c, json_t *document, bool is_live) {
        if (!json_is_array(json_object_get(document, "sales")) ||
            !json_is_array(json_object_get(document, "items")) ||
            json_get_int(document, "now", 0) <= 0)
                return 1;
        /* By the digest of the one on disk we would be told only what is new. */
        struct span digest = is_live ? json_get_str(document, "digest") : (struct span){NULL, 0};
        struct source from = {.document = document, .is_new = true, .is_saved = !is_live};
        int r = build(c, &from, digest);
        if (r == 0) {
                c->document_is_saved = !is_live;
                json_decref(c->document);
                c->document = json_incref(document);
        }
        return r;
}

int gw_publish_again(struct gw_control *c) {
        char digest[sizeof c->snapshot->digest];
        memcpy(digest, c->snapshot->digest, sizeof digest);
        struct source from = {.document = c->document, .is_saved = c->document_is_saved};
        return build(c, &from, span_of(digest));
}

bool gw_publish_is_due(struct gw_control *c) {
        int64_t now_ms = sale_now(c);
        for (size_t i = 0; i < c->snapshot->n_sales; i++) {
                const struct gw_sale *s = &c->snapshot->sales[i];
                struct adm_sale_shown *shown = s->slot ? &c->slots->at[s->slot].shown : NULL;
                if (adm_sale_state(&s->facts, shown, now_ms) != s->state)
                        return true;
        }
        return false;
}
