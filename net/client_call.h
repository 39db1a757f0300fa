/* net/client_call.h - what the client sides of HTTP/2 and HTTP/1.1 have in
 * common: a call as the session sees it, and what a session tells of it.
 *
 * Units      bytes.
 * Ownership  a call is embedded by its owner and stays until its END event or
 *            its cancel. The session does not free calls.
 */
#ifndef NET_CLIENT_CALL_H
#define NET_CLIENT_CALL_H

#include "net/http_client.h"

struct client_session_conf {
        uint32_t max_streams; /* HTTP/1.1 has one */
        uint32_t header_bytes;
        uint32_t window_bytes;                 /* of a stream; the connection's is wider */
        struct http_client_counters *counters; /* may be NULL */
};

enum client_event_kind {
        CLIENT_EVENT_HEAD, /* final status and fields */
        CLIENT_EVENT_DATA,
        CLIENT_EVENT_END, /* the last of its call; the session forgot it */
};

enum client_end {
        CLIENT_END_COMPLETE,
        CLIENT_END_REFUSED,   /* the peer says it did nothing with it */
        CLIENT_END_BROKEN,    /* the peer broke it off */
        CLIENT_END_MALFORMED, /* the answer broke the rules or a limit */
};

/* Fields are the session's, but for `first_byte`. */
struct client_call {
        int32_t stream;
        bool head_seen;
        bool ended;       /* its END is recorded */
        bool needs_reset; /* by us, when END is taken */
        bool peer_reset;
        struct span body;    /* what is still to be sent; borrowed */
        uint64_t first_byte; /* where its head begins in the output, counted
                                from the first byte; UINT64_MAX: not put out */
};

struct client_event {
        enum client_event_kind kind;
        enum client_end end;
        struct client_call *call;
        int status;
        const struct http_header *headers;
        size_t n_headers;
        struct span data;
};

#endif
