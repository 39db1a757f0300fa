#include "net/h2_request.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>

#define FIELDS_MAX 128         /* of a request */
#define FIELDS_BYTES_MAX 65536 /* of a request */

/* Fields that frame or route a message are written by the session, not given
 * by the caller; a length that the caller believes in is not asked for. */
static bool is_for_caller(struct span name) {
        enum http_field id = http_field_of(name);
        static const struct span never[] = {SPAN("keep-alive"), SPAN("proxy-connection"),
                                            SPAN("upgrade"), SPAN("trailer")};

        for (size_t i = 0; id == HTTP_FIELD_UNKNOWN && i < NET_COUNT_OF(never); i++)
                if (span_eq(name, never[i]))
                        return false;
        return id != HTTP_FIELD_CONNECTION && id != HTTP_FIELD_HOST && id != HTTP_FIELD_TE &&
               id != HTTP_FIELD_TRANSFER_ENCODING && id != HTTP_FIELD_EXPECT;
}

/* Values that differ from request to request, or are secret, stay out of the
 * compression table. */
static bool is_worth_indexing(enum http_field id) {
        return id != HTTP_FIELD_COOKIE && id != HTTP_FIELD_IDEMPOTENCY_KEY &&
               id != HTTP_FIELD_SLUICE_PASS && id != HTTP_FIELD_SLUICE_TICKET &&
               id != HTTP_FIELD_SLUICE_ACCOUNT && id != HTTP_FIELD_TRACEPARENT;
}

static bool is_header_fit(const struct http_header *f) {
        return f->name.len && f->name.p[0] != ':' &&
               nghttp2_check_header_name((const uint8_t *)f->name.p, f->name.len) &&
               nghttp2_check_header_value_rfc9113((const uint8_t *)f->value.p, f->value.len) &&
               is_for_caller(f->name);
}

int h2_request_check(const struct http_call_request *r) {
        size_t bytes = r->method.len + r->scheme.len + r->authority.len + r->path.len;

        if (r->n_headers > FIELDS_MAX)
                return -EMSGSIZE;
        for (size_t i = 0; i < r->n_headers; i++)
                bytes += r->headers[i].name.len + r->headers[i].value.len + 32;
        if (bytes > FIELDS_BYTES_MAX)
                return -EMSGSIZE;
        if (!nghttp2_check_method((const uint8_t *)r->method.p, r->method.len) ||
            !nghttp2_check_path((const uint8_t *)r->path.p, r->path.len) || r->path.len == 0 ||
            !nghttp2_check_authority((const uint8_t *)r->authority.p, r->authority.len) ||
            (!span_eq(r->scheme, SPAN("https")) && !span_eq(r->scheme, SPAN("http"))))
                return -EINVAL;
        for (size_t i = 0; i < r->n_headers; i++)
                if (!is_header_fit(&r->headers[i]))
                        return -EINVAL;
        return 0;
}

static nghttp2_nv nv_of(struct span name, struct span value, unsigned flags) {
        return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.p,
                            .value = (uint8_t *)(uintptr_t)value.p,
                            .namelen = name.len,
                            .valuelen = value.len,
                            .flags = (uint8_t)flags};
}

static bool wants_length(const struct http_call_request *r) {
        enum http_method m = http_method_of(r->method);

        return r->body.len > 0 || m == HTTP_POST || m == HTTP_PUT || m == HTTP_PATCH;
}

static size_t fill_fields(nghttp2_nv *nv, const struct http_call_request *r, bool kept,
                          struct span length) {
        unsigned own = NGHTTP2_NV_FLAG_NO_COPY_NAME;
        unsigned given = own | (kept ? (unsigned)NGHTTP2_NV_FLAG_NO_COPY_VALUE : 0);
        size_t n = 0;

        nv[n++] = nv_of(SPAN(":method"), r->method, given);
        nv[n++] = nv_of(SPAN(":scheme"), r->scheme, given);
        nv[n++] = nv_of(SPAN(":authority"), r->authority, given);
        nv[n++] = nv_of(SPAN(":path"), r->path, given);
        for (size_t i = 0; i < r->n_headers; i++) {
                const struct http_header *f = &r->headers[i];
                enum http_field id = http_field_of(f->name);
                unsigned flags = kept ? given : 0;

                if (id == HTTP_FIELD_CONTENT_LENGTH)
                        continue;
                if (!is_worth_indexing(id))
                        flags |= NGHTTP2_NV_FLAG_NO_INDEX;
                nv[n++] = nv_of(f->name, f->value, flags);
        }
        if (length.len)
                nv[n++] = nv_of(SPAN("content-length"), length, own);
        return n;
}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t size,
                         uint32_t *flags, nghttp2_data_source *source, void *user) {
        /* Not through `source`: a cancelled call may be gone. */
        struct client_call *call = nghttp2_session_get_stream_user_data(session, stream);

        (void)source;
        (void)user;
        if (!call)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        if (size > call->body.len)
                size = call->body.len;
        memcpy(buf, call->body.p, size);
        call->body.p += size;
        call->body.len -= size;
        if (call->body.len == 0)
                *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (ssize_t)size;
}

int h2_request_submit(struct nghttp2_session *session, struct client_call *call,
                      const struct http_call_request *r, bool kept) {
        nghttp2_nv nv[FIELDS_MAX + 5];
        nghttp2_data_provider body = {.read_callback = read_body};
        char digits[24];
        struct span length = {digits, 0};
        size_t n;
        int id;

        if (wants_length(r))
                length.len = (size_t)snprintf(digits, sizeof(digits), "%zu", r->body.len);
        n = fill_fields(nv, r, kept, length);
        id = nghttp2_submit_request(session, NULL, nv, n, r->body.len ? &body : NULL, call);
        switch (id) {
        case NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE:
                return -ENOTCONN;
        case NGHTTP2_ERR_NOMEM:
                return -ENOMEM;
        default:
                return id < 0 ? -EINVAL : id;
        }
}
