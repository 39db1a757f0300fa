/* net/buf.h - a run of bytes that grows at its end, is eaten at its front,
 * and never passes its ceiling.
 *
 * Units      bytes.
 * Ownership  a plain value to embed; buf_fini() frees the memory. Spans of its
 *            content live until the next call that changes it.
 * Context    one thread at a time.
 */
#ifndef NET_BUF_H
#define NET_BUF_H

#include "net/base.h"

struct buf {
        char *data;
        size_t start;   /* first byte not yet eaten */
        size_t end;     /* one past the last byte written */
        size_t size;    /* bytes allocated */
        size_t ceiling; /* end - start never passes this */
};

void buf_init(struct buf *b, size_t ceiling);
void buf_fini(struct buf *b);

static inline size_t buf_len(const struct buf *b) {
        return b->end - b->start;
}

static inline struct span buf_span(const struct buf *b) {
        return (struct span){b->data ? b->data + b->start : "", buf_len(b)};
}

/* Room for `n` more bytes and where to write them; -ENOBUFS at the ceiling,
 * -ENOMEM. Follow with buf_commit(). */
NET_MUST int buf_reserve(struct buf *b, size_t n, char **where);
void buf_commit(struct buf *b, size_t n);
NET_MUST int buf_append(struct buf *b, const void *data, size_t n);
/* Eats `n` <= buf_len() bytes; an emptied buffer keeps its memory. */
void buf_eat(struct buf *b, size_t n);
/* Empties it and gives its memory back (idle connections own no buffers). */
void buf_release(struct buf *b);

#endif
