#include "net/h2_hpack.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <nghttp2/nghttp2.h>

#define FIELD_OVERHEAD 32 /* RFC 7541, 4.1 */
#define FEW_FIELDS 32

/* ---- encoding ---- */

/* The library's encoder with a table of size 0: every field is a literal that
 * is not added to the peer's table, names from the static one. */
struct h2_coder {
        nghttp2_hd_deflater *deflater;
        nghttp2_mem memory; /* of the decoders: they keep pointing here */
};

static nghttp2_nv nv_of(struct span name, struct span value, uint8_t flags) {
        return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.p,
                            .value = (uint8_t *)(uintptr_t)value.p,
                            .namelen = name.len,
                            .valuelen = value.len,
                            .flags = flags};
}

/* Values that must not be guessed byte by byte from the size of a compressed
 * answer are never indexed (RFC 7541, 7.1). */
static uint8_t nv_flags(struct span name) {
        bool is_secret = name.p[0] == 's' &&
                         (span_eq(name, SPAN("set-cookie")) || span_eq(name, SPAN("sluice-pass")));
        return is_secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
}

/* `status` gets its three digits; `nv` has room for n + 1. */
static void nv_fill(nghttp2_nv *nv, char digits[3], int status, const struct http_header *headers,
                    size_t n) {
        digits[0] = (char)('0' + status / 100 % 10);
        digits[1] = (char)('0' + status / 10 % 10);
        digits[2] = (char)('0' + status % 10);
        nv[0] = nv_of(SPAN(":status"), (struct span){digits, 3}, NGHTTP2_NV_FLAG_NONE);
        for (size_t i = 0; i < n; i++)
                nv[i + 1] = nv_of(headers[i].name, headers[i].value, nv_flags(headers[i].name));
}

static int deflate(nghttp2_hd_deflater *d, int status, const struct http_header *headers, size_t n,
                   char *out, size_t size) {
        nghttp2_nv few[FEW_FIELDS + 1];
        nghttp2_nv *nv = n <= FEW_FIELDS ? few : malloc((n + 1) * sizeof *nv);
        char digits[3];
        if (!nv)
                return -ENOMEM;
        nv_fill(nv, digits, status, headers, n);
        ssize_t r = nghttp2_hd_deflate_hd(d, (uint8_t *)out, size, nv, n + 1);
        if (nv != few)
                free(nv);
        if (r < 0)
                return r == NGHTTP2_ERR_NOMEM ? -ENOMEM : -ENOBUFS;
        return (int)r;
}

static void *mem_take(size_t n, void *pool) {
        return pool_take(pool, n);
}

static void mem_give(void *piece, void *pool) {
        pool_give(pool, piece);
}

static void *mem_take_zero(size_t n, size_t size, void *pool) {
        return pool_take_zero(pool, n * size);
}

static void *mem_resize(void *piece, size_t n, void *pool) {
        return pool_resize(pool, piece, n);
}

struct h2_coder *h2_coder_new(struct pool *pool) {
        struct h2_coder *c = calloc(1, sizeof *c);
        char out[16];
        if (!c)
                return NULL;
        c->memory = (nghttp2_mem){.mem_user_data = pool,
                                  .malloc = mem_take,
                                  .free = mem_give,
                                  .calloc = mem_take_zero,
                                  .realloc = mem_resize};
        /* Its first block tells of the size; nobody needs to know. */
        if (nghttp2_hd_deflate_new(&c->deflater, 0) != 0 ||
            deflate(c->deflater, 200, NULL, 0, out, sizeof out) < 0)
                h2_coder_free(&c);
        return c;
}

void h2_coder_free(struct h2_coder **cp) {
        struct h2_coder *c = *cp;
        *cp = NULL;
        if (!c)
                return;
        nghttp2_hd_deflate_del(c->deflater);
        free(c);
}

size_t h2_coder_bound(const struct http_header *headers, size_t n) {
        size_t bytes = 32; /* the status, and the sizes of the table */
        for (size_t i = 0; i < n; i++)
                bytes += headers[i].name.len + headers[i].value.len + 16;
        return bytes;
}

