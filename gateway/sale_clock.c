#include "gateway/sale_clock.h"

void gw_sale_clock_init(struct gw_shared *s, int64_t wall_ms, int64_t mono_ms) {
        atomic_store_explicit(&s->offset_ms, wall_ms - mono_ms, memory_order_relaxed);
        atomic_store_explicit(&s->snapshot_at_ms, GW_NEVER_MS, memory_order_relaxed);
}

void gw_sale_clock_hear(struct gw_shared *s, int64_t origin_ms, int64_t mono_ms,
                        int64_t *moved_at_ms) {
        int64_t now = atomic_load_explicit(&s->offset_ms, memory_order_relaxed);
        int64_t told = origin_ms - mono_ms;
        int64_t gone_ms = mono_ms - *moved_at_ms;
        int64_t step = now - told > GW_CLOCK_STEP_MS ? gone_ms / 2 : gone_ms / 1000;
        if (told < now && step <= 0)
                return;
        if (told < now - step)
                told = now - step;
        atomic_store_explicit(&s->offset_ms, told, memory_order_relaxed);
        *moved_at_ms = mono_ms;
}
