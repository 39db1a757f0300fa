/* net/h2_hpack.h - header blocks: decoding a peer's, and compressing answers
 * so that a connection needs no encoder of its own.
 *
 * An answer that is sent many times is compressed once, in three forms:
 *
 *   plain   refers to the static table alone: right for any peer at any time
 *   first   puts its constant fields into the peer's dynamic table
 *   again   refers to them there: right while nothing was added since
 *
 * A connection needs only to remember whose `first` it sent last. Any other
 * answer is compressed by a coder that never adds to a table, and leaves that
 * memory true.
 *
 * Units      bytes.
 * Context    a coder: one thread. Blocks: immutable, any thread.
 * Source     RFC 7541.
 */
#ifndef NET_H2_HPACK_H
#define NET_H2_HPACK_H

#include "net/http.h"
#include "net/pool.h"

/* The dynamic table of a decoder before anything was agreed on. */
#define H2_TABLE_BYTES ((uint32_t)4096)
/* "The table has size 0 from now on", in front of a block (6.3). */
#define H2_TABLE_OFF ((uint8_t)0x20)

/* ---- encoding ---- */

struct h2_coder;

/* `pool` is for the decoders made with it; they must be gone before it. */
NET_MUST struct h2_coder *h2_coder_new(struct pool *pool);
void h2_coder_free(struct h2_coder **c);
/* At most this many bytes come out for these fields. */
size_t h2_coder_bound(const struct http_header *headers, size_t n);
/* The block's length, at most `size`; -ENOMEM, -ENOBUFS. */
NET_MUST int h2_coder_run(struct h2_coder *c, int status, const struct http_header *headers,
                          size_t n, char *out, size_t size);

struct h2_blocks {
        uint64_t id; /* of no other answer; never 0 */
        struct span plain;
        struct span first; /* empty if the fields do not fit into the table */
        struct span again;
        char *memory;
};

NET_MUST int h2_blocks_init(struct h2_blocks *b, int status, const struct http_header *headers,
                            size_t n);
void h2_blocks_fini(struct h2_blocks *b);

/* ---- decoding ---- */

struct h2_decoder;

NET_MUST struct h2_decoder *h2_decoder_new(struct h2_coder *c);
void h2_decoder_free(struct h2_decoder **d);

typedef void h2_on_field(void *owner, struct span name, struct span value);

/* Decodes a piece of a block, the last one with `is_last`; `on_field` runs for
 * each field that became whole, whose bytes live until it returns. < 0: the
 * tables of both sides differ from now on (-EPROTO), or -ENOMEM. */
NET_MUST int h2_decoder_run(struct h2_decoder *d, struct span piece, bool is_last,
                            h2_on_field *on_field, void *owner);

#endif
