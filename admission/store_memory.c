#include "admission/store_memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admission/claim.h"
#include "admission/map.h"
#include "admission/pass.h"
#include "admission/store_ops.h"
#include "admission/upkeep.h"

_Static_assert(sizeof(struct adm_map_header) <= 4096, "the header is one page");

struct memory {
        struct adm_store store;
        struct adm_map map;
};

static struct memory *memory_of(struct adm_store *s) {
        return (struct memory *)(void *)s;
}

static uint32_t handle_read(const struct adm_hall_head *h) {
        return __atomic_load_n(&h->handle, __ATOMIC_RELAXED);
}

static void handle_write(struct adm_hall_head *h, uint32_t handle) {
        __atomic_store_n(&h->handle, handle, __ATOMIC_RELAXED);
}

/* Locks a slot that has ever been used; sets right what a dead holder left. */
static struct adm_hall *slot_enter(struct memory *m, uint32_t slot) {
        struct adm_hall *l = &m->map.halls[slot];
        if (adm_map_lock(&adm_map_sale_of(&m->map, slot)->lock) && l->h->in_use) {
                bool whole = adm_hall_rebuild(l);
                assert(whole);
        }
        return l;
}

static void slot_leave(struct memory *m, uint32_t slot) {
        adm_map_unlock(&adm_map_sale_of(&m->map, slot)->lock);
}

/* A sale's hall while its lock is held: from sale_enter until the variable
 * goes out of scope. */
struct inside {
        struct memory *m;
        uint32_t slot;
        struct adm_hall *l; /* NULL: nothing is locked */
        int rc;             /* not 0: nothing is to be done */
};

static void sale_leave(const struct inside *in) {
        if (in->l)
                slot_leave(in->m, in->slot);
}

#define INSIDE __attribute__((cleanup(sale_leave))) const struct inside

/* Locks the hall that the handle names. */
static struct inside sale_enter(struct adm_store *s, uint32_t handle) {
        struct memory *m = memory_of(s);
        struct inside in = {.m = m, .slot = adm_map_slot_of(handle), .rc = ADM_NO_SALE};
        if (in.slot >= m->map.max_sales || handle == 0 ||
            handle_read(m->map.halls[in.slot].h) != handle)
                return in;
        struct adm_hall *l = slot_enter(m, in.slot);
        if (!l->h->in_use || l->h->handle != handle) {
                slot_leave(m, in.slot);
                return in;
        }
        in.l = l;
        in.rc = 0;
        return in;
}

/* The same with room for one record more and two turns. */
static struct inside sale_enter_roomy(struct adm_store *s, uint32_t handle) {
        struct inside in = sale_enter(s, handle);
        if (in.rc == 0)
                in.rc = adm_map_reserve(&in.m->map, in.slot);
        return in;
}

static void born(struct memory *m, int64_t now_ms) {
        int64_t none = 0;
        (void)atomic_compare_exchange_strong(&m->map.h->born_ms, &none, now_ms);
}

/* ---- sales ---- */

static bool slot_used(const struct memory *m, uint32_t slot) {
        return adm_map_is_used(handle_read(m->map.halls[slot].h));
}

/* Under the header's lock. By hash: the facts are under another lock. */
static uint32_t slot_of_id(const struct memory *m, const char *id) {
        uint64_t sale = adm_sale_hash(id, strlen(id));
        for (uint32_t slot = 0; slot < m->map.max_sales; slot++)
                if (slot_used(m, slot) && m->map.halls[slot].h->sale == sale)
                        return slot;
        return UINT32_MAX;
}

static uint32_t handle_next(uint32_t handle, uint32_t slot) {
        return ((handle >> ADM_MAP_SLOT_BITS) + 1) << ADM_MAP_SLOT_BITS | slot;
}

/* Under the header's lock: an unused slot becomes this sale's. */
static int slot_take(struct memory *m, const struct adm_sale_facts *f, uint32_t *out) {
        uint32_t slot = 0;
        while (slot < m->map.max_sales && slot_used(m, slot))
                slot++;
        if (slot == m->map.max_sales)
                return ADM_SALES_FULL;
        int rc = adm_map_sale_make(&m->map, slot);
        if (rc != 0)
                return rc;
        struct adm_hall *l = slot_enter(m, slot);
        struct adm_hall_head *h = l->h;
        /* A creation cut short may have left a slot dirty. What is dropped loses
         * its disk, and a full disk must show here, not as a SIGBUS later. */
        adm_map_sale_drop(&m->map, slot);
        rc = adm_map_sale_make(&m->map, slot);
        if (rc != 0) {
                slot_leave(m, slot);
                return rc;
        }
        uint32_t handle = handle_next(h->handle, slot);
        struct adm_board *board = &h->board;
        uint32_t seq = atomic_load_explicit(&board->seq, memory_order_relaxed);
        memset(h, 0, offsetof(struct adm_hall_head, board));
        atomic_store_explicit(&board->seq, seq, memory_order_relaxed);
        h->sale = adm_sale_hash(f->id, strlen(f->id));
        h->generation = m->map.h->generation;
        h->old_generation = m->map.h->old_generation;
        h->epoch = m->map.h->epoch;
        h->book.salt = m->map.h->salt;
        h->facts = *f;
        h->facts.version = 0;
        h->in_use = 1;
        handle_write(h, handle);
        slot_leave(m, slot);
        *out = slot;
        return 0;
}

