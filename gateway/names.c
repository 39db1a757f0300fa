#include "gateway/names.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "gateway/hash.h"

#define WAYS 4 /* neighbours a tag may stand in */

struct entry {
        struct adm_tag tag;
        uint8_t len; /* 0: free */
        char name[JWT_SUB_MAX];
};

struct gw_names {
        pthread_mutex_t lock;
        size_t mask;
        uint32_t next; /* which neighbour is overwritten when all are taken */
        struct entry at[];
};

int gw_names_new(size_t entries, struct gw_names **out) {
        size_t n = WAYS;
        while (n < entries)
                n *= 2;
        *out = calloc(1, sizeof **out + n * sizeof(struct entry));
        if (!*out)
                return -ENOMEM;
        (*out)->mask = n - 1;
        int r = pthread_mutex_init(&(*out)->lock, NULL);
        assert(r == 0);
        return 0;
}

void gw_names_free(struct gw_names **n) {
        if (*n)
                pthread_mutex_destroy(&(*n)->lock);
        free(*n);
        *n = NULL;
}

static struct entry *find(struct gw_names *n, const struct adm_tag *tag, bool make) {
        size_t home = gw_hash(0, tag->b, sizeof tag->b) & n->mask;
        struct entry *free_one = NULL;
        for (size_t i = 0; i < WAYS; i++) {
                struct entry *e = &n->at[(home + i) & n->mask];
                if (e->len > 0 && adm_tag_equal(&e->tag, tag))
                        return e;
                if (e->len == 0 && !free_one)
                        free_one = e;
        }
        if (!make)
                return NULL;
        return free_one ? free_one : &n->at[(home + n->next++ % WAYS) & n->mask];
}

void gw_names_put(struct gw_names *n, const struct adm_tag *tag, struct span name) {
        assert(name.len > 0 && name.len <= JWT_SUB_MAX);
        (void)pthread_mutex_lock(&n->lock);
        struct entry *e = find(n, tag, true);
        e->tag = *tag;
        e->len = (uint8_t)name.len;
        memcpy(e->name, name.p, name.len);
        (void)pthread_mutex_unlock(&n->lock);
}

size_t gw_names_get(struct gw_names *n, const struct adm_tag *tag, char out[JWT_SUB_MAX]) {
        (void)pthread_mutex_lock(&n->lock);
        const struct entry *e = find(n, tag, false);
        size_t len = e ? e->len : 0;
        if (e)
                memcpy(out, e->name, len);
        (void)pthread_mutex_unlock(&n->lock);
        return len;
}
