#include "loadgen/overload/pipe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_STEP ((uint32_t)16 << 20)
#define HUGE_WINDOW ((uint32_t)H2_WINDOW_MAX - H2_WINDOW_FIRST)

/* ---- what is sent ---- */

static size_t field_put(uint8_t *to, uint8_t name, const char *value) {
        size_t len = strlen(value);
        to[0] = name;
        to[1] = (uint8_t)len;
        memcpy(to + 2, value, len);
        return len + 2;
}

void pipe_request(struct pipe_shared *s, const char *path) {
        char authority[32];
        uint8_t *block = s->request + H2_FRAME_HEAD;
        size_t n = 0;
        (void)snprintf(authority, sizeof authority, "127.0.0.1:%u", ntohs(s->server.sin_port));
        assert(strlen(path) < 127);
        block[n++] = 0x82; /* GET */
        block[n++] = 0x87; /* https */
        n += field_put(block + n, 0x04, path);
        n += field_put(block + n, 0x01, authority);
        h2_frame_head_put(s->request,
                          (struct h2_frame){.len = (uint32_t)n,
                                            .type = H2_HEADERS,
                                            .flags = H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM});
        s->request_len = n + H2_FRAME_HEAD;
}

static uint8_t *frame_put(struct pipe *p, struct h2_frame f) {
        uint8_t *at = p->out + p->out_len;
        assert(p->out_len + H2_FRAME_HEAD + f.len <= sizeof p->out);
        h2_frame_head_put(at, f);
        p->out_len += H2_FRAME_HEAD + f.len;
        return at + H2_FRAME_HEAD;
}

static void window_put(struct pipe *p, uint32_t bytes) {
        h2_number32_put(frame_put(p, (struct h2_frame){.len = 4, .type = H2_WINDOW_UPDATE}), bytes);
}

static void preface_put(struct pipe *p) {
        static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        memcpy(p->out, preface, sizeof preface - 1);
        p->out_len = sizeof preface - 1;
        uint8_t *set = frame_put(p, (struct h2_frame){.len = 12, .type = H2_SETTINGS});
        set[0] = set[6] = 0;
        set[1] = H2_SET_HEADER_TABLE_SIZE;
        h2_number32_put(set + 2, 0);
        set[7] = H2_SET_INITIAL_WINDOW_SIZE;
        h2_number32_put(set + 8, (uint32_t)H2_WINDOW_MAX);
        window_put(p, HUGE_WINDOW);
}

static int64_t *slot_of(struct pipe *p, int32_t stream) {
        return &p->due_us[(uint32_t)stream / 2 % PIPE_SLOTS];
}

bool pipe_ask(struct pipe *p, int64_t due_us) {
        const struct pipe_shared *s = p->shared;
        int64_t *slot = slot_of(p, p->next_stream);
        if (p->state != PIPE_OPEN || p->in_flight == PIPE_STREAMS || *slot != 0 ||
            p->out_len + s->request_len + 64 > sizeof p->out)
                return false;
        uint8_t *at = p->out + p->out_len;
        memcpy(at, s->request, s->request_len);
        h2_number32_put(at + 5, (uint32_t)p->next_stream);
        p->out_len += (uint32_t)s->request_len;
        p->next_stream += 2;
        p->in_flight++;
        *slot = due_us;
        return true;
}

/* ---- the end ---- */

void pipe_close(struct pipe *p) {
        if (p->state == PIPE_CLOSED)
                return;
        p->state = PIPE_CLOSED;
        loop_io_want(&p->io, 0);
        tls_free(&p->tls);
        (void)close(p->io.fd);
}

static void end(struct pipe *p, enum pipe_end how) {
        pipe_close(p);
        for (uint32_t i = 0; i < PIPE_SLOTS; i++) {
                int64_t due_us = p->due_us[i];
                p->due_us[i] = 0;
                if (due_us != 0)
                        p->shared->on_answer(p, 0, due_us);
        }
        p->in_flight = 0;
        p->shared->on_end(p, how);
}

bool pipe_leave(struct pipe *p) {
        bool is_done = p->state == PIPE_LEAVING && p->in_flight == 0;
        if (is_done)
                end(p, PIPE_LEFT);
        return is_done;
}

static void fail(struct pipe *p) {
        if (!pipe_leave(p))
                end(p, p->is_heard ? PIPE_LOST : PIPE_REFUSED);
}

