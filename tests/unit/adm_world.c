#include "adm_world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t world_random(struct world *w) {
        uint64_t z = w->seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

void world_tell(struct world *w) {
        w->update.facts.stock.db_now_ms = w->now_ms;
        adm_store_alive(w->store, w->now_ms);
        int rc = adm_store_sale(w->store, &w->update, w->now_ms, &w->sale);
        assert(rc == 0);
}

void world_open(struct world *w, int64_t units) {
        if (w->seed == 0)
                w->seed = 1;
        (void)snprintf(w->dir, sizeof(w->dir), "/tmp/adm-test-XXXXXX");
        char *made = mkdtemp(w->dir);
        assert(made);
        if (w->conf.max_numbers == 0)
                w->conf.max_numbers = 4096;
        if (w->conf.max_accounts == 0)
                w->conf.max_accounts = 4096;
        w->conf.dir = w->dir;
        w->conf.max_sales = 4;
        w->conf.forward_timeout_ms = 1000;
        w->conf.skew_ms = 2000;
        w->now_ms = WORLD_T0;
        int rc = adm_store_open(&w->conf, w->now_ms, &w->store);
        assert(rc == 0);
        adm_store_alive(w->store, WORLD_T0 - 120000);
        struct adm_sale_facts *f = &w->update.facts;
        adm_sale_defaults(f);
        (void)snprintf(f->id, sizeof(f->id), "demo");
        f->has_item = true;
        f->round = 1;
        f->version = 1;
        f->opens_at_ms = WORLD_T0 - 60000;
        f->stock = (struct adm_stock){.timeline = 1, .n = 1, .available = units, .total = units};
        world_tell(w);
        adm_store_tick(w->store, w->now_ms);
}

void world_close(struct world *w) {
        char path[128];
        adm_store_close(&w->store);
        (void)snprintf(path, sizeof(path), "%s/admission.map", w->dir);
        (void)unlink(path);
        (void)snprintf(path, sizeof(path), "%s/admission.map.old", w->dir);
        (void)unlink(path);
        (void)snprintf(path, sizeof(path), "%s/admission.map.broken", w->dir);
        (void)unlink(path);
        (void)rmdir(w->dir);
}

int world_reopen(struct world *w) {
        adm_store_close(&w->store);
        int rc = adm_store_open(&w->conf, w->now_ms, &w->store);
        if (rc != 0)
                return rc;
        const char *fault;
        enum adm_found found = adm_store_found(w->store, &fault);
        assert(found != ADM_FOUND_BROKEN && !fault);
        world_tell(w);
        return 0;
}

void world_stock(struct world *w, int64_t available, int64_t held, int64_t sold) {
        struct adm_stock *k = &w->update.facts.stock;
        k->n++;
        k->available = available;
        k->held = held;
        k->sold = sold;
        k->total = available + held + sold;
        world_tell(w);
}

void world_pass(struct world *w, int64_t ms) {
        int64_t end = w->now_ms + ms;
        while (w->now_ms < end) {
                w->now_ms += end - w->now_ms < 100 ? end - w->now_ms : 100;
                adm_store_alive(w->store, w->now_ms);
                adm_store_tick(w->store, w->now_ms);
        }
}

struct shopper world_shopper(uint32_t n, bool guest) {
        char name[32];
        int len = snprintf(name, sizeof(name), "b-%u", n);
        return (struct shopper){.tag = adm_account_tag(name, (size_t)len, guest), .guest = guest};
}

static void keep(struct shopper *s) {
        if (s->place.has_ticket) {
                s->has_ticket = true;
                s->ticket = s->place.ticket;
        }
        s->has_pass = s->place.has_pass;
        if (s->has_pass)
                s->pass = s->place.pass;
}

int world_join(struct world *w, struct shopper *s) {
        struct adm_join j = {.tag = s->tag,
                             .guest = s->guest,
                             .ticket = s->has_ticket ? &s->ticket : NULL,
                             .random = (uint32_t)world_random(w)};
        uint64_t r[2] = {world_random(w), world_random(w)};
        memcpy(j.jti, r, sizeof(j.jti));
        int rc = adm_store_join(w->store, w->sale, &j, w->now_ms, &s->place);
        if (rc == 0)
                keep(s);
        return rc;
}

int world_poll(struct world *w, struct shopper *s) {
        assert(s->has_ticket);
        int rc = adm_store_poll(w->store, w->sale, &s->ticket, (uint32_t)world_random(w), w->now_ms,
                                &s->place);
        if (rc == 0)
                keep(s);
        return rc;
}

struct adm_shown world_shown(const struct shopper *s) {
        struct adm_shown p = {.tag = s->tag,
                              .round = s->pass.round,
                              .iat_ms = s->pass.iat_ms,
                              .exp_ms = s->pass.exp_ms,
                              .holder = s->pass.life == ADM_PASS_HOLDER};
        memcpy(p.jti, s->pass.jti, sizeof(p.jti));
        return p;
}

int world_use(struct world *w, struct shopper *s) {
        struct adm_shown p = world_shown(s);
        return adm_store_pass_use(w->store, w->sale, &p, w->now_ms, &s->pass);
}

int world_hold(struct world *w, struct shopper *s, uint32_t qty, int64_t end_ms) {
        struct adm_shown p = world_shown(s);
        int rc = adm_store_hold_begin(w->store, w->sale, &p, qty, w->now_ms);
        if (rc != 0)
                return rc;
        struct adm_stock *k = &w->update.facts.stock;
        k->n++;
        k->available -= qty;
        k->held += qty;
        struct adm_hold_end e = {.qty = qty,
                                 .held = true,
                                 .hold_end_ms = end_ms,
                                 .has_stock = true,
                                 .timeline = k->timeline,
                                 .n = k->n,
                                 .available = k->available};
        return adm_store_hold_end(w->store, w->sale, &p, &e, w->now_ms, &s->pass);
}

static struct shopper joined(struct world *w, uint32_t n, enum adm_place_state want) {
        struct shopper s = world_shopper(n, false);
        int rc = world_join(w, &s);
        assert(rc == 0);
        assert(s.place.state == want);
        return s;
}

struct shopper world_admitted(struct world *w, uint32_t n) {
        return joined(w, n, ADM_ADMITTED);
}

struct shopper world_waiting(struct world *w, uint32_t n) {
        return joined(w, n, ADM_WAITING);
}

int world_look(struct world *w, struct shopper *s) {
        struct adm_shown p = world_shown(s);
        return adm_store_pass_look(w->store, w->sale, &p, w->now_ms, &s->pass);
}

uint64_t world_outstanding(struct world *w) {
        return world_view(w).passes_outstanding;
}

struct adm_view world_view(struct world *w) {
        struct adm_view v;
        int rc = adm_store_view(w->store, w->sale, w->now_ms, &v);
        assert(rc == 0);
        return v;
}
