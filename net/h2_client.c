#include "net/h2_client.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "net/h2_limits.h"
#include "net/h2_orphans.h"
#include "net/h2_request.h"

#define CONNECTION_WINDOW (1 << 20) /* given back as data comes: no call can eat it up */
#define GLITCH_BURST 1000
#define GLITCH_PER_S 100
#define GLITCHES_A_CALL 16 /* go without saying */
#define GLITCHES_PAID_MAX 1000
#define ACKS_MAX 100    /* answers to PING and SETTINGS the peer does not take */
#define QUEUED_MAX 1000 /* frames not yet put out */
#define KEEP_SLOTS 64   /* of events and fields, between batches */

static const struct h2_bucket_conf glitch_limit = {GLITCH_BURST, GLITCH_PER_S};

struct record {
        enum client_event_kind kind;
        enum client_end end;
        struct client_call *call; /* NULL: cancelled since */
        union {
                const char *data;
                size_t first_field;
        };
        uint32_t n; /* bytes of data, or fields */
        int status;
};

/* A head's fields point into reference counted strings of the library. */
struct strings {
        nghttp2_rcbuf *name;
        nghttp2_rcbuf *value;
};

/* The header block on its way in; blocks never interleave. */
struct block {
        struct client_call *call; /* NULL: nobody wants it */
        uint32_t bytes;
        int status;
        bool is_over_limit;
};

struct h2_client {
        nghttp2_session *session;
        struct client_session_conf conf;
        struct h2_bucket glitches;
        uint32_t glitches_paid;
        int64_t now_ms;
        uint64_t bytes_in, bytes_useful;
        uint64_t bytes_out;
        struct record *records;
        size_t n_records, next_record, record_slots;
        struct http_header *fields; /* `n_kept` belong to records, the rest to `block` */
        struct strings *strings;
        size_t n_fields, n_kept, field_slots;
        struct block block;
        size_t consumed; /* bytes of data in this batch */
        uint32_t n_open;
        struct h2_orphans orphans;
        struct http_client_counters *counters, own_counters;
        bool greeted, going, over, abused;
};

static struct client_call *call_of(nghttp2_session *session, int32_t stream) {
        return stream ? nghttp2_session_get_stream_user_data(session, stream) : NULL;
}

static struct record *add_record(struct h2_client *h, enum client_event_kind kind,
                                 struct client_call *call) {
        if (h->n_records == h->record_slots) {
                size_t slots = h->record_slots ? h->record_slots * 2 : 8;
                struct record *grown = realloc(h->records, slots * sizeof(*grown));

                if (!grown)
                        return NULL;
                h->records = grown;
                h->record_slots = slots;
        }

        struct record *r = &h->records[h->n_records++];

        *r = (struct record){.kind = kind, .call = call};
        return r;
}

static int add_end(struct h2_client *h, struct client_call *call, enum client_end end) {
        struct record *r = add_record(h, CLIENT_EVENT_END, call);

        if (!r)
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        r->end = end;
        call->ended = true;
        return 0;
}

static void drop_fields(struct h2_client *h, size_t from, size_t to) {
        for (size_t i = from; i < to; i++) {
                nghttp2_rcbuf_decref(h->strings[i].name);
                nghttp2_rcbuf_decref(h->strings[i].value);
        }
}

static void drop_block_fields(struct h2_client *h) {
        drop_fields(h, h->n_kept, h->n_fields);
        h->n_fields = h->n_kept;
}

static int grow_fields(struct h2_client *h) {
        size_t slots = h->field_slots ? h->field_slots * 2 : 16;
        struct http_header *fields = realloc(h->fields, slots * sizeof(*fields));

        if (!fields)
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        h->fields = fields;

        struct strings *strings = realloc(h->strings, slots * sizeof(*strings));

        if (!strings)
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        h->strings = strings;
        h->field_slots = slots;
        return 0;
}

