#include "tests/unit/fake_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int listen_somewhere(char address[32]) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t len = sizeof(a);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int r = bind(fd, (struct sockaddr *)&a, sizeof(a));

        assert(fd >= 0 && r == 0);
        r = listen(fd, 128);
        assert(r == 0);
        r = getsockname(fd, (struct sockaddr *)&a, &len);
        assert(r == 0);
        (void)snprintf(address, 32, "127.0.0.1:%u", ntohs(a.sin_port));
        return fd;
}

static void *run_conn(void *arg) {
        struct fake_conn *c = arg;

        c->peer->script(c);
        shutdown(c->fd, SHUT_RDWR);
        return NULL;
}

static void *run_peer(void *arg) {
        struct fake_peer *p = arg;
        int fd;

        while ((fd = accept(p->listener, NULL, NULL)) >= 0) {
                struct timeval wait = {.tv_sec = 10};
                struct fake_conn *c = calloc(1, sizeof(*c));
                int n = atomic_load(&p->n_conns), on = 1;

                assert(c && n < FAKE_PEER_CONNS);
                setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
                setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
                *c = (struct fake_conn){.peer = p, .fd = fd, .nth = n};
                p->conns[n] = c;
                atomic_store(&p->n_conns, n + 1);
                n = pthread_create(&c->thread, NULL, run_conn, c);
                assert(n == 0);
        }
        return NULL;
}

void fake_peer_start(struct fake_peer *p, void (*script)(struct fake_conn *c)) {
        int r;

        *p = (struct fake_peer){.script = script};
        p->listener = listen_somewhere(p->address);
        r = pthread_create(&p->thread, NULL, run_peer, p);
        assert(r == 0);
}

void fake_peer_stop(struct fake_peer *p) {
        shutdown(p->listener, SHUT_RDWR);
        pthread_join(p->thread, NULL);
        close(p->listener);
        for (int i = 0; i < atomic_load(&p->n_conns); i++) {
                pthread_join(p->conns[i]->thread, NULL);
                close(p->conns[i]->fd);
                free(p->conns[i]);
        }
}

/* More bytes into `in`; false at the end. */
static bool fill(struct fake_conn *c) {
        ssize_t n;

        memmove(c->in, c->in + c->in_at, c->in_len - c->in_at);
        c->in_len -= c->in_at;
        c->in_at = 0;
        n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, 0);
        if (n <= 0)
                return false;
        c->in_len += (size_t)n;
        return true;
}

bool fake_read(struct fake_conn *c, struct frame *f) {
        for (;;) {
                struct span bytes = {c->in + c->in_at, c->in_len - c->in_at};

                if (frame_take(&bytes, f)) {
                        c->in_at = c->in_len - bytes.len;
                        return true;
                }
                if (!fill(c))
                        return false;
        }
}

void fake_greet(struct fake_conn *c, uint32_t max_streams) {
        struct span bytes;

        do
                bytes = (struct span){c->in, c->in_len};
        while (!frame_take_preface(&bytes) && fill(c));
        c->in_at = c->in_len - bytes.len;
        frame_settings(&c->out, max_streams ? 3 : 0, max_streams);
        frame_settings_ack(&c->out);
        fake_send(c);
}

bool fake_await(struct fake_conn *c, enum frame_type type, struct frame *f) {
        while (fake_read(c, f))
                if (f->type == type)
                        return true;
        return false;
}

int32_t fake_await_request(struct fake_conn *c) {
        struct frame f;

        if (!fake_await(c, FRAME_HEADERS, &f))
                return 0;
        atomic_fetch_add(&c->peer->requests, 1);
        return f.stream;
}

char *fake_await_head(struct fake_conn *c) {
        for (;;) {
                char *head = c->in + c->in_at;
                char *end = memmem(head, c->in_len - c->in_at, "\r\n\r\n", 4);

                if (end) {
                        *end = '\0';
                        c->in_at = (size_t)(end + 4 - c->in);
                        atomic_fetch_add(&c->peer->requests, 1);
                        return head;
                }
                if (!fill(c))
                        return NULL;
        }
}

bool fake_take_body(struct fake_conn *c, size_t n) {
        while (c->in_len - c->in_at < n) {
                n -= c->in_len - c->in_at;
                c->in_at = c->in_len;
                if (!fill(c))
                        return false;
        }
        c->in_at += n;
        return true;
}

void fake_say(struct fake_conn *c, const char *text) {
        size_t len = strlen(text);

        while (len) {
                ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL);

                if (n <= 0)
                        return;
                text += n;
                len -= (size_t)n;
        }
}

void fake_send(struct fake_conn *c) {
        size_t at = 0;

        while (at < c->out.len) {
                ssize_t n = send(c->fd, c->out.data + at, c->out.len - at, MSG_NOSIGNAL);

                if (n <= 0)
                        break;
                at += (size_t)n;
        }
        c->out.len = 0;
}

void fake_await_end(struct fake_conn *c) {
        do
                c->in_at = c->in_len;
        while (fill(c));
}

void fake_dead_address(char out[32]) {
        close(listen_somewhere(out));
}
