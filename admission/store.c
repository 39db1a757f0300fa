#include "admission/store.h"

#include "admission/store_ops.h"

int adm_store_sale(struct adm_store *s, const struct adm_sale_update *u, int64_t now_ms,
                   uint32_t *sale) {
        return s->ops->sale(s, u, now_ms, sale);
}

int adm_store_find(struct adm_store *s, const char *id, uint32_t *sale) {
        return s->ops->find(s, id, sale);
}

void adm_store_forget_sale(struct adm_store *s, uint32_t sale) {
        s->ops->forget_sale(s, sale);
}

void adm_store_alive(struct adm_store *s, int64_t now_ms) {
        s->ops->alive(s, now_ms);
}

void adm_store_tick(struct adm_store *s, int64_t now_ms) {
        s->ops->tick(s, now_ms);
}

int adm_store_join(struct adm_store *s, uint32_t sale, const struct adm_join *j, int64_t now_ms,
                   struct adm_place *out) {
        return s->ops->join(s, sale, j, now_ms, out);
}

int adm_store_poll(struct adm_store *s, uint32_t sale, const struct adm_ticket *t, uint32_t random,
                   int64_t now_ms, struct adm_place *out) {
        return s->ops->poll(s, sale, t, random, now_ms, out);
}

int adm_store_look(struct adm_store *s, uint32_t sale, uint32_t random, int64_t now_ms,
                   struct adm_place *out) {
        return s->ops->look(s, sale, random, now_ms, out);
}

void adm_store_leave(struct adm_store *s, uint32_t sale, const struct adm_tag *tag,
                     int64_t now_ms) {
        s->ops->leave(s, sale, tag, now_ms);
}

int adm_store_pass_look(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                        int64_t now_ms, struct adm_pass *out) {
        return s->ops->pass_show(s, sale, p, false, now_ms, out);
}

int adm_store_pass_use(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                       int64_t now_ms, struct adm_pass *out) {
        return s->ops->pass_show(s, sale, p, true, now_ms, out);
}

int adm_store_hold_begin(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                         uint32_t qty, int64_t now_ms) {
        return s->ops->hold_begin(s, sale, p, qty, now_ms);
}

int adm_store_hold_end(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                       const struct adm_hold_end *e, int64_t now_ms, struct adm_pass *out) {
        return s->ops->hold_end(s, sale, p, e, now_ms, out);
}

int adm_store_hold_extended(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                            int64_t hold_end_ms, int64_t now_ms, struct adm_pass *out) {
        return s->ops->hold_extended(s, sale, p, hold_end_ms, now_ms, out);
}

void adm_store_pass_done(struct adm_store *s, uint32_t sale, const struct adm_shown *p,
                         int64_t now_ms) {
        s->ops->pass_done(s, sale, p, now_ms);
}

void adm_store_revoke(struct adm_store *s, uint32_t sale, const struct adm_revoked *r,
                      int64_t now_ms) {
        s->ops->revoke(s, sale, r, now_ms);
}

void adm_store_stock(struct adm_store *s, uint32_t sale, const struct adm_stock *k,
                     int64_t now_ms) {
        s->ops->stock(s, sale, k, now_ms);
}

int adm_store_view(struct adm_store *s, uint32_t sale, int64_t now_ms, struct adm_view *out) {
        return s->ops->view(s, sale, now_ms, out);
}

void adm_store_tell(struct adm_store *s, uint32_t sale, const struct adm_told *told) {
        s->ops->tell(s, sale, told);
}

size_t adm_store_all(struct adm_store *s, uint32_t *sales, size_t cap) {
        return s->ops->all(s, sales, cap);
}

void adm_store_close(struct adm_store **s) {
        if (!*s)
                return;
        (*s)->ops->close(*s);
        *s = NULL;
}