static struct span span_of_rcbuf(nghttp2_rcbuf *b) {
        nghttp2_vec v = nghttp2_rcbuf_get_buf(b);

        return (struct span){(const char *)v.base, v.len};
}

/* Honest peers send small frames along with answers, the faster we ask the
 * more; so every call pays for some. */
static void add_glitch(struct h2_client *h, uint32_t weight) {
        if (h->glitches_paid >= weight)
                h->glitches_paid -= weight;
        else if (!h2_bucket_add(&h->glitches, glitch_limit, weight, h->now_ms))
                h->abused = true;
}

/* Callbacks of the library: they record, and do nothing else. */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
        struct h2_client *h = user;
        struct client_call *call = call_of(session, frame->hd.stream_id);

        drop_block_fields(h);
        h->block = (struct block){.call = call && !call->ended ? call : NULL};
        return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                     nghttp2_rcbuf *value, uint8_t flags, void *user) {
        struct h2_client *h = user;
        struct block *b = &h->block;
        struct span n = span_of_rcbuf(name), v = span_of_rcbuf(value);

        (void)session;
        (void)frame;
        (void)flags;
        h->bytes_useful += n.len + v.len;
        if (!b->call || b->is_over_limit)
                return 0;
        b->bytes += (uint32_t)(n.len + v.len) + 32;
        if (b->bytes > h->conf.header_bytes) {
                b->is_over_limit = true;
                drop_block_fields(h);
                return 0;
        }
        if (n.len && n.p[0] == ':') {
                /* Only :status, and three digits: the library has checked. */
                b->status = (v.p[0] - '0') * 100 + (v.p[1] - '0') * 10 + (v.p[2] - '0');
                return 0;
        }
        if (b->call->head_seen)
                return 0; /* trailers: counted, not kept */
        if (h->n_fields == h->field_slots && grow_fields(h) != 0)
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        nghttp2_rcbuf_incref(name);
        nghttp2_rcbuf_incref(value);
        h->strings[h->n_fields] = (struct strings){name, value};
        h->fields[h->n_fields++] =
                (struct http_header){.name = n, .value = v, .id = http_field_of(n)};
        return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t len, void *user) {
        struct h2_client *h = user;
        struct client_call *call = call_of(session, stream);
        struct record *r;

        (void)flags;
        h->consumed += len;
        h->bytes_useful += len;
        if (!call || call->ended || len == 0)
                return 0;
        r = add_record(h, CLIENT_EVENT_DATA, call);
        if (!r)
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        r->data = (const char *)data;
        r->n = (uint32_t)len;
        return 0;
}

/* A header block is complete. */
static int end_block(struct h2_client *h) {
        struct client_call *call = h->block.call;
        struct record *r;

        h->block.call = NULL;
        if (!call || call->ended)
                return 0;
        if (h->block.is_over_limit) {
                call->needs_reset = true;
                return add_end(h, call, CLIENT_END_MALFORMED);
        }
        if (call->head_seen)
                return 0;
        if (h->block.status < 200) {
                add_glitch(h, 1);
                drop_block_fields(h);
                return 0;
        }
        r = add_record(h, CLIENT_EVENT_HEAD, call);
        if (!r)
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        r->status = h->block.status;
        r->first_field = h->n_kept;
        r->n = (uint32_t)(h->n_fields - h->n_kept);
        h->n_kept = h->n_fields;
        call->head_seen = true;
        return 0;
}

