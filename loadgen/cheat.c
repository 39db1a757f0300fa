#include "loadgen/cheat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "loadgen/checkout.h"
#include "net/clock.h"
#include "net/jwt.h"

struct lg_cheat_try {
        struct lg_buyer *buyer;
        struct lg_ask ask;
        bool is_over; /* one attempt a cheat */
        char key[LG_KEY_BYTES];
        char body[32];
        char pass[2048]; /* what it shows */
};

int lg_cheat_init(struct lg_buyer *b) {
        b->cheat = calloc(1, sizeof(*b->cheat));
        if (!b->cheat)
                return -ENOMEM;
        b->cheat->buyer = b;
        snprintf(b->cheat->key, sizeof(b->cheat->key), "cheat-%llu-%lld",
                 (unsigned long long)b->crowd->seed, (long long)b->index);
        return 0;
}

void lg_cheat_fini(struct lg_buyer *b) {
        if (!b->cheat)
                return;
        lg_ask_cancel(&b->cheat->ask);
        free(b->cheat);
        b->cheat = NULL;
}

static void try_start(struct lg_cheat_try *t, struct lg_link *link, struct lg_ask ask) {
        t->is_over = true;
        t->ask = ask;
        t->ask.owner = t;
        t->ask.method = SPAN("POST");
        t->ask.bearer = span_of(t->buyer->token);
        t->ask.deadline_ms = LG_ASK_MS;
        t->ask.answer_bytes = LG_ANSWER_BYTES;
        lg_link_ask(link, &t->ask);
}

static void try_hold(struct lg_cheat_try *t, struct lg_link *link, int64_t qty,
                     void (*on_answer)(struct lg_ask *)) {
        snprintf(t->body, sizeof(t->body), "{\"qty\":%lld}", (long long)qty);
        try_start(t, link,
                  (struct lg_ask){
                          .on_answer = on_answer,
                          .path = t->buyer->crowd->holds_path,
                          .pass = span_of(t->pass),
                          .key = span_of(t->key),
                          .body = span_of(t->body),
                  });
}

/* ---- what came of it ---- */

static void on_hold_with_foreign_pass(struct lg_ask *a) {
        struct lg_cheat_try *t = a->owner;
        struct lg_crowd *c = t->buyer->crowd;
        lg_crowd_count(c, LG_ANSWER_CHEAT, a);
        if (!a->lost && (a->status == 200 || a->status == 201))
                c->cheats_won++;
}

/* A 200 is this account's own turn unless its pass names somebody else. As it
 * is a turn, it counts for the order of the line. */
static void on_claim_with_foreign_ticket(struct lg_ask *a) {
        struct lg_cheat_try *t = a->owner;
        struct lg_buyer *b = t->buyer;
        lg_crowd_count(b->crowd, LG_ANSWER_CHEAT, a);
        if (a->lost || a->status != 200)
                return;
        struct lg_answer_read r;
        struct lg_pass_names names;
        char own[64];
        lg_answer_read(&r, a->data, a->len);
        snprintf(own, sizeof(own), "b%llu-%lld", (unsigned long long)b->crowd->seed,
                 (long long)b->index);
        if (lg_pass_read(r.pass, &names) == 0) {
                if (strcmp(names.sub, own) != 0)
                        b->crowd->cheats_won++;
                else
                        (void)lg_buyer_take_pass(b, r.pass);
                if (b->trace.admitted_us == LG_NEVER)
                        b->trace.admitted_us = a->ended_us;
        }
        lg_answer_fini(&r);
}

static void on_second_claim(struct lg_ask *a) {
        struct lg_cheat_try *t = a->owner;
        struct lg_buyer *b = t->buyer;
        lg_crowd_count(b->crowd, LG_ANSWER_CHEAT, a);
        if (a->lost || a->status != 200)
                return;
        struct lg_answer_read r;
        struct lg_pass_names names;
        lg_answer_read(&r, a->data, a->len);
        if (lg_pass_read(r.pass, &names) == 0 && strcmp(names.jti, b->jti) != 0)
                b->crowd->cheats_won++;
        lg_answer_fini(&r);
}

