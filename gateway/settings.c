#include "gateway/settings.h"

#include <errno.h>
#include <stdlib.h>

#include "conf/secret.h"
#include "gateway/etag.h"
#include "gateway/guest.h"
#include "gateway/hash.h"
#include "net/log.h"

#define WHY_MAX 256
#define JWKS_MAX 65536
#define TICKET_LIFE_MAX_S 7200 /* of TLS sessions */

static void settings_destroy(struct gw_settings *s) {
        tls_context_free(&s->tls);
        tls_tickets_free(&s->tls_tickets);
        for (size_t i = 0; s->upstream_tls && i < s->conf->upstreams.count; i++)
                tls_context_free(&s->upstream_tls[i]);
        free(s->upstream_tls);
        jwt_keys_free(&s->account_keys);
        jwt_keys_free(&s->pass_keys);
        adm_ticket_keys_free(&s->ticket_keys);
        http_page_free(&s->jwks);
        http_page_free(&s->jwks_304);
        conf_gateway_free(&s->conf);
        explicit_bzero(s, sizeof *s);
        free(s);
}

void gw_settings_take(struct gw_settings *s) {
        unsigned before = atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
        assert(before > 0);
}

void gw_settings_free(struct gw_settings **sp) {
        struct gw_settings *s = *sp;
        *sp = NULL;
        if (s && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
                settings_destroy(s);
}

static int load_ring(const struct conf_texts *files, const char *option, struct jwt_keys **out,
                     FILE *faults) {
        char why[WHY_MAX];
        int bad = 0, r = jwt_keys_new(out);
        for (size_t i = 0; r == 0 && i < files->count; i++) {
                int one = jwt_keys_add_file(*out, files->at[i], why, sizeof why);
                if (one > 0)
                        fprintf(faults, "%s: %s: %s\n", option, files->at[i], why);
                else if (one < 0)
                        fprintf(faults, "%s: %s: cannot be read (%s)\n", option, files->at[i],
                                log_errno_name(one));
                bad |= one != 0;
        }
        return r < 0 ? r : bad;
}

/* A key's id comes from the key itself, so that it keeps its name wherever it
 * stands in the list. */
static int load_tickets(struct gw_settings *s, FILE *faults) {
        const struct conf_texts *files = &s->conf->tickets.keys;
        static char texts[ADM_TICKET_KEYS_MAX][CONF_SECRET_MAX];
        struct adm_ticket_secret secrets[ADM_TICKET_KEYS_MAX] = {0};
        int bad = 0;
        if (files->count > ADM_TICKET_KEYS_MAX) {
                fprintf(faults, "tickets.keys: expected at most %d files\n", ADM_TICKET_KEYS_MAX);
                return 1;
        }
        for (size_t i = 0; i < files->count; i++) {
                size_t len = 0;
                int r = conf_secret_read(files->at[i], texts[i], sizeof texts[i], &len);
                if (r < 0 || len < ADM_TICKET_SECRET_MIN) {
                        fprintf(faults, "tickets.keys: %s: %s\n", files->at[i],
                                r < 0 ? log_errno_name(r) : "expected 32 bytes or more");
                        bad = 1;
                }
                secrets[i] = (struct adm_ticket_secret){
                        .id = (uint8_t)gw_hash(0, texts[i], len),
                        .bytes = (const uint8_t *)texts[i],
                        .len = len,
                };
        }
        int r = bad ? 0 : adm_ticket_keys_new(secrets, files->count, &s->ticket_keys);
        if (r > 0) {
                fprintf(faults, "tickets.keys: expected different keys, 32 bytes or more each\n");
                bad = 1;
        }
        if (!bad && r == 0 && files->count > 0)
                gw_guest_key(secrets[0].bytes, secrets[0].len, s->guest_key);
        explicit_bzero(texts, sizeof texts);
        return r < 0 ? r : bad;
}

static int load_bearer(struct gw_settings *s, FILE *faults) {
        size_t len = 0, before = sizeof "Bearer " - 1;
        memcpy(s->bearer, "Bearer ", before);
        int r = conf_secret_read(s->conf->origin.token_file, s->bearer + before, GW_TOKEN_MAX,
                                 &len);
        if (r < 0) {
                fprintf(faults, "origin.token_file: %s: %s\n", s->conf->origin.token_file,
                        log_errno_name(r));
                return 1;
        }
        s->bearer_len = before + len;
        return 0;
}

/* No longer than the key before the last rotation is kept. */
static uint32_t ticket_life_s(const struct conf_gateway *conf) {
        uint32_t rotation_s = conf->tls.ticket_rotation_ms / 1000;
        return rotation_s < TICKET_LIFE_MAX_S ? rotation_s : TICKET_LIFE_MAX_S;
}

static int load_tls(struct gw_settings *s, FILE *faults) {
        char why[WHY_MAX];
        struct tls_server_conf tls = {
                .certificate_file = s->conf->tls.certificate,
                .key_file = s->conf->tls.key,
                .alpn = TLS_ALPN_H2,
                .tickets = s->tls_tickets,
                .ticket_life_s = ticket_life_s(s->conf),
        };
        if (tls_server_new(&tls, &s->tls, why, sizeof why) == 0)
                return 0;
        fprintf(faults, "tls: %s\n", why);
        return 1;
}

static int load_upstreams(struct gw_settings *s, FILE *faults) {
        size_t n = s->conf->upstreams.count;
        char why[WHY_MAX];
        int bad = 0;
        s->upstream_tls = calloc(n + 1, sizeof(struct tls_context *));
        if (!s->upstream_tls)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const struct conf_upstream *up = &s->conf->upstreams.at[i];
                struct tls_client_conf tls = {
                        .ca_file = up->ca_file,
                        .alpn = up->protocol == CONF_PROTOCOL_H2 ? TLS_ALPN_H2 : TLS_ALPN_HTTP11,
                        .resume = true,
                };
                if (!up->ca_file || tls_client_new(&tls, &s->upstream_tls[i], why, sizeof why) == 0)
                        continue;
                fprintf(faults, "upstreams.%s.ca_file: %s\n", up->name, why);
                bad = 1;
        }
        return bad;
}

