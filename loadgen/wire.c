#include "loadgen/wire.h"

#include <stdio.h>

#define CALL_MS 10000
#define AGAIN_MS 100
#define ANSWER_BYTES 65536

struct waiting {
        struct lg_ask ask;
        struct loop *loop;
        struct lg_wire_answer *answer;
};

static void on_answer(struct lg_ask *a) {
        struct waiting *w = a->owner;
        if (!a->lost) {
                w->answer->status = a->status;
                w->answer->took_us = a->ended_us - a->wanted_us;
                size_t len =
                        a->len < sizeof(w->answer->text) ? a->len : sizeof(w->answer->text) - 1;
                if (len > 0)
                        memcpy(w->answer->text, a->data, len);
                w->answer->text[len] = '\0';
                if (a->len > 0)
                        w->answer->root = json_loadb(a->data, a->len, 0, NULL);
        }
        loop_stop(w->loop);
}

static void call_once(struct loop *l, const struct lg_wire_request *r,
                      struct lg_wire_answer *answer) {
        struct waiting w = {
                .loop = l,
                .answer = answer,
                .ask =
                        {
                                .on_answer = on_answer,
                                .method = span_of(r->method),
                                .path = span_of(r->path),
                                .bearer = span_of(r->token),
                                .body = span_of(r->body),
                                .deadline_ms = CALL_MS,
                                .answer_bytes = ANSWER_BYTES,
                        },
        };
        w.ask.owner = &w;
        *answer = (struct lg_wire_answer){.status = 0};
        lg_link_ask(r->link, &w.ask);
        loop_run(l);
        assert(lg_ask_is_idle(&w.ask));
}

int lg_wire_call(struct loop *l, const struct lg_wire_request *r, struct lg_wire_answer *answer) {
        int64_t until_ms = loop_clock_ms() + r->patience_ms;
        for (;;) {
                call_once(l, r, answer);
                bool definite = answer->status != 0 && answer->status < 500;
                if (definite || loop_clock_ms() >= until_ms)
                        return answer->status == 0;
                lg_wire_answer_fini(answer);
                lg_wire_sleep(l, AGAIN_MS);
        }
}

void lg_wire_answer_fini(struct lg_wire_answer *answer) {
        json_decref(answer->root);
        answer->root = NULL;
}

struct sleeper {
        struct loop_timer timer;
        struct loop *loop;
};

static void on_timer(struct loop_timer *t) {
        struct sleeper *s = NET_CONTAINER_OF(t, struct sleeper, timer);
        loop_stop(s->loop);
}

void lg_wire_sleep(struct loop *l, int64_t ms) {
        struct sleeper s = {.loop = l};
        loop_timer_init(l, &s.timer, on_timer);
        loop_timer_start(&s.timer, ms);
        loop_run(l);
}
