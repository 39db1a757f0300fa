#include "net/http_pool_entry.h"

#include <stdlib.h>

#define ENTRY_BYTES 2048 /* of an entry kept for the next call */

static size_t request_bytes(const struct http_call_request *r) {
        size_t n = r->n_headers * sizeof(*r->headers) + r->method.len + r->scheme.len +
                   r->authority.len + r->path.len + r->body.len;

        for (size_t i = 0; i < r->n_headers; i++)
                n += r->headers[i].name.len + r->headers[i].value.len;
        return n;
}

static struct span copied(char **at, struct span from) {
        struct span to = {*at, from.len};

        if (from.len)
                memcpy(*at, from.p, from.len);
        *at += from.len;
        return to;
}

static void copy_request(struct pool_entry *e, const struct http_call_request *r) {
        struct http_header *headers = (struct http_header *)(void *)(e + 1);
        char *at = (char *)(headers + r->n_headers);

        e->request = (struct http_call_request){
                .method = copied(&at, r->method),
                .scheme = copied(&at, r->scheme),
                .authority = copied(&at, r->authority),
                .path = copied(&at, r->path),
                .headers = headers,
                .n_headers = r->n_headers,
                .body = copied(&at, r->body),
        };
        for (size_t i = 0; i < r->n_headers; i++)
                headers[i] = (struct http_header){.name = copied(&at, r->headers[i].name),
                                                  .value = copied(&at, r->headers[i].value)};
}

struct pool_entry *pool_entry_new(struct pool_queue *q, struct http_call *call,
                                  const struct http_call_request *r, int64_t now_ms) {
        size_t size = sizeof(struct pool_entry) + request_bytes(r);
        struct pool_entry *e = q->spare;

        if (size < ENTRY_BYTES)
                size = ENTRY_BYTES;
        if (e && size == ENTRY_BYTES) {
                q->spare = e->next;
                q->n_spare--;
        } else {
                e = malloc(size);
        }
        if (!e)
                return NULL;
        *e = (struct pool_entry){
                .call = call, .size = size, .deadline_at_ms = now_ms + r->deadline_ms};
        copy_request(e, r);
        return e;
}

void pool_entry_free(struct pool_queue *q, struct pool_entry *e) {
        if (e->size != ENTRY_BYTES || q->n_spare >= q->keep) {
                free(e);
                return;
        }
        e->next = q->spare;
        q->spare = e;
        q->n_spare++;
}

void pool_queue_put(struct pool_queue *q, struct pool_entry *e, bool at_front) {
        struct pool_entry **end = at_front ? &q->first : &q->last;
        struct pool_entry *beside = *end;

        e->conn = NULL;
        e->prev = at_front ? NULL : beside;
        e->next = at_front ? beside : NULL;
        *end = e;
        if (!beside)
                q->first = q->last = e;
        else if (at_front)
                beside->prev = e;
        else
                beside->next = e;
        q->count++;
}

void pool_queue_take(struct pool_queue *q, struct pool_entry *e) {
        *(e->prev ? &e->prev->next : &q->first) = e->next;
        *(e->next ? &e->next->prev : &q->last) = e->prev;
        q->count--;
}

struct pool_entry *pool_queue_take_first(struct pool_queue *q) {
        struct pool_entry *e = q->first;

        if (e)
                pool_queue_take(q, e);
        return e;
}

void pool_queue_fini(struct pool_queue *q) {
        assert(!q->first);
        while (q->spare) {
                struct pool_entry *e = q->spare;

                q->spare = e->next;
                free(e);
        }
}