/* Judges frames by what they cost and what they bring. */
static void weigh(struct h2_client *h, const nghttp2_frame *frame) {
        switch (frame->hd.type) {
        case NGHTTP2_DATA:
                if (frame->hd.length == frame->data.padlen &&
                    !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
                        add_glitch(h, H2_GLITCH_EMPTY);
                break;
        case NGHTTP2_SETTINGS:
                add_glitch(h, H2_GLITCH_SETTINGS);
                break;
        case NGHTTP2_GOAWAY:
                add_glitch(h, H2_GLITCH_GOAWAY);
                break;
        case NGHTTP2_WINDOW_UPDATE:
                if (frame->window_update.window_size_increment < H2_TINY_WINDOW)
                        add_glitch(h, H2_GLITCH_TINY_WINDOW);
                break;
        case NGHTTP2_PING:
        case NGHTTP2_PRIORITY:
                add_glitch(h, H2_GLITCH_PING);
                break;
        default:
                break;
        }
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
        struct h2_client *h = user;
        struct client_call *call;
        int r = 0;

        weigh(h, frame);
        switch (frame->hd.type) {
        case NGHTTP2_HEADERS:
                r = end_block(h);
                break;
        case NGHTTP2_SETTINGS:
                if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
                        h->greeted = true;
                return 0;
        case NGHTTP2_GOAWAY:
                h->going = true;
                return 0;
        case NGHTTP2_RST_STREAM:
                call = call_of(session, frame->hd.stream_id);
                if (call)
                        call->peer_reset = true;
                return 0;
        default:
                break;
        }
        if (r != 0 || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
            (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
                return r;
        call = call_of(session, frame->hd.stream_id);
        return call && !call->ended ? add_end(h, call, CLIENT_END_COMPLETE) : 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *user) {
        struct client_call *call = call_of(session, stream);
        enum client_end end = CLIENT_END_BROKEN;

        if (!call)
                h2_orphans_remove(&((struct h2_client *)user)->orphans, stream);
        if (!call || call->ended)
                return 0;
        if (code == NGHTTP2_REFUSED_STREAM && !call->head_seen)
                end = CLIENT_END_REFUSED;
        else if (!call->peer_reset && code != NGHTTP2_INTERNAL_ERROR)
                end = CLIENT_END_MALFORMED;
        return add_end(user, call, end);
}

static int on_before_send(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
        struct h2_client *h = user;
        struct client_call *call;

        if (frame->hd.type != NGHTTP2_HEADERS)
                return 0;
        call = call_of(session, frame->hd.stream_id);
        if (call && call->first_byte == UINT64_MAX)
                call->first_byte = h->bytes_out;
        return 0;
}

static int on_send(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
        struct h2_client *h = user;

        (void)session;
        if (frame->hd.type == NGHTTP2_RST_STREAM)
                metrics_add(&h->counters->resets, 1);
        if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
                h->over = true;
        return 0;
}

static int new_session(struct h2_client *h) {
        nghttp2_session_callbacks *cb = NULL;
        nghttp2_option *option = NULL;
        int r = -ENOMEM;

        if (nghttp2_session_callbacks_new(&cb) == 0 && nghttp2_option_new(&option) == 0) {
                nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
                nghttp2_session_callbacks_set_on_header_callback2(cb, on_header);
                nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
                nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
                nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
                nghttp2_session_callbacks_set_before_frame_send_callback(cb, on_before_send);
                nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_send);
                nghttp2_option_set_no_auto_window_update(option, 1);
                nghttp2_option_set_no_closed_streams(option, 1);
                nghttp2_option_set_max_reserved_remote_streams(option, 0);
                nghttp2_option_set_max_outbound_ack(option, ACKS_MAX);
                if (nghttp2_session_client_new2(&h->session, cb, h, option) == 0)
                        r = 0;
        }
        nghttp2_option_del(option);
        nghttp2_session_callbacks_del(cb);
        return r;
}

struct h2_client *h2_client_new(const struct client_session_conf *conf) {
        struct h2_client *h = calloc(1, sizeof(*h));
        const nghttp2_settings_entry settings[] = {
                {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, conf->window_bytes},
                {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, conf->header_bytes},
        };
        int32_t window = CONNECTION_WINDOW;

        if (!h)
                return NULL;
        h->conf = *conf;
        h->counters = conf->counters ? conf->counters : &h->own_counters;
        if (conf->window_bytes > (uint32_t)window)
                window = (int32_t)conf->window_bytes;
        if (new_session(h) != 0 ||
            nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings,
                                    NET_COUNT_OF(settings)) != 0 ||
            nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, window) != 0)
                h2_client_free(&h);
        return h;
}

