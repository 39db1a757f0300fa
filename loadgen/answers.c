#include "loadgen/answers.h"

#include <stdio.h>

#include "net/base64.h"

#define PAYLOAD_MAX 2048

static enum lg_place_state state_of(struct span text) {
        static const struct {
                struct span name;
                enum lg_place_state state;
        } states[] = {
                {{"not_open", 8}, LG_PLACE_NOT_OPEN},   {{"waiting", 7}, LG_PLACE_WAITING},
                {{"ready", 5}, LG_PLACE_READY},         {{"admitted", 8}, LG_PLACE_ADMITTED},
                {{"all_held", 8}, LG_PLACE_ALL_HELD},   {{"paused", 6}, LG_PLACE_PAUSED},
                {{"sold_out", 8}, LG_PLACE_SOLD_OUT},   {{"closed", 6}, LG_PLACE_CLOSED},
                {{"line_full", 9}, LG_PLACE_LINE_FULL},
        };
        for (size_t i = 0; i < NET_COUNT_OF(states); i++) {
                if (text.p && span_eq(text, states[i].name))
                        return states[i].state;
        }
        return LG_PLACE_NONE;
}

void lg_answer_read(struct lg_answer_read *r, const char *data, size_t len) {
        *r = (struct lg_answer_read){.poll_after_ms = -1, .available = -1};
        if (len == 0)
                return;
        json_t *root = json_loadb(data, len, 0, NULL);
        if (!json_is_object(root)) {
                json_decref(root);
                return;
        }
        r->root = root;
        struct span state = json_get_str(root, "state");
        r->state = state_of(state);
        r->has_reason = json_get_str(root, "reason").p != NULL;
        r->poll_after_ms = json_get_int(root, "poll_after_ms", -1);
        r->ticket = json_get_str(root, "ticket");
        r->pass = json_get_str(root, "pass");
        r->code = json_get_str(root, "code");
        r->hold = json_get_str(root, "hold");
        r->hold_state = state;
        r->qty = json_get_int(root, "qty", 0);
        r->available = json_get_int(root, "available", -1);
}

void lg_answer_fini(struct lg_answer_read *r) {
        json_decref(r->root);
        r->root = NULL;
}

static int copy_claim(const json_t *claims, const char *name, char *out, size_t cap) {
        struct span value = json_get_str(claims, name);
        if (!value.p || value.len == 0 || value.len >= cap)
                return 1;
        memcpy(out, value.p, value.len);
        out[value.len] = '\0';
        return 0;
}

int lg_pass_read(struct span pass, struct lg_pass_names *out) {
        const char *dot = pass.p ? memchr(pass.p, '.', pass.len) : NULL;
        if (!dot)
                return 1;
        size_t left = pass.len - (size_t)(dot - pass.p) - 1;
        const char *second = memchr(dot + 1, '.', left);
        if (!second)
                return 1;
        char payload[PAYLOAD_MAX];
        size_t len = 0;
        struct span middle = {dot + 1, (size_t)(second - dot) - 1};
        if (base64_url_decode(payload, sizeof(payload), &len, middle) != 0)
                return 1;
        json_t *claims = json_loadb(payload, len, 0, NULL);
        int bad = copy_claim(claims, "jti", out->jti, sizeof(out->jti)) ||
                  copy_claim(claims, "sub", out->sub, sizeof(out->sub));
        json_decref(claims);
        return bad;
}
