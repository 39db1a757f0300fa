#include "admission/book.h"

#include <stdatomic.h>
#include <string.h>

#define PROBES 1024u
#define REC_BITS 24
#define REC_MASK ((1u << REC_BITS) - 1)

struct spot {
        uint32_t at;
        uint32_t print; /* 8 bits, in place */
};

static struct spot spot_of(const struct adm_book *b, const struct adm_tag *tag) {
        uint64_t h;
        memcpy(&h, tag->b, sizeof(h));
        h = (h ^ b->h->salt) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
        return (struct spot){.at = (uint32_t)h & b->mask, .print = (uint32_t)(h >> 56) << REC_BITS};
}

uint32_t adm_book_find(const struct adm_book *b, const struct adm_tag *tag) {
        struct spot s = spot_of(b, tag);
        for (uint32_t i = 0; i < PROBES; i++) {
                uint32_t cell = b->table[(s.at + i) & b->mask];
                if (cell == 0)
                        return ADM_BOOK_NONE;
                if ((cell & ~REC_MASK) != s.print)
                        continue;
                uint32_t rec = (cell & REC_MASK) - 1;
                if (adm_tag_equal(&b->recs[rec].tag, tag))
                        return rec;
        }
        return ADM_BOOK_NONE;
}

/* The empty cell where `tag` belongs, or ADM_BOOK_NONE. */
static uint32_t cell_free(const struct adm_book *b, struct spot s) {
        for (uint32_t i = 0; i < PROBES; i++) {
                uint32_t at = (s.at + i) & b->mask;
                if (b->table[at] == 0)
                        return at;
        }
        return ADM_BOOK_NONE;
}

uint32_t adm_book_add(struct adm_book *b, const struct adm_tag *tag, bool guest) {
        uint32_t rec = b->h->count;
        struct spot s = spot_of(b, tag);
        uint32_t at = rec < b->capacity ? cell_free(b, s) : ADM_BOOK_NONE;
        if (at == ADM_BOOK_NONE)
                return ADM_BOOK_NONE;
        b->recs[rec] = (struct adm_rec){.tag = *tag, .guest = guest};
        /* Stores of a killed process are seen in the order written here. */
        atomic_signal_fence(memory_order_seq_cst);
        b->recs[rec].used = 1;
        atomic_signal_fence(memory_order_seq_cst);
        b->h->count = rec + 1;
        b->table[at] = s.print | (rec + 1);
        return rec;
}

bool adm_book_rebuild(struct adm_book *b) {
        memset(b->table, 0, ((size_t)b->mask + 1) * sizeof(b->table[0]));
        uint32_t n = 0;
        while (n < b->capacity && b->recs[n].used)
                n++;
        b->h->count = n;
        for (uint32_t rec = 0; rec < n; rec++) {
                struct spot s = spot_of(b, &b->recs[rec].tag);
                uint32_t at = cell_free(b, s);
                if (at == ADM_BOOK_NONE)
                        return false;
                b->table[at] = s.print | (rec + 1);
        }
        return true;
}