void h2_client_free(struct h2_client **hp) {
        struct h2_client *h = *hp;

        *hp = NULL;
        if (!h)
                return;
        drop_fields(h, 0, h->n_fields);
        nghttp2_session_del(h->session);
        free(h->fields);
        free(h->strings);
        free(h->records);
        free(h);
}

int h2_client_submit(struct h2_client *h, struct client_call *call,
                     const struct http_call_request *r, bool kept) {
        int id;

        if (h2_client_is_going(h))
                return -ENOTCONN;
        if (h2_client_room(h) == 0)
                return -EAGAIN;
        id = kept ? 0 : h2_request_check(r);
        if (id < 0)
                return id;
        *call = (struct client_call){.body = r->body, .first_byte = UINT64_MAX};
        id = h2_request_submit(h->session, call, r, kept);
        h->going |= id == -ENOTCONN;
        if (id < 0)
                return id;
        call->stream = id;
        h->n_open++;
        if (h->glitches_paid < GLITCHES_PAID_MAX)
                h->glitches_paid += GLITCHES_A_CALL;
        return 0;
}

/* The library holds the call no longer. */
static void detach(struct h2_client *h, struct client_call *call) {
        assert(h->n_open > 0);
        h->n_open--;
        (void)nghttp2_session_set_stream_user_data(h->session, call->stream, NULL);
        if (h->block.call == call)
                h->block.call = NULL;
}

/* Failing to submit means no memory: the next output fails, too. */
static void reset(struct h2_client *h, int32_t stream, uint32_t code) {
        (void)nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, stream, code);
}

/* An answer under way to a request that is out may end by itself. What is too
 * much of that goes down with the connection. */
static bool let_run(struct h2_client *h, const struct client_call *call) {
        if (call->ended || call->first_byte == UINT64_MAX ||
            nghttp2_session_get_stream_local_close(h->session, call->stream) == 0)
                return false;
        if (h2_orphans_add(&h->orphans, call->stream, h->now_ms))
                metrics_add(&h->counters->let_run, 1);
        if (h->orphans.n < H2_ORPHANS_MAX || h->going)
                return true;
        h->going = true;
        metrics_add(&h->counters->given_up, 1);
        return true;
}

void h2_client_cancel(struct h2_client *h, struct client_call *call) {
        bool is_running = let_run(h, call), ended = call->ended;

        for (size_t i = h->next_record; i < h->n_records; i++)
                if (h->records[i].call == call)
                        h->records[i].call = NULL;
        detach(h, call);
        if (!is_running && (!ended || call->needs_reset ||
                            nghttp2_session_get_stream_local_close(h->session, call->stream) == 0))
                reset(h, call->stream, NGHTTP2_CANCEL);
        call->ended = true;
}

int64_t h2_client_tick(struct h2_client *h, int64_t now_ms) {
        int32_t stream;

        h->now_ms = now_ms;
        while ((stream = h2_orphans_expire(&h->orphans, now_ms)))
                reset(h, stream, NGHTTP2_CANCEL);
        return h2_orphans_due_ms(&h->orphans, now_ms);
}

void h2_client_consumed(struct h2_client *h, struct client_call *call, size_t n) {
        if (!call->ended)
                (void)nghttp2_session_consume_stream(h->session, call->stream, n);
}

int h2_client_feed(struct h2_client *h, struct span data, int64_t now_ms) {
        ssize_t n;

        h->now_ms = now_ms;
        h->bytes_in += data.len;
        n = nghttp2_session_mem_recv(h->session, (const uint8_t *)data.p, data.len);
        if (n < 0)
                return n == NGHTTP2_ERR_NOMEM || n == NGHTTP2_ERR_CALLBACK_FAILURE ? -ENOMEM
                                                                                   : -EPROTO;
        assert((size_t)n == data.len);
        if (h->abused || h->bytes_in / 8 > h->bytes_useful + H2_USELESS_BYTES)
                return -EPROTO;
        return 0;
}

