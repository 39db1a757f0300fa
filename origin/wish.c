#include "origin/wish.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/loop.h"

#define NUMBER_BYTES 24

/* ---- the arguments of sluice_api.reserve and reserve_batch, in order ---- */

enum kind { KIND_ID, KIND_TEXT, KIND_QTY, KIND_ROUND, KIND_REPLAY };

static const struct column {
        enum kind kind;
        size_t at; /* KIND_TEXT: where the span is */
} columns[] = {
        {KIND_ID, 0},
        {KIND_TEXT, offsetof(struct org_wish, buyer)},
        {KIND_QTY, 0},
        {KIND_TEXT, offsetof(struct org_wish, sale)},
        {KIND_TEXT, offsetof(struct org_wish, key)},
        {KIND_TEXT, offsetof(struct org_wish, request)},
        {KIND_TEXT, offsetof(struct org_wish, pass_jti)},
        {KIND_ROUND, 0},
        {KIND_TEXT, offsetof(struct org_wish, channel)},
        {KIND_TEXT, offsetof(struct org_wish, order_ref)},
        {KIND_REPLAY, 0},
};

static struct span number(int64_t value, char text[NUMBER_BYTES]) {
        int n = snprintf(text, NUMBER_BYTES, "%" PRId64, value);

        return (struct span){text, (size_t)n};
}

/* p is NULL for SQL's null. */
static struct span value_of(const struct org_wish *w, const struct column *c,
                            char text[NUMBER_BYTES]) {
        struct span s = {NULL, 0};

        switch (c->kind) {
        case KIND_ID:
                return span_of(w->id);
        case KIND_TEXT:
                memcpy(&s, (const char *)w + c->at, sizeof(s));
                return s;
        case KIND_QTY:
                return number(w->qty, text);
        case KIND_ROUND:
                return w->round < 0 ? s : number(w->round, text);
        case KIND_REPLAY:
                return w->is_replay ? SPAN("t") : SPAN("f");
        }
        return s;
}

/* ---- wishes ---- */

/* An element of an array: quotes, a comma, and a backslash before any byte. */
static size_t bytes_of(const struct org_wish *w) {
        char text[NUMBER_BYTES];
        size_t n = 0;

        for (size_t i = 0; i < NET_COUNT_OF(columns); i++)
                n += 2 * value_of(w, &columns[i], text).len + sizeof("\"\",NULL");
        return n;
}

void org_wish_of(struct org_wish *w, struct org_call *c, const struct org_ask *a, char *text) {
        *w = (struct org_wish){
                .call = c,
                .since_ms = loop_clock_ms(),
                .buyer = a->buyer,
                .sale = a->sale,
                .key = a->key,
                .request = org_ask_text(a, text, ORG_ASK_TEXT_MAX),
                .pass_jti = a->pass_jti,
                .channel = a->channel,
                .order_ref = a->order_ref,
                .qty = a->lines[0].qty,
                .round = a->round,
                .is_replay = a->is_replay,
        };
        org_new_id(w->id);
        w->bytes = bytes_of(w);
}

struct org_wish *org_wish_keep(const struct org_wish *w) {
        struct org_wish *kept = malloc(sizeof(*kept) + w->bytes);
        char *to;

        if (!kept)
                return NULL;
        *kept = *w;
        to = (char *)(kept + 1);
        for (size_t i = 0; i < NET_COUNT_OF(columns); i++) {
                struct span s;

                if (columns[i].kind != KIND_TEXT)
                        continue;
                memcpy(&s, (const char *)w + columns[i].at, sizeof(s));
                if (!s.p)
                        continue;
                memcpy(to, s.p, s.len);
                s.p = to;
                memcpy((char *)kept + columns[i].at, &s, sizeof(s));
                to += s.len;
        }
        return kept;
}

/* ---- jobs ---- */

static void add_item(struct org_job *j, const struct org_call *c) {
        org_job_near(j, span_of(c->tenant), span_of(c->item));
        org_job_text(j, span_of(c->tenant));
        org_job_text(j, span_of(c->item));
}

struct org_job *org_wish_job(const struct org_wish *w, int64_t max_hold_seconds) {
        struct org_job *j = org_job_new(ORG_Q_RESERVE);
        char text[NUMBER_BYTES];

        add_item(j, w->call);
        for (size_t i = 0; i < NET_COUNT_OF(columns); i++)
                org_job_text(j, value_of(w, &columns[i], text));
        org_job_int(j, max_hold_seconds);
        return j;
}

/* The end of what was written. */
static char *add_element(char *to, struct span s) {
        if (!s.p) {
                memcpy(to, "NULL", 4);
                return to + 4;
        }
        *to++ = '"';
        for (size_t i = 0; i < s.len; i++) {
                if (s.p[i] == '"' || s.p[i] == '\\')
                        *to++ = '\\';
                *to++ = s.p[i];
        }
        *to++ = '"';
        return to;
}

struct org_job *org_wishes_job(const struct org_wish *first, size_t n, int64_t max_hold_seconds,
                               char *scratch, size_t cap) {
        struct org_job *j = org_job_new(ORG_Q_RESERVE_BATCH);
        char text[NUMBER_BYTES];

        add_item(j, first->call);
        for (size_t i = 0; i < NET_COUNT_OF(columns); i++) {
                const struct org_wish *w = first;
                char *to = scratch;

                *to++ = '{';
                for (size_t k = 0; k < n; k++, w = w->next) {
                        if (k > 0)
                                *to++ = ',';
                        to = add_element(to, value_of(w, &columns[i], text));
                }
                *to++ = '}';
                assert((size_t)(to - scratch) <= cap);
                org_job_text(j, (struct span){scratch, (size_t)(to - scratch)});
        }
        org_job_int(j, max_hold_seconds);
        return j;
}
