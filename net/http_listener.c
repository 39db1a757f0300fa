#include "net/http_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/http_conn.h"
#include "net/http_memory.h"
#include "net/log.h"

#define BACKLOG 4096
#define REST_MS 100
#define SHEDS_PER_TURN 256
#define USER_TIMEOUT_MS 20000
/* A client that sends nothing is not even accepted for so long. */
#define DEFER_S 2

static int port_parse(const char *text, uint16_t *port) {
        char *end;
        unsigned long n = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || *end != '\0' || n > 65535)
                return -EINVAL;
        *port = (uint16_t)n;
        return 0;
}

static int address_parse(const char *text, union net_address *a, socklen_t *len) {
        char host[INET6_ADDRSTRLEN + 1];
        uint16_t port;
        const char *colon = strrchr(text, ':');
        bool is_v6 = text[0] == '[';
        if (!colon || port_parse(colon + 1, &port) != 0)
                return -EINVAL;
        const char *from = text + is_v6;
        size_t n = (size_t)(colon - from);
        if (is_v6 && (n == 0 || from[--n] != ']'))
                return -EINVAL;
        if (n >= sizeof host)
                return -EINVAL;
        memcpy(host, from, n);
        host[n] = '\0';
        memset(a, 0, sizeof *a);
        if (is_v6) {
                a->v6.sin6_family = AF_INET6;
                a->v6.sin6_port = htons(port);
                *len = sizeof a->v6;
                return inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1 ? 0 : -EINVAL;
        }
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons(port);
        *len = sizeof a->v4;
        return inet_pton(AF_INET, host, &a->v4.sin_addr) == 1 ? 0 : -EINVAL;
}

static void log_accept_error(int error) {
        log_event_limited(1, LOG_WARN, "listener", "cannot accept", LOG_E("error", -error));
}

static void rest(struct http_listener *li) {
        loop_io_want(&li->io, 0);
        loop_timer_start(&li->rest, REST_MS);
}

/* Out of descriptors: the client at the front is told by a close, which
 * needs a descriptor to accept it with. */
