/* loadgen/peers/visits.c - short visits to an HTTP/2 server, which h2load does
 * not make: each is a TLS 1.3 connection of its own with one GET on it.
 *
 *   visits PORT PATH TOTAL AT_ONCE GROUP full|returning|held
 *
 * full       every handshake is a full one; the connection is closed after the answer
 * returning  AT_ONCE shoppers come again and again, each with the ticket that
 *            its last visit was given; the first visit of each is full
 * held       connections stay open after the answer until standard input ends
 *
 * Standard output: one JSON object when all visits are over or held, and, after
 * `held`, a second one with the connections lost meanwhile. Exit 0 unless the
 * arguments are wrong or nothing came for STALL_MS.
 *
 * It reads just enough of HTTP/2 to see an answer end; whether the answer is the
 * wanted one is somebody else's question.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define STALL_MS 20000
#define FRAME_HEAD 9
#define REQUEST_MAX 512
#define TEXT_MAX 126 /* longest length that HPACK writes in one byte */
#define EVENTS 64

enum frame { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, GOAWAY = 7 };
enum flag { END_STREAM = 1, ACK = 1 };
enum mode { FULL, RETURNING, HELD };

enum step {
        STEP_WAIT = 0,     /* for the server */
        STEP_ANSWERED = 1, /* the answer is complete */
        STEP_FAILED = 2,   /* refused, reset or closed */
};

struct visit {
        SSL *ssl;            /* NULL: no connection */
        SSL_SESSION *ticket; /* of the visit before, or NULL */
        int fd;
        bool is_asked;    /* the handshake is over, the request is sent */
        bool is_answered; /* held open */
        unsigned char head[FRAME_HEAD];
        size_t head_len; /* of the frame being read, 0..FRAME_HEAD */
        size_t left;     /* of its payload */
};

static struct {
        struct sockaddr_in server;
        long total, at_once;
        enum mode mode;
        unsigned char request[REQUEST_MAX];
        size_t request_len;
        SSL_CTX *tls;
        int epoll;
        long started, answered, failed, offered, resumed, lost;
} all;

/* ---- what is sent ---- */

static void put(const void *bytes, size_t len) {
        memcpy(all.request + all.request_len, bytes, len);
        all.request_len += len;
}

/* A field of the static table's name, with a value of its own, not indexed. */
static void put_field(unsigned char name, const char *value) {
        unsigned char head[2] = {name, (unsigned char)strlen(value)};
        put(head, sizeof head);
        put(value, strlen(value));
}

