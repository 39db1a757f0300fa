#include "net/client_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define OUT_CEILING ((size_t)131072)
/* A peer whose machine is gone is noticed after this long. */
#define USER_TIMEOUT_MS 20000
#define KEEPALIVE_S 60
#define KEEPALIVE_INTERVAL_S 10

static bool parse_port(const char *text, in_port_t *port) {
        char *end;
        unsigned long n = strtoul(text, &end, 10);

        if (text[0] < '0' || text[0] > '9' || *end || n == 0 || n > 65535)
                return false;
        *port = htons((uint16_t)n);
        return true;
}

static int parse_address(const char *text, struct sockaddr_storage *out, socklen_t *len) {
        const char *colon = strrchr(text, ':');
        struct sockaddr_in *v4 = (struct sockaddr_in *)out;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
        bool is_v6 = text[0] == '[';
        char host[INET6_ADDRSTRLEN];
        size_t n = colon ? (size_t)(colon - text) : 0;

        if (is_v6 && n > 2 && text[n - 1] == ']') {
                text++;
                n -= 2;
        } else if (is_v6) {
                return -EINVAL;
        }
        if (n == 0 || n >= sizeof(host))
                return -EINVAL;
        memcpy(host, text, n);
        host[n] = '\0';
        *out = (struct sockaddr_storage){.ss_family = is_v6 ? AF_INET6 : AF_INET};
        *len = is_v6 ? sizeof(*v6) : sizeof(*v4);
        if (inet_pton(out->ss_family, host,
                      is_v6 ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr) != 1 ||
            !parse_port(colon + 1, is_v6 ? &v6->sin6_port : &v4->sin_port))
                return -EINVAL;
        return 0;
}

static void set_number(int fd, int level, int name, int value) {
        /* Only comfort: a system without the option still connects. */
        (void)setsockopt(fd, level, name, &value, sizeof(value));
}

int client_wire_open(struct client_wire *w, struct loop *l, const char *address,
                     void (*on_ready)(struct loop_io *, unsigned)) {
        struct sockaddr_storage to;
        socklen_t len;
        int fd, r = parse_address(address, &to, &len);

        if (r < 0)
                return r;
        fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        set_number(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
        set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S);
        set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
        *w = (struct client_wire){.tls = NULL};
        buf_init(&w->out, OUT_CEILING);
        loop_io_init(l, &w->io, fd, on_ready);
        if (connect(fd, (struct sockaddr *)&to, len) != 0 && errno != EINPROGRESS)
                w->failed = -errno;
        loop_io_want(&w->io, LOOP_WRITE);
        return 0;
}

void client_wire_close(struct client_wire *w, bool is_orderly) {
        loop_io_want(&w->io, 0);
        if (w->tls && is_orderly)
                tls_shutdown(w->tls);
        if (w->tls)
                tls_free(&w->tls);
        close(w->io.fd);
        w->io.fd = -1;
        buf_fini(&w->out);
}