int h2_coder_run(struct h2_coder *c, int status, const struct http_header *headers, size_t n,
                 char *out, size_t size) {
        return deflate(c->deflater, status, headers, n, out, size);
}

static bool fits_table(const struct http_header *headers, size_t n) {
        size_t bytes = sizeof ":status" + 3 + FIELD_OVERHEAD;
        for (size_t i = 0; i < n; i++)
                bytes += headers[i].name.len + headers[i].value.len + FIELD_OVERHEAD;
        return bytes <= H2_TABLE_BYTES;
}

/* `first` and `again` are what an encoder says when it is new, and next. */
static int indexed_make(struct h2_blocks *b, int status, const struct http_header *headers,
                        size_t n, size_t bound) {
        nghttp2_hd_deflater *d;
        char *out = b->memory + bound;
        if (nghttp2_hd_deflate_new(&d, H2_TABLE_BYTES) != 0)
                return -ENOMEM;
        int first = deflate(d, status, headers, n, out, bound);
        int again = first < 0 ? first : deflate(d, status, headers, n, out + bound, bound);
        nghttp2_hd_deflate_del(d);
        if (again < 0)
                return again;
        b->first = (struct span){out, (size_t)first};
        b->again = (struct span){out + bound, (size_t)again};
        return 0;
}

int h2_blocks_init(struct h2_blocks *b, int status, const struct http_header *headers, size_t n) {
        static atomic_uint_fast64_t ids;
        size_t bound = h2_coder_bound(headers, n);
        struct h2_coder *c = h2_coder_new(NULL);
        *b = (struct h2_blocks){.id = atomic_fetch_add(&ids, 1) + 1, .memory = malloc(3 * bound)};
        int r = c && b->memory ? h2_coder_run(c, status, headers, n, b->memory, bound) : -ENOMEM;
        h2_coder_free(&c);
        if (r >= 0) {
                b->plain = (struct span){b->memory, (size_t)r};
                r = fits_table(headers, n) ? indexed_make(b, status, headers, n, bound) : 0;
        }
        if (r < 0)
                h2_blocks_fini(b);
        return r < 0 ? r : 0;
}

void h2_blocks_fini(struct h2_blocks *b) {
        free(b->memory);
        *b = (struct h2_blocks){.id = 0};
}

/* ---- decoding ---- */

static nghttp2_hd_inflater *inflater_of(struct h2_decoder *d) {
        return (nghttp2_hd_inflater *)(void *)d;
}

/* The library's own struct under our name: nothing needs to be added to it. */
struct h2_decoder *h2_decoder_new(struct h2_coder *c) {
        nghttp2_hd_inflater *inflater;
        if (nghttp2_hd_inflate_new2(&inflater, &c->memory) != 0)
                return NULL;
        return (struct h2_decoder *)(void *)inflater;
}

void h2_decoder_free(struct h2_decoder **d) {
        nghttp2_hd_inflate_del(inflater_of(*d));
        *d = NULL;
}

int h2_decoder_run(struct h2_decoder *d, struct span piece, bool is_last, h2_on_field *on_field,
                   void *owner) {
        const uint8_t *at = (const uint8_t *)piece.p;
        const uint8_t *end = at + piece.len;
        for (;;) {
                nghttp2_nv nv;
                int flags = 0;
                ssize_t r = nghttp2_hd_inflate_hd2(inflater_of(d), &nv, &flags, at,
                                                   (size_t)(end - at), is_last);
                if (r < 0)
                        return r == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
                at += r;
                if (flags & NGHTTP2_HD_INFLATE_EMIT)
                        on_field(owner, (struct span){(const char *)nv.name, nv.namelen},
                                 (struct span){(const char *)nv.value, nv.valuelen});
                if (flags & NGHTTP2_HD_INFLATE_FINAL)
                        return nghttp2_hd_inflate_end_headers(inflater_of(d)) == 0 ? 0 : -EPROTO;
                if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && at == end)
                        return 0;
        }
}