static int op_sale(struct adm_store *s, const struct adm_sale_update *u, int64_t now_ms,
                   uint32_t *sale) {
        struct memory *m = memory_of(s);
        int rc = 0;
        if (adm_sale_check(&u->facts) != ADM_SALE_GOOD)
                return ADM_BAD_SALE;
        born(m, now_ms);
        (void)adm_map_lock(&m->map.h->lock);
        uint32_t slot = slot_of_id(m, u->facts.id);
        if (slot == UINT32_MAX)
                rc = slot_take(m, &u->facts, &slot);
        adm_map_unlock(&m->map.h->lock);
        if (rc != 0)
                return rc;
        struct adm_hall *l = slot_enter(m, slot);
        *sale = l->h->handle;
        rc = l->h->in_use ? adm_map_reserve(&m->map, slot) : ADM_NO_SALE;
        if (rc == 0)
                rc = adm_hall_update(l, u, adm_hall_now(l, now_ms));
        slot_leave(m, slot);
        return rc;
}

static int op_find(struct adm_store *s, const char *id, uint32_t *sale) {
        struct memory *m = memory_of(s);
        (void)adm_map_lock(&m->map.h->lock);
        uint32_t slot = slot_of_id(m, id);
        if (slot != UINT32_MAX)
                *sale = handle_read(m->map.halls[slot].h);
        adm_map_unlock(&m->map.h->lock);
        return slot == UINT32_MAX ? ADM_NO_SALE : 0;
}

static void op_forget_sale(struct adm_store *s, uint32_t sale) {
        struct memory *m = memory_of(s);
        (void)adm_map_lock(&m->map.h->lock);
        {
                INSIDE in = sale_enter(s, sale);
                if (in.rc == 0) {
                        handle_write(in.l->h, handle_next(sale, in.slot));
                        in.l->h->in_use = 0;
                        adm_map_sale_drop(&m->map, in.slot);
                }
        }
        adm_map_unlock(&m->map.h->lock);
}

static void op_alive(struct adm_store *s, int64_t now_ms) {
        struct memory *m = memory_of(s);
        int64_t was = atomic_load_explicit(&m->map.h->alive_ms, memory_order_relaxed);
        born(m, now_ms);
        while (was < now_ms && !atomic_compare_exchange_weak(&m->map.h->alive_ms, &was, now_ms))
                ;
}

static void op_tick(struct adm_store *s, int64_t now_ms) {
        struct memory *m = memory_of(s);
        for (uint32_t slot = 0; slot < m->map.max_sales; slot++) {
                if (!slot_used(m, slot))
                        continue;
                struct adm_hall *l = slot_enter(m, slot);
                if (l->h->in_use)
                        adm_upkeep_tick(l, adm_hall_now(l, now_ms));
                slot_leave(m, slot);
        }
}

/* ---- shoppers ---- */

static int op_join(struct adm_store *s, uint32_t sale, const struct adm_join *j, int64_t now_ms,
                   struct adm_place *out) {
        INSIDE in = sale_enter_roomy(s, sale);
        return in.rc == 0 ? adm_claim_join(in.l, j, now_ms, out) : in.rc;
}

static int op_poll(struct adm_store *s, uint32_t sale, const struct adm_ticket *t, uint32_t random,
                   int64_t now_ms, struct adm_place *out) {
        struct memory *m = memory_of(s);
        uint32_t slot = adm_map_slot_of(sale);
        if (slot >= m->map.max_sales)
                return ADM_NO_SALE;
        const struct adm_hall *free_hall = &m->map.halls[slot];
        struct adm_asker a = {
                .now_ms = now_ms, .random = random, .away = adm_hall_is_away(free_hall, now_ms)};
        if (adm_claim_poll_free(free_hall, sale, t, &a, out))
                return 0;
        INSIDE in = sale_enter_roomy(s, sale);
        return in.rc == 0 ? adm_claim_poll(in.l, t, random, now_ms, out) : in.rc;
}

static int op_look(struct adm_store *s, uint32_t sale, uint32_t random, int64_t now_ms,
                   struct adm_place *out) {
        INSIDE in = sale_enter(s, sale);
        if (in.rc == 0)
                adm_claim_look(in.l, random, now_ms, out);
        return in.rc;
}

