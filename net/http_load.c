#include "net/http_load.h"

/* A turn with fewer requests is not long because of them. */
#define REQUESTS_MIN 256
/* Requests between two looks at the clock. */
#define LOOK_EVERY 16
#define QUIET_MS 250
/* A loop that gets busy again within this has been so all the time. */
#define FORGET_MS 2000
/* Ceilings that a busy loop works for before refusing alone is not enough. */
#define LASTING 4
/* What is answered leaves so soon, whatever the turn still has to do. */
#define FLUSH_MS 5
/* Between two turns one of which follows upon the other. */
#define BETWEEN_MS 20

static int64_t clamp(int64_t n, int64_t least, int64_t most) {
        return n < least ? least : n > most ? most : n;
}

/* Who was ready while a long turn was under way has waited for all of it. */
static void turn_begin(struct http_load *l, int64_t now_ms) {
        int64_t before_ms = now_ms - l->turn_ms;
        bool follows = l->age_ms > 0 && before_ms <= l->age_ms + BETWEEN_MS;
        l->allowed_ms = l->ceiling_ms;
        if (follows)
                l->allowed_ms = clamp(2 * l->ceiling_ms - before_ms, 0, l->ceiling_ms);
        l->turn_ms = now_ms;
        l->age_ms = l->flushed_ms = 0;
        l->requests = l->sent_away = 0;
        l->level = HTTP_LOAD_FINE;
        l->wants_flush = false;
}

static void look(struct http_load *l) {
        l->age_ms = loop_clock_ms() - l->turn_ms;
        if (l->age_ms - l->flushed_ms >= FLUSH_MS) {
                l->flushed_ms = l->age_ms;
                l->wants_flush = true;
        }
        if (l->age_ms <= l->allowed_ms)
                return;
        int64_t worked_ms = loop_worked_ms();
        if (!http_load_was_busy(l, l->turn_ms, FORGET_MS)) {
                l->busy_since_ms = l->turn_ms;
                l->worked_before_ms = worked_ms;
        }
        bool is_lasting = worked_ms - l->worked_before_ms > LASTING * l->ceiling_ms;
        bool is_late = l->age_ms > l->ceiling_ms;
        l->level = is_lasting && is_late ? HTTP_LOAD_TOO_BUSY : HTTP_LOAD_BUSY;
        l->busy_at_ms = l->turn_ms + l->age_ms;
}

enum http_load_level http_load_add(struct http_load *l, const struct loop *loop) {
        int64_t now_ms = loop_now_ms(loop);
        if (l->ceiling_ms == 0)
                return HTTP_LOAD_FINE;
        if (now_ms != l->turn_ms)
                turn_begin(l, now_ms);
        if (++l->requests >= REQUESTS_MIN && l->requests % LOOK_EVERY == 0)
                look(l);
        return l->level;
}

bool http_load_was_busy(const struct http_load *l, int64_t now_ms, int64_t within_ms) {
        return l->busy_at_ms != 0 && now_ms - l->busy_at_ms < within_ms;
}

bool http_load_is_busy(const struct http_load *l, int64_t now_ms) {
        return http_load_was_busy(l, now_ms, QUIET_MS);
}

bool http_load_is_shut(const struct http_load *l, int64_t now_ms) {
        return http_load_is_busy(l, now_ms) && now_ms - l->busy_since_ms >= QUIET_MS;
}
