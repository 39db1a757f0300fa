/* Tickets, JSON Web Tokens and key files. The first byte says which:
 *
 *   0  a ticket as it comes           3  a token as it comes
 *   1  a ticket of ours, one bit off  4  claims of any kind, signed by us
 *   2  facts of a ticket, both ways   5  a key file
 */
#include <stdio.h>
#include <stdlib.h>

#include "admission/ticket.h"
#include "net/jwt.h"
#include "tests/fuzz/fuzz.h"

#define NOW_MS 1795942800000
#define SECRET_JWK                                                                                 \
        "{\"kty\":\"oct\",\"kid\":\"shop\",\"k\":\"c2l4dGVlbiBieXRlcyB0d2ljZSBpcyBlbm91Z2ghISE\"}"

static struct adm_ticket_keys *tickets;
static struct jwt_keys *tokens;

static void setup(void) {
        static const uint8_t bytes[2][ADM_TICKET_SECRET_MIN] = {"one", "another"};
        const struct adm_ticket_secret secrets[] = {{7, bytes[0], sizeof bytes[0]},
                                                    {8, bytes[1], sizeof bytes[1]}};
        char why[200];
        FUZZ_CHECK(adm_ticket_keys_new(secrets, 2, &tickets) == 0);
        FUZZ_CHECK(jwt_keys_new(&tokens) == 0);
        FUZZ_CHECK(jwt_keys_add_text(tokens, SPAN(SECRET_JWK), why, sizeof why) == 0);
}

/* ---- tickets ---- */

static void facts_fill(struct adm_ticket *t, struct span in) {
        uint8_t b[64] = {0};
        memcpy(b, in.p, in.len < sizeof b ? in.len : sizeof b);
        *t = (struct adm_ticket){.flags = b[0] & (ADM_TICKET_GUEST | ADM_TICKET_MISSED)};
        memcpy(&t->round, b + 1, sizeof t->round);
        memcpy(&t->sale, b + 5, sizeof t->sale);
        memcpy(&t->key, b + 13, sizeof t->key);
        memcpy(&t->tag, b + 21, sizeof t->tag);
        memcpy(&t->issued_at_ms, b + 37, 6);
        memcpy(&t->promised_at_ms, b + 43, 6);
        memcpy(&t->ahead, b + 49, sizeof t->ahead);
}

static bool same_ticket(const struct adm_ticket *a, const struct adm_ticket *b) {
        return a->flags == b->flags && a->round == b->round && a->sale == b->sale &&
               a->key == b->key && adm_tag_equal(&a->tag, &b->tag) &&
               a->issued_at_ms == b->issued_at_ms && a->promised_at_ms == b->promised_at_ms &&
               a->ahead == b->ahead;
}

static void ticket_any(struct span in) {
        struct adm_ticket t;
        char again[ADM_TICKET_TEXT_LEN];
        int r = adm_ticket_decode(tickets, in.p, in.len, &t);
        FUZZ_CHECK(r == ADM_TICKET_GOOD || r == ADM_TICKET_MALFORMED || r == ADM_TICKET_FORGED);
        if (r != ADM_TICKET_GOOD)
                return;
        /* There is one spelling of a ticket, but for the key that signed it. */
        adm_ticket_encode(tickets, &t, again);
        struct adm_ticket twice;
        FUZZ_CHECK(adm_ticket_decode(tickets, again, sizeof again, &twice) == 0);
        FUZZ_CHECK(same_ticket(&t, &twice));
}

static void ticket_made(struct span in, bool is_bent) {
        struct adm_ticket t;
        struct adm_ticket back;
        char text[ADM_TICKET_TEXT_LEN];
        facts_fill(&t, in);
        adm_ticket_encode(tickets, &t, text);
        if (is_bent && in.len >= 2) {
                char *c = &text[(uint8_t)in.p[0] % ADM_TICKET_TEXT_LEN];
                char bit = (char)(1 << ((uint8_t)in.p[1] % 8));
                *c = (char)(*c ^ bit);
                FUZZ_CHECK(adm_ticket_decode(tickets, text, sizeof text, &back) != 0);
                return;
        }
        FUZZ_CHECK(adm_ticket_decode(tickets, text, sizeof text, &back) == 0);
        FUZZ_CHECK(same_ticket(&t, &back));
}

/* ---- tokens ---- */

static bool is_terminated(const char *text, size_t size) {
        return memchr(text, 0, size) != NULL;
}