static void on_second_hold(struct lg_ask *a) {
        struct lg_cheat_try *t = a->owner;
        struct lg_buyer *b = t->buyer;
        struct lg_crowd *c = b->crowd;
        lg_crowd_count(c, LG_ANSWER_CHEAT, a);
        if (a->sent_us > 0)
                c->sent_with_pass++;
        if (!a->lost && (a->status == 200 || a->status == 201)) {
                struct lg_answer_read r;
                lg_answer_read(&r, a->data, a->len);
                b->units += r.qty;
                c->cheats_won++;
                lg_answer_fini(&r);
        }
        lg_checkout_pay(b);
}

/* ---- when it tries ---- */

static void forge_pass(struct lg_cheat_try *t) {
        const struct lg_crowd *c = t->buyer->crowd;
        struct jwt_claims claims;
        size_t len = 0;
        jwt_claims_init(&claims);
        snprintf(claims.iss, sizeof(claims.iss), "sluice");
        snprintf(claims.sub, sizeof(claims.sub), "b%llu-%lld", (unsigned long long)c->seed,
                 (long long)t->buyer->index);
        snprintf(claims.aud, sizeof(claims.aud), "%s", c->sale);
        snprintf(claims.jti, sizeof(claims.jti), "forged-%lld", (long long)t->buyer->index);
        claims.iat = clock_wall_ms() / 1000;
        claims.exp = claims.iat + 300;
        claims.rnd = 1;
        if (jwt_sign(c->addresses->account_keys, JWT_TYP_PASS, &claims, t->pass,
                     sizeof(t->pass) - 1, &len) != 0)
                len = 0;
        t->pass[len] = '\0';
}

void lg_cheat_on_waiting(struct lg_buyer *b, struct lg_link *link) {
        struct lg_cheat_try *t = b->cheat;
        struct lg_crowd *c = b->crowd;
        if (!t || t->is_over)
                return;
        switch (b->plan.cheat) {
        case LG_CHEAT_STEALS_PASS:
                if (!c->loot_pass)
                        return;
                snprintf(t->pass, sizeof(t->pass), "%s", c->loot_pass);
                try_hold(t, link, 1, on_hold_with_foreign_pass);
                return;
        case LG_CHEAT_FORGES_PASS:
                forge_pass(t);
                try_hold(t, link, 1, on_hold_with_foreign_pass);
                return;
        case LG_CHEAT_STEALS_TICKET:
                if (!c->loot_ticket || c->loot_ticket_of == b->index)
                        return;
                try_start(t, link,
                          (struct lg_ask){
                                  .on_answer = on_claim_with_foreign_ticket,
                                  .path = c->line_path,
                                  .ticket = span_of(c->loot_ticket),
                          });
                return;
        case LG_CHEAT_CLAIMS_TWICE:
        case LG_CHEAT_HOLDS_TWICE:
        case LG_CHEAT_COUNT:
                return;
        }
}

void lg_cheat_on_admitted(struct lg_buyer *b, struct lg_link *link) {
        struct lg_cheat_try *t = b->cheat;
        if (!t || t->is_over || b->plan.cheat != LG_CHEAT_CLAIMS_TWICE)
                return;
        try_start(t, link,
                  (struct lg_ask){
                          .on_answer = on_second_claim,
                          .path = b->crowd->line_path,
                  });
}

bool lg_cheat_on_held(struct lg_buyer *b) {
        struct lg_cheat_try *t = b->cheat;
        if (!t || t->is_over || b->plan.cheat != LG_CHEAT_HOLDS_TWICE)
                return false;
        snprintf(t->pass, sizeof(t->pass), "%s", b->pass);
        int64_t qty = b->crowd->per_account - b->units + 1;
        try_hold(t, b->lead->link, qty, on_second_hold);
        return true;
}
