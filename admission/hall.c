#include "admission/hall.h"

#include <string.h>

#include "admission/pass.h"
#include "admission/upkeep.h"

/* After a map was lost: nodes have this long to register live passes. */
#define EPOCH_WAIT_MS 4000

#define SKIP_MAX_S 3600

/* Nobody was here for so long that marks may wrap around. */
#define STANDSTILL_MS 3600000

int64_t adm_hall_now(struct adm_hall *l, int64_t now_ms) {
        if (now_ms > l->h->now_ms) {
                if (now_ms - l->h->now_ms > STANDSTILL_MS)
                        adm_line_silence(&l->line);
                l->h->now_ms = now_ms;
        }
        return l->h->now_ms;
}

bool adm_hall_is_away(const struct adm_hall *l, int64_t now_ms) {
        int64_t alive = atomic_load_explicit(l->alive_ms, memory_order_relaxed);
        return alive == 0 || now_ms - alive > ADM_AWAY_MS;
}

enum adm_sale_state adm_hall_state(struct adm_hall *l, int64_t now_ms) {
        return adm_sale_state(&l->h->facts, &l->h->shown, now_ms);
}

uint32_t adm_hall_skip_seconds(const struct adm_hall *l) {
        uint32_t skip = l->h->facts.skip_seconds;
        return skip < SKIP_MAX_S ? skip : SKIP_MAX_S;
}

uint32_t adm_hall_forget_seconds(const struct adm_hall *l) {
        uint32_t forget = l->h->facts.forget_seconds, skip = l->h->facts.skip_seconds;
        return forget > skip ? forget : skip;
}

struct adm_awake adm_hall_awake(const struct adm_hall *l, int64_t now_ms) {
        return adm_line_awake(now_ms, adm_hall_skip_seconds(l));
}

/* Passes of a lost map may still be out there: only of a sale that was open
 * before this one began. */
static bool epoch_is_young(const struct adm_hall *l, int64_t now_ms) {
        int64_t born = atomic_load_explicit(l->born_ms, memory_order_relaxed);
        return l->h->facts.opens_at_ms < born && now_ms - born < EPOCH_WAIT_MS;
}

struct adm_gate_in adm_hall_gate(const struct adm_hall *l, int64_t now_ms) {
        const struct adm_hall_head *h = l->h;
        enum adm_sale_state s = adm_sale_state(&h->facts, NULL, now_ms);
        bool shut = (s != ADM_SALE_OPEN && s != ADM_SALE_ALL_HELD) || !h->known ||
                    adm_hall_is_away(l, now_ms) || epoch_is_young(l, now_ms);
        return (struct adm_gate_in){
                .facts = &h->facts,
                .shut = shut,
                .outstanding = h->turns.outstanding,
                .ahead = adm_hall_ahead(l),
                .active = h->turns.slots,
                .allowance_keys = adm_pace_keys(&h->pace),
        };
}

static int64_t room_keys(const struct adm_hall *l, int64_t now_ms) {
        struct adm_gate_in in = adm_hall_gate(l, now_ms);
        return adm_gate_room_keys(&in);
}

bool adm_hall_is_open(struct adm_hall *l, int64_t now_ms) {
        return room_keys(l, now_ms) > 0 &&
               adm_pace_may_issue(&l->h->pace, l->h->facts.rate_per_minute, now_ms);
}

struct adm_standing adm_hall_standing(struct adm_hall *l, uint32_t at, int64_t now_ms) {
        struct adm_awake a = adm_hall_awake(l, now_ms);
        int64_t room = room_keys(l, now_ms);
        int64_t rank = adm_line_rank(&l->line, at, a);
        uint32_t fresh = adm_line_fresh(&l->line, now_ms);
        int64_t invited = room;
        if (fresh < at && room > 0) {
                int64_t below = adm_line_rank(&l->line, fresh, a);
                invited = below < room ? below : room;
        }
        return (struct adm_standing){
                .may_enter = fresh >= at && rank < room &&
                             adm_pace_may_issue(&l->h->pace, l->h->facts.rate_per_minute, now_ms),
                .ahead = rank > invited ? (uint32_t)(rank - invited) : 0,
        };
}