static int render_jwks(struct gw_settings *s) {
        char *text = malloc(JWKS_MAX);
        struct json_out o;
        int r = -ENOMEM;
        if (!text)
                return r;
        json_out_init(&o, text, JWKS_MAX);
        jwt_keys_export(s->pass_keys, &o);
        struct span body = json_out_done(&o);
        gw_etag_of(body, s->jwks_etag);
        struct http_header headers[] = {
                {.name = SPAN("content-type"), .value = SPAN("application/json")},
                {.name = SPAN("cache-control"), .value = SPAN("public, max-age=300")},
                {.name = SPAN("access-control-allow-origin"), .value = SPAN("*")},
                {.name = SPAN("etag"), .value = span_of(s->jwks_etag)},
        };
        r = gw_etag_pages(headers, NET_COUNT_OF(headers), body, &s->jwks, &s->jwks_304);
        free(text);
        return r;
}

static int load_keys(struct gw_settings *s, FILE *faults) {
        int tls = load_tls(s, faults);
        int accounts =
                load_ring(&s->conf->accounts.keys, "accounts.keys", &s->account_keys, faults);
        int passes = load_ring(&s->conf->pass.keys, "pass.keys", &s->pass_keys, faults);
        int tickets = load_tickets(s, faults);
        int bearer = load_bearer(s, faults);
        int upstreams = load_upstreams(s, faults);
        if (accounts < 0 || passes < 0 || tickets < 0 || upstreams < 0)
                return -ENOMEM;
        if (tls || accounts || passes || tickets || bearer || upstreams)
                return 1;
        if (jwt_keys_count(s->pass_keys) == 0 || !jwt_keys_can_sign(s->pass_keys, 0)) {
                fprintf(faults, "pass.keys: the first file must hold a private P-256 key\n");
                return 1;
        }
        return render_jwks(s);
}

static struct gw_settings *settings_new(const struct gw_settings *before) {
        struct gw_settings *s = calloc(1, sizeof *s);
        if (!s)
                return NULL;
        atomic_init(&s->refs, 1);
        if (before)
                tls_tickets_take(before->tls_tickets);
        s->tls_tickets = before ? before->tls_tickets : tls_tickets_new();
        if (s->tls_tickets)
                return s;
        free(s);
        return NULL;
}

int gw_settings_load(const char *file, const struct gw_settings *before, struct gw_settings **out,
                     FILE *faults) {
        struct conf_faults found;
        struct gw_settings *s = settings_new(before);
        *out = NULL;
        if (!s)
                return -ENOMEM;
        int r = conf_load_gateway(file, &s->conf, &found);
        if (r > 0)
                conf_faults_print(&found, faults);
        else if (r < 0)
                fprintf(faults, "%s: cannot be read (%s)\n", file, log_errno_name(r));
        conf_faults_fini(&found);
        r = r == 0 ? load_keys(s, faults) : 1;
        if (r != 0) {
                settings_destroy(s);
                return r;
        }
        *out = s;
        return 0;
}
