/* admission/book.h - the accounts of one sale: tag -> place and turn.
 *
 * Records are appended and never move; a table of 32-bit words (8 bits of
 * the tag, 24 bits of record) finds them by open addressing. The records are
 * the truth: a record counts from the moment its `used` byte is set, and
 * table and count are built anew from them after a crash.
 *
 * Units      ms of sale time.
 * Ownership  the struct borrows arrays that live in the shared map.
 * Context    under the sale's lock.
 */
#ifndef ADMISSION_BOOK_H
#define ADMISSION_BOOK_H

#include "admission/place.h"

#define ADM_BOOK_MAX 16000000u /* records; 24 bits less some */
#define ADM_BOOK_NONE UINT32_MAX

struct adm_rec {
        struct adm_tag tag;
        int64_t given_at_ms;    /* when its place was given */
        int64_t void_before_ms; /* passes issued up to here are revoked */
        uint32_t place;         /* index in the line + 1; 0: none */
        uint32_t turn;          /* invitation or pass + 1; 0: none */
        uint8_t used;
        uint8_t guest;
        uint8_t missed; /* turns missed at this place: 0, 1 */
        uint8_t why;    /* enum adm_reason: why it has no place */
        uint8_t unused[4];
};

struct adm_book_head {
        uint32_t count;
        uint32_t unused;
        uint64_t salt; /* so that nobody can choose where tags fall */
};

struct adm_book {
        struct adm_book_head *h;
        struct adm_rec *recs;
        uint32_t *table;   /* 0: empty */
        uint32_t capacity; /* records */
        uint32_t mask;     /* of the table; at least 2 x capacity cells */
};

uint32_t adm_book_find(const struct adm_book *b, const struct adm_tag *tag);

/* Appends a record that must not exist yet; ADM_BOOK_NONE when full. */
uint32_t adm_book_add(struct adm_book *b, const struct adm_tag *tag, bool guest);

/* False: the records do not fit in the table, as those of adm_book_add do. */
bool adm_book_rebuild(struct adm_book *b);

#endif