static void take_end(struct h2_client *h, struct client_call *call) {
        /* An answer may end before its request: the rest is not wanted. */
        bool is_half_open = nghttp2_session_get_stream_local_close(h->session, call->stream) == 0;

        detach(h, call);
        if (call->needs_reset)
                reset(h, call->stream, NGHTTP2_CANCEL);
        else if (is_half_open)
                reset(h, call->stream, NGHTTP2_NO_ERROR);
}

bool h2_client_next(struct h2_client *h, struct client_event *out) {
        while (h->next_record < h->n_records) {
                const struct record *r = &h->records[h->next_record++];

                if (!r->call)
                        continue;
                *out = (struct client_event){.kind = r->kind, .end = r->end, .call = r->call};
                switch (r->kind) {
                case CLIENT_EVENT_HEAD:
                        out->status = r->status;
                        out->headers = r->n ? h->fields + r->first_field : NULL;
                        out->n_headers = r->n;
                        break;
                case CLIENT_EVENT_DATA:
                        out->data = (struct span){r->data, r->n};
                        break;
                case CLIENT_EVENT_END:
                        take_end(h, r->call);
                        break;
                }
                return true;
        }
        return false;
}

/* A connection without calls keeps no memory for them. */
static void give_memory_back(struct h2_client *h) {
        if (h->n_records == 0 && (h->n_open == 0 || h->record_slots > KEEP_SLOTS)) {
                free(h->records);
                h->records = NULL;
                h->record_slots = 0;
        }
        if (h->n_fields == 0 && (h->n_open == 0 || h->field_slots > KEEP_SLOTS)) {
                free(h->fields);
                free(h->strings);
                h->fields = NULL;
                h->strings = NULL;
                h->field_slots = 0;
        }
}

void h2_client_done(struct h2_client *h) {
        size_t unfinished = h->n_fields - h->n_kept;

        assert(h->next_record == h->n_records);
        h->n_records = h->next_record = 0;
        drop_fields(h, 0, h->n_kept);
        if (h->n_kept && unfinished) {
                memmove(h->fields, h->fields + h->n_kept, unfinished * sizeof(*h->fields));
                memmove(h->strings, h->strings + h->n_kept, unfinished * sizeof(*h->strings));
        }
        h->n_fields = unfinished;
        h->n_kept = 0;
        if (h->consumed)
                (void)nghttp2_session_consume_connection(h->session, h->consumed);
        h->consumed = 0;
        give_memory_back(h);
}

int h2_client_output(struct h2_client *h, struct span *out) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(h->session, &data);

        if (n < 0)
                return n == NGHTTP2_ERR_NOMEM || n == NGHTTP2_ERR_CALLBACK_FAILURE ? -ENOMEM
                                                                                   : -EPROTO;
        *out = (struct span){(const char *)data, (size_t)n};
        h->bytes_out += (uint64_t)n;
        return n > 0;
}

bool h2_client_is_greeted(const struct h2_client *h) {
        return h->greeted;
}

bool h2_client_is_going(const struct h2_client *h) {
        return h->going || h->over;
}

bool h2_client_is_over(const struct h2_client *h) {
        return h->over;
}

uint32_t h2_client_room(const struct h2_client *h) {
        uint32_t peers = nghttp2_session_get_remote_settings(
                h->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
        uint32_t most = peers < h->conf.max_streams ? peers : h->conf.max_streams;

        if (h2_client_is_going(h) || h->n_open + h->orphans.n >= most)
                return 0;
        /* A peer that takes no bytes would make cancelled calls pile up. */
        if (nghttp2_session_get_outbound_queue_size(h->session) > QUEUED_MAX)
                return 0;
        return most - h->n_open - h->orphans.n;
}
