#include "loadgen/crowd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "loadgen/cheat.h"
#include "loadgen/checkout.h"
#include "loadgen/line.h"
#include "net/clock.h"
#include "net/jwt.h"

#define TOKEN_LIFE_S 3600
#define TOKEN_BYTES 1024
#define TAB_DELAY_MS 2000 /* further tabs follow the first within it */

static char *sign_token(const struct lg_crowd *c, int64_t index) {
        struct jwt_claims claims;
        char text[TOKEN_BYTES];
        size_t len = 0;
        jwt_claims_init(&claims);
        snprintf(claims.sub, sizeof(claims.sub), "b%llu-%lld", (unsigned long long)c->seed,
                 (long long)index);
        claims.exp = clock_wall_ms() / 1000 + TOKEN_LIFE_S;
        /* A race that takes longer than a token lives signs a longer one. */
        claims.exp += lg_options_deadline_s(c->options);
        if (jwt_sign(c->addresses->account_keys, NULL, &claims, text, sizeof(text), &len) != 0)
                return NULL;
        return strndup(text, len);
}

static int buyer_init(struct lg_crowd *c, int64_t index) {
        int64_t n_tabs = c->options->tabs;
        struct lg_buyer *b = &c->buyers[index];
        *b = (struct lg_buyer){
                .crowd = c,
                .index = index,
                .trace = {LG_NEVER, LG_NEVER, LG_NEVER, LG_NEVER},
                .tabs = &c->tabs[index * n_tabs],
        };
        lg_plan_of(c->options, c->seed, index, &b->plan);
        b->qty = b->plan.qty < c->per_account ? b->plan.qty : c->per_account;
        b->token = sign_token(c, index);
        if (!b->token)
                return -EIO;
        lg_checkout_init(b);
        size_t n_links = lg_links_count(c->gateways);
        for (int64_t i = 0; i < n_tabs; i++) {
                struct lg_tab *tab = &b->tabs[i];
                size_t number = (size_t)(index * n_tabs + i);
                uint64_t later = lg_plan_hash(c->seed, (uint64_t)index, 1000 + (uint64_t)i);
                *tab = (struct lg_tab){
                        .buyer = b,
                        .link = lg_links_at(c->gateways, number % n_links),
                        .arrives_ms =
                                b->plan.arrives_ms + (i > 0 ? (int64_t)(later % TAB_DELAY_MS) : 0),
                };
                lg_line_init(tab);
        }
        return b->plan.role == LG_ROLE_CHEATS ? lg_cheat_init(b) : 0;
}

int lg_crowd_init(struct lg_crowd *c) {
        size_t n = (size_t)c->options->buyers, tabs = (size_t)c->options->tabs;
        c->loot_of = c->loot_ticket_of = -1;
        c->buyers = calloc(n, sizeof(*c->buyers));
        c->tabs = calloc(n * tabs, sizeof(*c->tabs));
        if (!c->buyers || !c->tabs)
                return -ENOMEM;
        for (int64_t i = 0; i < c->options->buyers; i++) {
                int r = buyer_init(c, i);
                if (r != 0)
                        return r;
        }
        return 0;
}

void lg_crowd_fini(struct lg_crowd *c) {
        for (int64_t i = 0; c->buyers && i < c->options->buyers; i++) {
                struct lg_buyer *b = &c->buyers[i];
                for (int64_t k = 0; b->tabs && k < c->options->tabs; k++)
                        free(b->tabs[k].ticket);
                lg_cheat_fini(b);
                free(b->pass);
                free(b->token);
        }
        free(c->buyers);
        free(c->tabs);
        free(c->loot_pass);
        free(c->loot_ticket);
        c->buyers = NULL;
        c->tabs = NULL;
        c->loot_pass = c->loot_ticket = NULL;
}

void lg_buyer_end(struct lg_buyer *b, enum lg_end end) {
        struct lg_crowd *c = b->crowd;
        assert(b->state != LG_BUYER_ENDED && end != LG_END_NONE);
        b->state = LG_BUYER_ENDED;
        b->end = end;
        b->ended_us = loop_clock_us();
        for (int64_t i = 0; i < c->options->tabs; i++)
                lg_line_cancel(&b->tabs[i]);
        lg_checkout_cancel(b);
        c->ends[end]++;
        c->last_end_us = b->ended_us;
        if (++c->n_ended == c->options->buyers)
                c->on_all_ended(c);
}

void lg_buyer_break(struct lg_buyer *b, const char *request, int status, struct span code) {
        struct lg_crowd *c = b->crowd;
        if (c->broken_by[0] == '\0')
                snprintf(c->broken_by, sizeof(c->broken_by), "%s was answered %d %.*s", request,
                         status, (int)(code.len < 40 ? code.len : 40), code.p ? code.p : "");
        lg_buyer_end(b, LG_END_BROKEN);
}

bool lg_buyer_take_pass(struct lg_buyer *b, struct span pass) {
        struct lg_pass_names names;
        struct lg_crowd *c = b->crowd;
        if (lg_pass_read(pass, &names) != 0)
                return false;
        char *copy = strndup(pass.p, pass.len);
        if (!copy)
                return false;
        if (b->pass && b->ask.pass.p == b->pass)
                b->ask.pass = span_of(copy);
        free(b->pass);
        b->pass = copy;
        if (strcmp(names.jti, b->jti) != 0) {
                snprintf(b->jti, sizeof(b->jti), "%s", names.jti);
                b->n_passes++;
                c->passes_seen++;
        }
        if (!c->loot_pass && b->plan.role != LG_ROLE_CHEATS) {
                c->loot_pass = strdup(copy);
                c->loot_of = b->index;
        }
        return true;
}

void lg_crowd_count(struct lg_crowd *c, enum lg_answer kind, const struct lg_ask *a) {
        if (a->lost)
                c->again.lost++;
        else if (a->status == 429)
                c->again.limited++;
        else if (a->status == 503)
                c->again.paused++;
        else if (a->status >= 500)
                c->again.failed++;
        if (!a->lost)
                lg_histogram_add(&c->answers[kind], (uint64_t)(a->ended_us - a->wanted_us));
}

void lg_crowd_facts(const struct lg_crowd *c, struct lg_facts *f) {
        f->buyers = c->options->buyers;
        f->per_account = c->per_account;
        f->sold_to = c->ends[LG_END_SOLD];
        f->refused = c->ends[LG_END_REFUSED];
        f->left = c->ends[LG_END_LEFT];
        f->broken = c->ends[LG_END_BROKEN];
        f->unfinished = f->buyers - f->sold_to - f->refused - f->left;
        f->units_confirmed = c->units_confirmed;
        f->units_given_back = c->units_given_back;
        f->sent_with_pass = c->sent_with_pass;
        f->passes_seen = c->passes_seen;
        f->cheats_won = c->cheats_won;
        for (int64_t i = 0; i < f->buyers; i++) {
                const struct lg_buyer *b = &c->buyers[i];
                f->admitted += b->n_passes > 0;
                if (lg_role_pays(b->plan.role))
                        f->demand += b->plan.qty < c->per_account ? b->plan.qty : c->per_account;
                if (b->units > f->max_units_per_account)
                        f->max_units_per_account = b->units;
                bool walks = b->plan.role == LG_ROLE_LEAVES || b->plan.role == LG_ROLE_SLEEPS ||
                             b->plan.role == LG_ROLE_IS_GONE;
                if (walks)
                        f->passes_unused += b->n_passes - b->had_hold;
        }
}