int client_wire_connected(struct client_wire *w) {
        int error = 0;
        socklen_t len = sizeof(error);

        if (w->failed)
                return w->failed;
        if (getsockopt(w->io.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
                error = errno;
        return -error;
}

static bool agrees(const struct tls *t, unsigned alpn) {
        unsigned chosen = tls_alpn(t);

        return chosen == alpn || (chosen == 0 && alpn == TLS_ALPN_HTTP11);
}

int client_wire_secure(struct client_wire *w, struct tls_context *tls, const char *server_name,
                       unsigned alpn) {
        int r;

        if (!w->tls)
                w->tls = tls_connect_new(tls, w->io.fd, server_name);
        if (!w->tls)
                return -ENOMEM;
        r = tls_handshake(w->tls);
        switch (r) {
        case TLS_DONE:
                return agrees(w->tls, alpn) ? CLIENT_WIRE_DONE : -EPROTO;
        case TLS_WANT_READ:
        case TLS_WANT_WRITE:
                loop_io_want(&w->io, r == TLS_WANT_READ ? LOOP_READ : LOOP_WRITE);
                return CLIENT_WIRE_WAIT;
        default:
                return r < 0 ? r : -ECONNRESET;
        }
}

void client_wire_watch(struct client_wire *w, bool input) {
        unsigned events = input ? LOOP_READ : 0;

        if (buf_len(&w->out) || w->read_wants_write)
                events |= LOOP_WRITE;
        loop_io_want(&w->io, events);
}

/* One record, or one gulp of the socket; enum tls_outcome or -errno. */
static int read_once(struct client_wire *w, char *where, size_t size, size_t *n) {
        ssize_t r;

        *n = 0;
        if (w->tls)
                return tls_read(w->tls, where, size, n);
        r = recv(w->io.fd, where, size, 0);
        if (r > 0) {
                *n = (size_t)r;
                return TLS_DONE;
        }
        if (r == 0)
                return TLS_CLOSED;
        return errno == EAGAIN || errno == EINTR ? TLS_WANT_READ : -errno;
}

int client_wire_read(struct client_wire *w, char *where, size_t size, size_t *n) {
        int r = TLS_DONE;

        *n = 0;
        while (*n < size && r == TLS_DONE) {
                size_t got;

                r = read_once(w, where + *n, size - *n, &got);
                *n += got;
                if (r == TLS_DONE && !client_wire_has_more(w))
                        break;
        }
        w->read_wants_write = r == TLS_WANT_WRITE;
        switch (r) {
        case TLS_DONE:
                return client_wire_has_more(w) ? CLIENT_WIRE_DONE : CLIENT_WIRE_WAIT;
        case TLS_WANT_READ:
        case TLS_WANT_WRITE:
                return CLIENT_WIRE_WAIT;
        case TLS_CLOSED:
                return CLIENT_WIRE_CLOSED;
        default:
                return r < 0 ? r : -EPROTO;
        }
}

bool client_wire_has_more(const struct client_wire *w) {
        return w->tls && tls_has_pending(w->tls);
}

/* enum tls_outcome or -errno. */
static int write_once(struct client_wire *w, const char *data, size_t len, size_t *n) {
        ssize_t r;

        *n = 0;
        if (w->tls)
                return tls_write(w->tls, data, len, n);
        r = send(w->io.fd, data, len, MSG_NOSIGNAL);
        if (r >= 0) {
                *n = (size_t)r;
                return TLS_DONE;
        }
        return errno == EAGAIN || errno == EINTR ? TLS_WANT_WRITE : -errno;
}

/* Eats off `data` what goes. */
static int write_all(struct client_wire *w, struct span *data) {
        while (data->len) {
                size_t n;
                int r = write_once(w, data->p, data->len, &n);

                if (r == TLS_WANT_READ || r == TLS_WANT_WRITE)
                        return CLIENT_WIRE_WAIT;
                if (r != TLS_DONE)
                        return r < 0 ? r : -EPIPE;
                w->accepted += n;
                data->p += n;
                data->len -= n;
        }
        return CLIENT_WIRE_DONE;
}

int client_wire_flush(struct client_wire *w) {
        struct span rest = buf_span(&w->out);
        size_t before = rest.len;
        int r;

        if (before == 0)
                return CLIENT_WIRE_DONE;
        r = write_all(w, &rest);
        buf_eat(&w->out, before - rest.len);
        if (r == CLIENT_WIRE_DONE)
                buf_release(&w->out);
        return r;
}

int client_wire_write(struct client_wire *w, struct span data) {
        int r, kept;

        assert(buf_len(&w->out) == 0);
        r = write_all(w, &data);
        if (r != CLIENT_WIRE_WAIT)
                return r;
        kept = buf_append(&w->out, data.p, data.len);
        return kept < 0 ? kept : r;
}
