#include "net/http_memory.h"

#include "net/http_conn.h"
#include "net/memory_watch.h"

#define STAYS_MS 1000                /* asked so lately: is not idle */
#define LEAVERS_MIN ((uint64_t)64)   /* in one round, at least */
#define IDLE_BYTES ((uint64_t)16384) /* what an idle connection is taken to cost */
#define DEAR_BYTES ((size_t)8192)    /* who holds less is not cut */
#define DEAREST 16                   /* cut in one round, at most */

bool http_memory_is_short(const struct http_hub *h) {
        return h->conf.memory && memory_told_stage(h->conf.memory) >= MEMORY_SHUT;
}

size_t http_memory_held(const struct http_conn *c) {
        size_t n = c->pending_len;
        for (const struct http_stream *st = c->session ? c->session->streams : NULL; st;
             st = st->next)
                n += st->arena.bytes + st->body.size + st->out.size;
        return n;
}

static void send_away(struct http_hub *h, uint64_t share_bytes) {
        int64_t before_ms = loop_now_ms(h->loop) - STAYS_MS;
        uint64_t most = share_bytes / IDLE_BYTES;
        if (most < LEAVERS_MIN)
                most = LEAVERS_MIN;
        for (struct http_conn *c = h->lists[HTTP_CONN_IDLE].first; c && most > 0; most--) {
                struct http_conn *next = c->next;
                if (c->since_ms > before_ms)
                        break;
                if (!c->is_failed) {
                        metrics_add(&h->counters.sent_away_memory, 1);
                        http_conn_end(c);
                }
                c = next;
        }
}

struct dear {
        struct http_conn *conn;
        size_t held;
};

/* Sorted, the dearest first. */
static void dearest_add(struct dear at[DEAREST], struct dear one) {
        for (size_t i = 0; i < DEAREST; i++) {
                if (one.held > at[i].held) {
                        struct dear moved = at[i];
                        at[i] = one;
                        one = moved;
                }
        }
}

static void cut_dearest(struct http_hub *h, uint64_t share_bytes) {
        struct dear at[DEAREST] = {{NULL, 0}};
        uint64_t freed = 0;
        for (struct http_conn *c = h->lists[HTTP_CONN_ACTIVE].first; c; c = c->next) {
                struct dear one = {c, http_memory_held(c)};
                if (one.held >= DEAR_BYTES)
                        dearest_add(at, one);
        }
        for (size_t i = 0; i < DEAREST && at[i].conn && freed < share_bytes; i++) {
                freed += at[i].held;
                metrics_add(&h->counters.closed_memory, 1);
                http_conn_cut(at[i].conn);
        }
}

void http_memory_act(struct http_hub *h) {
        const struct memory_told *told = h->conf.memory;
        if (!told || memory_told_stage(told) < MEMORY_LEAVE)
                return;
        uint32_t round = atomic_load_explicit(&told->round, memory_order_acquire);
        if (round == h->memory_round)
                return;
        h->memory_round = round;
        uint64_t share = atomic_load_explicit(&told->excess_bytes, memory_order_relaxed) /
                         (h->conf.memory_shares > 0 ? h->conf.memory_shares : 1);
        send_away(h, share);
        if (memory_told_stage(told) == MEMORY_CUT)
                cut_dearest(h, share);
        http_hub_trim(h);
}
