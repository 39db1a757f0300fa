/* A handle is a slot (10 bits) under a count of how often the slot was given
 * to a sale: a handle kept too long names nothing. */
#include "admission/store_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admission/claim.h"
#include "admission/map.h"
#include "admission/pass.h"
#include "admission/store_ops.h"
#include "admission/upkeep.h"

#define SLOT_BITS 10
#define SLOT_MASK ((1u << SLOT_BITS) - 1)

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
        if (adm_map_lock(&adm_map_sale_of(&m->map, slot)->lock) && l->h->in_use)
                adm_hall_rebuild(l);
        return l;
}

static void slot_leave(struct memory *m, uint32_t slot) {
        adm_map_unlock(&adm_map_sale_of(&m->map, slot)->lock);
}

/* The hall of a handle, locked, or NULL. */
static struct adm_hall *enter(struct memory *m, uint32_t handle) {
        uint32_t slot = handle & SLOT_MASK;
        if (slot >= m->map.max_sales || handle == 0 || handle_read(m->map.halls[slot].h) != handle)
                return NULL;
        struct adm_hall *l = slot_enter(m, slot);
        if (l->h->in_use && l->h->handle == handle)
                return l;
        slot_leave(m, slot);
        return NULL;
}

static void leave_hall(struct memory *m, uint32_t handle) {
        slot_leave(m, handle & SLOT_MASK);
}

static void born(struct memory *m, int64_t now_ms) {
        int64_t none = 0;
        (void)atomic_compare_exchange_strong(&m->map.h->born_ms, &none, now_ms);
}

/* ---- sales ---- */

static bool slot_used(const struct memory *m, uint32_t slot) {
        return handle_read(m->map.halls[slot].h) >> SLOT_BITS & 1;
}

/* Under the header's lock. By hash: the facts are under another lock. */
static uint32_t slot_of_id(const struct memory *m, const char *id) {
        uint64_t sale = adm_sale_hash(id, strlen(id));
        for (uint32_t slot = 0; slot < m->map.max_sales; slot++)
                if (slot_used(m, slot) && m->map.halls[slot].h->sale == sale)
                        return slot;
        return UINT32_MAX;
}

/* Handles of slots in use have an odd count. */
static uint32_t handle_next(uint32_t handle, uint32_t slot) {
        return ((handle >> SLOT_BITS) + 1) << SLOT_BITS | slot;
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
        struct adm_hall *l = enter(m, sale);
        if (l) {
                uint32_t slot = sale & SLOT_MASK;
                handle_write(l->h, handle_next(sale, slot));
                l->h->in_use = 0;
                adm_map_sale_drop(&m->map, slot);
                slot_leave(m, slot);
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
        struct memory *m = memory_of(s);
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return ADM_NO_SALE;
        int rc = adm_map_reserve(&m->map, sale & SLOT_MASK);
        if (rc == 0)
                rc = adm_claim_join(l, j, now_ms, out);
        leave_hall(m, sale);
        return rc;
}

static int op_poll(struct adm_store *s, uint32_t sale, const struct adm_ticket *t, uint32_t random,
                   int64_t now_ms, struct adm_place *out) {
        struct memory *m = memory_of(s);
        uint32_t slot = sale & SLOT_MASK;
        if (slot >= m->map.max_sales)
                return ADM_NO_SALE;
        const struct adm_hall *free_hall = &m->map.halls[slot];
        struct adm_asker a = {
                .now_ms = now_ms, .random = random, .away = adm_hall_is_away(free_hall, now_ms)};
        if (adm_claim_poll_free(free_hall, sale, t, &a, out))
                return 0;
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return ADM_NO_SALE;
        int rc = adm_map_reserve(&m->map, slot);
        if (rc == 0)
                rc = adm_claim_poll(l, t, random, now_ms, out);
        leave_hall(m, sale);
        return rc;
}

static int op_look(struct adm_store *s, uint32_t sale, uint32_t random, int64_t now_ms,
                   struct adm_place *out) {
        struct memory *m = memory_of(s);
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return ADM_NO_SALE;
        adm_claim_look(l, random, now_ms, out);
        leave_hall(m, sale);
        return 0;
}

static void op_leave(struct adm_store *s, uint32_t sale, const struct adm_tag *tag,
                     int64_t now_ms) {
        struct memory *m = memory_of(s);
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return;
        adm_claim_leave(l, tag, now_ms);
        leave_hall(m, sale);
}

/* ---- passes ---- */

static int op_pass_show(struct adm_store *s, uint32_t sale, const struct adm_shown *p, bool use,
                        int64_t now_ms, struct adm_pass *out) {
        struct memory *m = memory_of(s);
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return ADM_NO_SALE;
        int rc = adm_map_reserve(&m->map, sale & SLOT_MASK);
        if (rc == 0)
                rc = adm_pass_show(l, p, use, adm_hall_now(l, now_ms), out);
        leave_hall(m, sale);
        return rc;
}

static int op_hold_begin(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                         uint32_t qty, int64_t now_ms) {
        struct memory *m = memory_of(s);
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return ADM_NO_SALE;
        int rc = adm_map_reserve(&m->map, sale & SLOT_MASK);
        if (rc == 0)
                rc = adm_pass_hold_begin(l, p, qty, adm_hall_now(l, now_ms));
        leave_hall(m, sale);
        return rc;
}

static int op_hold_end(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                       const struct adm_hold_end *e, int64_t now_ms, struct adm_pass *out) {
        struct memory *m = memory_of(s);
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return ADM_NO_SALE;
        int rc = adm_map_reserve(&m->map, sale & SLOT_MASK);
        if (rc == 0)
                rc = adm_pass_hold_end(l, p, e, adm_hall_now(l, now_ms), out);
        leave_hall(m, sale);
        return rc;
}

static int op_hold_extended(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                            int64_t hold_end_ms, int64_t now_ms, struct adm_pass *out) {
        struct memory *m = memory_of(s);
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return ADM_NO_SALE;
        int rc = adm_map_reserve(&m->map, sale & SLOT_MASK);
        if (rc == 0)
                rc = adm_pass_hold_extended(l, p, hold_end_ms, adm_hall_now(l, now_ms), out);
        leave_hall(m, sale);
        return rc;
}

static void op_pass_done(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                         int64_t now_ms) {
        struct memory *m = memory_of(s);
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return;
        if (adm_map_reserve(&m->map, sale & SLOT_MASK) == 0)
                adm_pass_done(l, p, adm_hall_now(l, now_ms));
        leave_hall(m, sale);
}

static void op_revoke(struct adm_store *s, uint32_t sale, const struct adm_revoked *r,
                      int64_t now_ms) {
        struct memory *m = memory_of(s);
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return;
        if (adm_map_reserve(&m->map, sale & SLOT_MASK) == 0)
                adm_pass_revoke(l, r, adm_hall_now(l, now_ms));
        leave_hall(m, sale);
}

static void op_stock(struct adm_store *s, uint32_t sale, const struct adm_stock *k,
                     int64_t now_ms) {
        struct memory *m = memory_of(s);
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return;
        (void)adm_hall_now(l, now_ms);
        (void)adm_hall_stock(l, k);
        leave_hall(m, sale);
}

static int op_view(struct adm_store *s, uint32_t sale, int64_t now_ms, struct adm_view *out) {
        struct memory *m = memory_of(s);
        struct adm_hall *l = enter(m, sale);
        if (!l)
                return ADM_NO_SALE;
        adm_hall_view(l, adm_hall_now(l, now_ms), out);
        leave_hall(m, sale);
        return 0;
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