static void shed_one(struct http_listener *li) {
        if (li->spare_fd >= 0)
                (void)close(li->spare_fd);
        int fd = accept4(li->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
                (void)close(fd);
        li->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_failed(struct http_listener *li, int error) {
        switch (error) {
        case EAGAIN:
        case EINTR:
        case ECONNABORTED:
                return;
        case EMFILE:
        case ENFILE:
                shed_one(li);
                break;
        default:
                break;
        }
        li->hub->behind_at_ms = loop_now_ms(li->hub->loop);
        metrics_add(&li->hub->counters.accept_errors, 1);
        log_accept_error(error);
        rest(li);
}

/* The next one in the queue, or < 0. */
static int take_next(struct http_listener *li, union net_address *peer) {
        socklen_t len = sizeof *peer;
        *peer = (union net_address){.v6 = {0}};
        return accept4(li->fd, &peer->any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* True while there may be more in the queue. */
static bool accept_one(struct http_listener *li) {
        union net_address peer;
        int fd = take_next(li, &peer);
        if (fd >= 0) {
                http_conn_open(li->hub, fd, &peer);
                return true;
        }
        li->behind_since_ms = 0;
        accept_failed(li, errno);
        return false;
}

/* Closing with bytes unread resets the connection: its client knows at once. */
static void shed_all(struct http_listener *li, struct metrics_counter *why) {
        for (int i = 0; i < SHEDS_PER_TURN; i++) {
                union net_address peer;
                int fd = take_next(li, &peer);
                if (fd < 0) {
                        li->behind_since_ms = 0;
                        accept_failed(li, errno);
                        return;
                }
                (void)close(fd);
                metrics_add(why, 1);
        }
}

/* As many were taken as may be in this turn. If some are left, the loop will
 * call again in the next one. */
static void fall_behind(struct http_listener *li, struct metrics_counter *why) {
        struct http_hub *h = li->hub;
        int64_t now_ms = loop_now_ms(h->loop);
        int64_t wait_ms = h->conf.limits.accept_wait_ms;
        struct pollfd queue = {.fd = li->fd, .events = POLLIN};
        if (poll(&queue, 1, 0) == 0) {
                li->behind_since_ms = 0;
                return;
        }
        h->behind_at_ms = now_ms;
        if (li->behind_since_ms == 0)
                li->behind_since_ms = now_ms;
        bool waits_long = wait_ms > 0 && now_ms - li->behind_since_ms > wait_ms;
        if (waits_long || http_load_is_shut(&h->load, now_ms))
                shed_all(li, why);
}

static void on_accept(struct loop_io *io, unsigned events) {
        struct http_listener *li = NET_CONTAINER_OF(io, struct http_listener, io);
        struct http_hub *h = li->hub;
        (void)events;
        if (http_memory_is_short(h)) {
                fall_behind(li, &h->counters.refused_memory);
                rest(li);
                return;
        }
        bool is_busy = http_load_is_busy(&h->load, loop_now_ms(h->loop));
        for (uint32_t room = is_busy ? 0 : http_handshakes_room(h); room > 0; room--) {
                if (!http_handshakes_may_accept(h)) {
                        li->behind_since_ms = 0;
                        loop_io_want(&li->io, 0);
                        return;
                }
                if (!accept_one(li))
                        return;
        }
        fall_behind(li, &h->counters.refused_overload);
}

void http_listener_finish(struct http_listener *li) {
        for (int i = 0; i < BACKLOG && li->fd >= 0; i++) {
                union net_address peer;
                int fd = take_next(li, &peer);
                if (fd < 0)
                        break;
                http_conn_open(li->hub, fd, &peer);
        }
        http_listener_close(li);
}

void http_listener_wake(struct http_listener *li) {
        if (li->fd >= 0 && li->io.wanted == 0 && !loop_timer_is_started(&li->rest) &&
            http_handshakes_may_accept(li->hub))
                loop_io_want(&li->io, LOOP_READ);
}

static void on_rested(struct loop_timer *t) {
        http_listener_wake(NET_CONTAINER_OF(t, struct http_listener, rest));
}

/* Accepted sockets inherit these on Linux: no system call for each. */
static void options_set(int fd, bool reuse_port) {
        int one = 1;
        int user_timeout = USER_TIMEOUT_MS;
        int defer = DEFER_S;
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (reuse_port)
                (void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout, sizeof user_timeout);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer, sizeof defer);
}

static int socket_open(const union net_address *a, socklen_t len, bool reuse_port, uint16_t *port) {
        int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        options_set(fd, reuse_port);
        union net_address got = {.v6 = {0}};
        socklen_t got_len = sizeof got;
        if (bind(fd, &a->any, len) != 0 || listen(fd, BACKLOG) != 0 ||
            getsockname(fd, &got.any, &got_len) != 0) {
                int error = errno;
                (void)close(fd);
                return -error;
        }
        *port = ntohs(got.any.sa_family == AF_INET ? got.v4.sin_port : got.v6.sin6_port);
        return fd;
}

int http_listener_open(struct http_listener *li, struct http_hub *h, const char *address,
                       bool reuse_port) {
        union net_address a;
        socklen_t len;
        li->fd = -1;
        int r = address_parse(address, &a, &len);
        if (r != 0)
                return r;
        int fd = socket_open(&a, len, reuse_port, &li->port);
        if (fd < 0)
                return fd;
        li->hub = h;
        li->fd = fd;
        li->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        loop_timer_init(h->loop, &li->rest, on_rested);
        loop_io_init(h->loop, &li->io, fd, on_accept);
        loop_io_want(&li->io, LOOP_READ);
        return 0;
}

void http_listener_close(struct http_listener *li) {
        if (li->fd < 0)
                return;
        loop_io_want(&li->io, 0);
        loop_timer_cancel(&li->rest);
        (void)close(li->fd);
        if (li->spare_fd >= 0)
                (void)close(li->spare_fd);
        li->fd = li->spare_fd = -1;
}