int64_t adm_hall_ahead(const struct adm_hall *l) {
        const struct adm_hall_head *h = l->h;
        int64_t most = h->turns.in_flight - h->turns.counted;
        return h->turns.counted + (h->guessed_ahead < most ? h->guessed_ahead : most);
}

bool adm_hall_stock(struct adm_hall *l, const struct adm_stock *k, int64_t expected) {
        struct adm_hall_head *h = l->h;
        if (h->known && adm_stock_compare(k, &h->facts.stock) <= 0)
                return false;
        bool other_life = !h->known || k->timeline != h->facts.stock.timeline;
        int64_t guessed = other_life ? 0 : expected - k->available - h->turns.counted;
        /* Were we killed between the lines, nobody enters until the next
         * snapshot says it whole. */
        h->known = 0;
        atomic_signal_fence(memory_order_seq_cst);
        h->facts.stock = *k;
        h->guessed_ahead = guessed > 0 ? guessed : 0;
        atomic_signal_fence(memory_order_seq_cst);
        h->known = 1;
        return true;
}

/* What changes beside the fields when pause and hard pause come and go. */
static void pause_edges(struct adm_hall *l, const struct adm_sale_facts *next, int64_t now_ms) {
        struct adm_hall_head *h = l->h;
        bool was = h->facts.paused || h->facts.hard_pause;
        bool is = next->paused || next->hard_pause;
        if (is && !was)
                adm_upkeep_void_invitations(l, 0);
        if (was && !is)
                adm_pace_reset(&h->pace, now_ms);
        if (next->hard_pause && h->stopped_since_ms == 0) {
                h->stop_stamp++;
                h->stopped_since_ms = now_ms;
        }
        if (!next->hard_pause && h->stopped_since_ms != 0) {
                adm_upkeep_lengthen(l, now_ms);
                h->stopped_since_ms = 0;
        }
}

static int take_facts(struct adm_hall *l, const struct adm_sale_facts *f, int64_t now_ms) {
        struct adm_hall_head *h = l->h;
        /* After a failover the database may have forgotten a change; then what
         * it says now is the truth. */
        bool other_life = f->stock.timeline > h->facts.stock.timeline;
        if (!other_life && (f->round < h->facts.round || f->version < h->facts.version))
                return ADM_STALE;
        if (f->round != h->facts.round)
                adm_hall_wipe(l, now_ms);
        pause_edges(l, f, now_ms);
        struct adm_stock stock = h->facts.stock;
        bool known = h->known;
        h->known = 0;
        atomic_signal_fence(memory_order_seq_cst);
        h->facts = *f;
        h->facts.stock = stock;
        atomic_signal_fence(memory_order_seq_cst);
        h->known = known;
        return 0;
}

int adm_hall_update(struct adm_hall *l, const struct adm_sale_update *u, int64_t now_ms) {
        struct adm_hall_head *h = l->h;
        int rc = take_facts(l, &u->facts, now_ms);
        for (size_t i = 0; i < u->n_revoked; i++)
                adm_pass_revoke(l, &u->revoked[i], now_ms);
        /* A conversion takes its slot out only together with the stock that
         * has its unit taken out: first the numbers, then the passes. */
        bool newer = adm_hall_stock(l, &u->facts.stock, 0);
        if (newer || adm_stock_compare(&u->facts.stock, &h->facts.stock) == 0) {
                h->snap_available = u->facts.stock.available;
                h->guessed_ahead = 0; /* the conversions below are all there are */
        }
        for (size_t i = 0; i < u->n_converted; i++)
                adm_pass_converted(l, &u->converted[i], now_ms);
        adm_notice_write(l, now_ms);
        return rc;
}