static void op_leave(struct adm_store *s, uint32_t sale, const struct adm_tag *tag,
                     int64_t now_ms) {
        INSIDE in = sale_enter(s, sale);
        if (in.rc == 0)
                adm_claim_leave(in.l, tag, now_ms);
}

/* ---- passes ---- */

static int op_pass_show(struct adm_store *s, uint32_t sale, const struct adm_shown *p, bool use,
                        int64_t now_ms, struct adm_pass *out) {
        INSIDE in = sale_enter_roomy(s, sale);
        return in.rc == 0 ? adm_pass_show(in.l, p, use, adm_hall_now(in.l, now_ms), out) : in.rc;
}

static int op_hold_begin(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                         uint32_t qty, int64_t now_ms) {
        INSIDE in = sale_enter_roomy(s, sale);
        return in.rc == 0 ? adm_pass_hold_begin(in.l, p, qty, adm_hall_now(in.l, now_ms)) : in.rc;
}

static int op_hold_end(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                       const struct adm_hold_end *e, int64_t now_ms, struct adm_pass *out) {
        INSIDE in = sale_enter_roomy(s, sale);
        return in.rc == 0 ? adm_pass_hold_end(in.l, p, e, adm_hall_now(in.l, now_ms), out) : in.rc;
}

static int op_hold_extended(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                            int64_t hold_end_ms, int64_t now_ms, struct adm_pass *out) {
        INSIDE in = sale_enter_roomy(s, sale);
        if (in.rc != 0)
                return in.rc;
        return adm_pass_hold_extended(in.l, p, hold_end_ms, adm_hall_now(in.l, now_ms), out);
}

static void op_pass_done(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                         int64_t now_ms) {
        INSIDE in = sale_enter_roomy(s, sale);
        if (in.rc == 0)
                adm_pass_done(in.l, p, adm_hall_now(in.l, now_ms));
}

static void op_revoke(struct adm_store *s, uint32_t sale, const struct adm_revoked *r,
                      int64_t now_ms) {
        INSIDE in = sale_enter_roomy(s, sale);
        if (in.rc == 0)
                adm_pass_revoke(in.l, r, adm_hall_now(in.l, now_ms));
}

static void op_stock(struct adm_store *s, uint32_t sale, const struct adm_stock *k,
                     int64_t now_ms) {
        INSIDE in = sale_enter(s, sale);
        if (in.rc != 0)
                return;
        (void)adm_hall_now(in.l, now_ms);
        (void)adm_hall_stock(in.l, k, in.l->h->facts.stock.available + adm_hall_ahead(in.l));
}

static int op_view(struct adm_store *s, uint32_t sale, int64_t now_ms, struct adm_view *out) {
        INSIDE in = sale_enter(s, sale);
        if (in.rc == 0)
                adm_hall_view(in.l, adm_hall_now(in.l, now_ms), out);
        return in.rc;
}

static void op_tell(struct adm_store *s, uint32_t sale, const struct adm_told *told) {
        INSIDE in = sale_enter(s, sale);
        if (in.rc == 0)
                adm_hall_tell(in.l, told);
}

static size_t op_all(struct adm_store *s, uint32_t *sales, size_t cap) {
        struct memory *m = memory_of(s);
        size_t n = 0;
        for (uint32_t slot = 0; slot < m->map.max_sales && n < cap; slot++)
                if (slot_used(m, slot))
                        sales[n++] = handle_read(m->map.halls[slot].h);
        return n;
}

static void op_close(struct adm_store *s) {
        struct memory *m = memory_of(s);
        adm_map_close(&m->map);
        free(m);
}

static const struct adm_store_ops ops = {
        .sale = op_sale,
        .find = op_find,
        .forget_sale = op_forget_sale,
        .alive = op_alive,
        .tick = op_tick,
        .join = op_join,
        .poll = op_poll,
        .look = op_look,
        .leave = op_leave,
        .pass_show = op_pass_show,
        .hold_begin = op_hold_begin,
        .hold_end = op_hold_end,
        .hold_extended = op_hold_extended,
        .pass_done = op_pass_done,
        .revoke = op_revoke,
        .stock = op_stock,
        .view = op_view,
        .tell = op_tell,
        .all = op_all,
        .close = op_close,
};

int adm_store_open(const struct adm_store_conf *c, int64_t now_ms, struct adm_store **out) {
        struct memory *m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        int rc = adm_map_open(c, now_ms, &m->map);
        if (rc != 0) {
                free(m);
                return rc;
        }
        m->store.ops = &ops;
        *out = &m->store;
        return 0;
}

enum adm_found adm_store_found(const struct adm_store *s, const char **fault) {
        const struct memory *m = (const struct memory *)(const void *)s;
        *fault = m->map.fault;
        return m->map.found;
}
