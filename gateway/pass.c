#include "gateway/pass.h"

#include <stdio.h>

#include "gateway/guest.h"
#include "net/base64.h"

#define ISSUER "sluice"

void gw_pass_jti(const uint8_t jti[ADM_JTI_LEN], char out[GW_JTI_TEXT_LEN]) {
        size_t n = base64_url_encode(out, GW_JTI_TEXT_LEN, jti, ADM_JTI_LEN);
        assert(n == GW_JTI_TEXT_LEN);
}

bool gw_pass_jti_parse(struct span text, uint8_t out[ADM_JTI_LEN]) {
        size_t n = 0;
        return text.len == GW_JTI_TEXT_LEN && base64_url_decode(out, ADM_JTI_LEN, &n, text) == 0 &&
               n == ADM_JTI_LEN;
}

int gw_pass_sign(const struct gw_settings *s, const struct gw_sale *sale, struct span account,
                 const struct adm_pass *pass, char out[GW_PASS_TEXT_MAX], size_t *len) {
        struct jwt_claims c;
        jwt_claims_init(&c);
        assert(account.len > 0 && account.len <= JWT_SUB_MAX);
        memcpy(c.sub, account.p, account.len);
        c.sub[account.len] = '\0';
        (void)snprintf(c.iss, sizeof c.iss, "%s", ISSUER);
        (void)snprintf(c.aud, sizeof c.aud, "%s", sale->facts.id);
        gw_pass_jti(pass->jti, c.jti);
        c.jti[GW_JTI_TEXT_LEN] = '\0';
        c.iat = pass->iat_ms / 1000;
        c.exp = pass->exp_ms / 1000;
        c.rnd = pass->round;
        if (pass->life == ADM_PASS_HOLDER)
                (void)snprintf(c.use, sizeof c.use, "holder");
        return jwt_sign(s->pass_keys, JWT_TYP_PASS, &c, out, GW_PASS_TEXT_MAX, len);
}

int gw_pass_read(struct gw_request *r, struct jwt_claims *claims) {
        static const struct jwt_rules rules = {.typ = JWT_TYP_PASS, .issuer = ISSUER};
        struct adm_shown *shown = &r->shown;
        int outcome = jwt_cache_verify(r->w->passes, r->snap->settings->pass_keys, r->pass_text,
                                       &rules, r->now_ms, claims);
        if (outcome != 0 && outcome != JWT_EXPIRED)
                return outcome < 0 ? JWT_MALFORMED : outcome;
        struct span sub = span_of(claims->sub);
        if (!span_eq(span_of(claims->aud), span_of(r->sale->facts.id)) || claims->rnd < 0 ||
            claims->rnd > UINT32_MAX || claims->iat == JWT_NO_TIME ||
            !gw_pass_jti_parse(span_of(claims->jti), shown->jti))
                return JWT_BAD_CLAIMS;
        if (!gw_guest_of_name(sub, &shown->tag))
                shown->tag = adm_account_tag(sub.p, sub.len, false);
        shown->round = (uint32_t)claims->rnd;
        shown->iat_ms = claims->iat * 1000;
        shown->exp_ms = claims->exp * 1000;
        shown->holder = strcmp(claims->use, "holder") == 0;
        return outcome;
}
