#include "origin/converted.h"

#include <errno.h>
#include <stdlib.h>

#include "net/json.h"

struct converted {
        struct converted *next; /* in order of arrival */
        struct converted *next_in_bucket;
        uint64_t number;
        int64_t end_ms;
        size_t bucket;
        struct span hold; /* in json, behind the text */
        size_t json_len;
        char json[];
};

int org_converted_init(struct org_converted *c) {
        *c = (struct org_converted){0};
        c->last = &c->first;
        c->buckets = calloc(ORG_CONVERTED_BUCKETS, sizeof(struct converted *));
        return c->buckets ? 0 : -ENOMEM;
}

static size_t bucket_of(struct span hold) {
        uint64_t h = 1469598103934665603u; /* FNV-1a; ids are random already */

        for (size_t i = 0; i < hold.len; i++)
                h = (h ^ (unsigned char)hold.p[i]) * 1099511628211u;
        return (size_t)(h % ORG_CONVERTED_BUCKETS);
}

static void drop_first(struct org_converted *c) {
        struct converted *e = c->first, **at = &c->buckets[e->bucket];

        while (*at != e)
                at = &(*at)->next_in_bucket;
        *at = e->next_in_bucket;
        c->first = e->next;
        if (!c->first)
                c->last = &c->first;
        c->count--;
        free(e);
}

void org_converted_fini(struct org_converted *c) {
        while (c->first)
                drop_first(c);
        free(c->buckets);
        c->buckets = NULL;
}

/* The end stands in the text; parsing it for a new entry is cheap enough. */
static int64_t end_of(struct span json) {
        json_t *tree = json_loadb(json.p, json.len, 0, NULL);
        int64_t end_ms = tree ? json_get_int(tree, "hold_end_ms", 0) : 0;

        json_decref(tree);
        return end_ms;
}

static struct converted *make(struct span hold, struct span json, uint64_t number) {
        struct converted *e = malloc(sizeof(*e) + json.len + hold.len);

        if (!e)
                return NULL;
        *e = (struct converted){.number = number,
                                .json_len = json.len,
                                .end_ms = end_of(json),
                                .bucket = bucket_of(hold)};
        memcpy(e->json, json.p, json.len);
        memcpy(e->json + json.len, hold.p, hold.len);
        e->hold = (struct span){e->json + json.len, hold.len};
        return e;
}

/* A hold told before with other words: the old entry stays, out of use. */
static bool is_told(struct org_converted *c, struct span hold, struct span json) {
        for (struct converted *e = c->buckets[bucket_of(hold)]; e; e = e->next_in_bucket)
                if (span_eq(e->hold, hold))
                        return span_eq((struct span){e->json, e->json_len}, json);
        return false;
}

bool org_converted_add(struct org_converted *c, struct span hold, struct span json,
                       uint64_t number) {
        struct converted *e;

        if (is_told(c, hold, json))
                return false;
        e = make(hold, json, number);
        if (!e)
                return false;
        /* In front of its bucket, so that the newest word is found first. */
        e->next_in_bucket = c->buckets[e->bucket];
        c->buckets[e->bucket] = e;
        *c->last = e;
        c->last = &e->next;
        if (++c->count > ORG_CONVERTED_MAX)
                drop_first(c);
        return true;
}

void org_converted_forget(struct org_converted *c, int64_t now_ms) {
        while (c->first && c->first->end_ms + ORG_CONVERTED_KEEP_MS < now_ms)
                drop_first(c);
}

int org_converted_write(const struct org_converted *c, uint64_t after, struct buf *out) {
        bool comma = false;
        int r;

        for (const struct converted *e = c->first; e; e = e->next) {
                if (e->number <= after)
                        continue;
                r = comma ? buf_append(out, ",", 1) : 0;
                if (r == 0)
                        r = buf_append(out, e->json, e->json_len);
                if (r < 0)
                        return r;
                comma = true;
        }
        return 0;
}
