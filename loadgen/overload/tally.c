#include "loadgen/overload/tally.h"

#include <inttypes.h>
#include <stdio.h>

static struct tally_slice *slice_at(struct tally *t, int64_t now_us) {
        int64_t i = (now_us - t->base_us) / TALLY_SLICE_US;
        return &t->slice[i < 0 ? 0 : i < TALLY_SLICES ? i : TALLY_SLICES - 1];
}

void tally_good(struct tally *t, int64_t now_us) {
        slice_at(t, now_us)->good++;
}

void tally_late(struct tally *t, int64_t now_us) {
        slice_at(t, now_us)->late++;
        if (t->base_us > 0) /* it has begun */
                t->last_bad_us = now_us - t->base_us;
}

void tally_refused(struct tally *t, int64_t now_us) {
        slice_at(t, now_us)->refused++;
        if (t->base_us > 0) /* it has begun */
                t->last_bad_us = now_us - t->base_us;
}

static void times_print(const char *name, const struct lg_histogram *h) {
        printf(",\"%s\":{\"count\":%" PRIu64
               ",\"p50\":%.2f,\"p99\":%.2f,\"p999\":%.2f,\"max\":%.2f}",
               name, h->count, (double)lg_histogram_at(h, 500) / 1e3,
               (double)lg_histogram_at(h, 990) / 1e3, (double)lg_histogram_at(h, 999) / 1e3,
               (double)h->max_us / 1e3);
}

static void doors_print(const char *name, const struct tally_doors *d) {
        printf(",\"%s\":{\"tried\":%" PRIu64 ",\"opened\":%" PRIu64 ",\"refused\":%" PRIu64
               ",\"left\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"waiting\":%" PRIu64 "}",
               name, d->tried, d->opened, d->refused, d->left, d->lost, d->waiting);
}

void tally_print(const struct tally *t, double rate, int64_t seconds) {
        int64_t slices = seconds * 1000000 / TALLY_SLICE_US;
        printf("{\"rate\":%.0f,\"seconds\":%" PRId64 ",\"offered\":%" PRIu64 ",\"shed\":%" PRIu64
               ",\"reset\":%" PRIu64 ",\"unsent\":%" PRIu64 ",\"given_up\":%" PRIu64
               ",\"last_bad_ms\":%.1f",
               rate, seconds, t->offered, t->shed, t->reset, t->unsent, t->given_up,
               (double)t->last_bad_us / 1e3);
        times_print("good_ms", &t->good_us);
        times_print("shed_ms", &t->shed_us);
        times_print("newcomers_ms", &t->newcomers_us);
        times_print("lag_ms", &t->lag_us);
        doors_print("residents", &t->residents);
        doors_print("newcomers", &t->newcomers);
        printf(",\"slices\":[");
        for (int64_t i = 0; i < slices && i < TALLY_SLICES; i++)
                printf("%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", i ? "," : "", t->slice[i].good,
                       t->slice[i].late, t->slice[i].refused);
        printf("]}");
}