void pipe_flush(struct pipe *p) {
        size_t done = 0;
        int r = TLS_DONE;
        if (p->state != PIPE_OPEN && p->state != PIPE_LEAVING)
                return;
        while (done < p->out_len && r == TLS_DONE) {
                size_t n = 0;
                r = tls_write(p->tls, p->out + done, p->out_len - done, &n);
                if (r == TLS_DONE)
                        done += n;
        }
        p->out_len -= (uint32_t)done;
        if (done > 0)
                memmove(p->out, p->out + done, p->out_len);
        if (r != TLS_DONE && r != TLS_WANT_READ && r != TLS_WANT_WRITE)
                fail(p);
        else
                loop_io_want(&p->io, p->out_len > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

/* ---- what is read ---- */

static void settle_stream(struct pipe *p, int32_t stream, int status) {
        int64_t *slot = slot_of(p, stream);
        int64_t due_us = *slot;
        if (due_us == 0)
                return;
        *slot = 0;
        p->in_flight--;
        p->shared->on_answer(p, status, due_us);
}

/* A status of the static table, or three digits behind its name. */
static int status_of(const uint8_t *block) {
        static const int known[] = {200, 204, 206, 304, 400, 404, 500};
        while ((*block & 0xe0) == 0x20) /* a new size of the table */
                block++;
        if (*block >= 0x88 && *block <= 0x8e)
                return known[*block - 0x88];
        if ((*block & 0x0f) != 8 || block[1] != 3)
                return 0;
        return (block[2] - '0') * 100 + (block[3] - '0') * 10 + (block[4] - '0');
}

/* What the server does not answer any more. */
static void go_away(struct pipe *p, int32_t last) {
        p->state = PIPE_LEAVING;
        int32_t oldest = p->next_stream - 2 * (int32_t)PIPE_SLOTS;
        for (int32_t at = p->next_stream - 2; at > last && at > 0 && at >= oldest; at -= 2)
                settle_stream(p, at, 0);
}

static void on_frame(struct pipe *p, struct h2_frame f) {
        const uint8_t *payload = p->head + H2_FRAME_HEAD;
        switch (f.type) {
        case H2_SETTINGS:
                if (!(f.flags & H2_FLAG_ACK))
                        (void)frame_put(
                                p, (struct h2_frame){.type = H2_SETTINGS, .flags = H2_FLAG_ACK});
                break;
        case H2_HEADERS: /* the answer counts when it begins to come: it comes whole */
                settle_stream(p, f.stream, status_of(payload));
                break;
        case H2_RST_STREAM:
                settle_stream(p, f.stream, 0);
                break;
        case H2_GOAWAY:
                go_away(p, (int32_t)(h2_number32(payload) & 0x7FFFFFFF));
                break;
        case H2_DATA:
                p->unacknowledged += f.len;
                break;
        default:
                break;
        }
}

static size_t smaller(size_t a, size_t b) {
        return a < b ? a : b;
}

/* Keeps the frame's head and the first bytes of its payload. */
static void frames_read(struct pipe *p, const uint8_t *at, size_t n) {
        while (n > 0) {
                if (p->head_len < H2_FRAME_HEAD) {
                        size_t some = smaller(n, H2_FRAME_HEAD - p->head_len);
                        memcpy(p->head + p->head_len, at, some);
                        p->head_len += (uint32_t)some;
                        at += some;
                        n -= some;
                        if (p->head_len < H2_FRAME_HEAD)
                                return;
                        p->left = h2_frame_head(p->head).len;
                }
                size_t some = smaller(n, p->left);
                size_t kept = smaller(some, sizeof p->head - p->head_len);
                memcpy(p->head + p->head_len, at, kept);
                p->head_len += (uint32_t)kept;
                at += some;
                n -= some;
                p->left -= (uint32_t)some;
                if (p->left > 0)
                        return;
                on_frame(p, h2_frame_head(p->head));
                p->head_len = 0;
        }
}

static void read_all(struct pipe *p) {
        uint8_t bytes[H2_FRAME_MAX];
        int r;
        size_t n;
        while ((r = tls_read(p->tls, bytes, sizeof bytes, &n)) == TLS_DONE) {
                p->is_heard = true;
                frames_read(p, bytes, n);
        }
        if (p->unacknowledged > WINDOW_STEP && p->out_len + 64 < sizeof p->out) {
                window_put(p, p->unacknowledged);
                p->unacknowledged = 0;
        }
        if (r != TLS_WANT_READ && r != TLS_WANT_WRITE) {
                fail(p);
        } else {
                p->shared->on_read(p);
                pipe_flush(p);
        }
}

/* ---- opening ---- */

static void go_on_opening(struct pipe *p, unsigned events) {
        int error = 0;
        socklen_t len = sizeof error;
        if (!p->is_connected &&
            (getsockopt(p->io.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0)) {
                fail(p);
                return;
        }
        int r = tls_handshake(p->tls);
        p->is_heard = p->is_connected && (events & LOOP_READ) && r == TLS_WANT_READ;
        p->is_connected = true;
        if (r == TLS_DONE) {
                p->is_heard = true;
                p->state = PIPE_OPEN;
                preface_put(p);
                p->shared->on_open(p);
                pipe_flush(p);
        } else if (r == TLS_WANT_READ || r == TLS_WANT_WRITE) {
                loop_io_want(&p->io, r == TLS_WANT_READ ? LOOP_READ : LOOP_WRITE);
        } else {
                fail(p);
        }
}

static void on_ready(struct loop_io *io, unsigned events) {
        struct pipe *p = NET_CONTAINER_OF(io, struct pipe, io);
        if (p->state == PIPE_OPENING)
                go_on_opening(p, events);
        else if (events & LOOP_READ)
                read_all(p);
        else
                pipe_flush(p);
}

int pipe_open(struct pipe *p, struct pipe_shared *s) {
        int one = 1;
        const struct sockaddr *to = (const struct sockaddr *)&s->server;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct tls *tls = tls_connect_new(s->tls, fd, "localhost");
        if (!tls || (connect(fd, to, sizeof s->server) != 0 && errno != EINPROGRESS)) {
                int r = tls ? -errno : -ENOMEM;
                tls_free(&tls);
                (void)close(fd);
                return r;
        }
        *p = (struct pipe){.shared = s, .tls = tls, .state = PIPE_OPENING, .next_stream = 1};
        loop_io_init(s->loop, &p->io, fd, on_ready);
        loop_io_want(&p->io, LOOP_WRITE);
        return 0;
}
