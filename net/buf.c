#include "net/buf.h"

#include <errno.h>
#include <stdlib.h>

#define BUF_FIRST ((size_t)1024)

void buf_init(struct buf *b, size_t ceiling) {
        *b = (struct buf){.ceiling = ceiling};
}

void buf_fini(struct buf *b) {
        buf_release(b);
}

void buf_release(struct buf *b) {
        free(b->data);
        *b = (struct buf){.ceiling = b->ceiling};
}

/* Doubling, up to a third above the ceiling: a full buffer then always has a
 * quarter of its size eaten, and a move pays for itself. */
static size_t grown_size(const struct buf *b, size_t need) {
        size_t size = b->size < BUF_FIRST ? BUF_FIRST : b->size * 2;
        size_t most = b->ceiling < SIZE_MAX / 2 ? b->ceiling + b->ceiling / 3 : SIZE_MAX;

        while (size < need)
                size *= 2;
        if (size > most)
                size = most;
        return size < need ? need : size;
}

static int grow(struct buf *b, size_t need) {
        size_t size = grown_size(b, need);
        char *data = malloc(size);

        if (!data)
                return -ENOMEM;
        if (b->data)
                memcpy(data, b->data + b->start, buf_len(b));
        free(b->data);
        b->data = data;
        b->size = size;
        b->end -= b->start;
        b->start = 0;
        return 0;
}

int buf_reserve(struct buf *b, size_t n, char **where) {
        size_t len = buf_len(b);

        if (n > b->ceiling - len)
                return -ENOBUFS;
        if (n > b->size - b->end || !b->data) {
                if (b->data && n <= b->size - len && b->start >= b->size / 4) {
                        memmove(b->data, b->data + b->start, len);
                        b->start = 0;
                        b->end = len;
                } else {
                        int r = grow(b, len + n);

                        if (r < 0)
                                return r;
                }
        }
        *where = b->data + b->end;
        return 0;
}

void buf_commit(struct buf *b, size_t n) {
        assert(n <= b->size - b->end);
        b->end += n;
}

int buf_append(struct buf *b, const void *data, size_t n) {
        char *where;
        int r;

        if (n == 0)
                return 0;
        r = buf_reserve(b, n, &where);
        if (r < 0)
                return r;
        memcpy(where, data, n);
        b->end += n;
        return 0;
}

void buf_eat(struct buf *b, size_t n) {
        assert(n <= buf_len(b));
        b->start += n;
        if (b->start == b->end)
                b->start = b->end = 0;
}
