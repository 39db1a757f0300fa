#include "net/http_page.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/h2_hpack.h"

struct http_page {
        atomic_uint refs;
        int status;
        size_t n_headers; /* the caller's; `content-length` may follow them */
        size_t n_sent;    /* with `content-length` */
        struct span body;
        struct h2_blocks blocks;
        struct http_header headers[];
        /* then the bytes of names, values and body */
};

static struct span page_put(char **at, struct span from) {
        struct span copy = {*at, from.len};
        if (from.len > 0)
                memcpy(*at, from.p, from.len);
        *at += from.len;
        return copy;
}

struct http_page *http_page_new(int status, const struct http_header *headers, size_t n_headers,
                                struct span body) {
        char length[24];
        bool bodiless = status == 204 || status == 304;
        size_t bytes = (n_headers + 1) * sizeof(struct http_header) + body.len + sizeof length + 16;
        for (size_t i = 0; i < n_headers; i++)
                bytes += headers[i].name.len + headers[i].value.len;
        struct http_page *p = malloc(sizeof *p + bytes);
        if (!p)
                return NULL;
        assert(!bodiless || body.len == 0);
        atomic_init(&p->refs, 1);
        p->status = status;
        p->n_headers = n_headers;
        p->n_sent = n_headers;
        char *at = (char *)&p->headers[n_headers + 1];
        for (size_t i = 0; i < n_headers; i++)
                p->headers[i] = (struct http_header){.name = page_put(&at, headers[i].name),
                                                     .value = page_put(&at, headers[i].value),
                                                     .id = headers[i].id};
        if (!bodiless) {
                int n = snprintf(length, sizeof length, "%zu", body.len);
                p->headers[p->n_sent++] = (struct http_header){
                        .name = page_put(&at, SPAN("content-length")),
                        .value = page_put(&at, (struct span){length, (size_t)n}),
                        .id = HTTP_FIELD_CONTENT_LENGTH,
                };
        }
        p->body = page_put(&at, body);
        if (h2_blocks_init(&p->blocks, status, p->headers, p->n_sent) != 0)
                http_page_free(&p);
        return p;
}

void http_page_take(struct http_page *p) {
        atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void http_page_free(struct http_page **pp) {
        struct http_page *p = *pp;
        *pp = NULL;
        if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
                return;
        h2_blocks_fini(&p->blocks);
        free(p);
}

int http_page_status(const struct http_page *p) {
        return p->status;
}

const struct http_header *http_page_headers(const struct http_page *p, size_t *n) {
        *n = p->n_headers;
        return p->headers;
}

const struct http_header *http_page_sent_headers(const struct http_page *p, size_t *n) {
        *n = p->n_sent;
        return p->headers;
}

struct span http_page_body(const struct http_page *p) {
        return p->body;
}

const struct h2_blocks *http_page_blocks(const struct http_page *p) {
        return &p->blocks;
}
