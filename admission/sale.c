#include "admission/sale.h"

#include <string.h>

/* A shorter all_held is not shown. */
#define ALL_HELD_LASTS_MS 2000

#define DAY_S 86400

void adm_sale_defaults(struct adm_sale_facts *f) {
        *f = (struct adm_sale_facts){
                .queue = ADM_QUEUE_FIFO,
                .identity = ADM_IDENTITY_ACCOUNT,
                .overbook_milli = 1000,
                .per_account = 1,
                .hold_seconds = 600,
                .extend_seconds = 300,
                .first_use_seconds = 20,
                .pass_seconds = 300,
                .skip_seconds = 15,
                .forget_seconds = 600,
        };
}

static bool id_is_good(const char *id) {
        size_t n = strnlen(id, ADM_ID_LEN);
        if (n == 0 || n == ADM_ID_LEN || id[0] == '-')
                return false;
        for (size_t i = 0; i < n; i++) {
                char c = id[i];
                if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
                        return false;
        }
        return true;
}

static bool window_is_good(const struct adm_sale_facts *f) {
        return f->opens_at_ms >= 0 && f->prequeue_at_ms >= 0 && f->closes_at_ms >= 0;
}

static bool within(uint32_t v, uint32_t low, uint32_t high) {
        return v >= low && v <= high;
}

static bool numbers_are_good(const struct adm_sale_facts *f) {
        return within(f->overbook_milli, 1000, 2000) && within(f->per_account, 1, 1000000) &&
               within(f->hold_seconds, 1, DAY_S) && within(f->extend_seconds, 0, DAY_S) &&
               within(f->first_use_seconds, 1, DAY_S) && within(f->pass_seconds, 1, DAY_S) &&
               within(f->skip_seconds, 1, DAY_S) && within(f->forget_seconds, 1, DAY_S);
}

int adm_sale_check(const struct adm_sale_facts *f) {
        if (!id_is_good(f->id))
                return ADM_SALE_BAD_ID;
        if (!window_is_good(f))
                return ADM_SALE_BAD_WINDOW;
        if (f->queue != ADM_QUEUE_FIFO && f->queue != ADM_QUEUE_PASSTHROUGH &&
            f->queue != ADM_QUEUE_REJECT)
                return ADM_SALE_BAD_QUEUE;
        return numbers_are_good(f) ? ADM_SALE_GOOD : ADM_SALE_BAD_NUMBER;
}

const char *adm_sale_fault_name(int fault) {
        switch ((enum adm_sale_fault)fault) {
        case ADM_SALE_GOOD:
                return "good";
        case ADM_SALE_BAD_ID:
                return "bad_id";
        case ADM_SALE_BAD_WINDOW:
                return "bad_window";
        case ADM_SALE_BAD_QUEUE:
                return "queue_not_supported";
        case ADM_SALE_BAD_NUMBER:
                return "bad_number";
        }
        return "unknown";
}

/* Is all_held to be told? Once it has lasted 2 s, so that it does not flicker; its end
 * at once, for then somebody can buy. */
static bool all_held_is_shown(struct adm_sale_shown *s, bool raw, int64_t now_ms) {
        if (!s)
                return raw;
        if (raw != (s->raw_all_held != 0)) {
                s->raw_all_held = raw;
                s->raw_since_ms = now_ms;
        }
        if (!raw || now_ms - s->raw_since_ms >= ALL_HELD_LASTS_MS)
                s->shown_all_held = s->raw_all_held;
        return s->shown_all_held != 0;
}

enum adm_sale_state adm_sale_state(const struct adm_sale_facts *f, struct adm_sale_shown *shown,
                                   int64_t now_ms) {
        bool none_free = f->has_item && f->stock.available <= 0;
        bool opened = now_ms >= f->opens_at_ms;
        bool all_held = all_held_is_shown(shown, opened && none_free && f->stock.held > 0, now_ms);
        if (f->closed || f->queue == ADM_QUEUE_REJECT ||
            (f->closes_at_ms != 0 && now_ms >= f->closes_at_ms))
                return ADM_SALE_CLOSED;
        if (!opened) {
                bool early = f->prequeue_at_ms != 0 && now_ms >= f->prequeue_at_ms;
                return early ? ADM_SALE_PREQUEUE : ADM_SALE_SCHEDULED;
        }
        if (none_free && f->stock.held <= 0)
                return ADM_SALE_SOLD_OUT;
        if (f->paused || f->hard_pause)
                return ADM_SALE_PAUSED;
        return all_held ? ADM_SALE_ALL_HELD : ADM_SALE_OPEN;
}

const char *adm_sale_state_name(enum adm_sale_state s) {
        switch (s) {
        case ADM_SALE_SCHEDULED:
                return "scheduled";
        case ADM_SALE_PREQUEUE:
                return "prequeue";
        case ADM_SALE_OPEN:
                return "open";
        case ADM_SALE_PAUSED:
                return "paused";
        case ADM_SALE_ALL_HELD:
                return "all_held";
        case ADM_SALE_SOLD_OUT:
                return "sold_out";
        case ADM_SALE_CLOSED:
                return "closed";
        }
        return "unknown";
}

int adm_stock_compare(const struct adm_stock *a, const struct adm_stock *b) {
        if (a->timeline != b->timeline)
                return a->timeline < b->timeline ? -1 : 1;
        if (a->n != b->n)
                return a->n < b->n ? -1 : 1;
        if (a->db_now_ms != b->db_now_ms)
                return a->db_now_ms < b->db_now_ms ? -1 : 1;
        return 0;
}