static void write_request(const char *path) {
        static const unsigned char settings[FRAME_HEAD] = {0, 0, 0, SETTINGS};
        static const unsigned char get_https[] = {0x82, 0x87};
        char authority[32];
        snprintf(authority, sizeof authority, "127.0.0.1:%u", ntohs(all.server.sin_port));
        size_t block = sizeof get_https + 2 + strlen(path) + 2 + strlen(authority);
        unsigned char head[FRAME_HEAD] = {0, 0, (unsigned char)block, HEADERS, 0x5, 0, 0, 0, 1};
        head[1] = (unsigned char)(block >> 8);
        put("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
        put(settings, sizeof settings);
        put(head, sizeof head);
        put(get_https, sizeof get_https);
        put_field(0x04, path);
        put_field(0x01, authority);
}

/* ---- what is read ---- */

static enum step on_frame(struct visit *v) {
        static const unsigned char acknowledged[FRAME_HEAD] = {0, 0, 0, SETTINGS, ACK};
        unsigned char type = v->head[3], flags = v->head[4];
        if (type == GOAWAY || type == RST_STREAM)
                return STEP_FAILED;
        if (type == SETTINGS && !(flags & ACK) &&
            SSL_write(v->ssl, acknowledged, sizeof acknowledged) <= 0)
                return STEP_FAILED;
        bool ends = (type == DATA || type == HEADERS) && (flags & END_STREAM);
        return ends ? STEP_ANSWERED : STEP_WAIT;
}

static size_t smaller(size_t a, size_t b) {
        return a < b ? a : b;
}

static enum step read_frames(struct visit *v, const unsigned char *p, size_t n) {
        while (n > 0) {
                if (v->head_len < FRAME_HEAD) {
                        size_t some = smaller(n, FRAME_HEAD - v->head_len);
                        memcpy(v->head + v->head_len, p, some);
                        v->head_len += some;
                        p += some;
                        n -= some;
                        if (v->head_len < FRAME_HEAD)
                                return STEP_WAIT;
                        v->left = (size_t)v->head[0] << 16 | (size_t)v->head[1] << 8 | v->head[2];
                }
                size_t some = smaller(n, v->left);
                p += some;
                n -= some;
                v->left -= some;
                if (v->left > 0)
                        return STEP_WAIT;
                v->head_len = 0;
                enum step step = on_frame(v);
                if (step != STEP_WAIT)
                        return step;
        }
        return STEP_WAIT;
}

static bool is_waiting(const struct visit *v, int result) {
        int why = SSL_get_error(v->ssl, result);
        return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

/* Goes as far as the socket lets it, since events come on edges only. */
static enum step advance(struct visit *v) {
        unsigned char bytes[16384];
        ERR_clear_error();
        if (!v->is_asked) {
                int r = SSL_do_handshake(v->ssl);
                if (r != 1)
                        return is_waiting(v, r) ? STEP_WAIT : STEP_FAILED;
                all.resumed += SSL_session_reused(v->ssl);
                v->is_asked = true;
                if (SSL_write(v->ssl, all.request, (int)all.request_len) <= 0)
                        return STEP_FAILED;
        }
        enum step step = STEP_WAIT;
        while (step == STEP_WAIT) {
                int r = SSL_read(v->ssl, bytes, sizeof bytes);
                if (r <= 0)
                        return is_waiting(v, r) ? STEP_WAIT : STEP_FAILED;
                step = read_frames(v, bytes, (size_t)r);
        }
        return step;
}

/* ---- one visit ---- */

static int keep_ticket(SSL *ssl, SSL_SESSION *ticket) {
        struct visit *v = SSL_get_app_data(ssl);
        SSL_SESSION_free(v->ticket);
        v->ticket = ticket;
        return 1;
}

static int begin(struct visit *v) {
        static const int yes = 1;
        *v = (struct visit){.ticket = v->ticket};
        v->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (v->fd < 0)
                return -errno;
        (void)setsockopt(v->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        const struct sockaddr *to = (const struct sockaddr *)&all.server;
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = v};
        if ((connect(v->fd, to, sizeof all.server) < 0 && errno != EINPROGRESS) ||
            epoll_ctl(all.epoll, EPOLL_CTL_ADD, v->fd, &event) < 0)
                return -errno;
        v->ssl = SSL_new(all.tls);
        if (!v->ssl || SSL_set_fd(v->ssl, v->fd) != 1)
                return -ENOMEM;
        SSL_set_app_data(v->ssl, v);
        SSL_set_connect_state(v->ssl);
        if (v->ticket && SSL_set_session(v->ssl, v->ticket) == 1)
                all.offered++;
        all.started++;
        return 0;
}

static void end(struct visit *v) {
        (void)SSL_shutdown(v->ssl);
        SSL_free(v->ssl);
        v->ssl = NULL;
        (void)close(v->fd);
}

static int begin_next(struct visit *visits, struct visit *free_one) {
        if (all.started == all.total)
                return 0;
        return begin(all.mode == HELD ? &visits[all.started] : free_one);
}

static int on_event(struct visit *visits, struct visit *v) {
        if (!v->ssl)
                return 0;
        enum step step = advance(v);
        if (step == STEP_WAIT)
                return 0;
        if (v->is_answered) { /* nobody asked again: it is being closed */
                all.lost++;
                end(v);
                return 0;
        }
        if (step == STEP_ANSWERED)
                all.answered++;
        else
                all.failed++;
        if (step == STEP_ANSWERED && all.mode == HELD)
                v->is_answered = true;
        else
                end(v);
        return begin_next(visits, v);
}

/* ---- all of them ---- */

/* Handles what has come. 0, or -ETIMEDOUT when that was nothing. The end of
 * standard input is told in `is_over`. */
static int turn(struct visit *visits, int timeout_ms, bool *is_over) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(all.epoll, events, EVENTS, timeout_ms);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        int r = n > 0 ? 0 : -ETIMEDOUT;
        for (int i = 0; i < n && r == 0; i++) {
                struct visit *v = events[i].data.ptr;
                if (v)
                        r = on_event(visits, v);
                else
                        *is_over = true;
        }
        return r;
}

static int visit_all(struct visit *visits) {
        bool is_over = false;
        int r = 0;
        for (long i = 0; i < all.at_once && i < all.total && r == 0; i++)
                r = begin(&visits[i]);
        while (r == 0 && all.answered + all.failed < all.total)
                r = turn(visits, STALL_MS, &is_over);
        printf("{\"answered\":%ld,\"failed\":%ld,\"offered\":%ld,\"resumed\":%ld}\n", all.answered,
               all.failed, all.offered, all.resumed);
        (void)fflush(stdout);
        return r;
}

static int hold_all(struct visit *visits) {
        bool is_over = false;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
        int r = epoll_ctl(all.epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event) < 0 ? -errno : 0;
        while (r == 0 && !is_over)
                r = turn(visits, -1, &is_over);
        printf("{\"lost\":%ld}\n", all.lost);
        return r;
}

static int make_context(const char *group) {
        static const unsigned char h2[] = "\x02h2";
        all.tls = SSL_CTX_new(TLS_client_method());
        if (!all.tls || SSL_CTX_set_min_proto_version(all.tls, TLS1_3_VERSION) != 1 ||
            SSL_CTX_set_ciphersuites(all.tls, "TLS_AES_128_GCM_SHA256") != 1 ||
            SSL_CTX_set1_groups_list(all.tls, group) != 1 ||
            SSL_CTX_set_alpn_protos(all.tls, h2, 3) != 0)
                return -EINVAL;
        (void)SSL_CTX_set_mode(all.tls, SSL_MODE_RELEASE_BUFFERS);
        if (all.mode == RETURNING) {
                (void)SSL_CTX_set_session_cache_mode(all.tls, SSL_SESS_CACHE_CLIENT |
                                                                      SSL_SESS_CACHE_NO_INTERNAL);
                SSL_CTX_sess_set_new_cb(all.tls, keep_ticket);
        }
        return 0;
}

static bool read_mode(const char *word) {
        static const char *const modes[] = {
                [FULL] = "full", [RETURNING] = "returning", [HELD] = "held"};
        for (int i = FULL; i <= HELD; i++)
                if (strcmp(word, modes[i]) == 0) {
                        all.mode = (enum mode)i;
                        return true;
                }
        return false;
}

static bool read_number(const char *text, long most, long *out) {
        char *end_of_it;
        *out = strtol(text, &end_of_it, 10);
        return *end_of_it == '\0' && *out >= 1 && *out <= most;
}

int main(int argc, char **argv) {
        long port;
        if (argc != 7 || !read_number(argv[1], 65535, &port) || strlen(argv[2]) > TEXT_MAX ||
            !read_number(argv[3], 1000000, &all.total) ||
            !read_number(argv[4], 10000, &all.at_once) || !read_mode(argv[6]) ||
            make_context(argv[5]) != 0) {
                fprintf(stderr, "usage: visits PORT PATH TOTAL AT_ONCE GROUP "
                                "full|returning|held\n");
                return 2;
        }
        (void)signal(SIGPIPE, SIG_IGN);
        all.server = (struct sockaddr_in){.sin_family = AF_INET,
                                          .sin_port = htons((uint16_t)port),
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        write_request(argv[2]);
        all.epoll = epoll_create1(EPOLL_CLOEXEC);
        if (all.epoll < 0)
                return 1;
        struct visit *visits =
                calloc((size_t)(all.mode == HELD ? all.total : all.at_once), sizeof *visits);
        int r = visits ? visit_all(visits) : -ENOMEM;
        if (r == 0 && all.mode == HELD)
                r = hold_all(visits);
        if (r < 0)
                fprintf(stderr, "visits: %s\n", strerror(-r));
        free(visits);
        return r < 0;
}
