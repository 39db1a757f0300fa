#include "net/h2_orphans.h"

static const struct h2_bucket_conf reset_limit = {H2_ORPHAN_RESET_BURST, H2_ORPHAN_RESETS_PER_S};

bool h2_orphans_add(struct h2_orphans *o, int32_t stream, int64_t now_ms) {
        if (o->n == H2_ORPHANS_MAX)
                return false;
        o->stream[o->n] = stream;
        o->since_ms[o->n++] = now_ms;
        return true;
}

static void take(struct h2_orphans *o, uint32_t i) {
        uint32_t behind = --o->n - i;

        memmove(&o->stream[i], &o->stream[i + 1], behind * sizeof(o->stream[0]));
        memmove(&o->since_ms[i], &o->since_ms[i + 1], behind * sizeof(o->since_ms[0]));
}

void h2_orphans_remove(struct h2_orphans *o, int32_t stream) {
        for (uint32_t i = 0; i < o->n; i++)
                if (o->stream[i] == stream) {
                        take(o, i);
                        return;
                }
}

int32_t h2_orphans_expire(struct h2_orphans *o, int64_t now_ms) {
        struct h2_bucket after = o->resets;
        int32_t stream;

        if (o->n == 0 || now_ms - o->since_ms[0] < H2_ORPHAN_MS ||
            !h2_bucket_add(&after, reset_limit, 1, now_ms))
                return 0;
        o->resets = after;
        stream = o->stream[0];
        take(o, 0);
        return stream;
}

int64_t h2_orphans_due_ms(const struct h2_orphans *o, int64_t now_ms) {
        int64_t due;

        if (o->n == 0)
                return INT64_MAX;
        due = o->since_ms[0] + H2_ORPHAN_MS;
        return due > now_ms ? due : now_ms + 1000 / H2_ORPHAN_RESETS_PER_S;
}
