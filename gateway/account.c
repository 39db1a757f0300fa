#include "gateway/account.h"

#include <strings.h>

#include "gateway/cookie.h"
#include "gateway/guest.h"
#include "gateway/limit.h"

struct span gw_account_token(const struct http_request *request, const struct conf_gateway *conf) {
        struct span bearer = SPAN("Bearer");
        struct span field = http_request_field(request, HTTP_FIELD_AUTHORIZATION);
        bool is_bearer = field.len >= bearer.len &&
                         strncasecmp(field.p, bearer.p, bearer.len) == 0 &&
                         (field.len == bearer.len || field.p[bearer.len] == ' ');
        if (is_bearer) {
                struct span token = {field.p + bearer.len, field.len - bearer.len};
                while (token.len > 0 && token.p[0] == ' ') {
                        token.p++;
                        token.len--;
                }
                return token;
        }
        struct span cookies = http_request_field(request, HTTP_FIELD_COOKIE);
        if (conf->accounts.cookie && cookies.p) {
                struct span token = http_cookie(cookies, span_of(conf->accounts.cookie));
                if (token.len > 0)
                        return token;
        }
        return (struct span){NULL, 0};
}

static void set_name(struct gw_request *r, struct span sub) {
        assert(sub.len > 0 && sub.len <= JWT_SUB_MAX);
        memcpy(r->account, sub.p, sub.len);
        r->account_len = (uint8_t)sub.len;
        r->has_account = true;
}

void gw_account_set(struct gw_request *r, struct span sub) {
        set_name(r, sub);
        r->is_guest = gw_guest_of_name(sub, &r->tag);
        if (!r->is_guest)
                r->tag = adm_account_tag(sub.p, sub.len, false);
}

bool gw_account_by_token(struct gw_request *r) {
        const struct conf_gateway *conf = gw_request_conf(r);
        struct jwt_claims claims;
        struct adm_tag guest;
        struct jwt_rules rules = {
                .issuer = conf->accounts.issuer,
                .audience = conf->accounts.audience,
                .leeway_ms = conf->accounts.leeway_ms,
        };
        if (jwt_cache_verify(r->w->accounts, r->snap->settings->account_keys, r->token, &rules,
                             r->now_ms, &claims) != 0)
                return false;
        struct span sub = span_of(claims.sub);
        /* A shop's account must not be able to pose as one of our guests. */
        if (gw_guest_of_name(sub, &guest))
                return false;
        set_name(r, sub);
        r->is_guest = false;
        r->tag = adm_account_tag(sub.p, sub.len, false);
        return true;
}

static void set_guest(struct gw_request *r, const struct adm_tag *guest) {
        char name[GW_GUEST_NAME_LEN];
        gw_guest_name(guest, name);
        set_name(r, (struct span){name, sizeof name});
        r->is_guest = true;
        r->tag = *guest;
}

bool gw_account_by_guest(struct gw_request *r) {
        struct adm_tag guest;
        if (r->guest_text.p &&
            gw_guest_decode(r->snap->settings->guest_key, r->guest_text, &guest)) {
                set_guest(r, &guest);
                return true;
        }
        if (r->has_ticket && (r->ticket.flags & ADM_TICKET_GUEST)) {
                set_guest(r, &r->ticket.tag);
                return true;
        }
        return false;
}

void gw_account_new_guest(struct gw_request *r) {
        struct adm_tag guest = gw_guest_new();
        set_guest(r, &guest);
        r->is_new_guest = true;
}
