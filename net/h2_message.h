/* net/h2_message.h - whether the fields of a request make a well-formed HTTP/2
 * message: what a receiver must treat as malformed, and nothing else.
 *
 * It stores no field and decides no policy: a message it accepts may still be
 * answered 400 by net/http_head.h.
 *
 * Units      bytes.
 * Ownership  a value to embed; nothing to free.
 * Source     RFC 9113 sections 8.1 to 8.3, 8.5; RFC 9110 section 8.6.
 */
#ifndef NET_H2_MESSAGE_H
#define NET_H2_MESSAGE_H

#include "net/http_head.h"

struct h2_message {
        int64_t length;    /* of content-length; -1 not given */
        uint64_t received; /* of the body */
        unsigned seen;     /* what of it, see the .c */
        bool is_malformed;
};

void h2_message_init(struct h2_message *m);
/* A field of the head, in order. */
void h2_message_field(struct h2_message *m, const struct http_field_seen *f);
/* The head is complete; `end` if nothing follows it. */
void h2_message_head(struct h2_message *m, bool end);
/* Bytes of the body. */
void h2_message_body(struct h2_message *m, size_t n);
/* A field behind the body. */
void h2_message_trailer(struct h2_message *m, const struct http_field_seen *f);
/* The message is complete. */
void h2_message_end(struct h2_message *m);

#endif
