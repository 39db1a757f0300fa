#include "net/http_load.h"

/* A turn with fewer requests is not long because of them. */
#define REQUESTS_MIN 256
/* Requests between two looks at the clock. */
#define LOOK_EVERY 16
#define QUIET_MS 250

static void look(struct http_load *l) {
        int64_t age_ms = loop_clock_ms() - l->turn_ms;
        if (age_ms <= l->ceiling_ms)
                return;
        l->level = age_ms > 2 * l->ceiling_ms ? HTTP_LOAD_TOO_BUSY : HTTP_LOAD_BUSY;
        l->busy_at_ms = l->turn_ms;
}

enum http_load_level http_load_add(struct http_load *l, const struct loop *loop) {
        int64_t now_ms = loop_now_ms(loop);
        if (l->ceiling_ms == 0)
                return HTTP_LOAD_FINE;
        if (now_ms != l->turn_ms) {
                l->turn_ms = now_ms;
                l->requests = 0;
                l->level = HTTP_LOAD_FINE;
        }
        if (++l->requests >= REQUESTS_MIN && l->requests % LOOK_EVERY == 0)
                look(l);
        return l->level;
}

bool http_load_is_busy(const struct http_load *l, int64_t now_ms) {
        return l->busy_at_ms != 0 && now_ms - l->busy_at_ms < QUIET_MS;
}
