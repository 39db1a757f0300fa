#include "net/http_session.h"

#include "net/h2_repeat.h"

struct http_stream *http_stream_new(struct http_session *s, int32_t id) {
        struct arena arena;
        arena_init(&arena, s->conf->pool);
        struct http_stream *st = arena_take(&arena, sizeof *st);
        if (!st) {
                arena_fini(&arena);
                return NULL;
        }
        memset(st, 0, sizeof *st);
        st->arena = arena;
        st->session = s;
        st->id = id;
        http_head_init(&st->head);
        buf_init(&st->body, HTTP_STREAM_WINDOW);
        buf_init(&st->out, HTTP_STREAM_QUEUE_MAX);
        st->next = s->streams;
        if (st->next)
                st->next->prev = st;
        s->streams = st;
        s->n_streams++;
        return st;
}

static void stream_free(struct http_stream *st) {
        struct http_session *s = st->session;
        if (st->prev)
                st->prev->next = st->next;
        else
                s->streams = st->next;
        if (st->next)
                st->next->prev = st->prev;
        s->n_streams--;
        s->stored_bytes -= st->stored;
        http_page_free(&st->page);
        h2_repeat_free(&st->repeat);
        buf_fini(&st->body);
        buf_fini(&st->out);
        arena_fini(&st->arena);
}

void http_stream_reap(struct http_stream *st) {
        if (st->closed && !st->held && !st->queued)
                stream_free(st);
}

void http_session_free_streams(struct http_session *s) {
        while (s->streams)
                stream_free(s->streams);
        s->last_event = NULL;
}

void http_stream_note(struct http_stream *st, unsigned event) {
        struct http_session *s = st->session;
        st->events |= event;
        if (st->queued)
                return;
        st->queued = true;
        st->next_event = st;
        if (s->last_event) {
                st->next_event = s->last_event->next_event;
                s->last_event->next_event = st;
        }
        s->last_event = st;
}

void http_stream_field(struct http_stream *st, const struct http_field_seen *f) {
        struct http_session *s = st->session;
        uint32_t before = st->head.bytes;
        http_head_add(&st->head, &st->arena, &s->conf->head, f);
        if (st->head.over_budget)
                return;
        st->stored += st->head.bytes - before;
        s->stored_bytes += st->head.bytes - before;
        if (s->stored_bytes > HTTP_SESSION_STORED_MAX)
                st->head.over_budget = true;
}

bool http_stream_body(struct http_stream *st, const void *data, size_t len) {
        if (!st->discard_body && !st->body_lost) {
                if (buf_append(&st->body, data, len) == 0)
                        return true;
                st->body_lost = true;
                buf_release(&st->body);
        }
        return false;
}

static struct http_stream *event_pop(struct http_session *s) {
        if (!s->last_event)
                return NULL;
        struct http_stream *st = s->last_event->next_event;
        if (st == s->last_event)
                s->last_event = NULL;
        else
                s->last_event->next_event = st->next_event;
        st->queued = false;
        return st;
}

struct http_stream *http_session_next(struct http_session *s, unsigned *events) {
        for (struct http_stream *st; (st = event_pop(s));) {
                *events = st->events;
                st->events = 0;
                if (st->closed && !st->held) {
                        stream_free(st);
                        continue;
                }
                if (st->closed) {
                        *events = HTTP_STREAM_GONE;
                        return st;
                }
                if (*events & HTTP_STREAM_HEAD) {
                        st->head_seen = true;
                        st->held = true;
                }
                if (st->held && *events != 0)
                        return st;
        }
        return NULL;
}

void http_stream_release(struct http_stream *st) {
        assert(st->held);
        st->held = false;
        st->user = NULL;
        http_stream_reap(st);
}

size_t http_session_queued(const struct http_session *s) {
        size_t n = 0;
        for (const struct http_stream *st = s->streams; st; st = st->next)
                n += http_stream_queued(st);
        return n;
}

size_t http_stream_pull(struct http_stream *st, char *out, size_t size, bool *end) {
        size_t n = st->fixed.len - st->fixed_at;
        if (n > size)
                n = size;
        if (n > 0) {
                memcpy(out, st->fixed.p + st->fixed_at, n);
                st->fixed_at += n;
        }
        size_t more = buf_len(&st->out);
        if (more > size - n)
                more = size - n;
        if (more > 0) {
                memcpy(out + n, buf_span(&st->out).p, more);
                buf_eat(&st->out, more);
                if (st->want_drain && buf_len(&st->out) < HTTP_STREAM_QUEUE / 2) {
                        st->want_drain = false;
                        http_stream_note(st, HTTP_STREAM_DRAIN);
                }
        }
        *end = st->out_end && http_stream_queued(st) == 0;
        return n + more;
}