static void wipe_arrays(struct adm_hall *l) {
        struct adm_hall_head *h = l->h;
        uint32_t blocks = l->line.capacity / ADM_LINE_BLOCK;
        for (uint32_t i = 0; i < h->line.old_high; i++)
                atomic_store_explicit(&l->line.marks[i], ADM_MARK_NEVER, memory_order_relaxed);
        for (uint32_t i = 0; i <= h->line.last && i < l->line.capacity; i++)
                atomic_store_explicit(&l->line.marks[l->line.capacity + i], ADM_MARK_NEVER,
                                      memory_order_relaxed);
        memset(l->line.live, 0, (size_t)blocks * 2 * sizeof(l->line.live[0]));
        uint32_t recs = h->book.count < l->book.capacity ? h->book.count + 1 : h->book.count;
        memset(l->book.recs, 0, recs * sizeof(l->book.recs[0]));
        memset(l->book.table, 0, ((size_t)l->book.mask + 1) * sizeof(l->book.table[0]));
        h->line = (struct adm_line_head){0};
        h->book.count = 0;
}

void adm_hall_wipe(struct adm_hall *l, int64_t now_ms) {
        struct adm_hall_head *h = l->h;
        h->wiping = 1;
        atomic_signal_fence(memory_order_seq_cst);
        adm_upkeep_orphan_turns(l, now_ms);
        wipe_arrays(l);
        h->frontier = (struct adm_frontier){0};
        h->live = 0;
        h->old_generation = 0;
        atomic_signal_fence(memory_order_seq_cst);
        h->wiping = 0;
}

static void count_old(struct adm_hall *l) {
        for (uint32_t i = 0; i < l->h->book.count; i++) {
                uint32_t place = l->book.recs[i].place;
                if (place != 0 && place <= l->line.capacity &&
                    adm_line_mark(&l->line, place - 1) != ADM_MARK_GONE)
                        adm_line_admit_old(&l->line, place - 1);
        }
}

void adm_hall_tell(struct adm_hall *l, const struct adm_told *told) {
        uint32_t next = 1 - l->h->told_at;
        l->h->told[next] = *told;
        atomic_signal_fence(memory_order_seq_cst);
        l->h->told_at = next;
}

bool adm_hall_rebuild(struct adm_hall *l) {
        struct adm_hall_head *h = l->h;
        adm_turns_rebuild(&l->turns);
        h->guessed_ahead = 0;
        if (h->wiping)
                adm_hall_wipe(l, h->now_ms);
        if (!adm_book_rebuild(&l->book))
                return false;
        uint32_t last = 0;
        for (uint32_t i = 0; i < h->book.count; i++) {
                uint32_t place = l->book.recs[i].place;
                if (place > l->line.capacity && place - l->line.capacity > last)
                        last = place - l->line.capacity;
                if (place > l->line.capacity || place <= h->line.old_high)
                        continue;
                h->line.old_high = place;
        }
        adm_line_rebuild(&l->line, last, h->now_ms);
        count_old(l);
        adm_upkeep_relink(l);
        adm_notice_write(l, h->now_ms);
        return true;
}

void adm_hall_view(struct adm_hall *l, int64_t now_ms, struct adm_view *out) {
        const struct adm_hall_head *h = l->h;
        struct adm_gate_in in = adm_hall_gate(l, now_ms);
        uint32_t waiting = h->line.last + h->line.old_known - h->line.gone;
        *out = (struct adm_view){
                .state = adm_hall_state(l, now_ms),
                .away = adm_hall_is_away(l, now_ms),
                .known = h->known,
                .round = h->facts.round,
                .epoch = h->epoch,
                .stock = h->facts.stock,
                .gate_gap = h->facts.stock.available - h->snap_available,
                .room_units = adm_gate_room_units(&in),
                .passes_outstanding = (uint64_t)h->turns.outstanding,
                .passes_active = h->turns.slots,
                .passes_issued_total = h->turns.issued_total,
                .turns_missed_total = h->turns.missed_total,
                .joins_total = h->joins_total,
                .line_full_total = h->line_full_total,
                .line_waiting = waiting,
                .line_live = h->live < waiting ? h->live : waiting, /* of the last tick */
                .line_invited = h->turns.invited,
                .last_number = h->line.last,
                .facts = h->facts,
                .told = h->told[h->told_at],
        };
        memcpy(out->id, h->facts.id, sizeof(out->id));
}
