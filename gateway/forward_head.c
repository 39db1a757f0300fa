#include "gateway/forward_head.h"

#include <stdio.h>

#include "gateway/cookie.h"
#include "gateway/pass.h"

/* Above it a Cookie field is left out rather than cut: half a cookie is worse
 * than none. The head's own ceiling is lower by default. */
#define COOKIE_MAX 65536

static void add(struct gw_forward_head *h, struct span name, struct span value) {
        if (h->n < GW_FORWARD_FIELDS)
                h->at[h->n++] = (struct http_header){.name = name, .value = value};
}

static void add_text(struct gw_forward_head *h, struct span name, const char *text, size_t len) {
        if (len > GW_FORWARD_TEXT - h->used)
                return;
        memcpy(h->text + h->used, text, len);
        add(h, name, (struct span){h->text + h->used, len});
        h->used += len;
}

static void add_cookies(struct gw_forward_head *h, struct span cookies) {
        static _Thread_local char kept[COOKIE_MAX];
        if (cookies.len > COOKIE_MAX / 2)
                return;
        size_t n = gw_cookie_strip(cookies, kept);
        if (n > 0)
                add(h, SPAN("cookie"), (struct span){kept, n});
}

static void add_passed(struct gw_forward_head *h, struct gw_request *r) {
        const struct http_request *q = &r->x->request;
        for (size_t i = 0; i < q->n_headers; i++) {
                const struct http_header *f = &q->headers[i];
                if (!http_field_is_forwarded(f->id))
                        continue;
                if (f->id == HTTP_FIELD_COOKIE)
                        add_cookies(h, f->value);
                else
                        add(h, f->name, f->value);
        }
}

static void add_origin_of(struct gw_forward_head *h, struct gw_request *r) {
        char address[GW_ADDRESS_TEXT_MAX], text[512];
        struct span authority = r->x->request.authority;
        size_t n = gw_address_text(&r->address, address);
        bool is_ipv4 = gw_address_is_ipv4(&r->address);
        int len = snprintf(text, sizeof text, "for=%s%s%s;host=\"%.*s\";proto=https",
                           is_ipv4 ? "" : "\"[", address, is_ipv4 ? "" : "]\"", (int)authority.len,
                           authority.p);
        if (len > 0 && (size_t)len < sizeof text)
                add_text(h, SPAN("forwarded"), text, (size_t)len);
        add_text(h, SPAN("x-forwarded-for"), address, n);
        add(h, SPAN("x-forwarded-proto"), SPAN("https"));
        add(h, SPAN("x-forwarded-host"), authority);
}

static void add_trace(struct gw_forward_head *h, struct gw_request *r) {
        char text[64];
        int len = snprintf(text, sizeof text, "00-%016llx%016llx-%016llx-00",
                           (unsigned long long)random_fast_next(&r->w->random),
                           (unsigned long long)random_fast_next(&r->w->random),
                           (unsigned long long)random_fast_next(&r->w->random));
        add_text(h, SPAN("traceparent"), text, (size_t)len);
}

static void add_rights(struct gw_forward_head *h, struct gw_request *r) {
        char pass[GW_PASS_TEXT_MAX];
        size_t n = 0;
        add(h, SPAN("sluice-sale"), span_of(r->sale->facts.id));
        if (r->is_bypassed)
                return;
        add(h, SPAN("sluice-account"), gw_request_account(r));
        if (r->pass.renewed && gw_pass_sign(r->snap->settings, r->sale, gw_request_account(r),
                                            &r->pass, pass, &n) == 0)
                add_text(h, SPAN("sluice-pass"), pass, n);
        else
                add(h, SPAN("sluice-pass"), r->pass_text);
}

void gw_forward_head(struct gw_forward_head *h, struct gw_request *r, struct http_call_request *q) {
        const struct http_request *in = &r->x->request;
        h->n = 0;
        h->used = 0;
        add_rights(h, r);
        add_origin_of(h, r);
        add_trace(h, r);
        add_passed(h, r);
        q->method = in->method_text;
        q->scheme = SPAN("http");
        q->authority = in->authority;
        q->path = in->path;
        q->headers = h->at;
        q->n_headers = h->n;
}