static void claims_check(const struct jwt_claims *c) {
        FUZZ_CHECK(is_terminated(c->sub, sizeof c->sub) && is_terminated(c->iss, sizeof c->iss) &&
                   is_terminated(c->aud, sizeof c->aud) && is_terminated(c->jti, sizeof c->jti) &&
                   is_terminated(c->use, sizeof c->use));
        FUZZ_CHECK(jwt_sub_is_good(span_of(c->sub)));
}

/* True if it is authentic. */
static bool token_verify(struct span token, bool is_ours) {
        static const struct jwt_rules rules[] = {
                {.leeway_ms = 0},
                {.typ = JWT_TYP_PASS, .leeway_ms = 5000},
                {.issuer = "shop", .audience = "gate"},
        };
        bool is_authentic = false;
        for (size_t i = 0; i < NET_COUNT_OF(rules); i++) {
                struct jwt_claims c;
                int r = jwt_verify(tokens, token, &rules[i], NOW_MS, &c);
                FUZZ_CHECK(r >= 0 && r < JWT_OUTCOME_COUNT && jwt_outcome_text(r ? r : 1));
                if (r == 0)
                        claims_check(&c);
                if (r == 0 && !rules[i].typ)
                        FUZZ_CHECK(c.exp > NOW_MS / 1000 - 1);
                is_authentic |= r == 0 || r == JWT_EXPIRED || r == JWT_NOT_YET;
                FUZZ_CHECK(!is_ours || r != JWT_BAD_SIGNATURE);
        }
        return is_authentic;
}

static void token_cached(struct span token) {
        struct jwt_cache *cache;
        const struct jwt_rules rules = {.leeway_ms = 0};
        struct jwt_claims once;
        struct jwt_claims twice;
        FUZZ_CHECK(jwt_cache_new(&cache, 16) == 0);
        int r = jwt_cache_verify(cache, tokens, token, &rules, NOW_MS, &once);
        FUZZ_CHECK(jwt_cache_verify(cache, tokens, token, &rules, NOW_MS, &twice) == r);
        FUZZ_CHECK(jwt_cache_hits(cache) == (r == 0));
        if (r == 0)
                FUZZ_CHECK(strcmp(once.sub, twice.sub) == 0 && once.exp == twice.exp);
        jwt_cache_free(&cache);
}

static void token_signed(struct span payload) {
        static char token[2 * JWT_MAX_BYTES];
        size_t len;
        const char *typ = payload.len % 2 ? JWT_TYP_PASS : NULL;
        if (payload.len > JWT_MAX_BYTES ||
            jwt_sign_json(tokens, typ, payload, token, sizeof token, &len) != 0)
                return;
        struct span copy = fuzz_copy((const uint8_t *)token, len);
        (void)token_verify(copy, true);
        token_cached(copy);
        free((void *)(uintptr_t)copy.p);
}

/* What a ring gives out, another one takes: the same public keys. */
static void keys_read(struct span text) {
        static char set[JWK_FILE_MAX * 2];
        struct jwt_keys *keys;
        struct jwt_keys *again;
        char why[200];
        struct json_out o;
        size_t public = 0;
        FUZZ_CHECK(jwt_keys_new(&keys) == 0 && jwt_keys_new(&again) == 0);
        int r = jwt_keys_add_text(keys, text, why, sizeof why);
        FUZZ_CHECK(r == 0 ? jwt_keys_count(keys) > 0 : jwt_keys_count(keys) == 0);
        FUZZ_CHECK(r != 1 || (is_terminated(why, sizeof why) && why[0]));
        for (size_t i = 0; i < jwt_keys_count(keys); i++) {
                public += jwt_keys_alg(keys, i) != JWT_HS256;
                FUZZ_CHECK(jwt_keys_kid(keys, i)[0]);
        }
        json_out_init(&o, set, sizeof set);
        jwt_keys_export(keys, &o);
        struct span out = json_out_done(&o);
        FUZZ_CHECK(out.p);
        if (public > 0 && out.len <= JWK_FILE_MAX) {
                FUZZ_CHECK(jwt_keys_add_text(again, out, why, sizeof why) == 0);
                FUZZ_CHECK(jwt_keys_count(again) == public);
        }
        jwt_keys_free(&keys);
        jwt_keys_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (!tickets)
                setup();
        if (size < 1)
                return 0;
        struct span in = fuzz_copy(data + 1, size - 1);
        switch (data[0] % 6) {
        case 0:
                ticket_any(in);
                break;
        case 1:
        case 2:
                ticket_made(in, data[0] % 6 == 1);
                break;
        case 3:
                (void)token_verify(in, false);
                token_cached(in);
                break;
        case 4:
                token_signed(in);
                break;
        default:
                keys_read(in);
                break;
        }
        free((void *)(uintptr_t)in.p);
        return 0;
}
