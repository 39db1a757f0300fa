#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/tls_tickets.h"

#define TICKET_LIFE_S 7200
#define HELD_MAX ((size_t)65536)
/* A peer needs one key update in 2^24 records; more than this a second is
 * somebody making us derive keys. */
#define KEY_UPDATES_PER_S 100

/* AEAD suites with forward secrecy only: all that RFC 9113 allows. */
#define CIPHERS_TLS12 "ECDHE+AESGCM+AES128:ECDHE+CHACHA20:ECDHE+AESGCM"
/* Our order counts: a key of 128 bits is enough, and its rounds and hash are
 * cheaper on both sides. Who puts ChaCha20 first has no AES in hardware. */
#define CIPHERS_TLS13 "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
#define GROUPS "X25519:P-256"

struct tls_context {
        SSL_CTX *ssl_ctx;
        atomic_uint refs;
        unsigned alpn; /* enum tls_alpn or'ed */
        bool resume;
        struct tls_tickets *tickets; /* a reference; NULL on the client's side */
        pthread_mutex_t lock;        /* guards what follows */
        SSL_SESSION *last_session;   /* client: the last ticket */
};

struct tls {
        SSL *ssl;
        struct tls_context *context;
        char *held; /* records not yet sent; NULL: none */
        uint32_t n_held;
        int fd;
        uint32_t key_update_s;
        uint16_t key_updates; /* in the second `key_update_s` */
        bool is_server;
        bool is_holding; /* records go to `held` */
        bool is_at_end;  /* the peer sends no more */
        bool is_dry;     /* this call has read all there was: asking again is a waste */
};

static int fail_why(char *why, size_t why_len, const char *what, const char *name) {
        unsigned long e = ERR_peek_last_error();
        const char *reason = e ? ERR_reason_error_string(e) : NULL;
        (void)snprintf(why, why_len, "%s%s%s: %s", what, name ? " " : "", name ? name : "",
                       reason ? reason : "unknown reason");
        ERR_clear_error();
        return -EINVAL;
}

/* ---- sockets ----
 *
 * OpenSSL writes through a BIO of ours, which can hold a little back: what ends
 * a handshake on our side (a ticket) leaves with the first answer, in one system
 * call and one segment. */

static BIO_METHOD *socket_method;
static pthread_once_t socket_once = PTHREAD_ONCE_INIT;

static bool is_worth_waiting(int error) {
        return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static bool hold(struct tls *t, const char *data, size_t len) {
        char *more = len <= HELD_MAX - t->n_held ? realloc(t->held, t->n_held + len) : NULL;
        if (!more)
                return false;
        memcpy(more + t->n_held, data, len);
        t->held = more;
        t->n_held += (uint32_t)len;
        return true;
}

static void held_eat(struct tls *t, size_t n) {
        t->n_held -= (uint32_t)n;
        if (t->n_held > 0) {
                memmove(t->held, t->held + n, t->n_held);
                return;
        }
        free(t->held);
        t->held = NULL;
}

/* What is held, then `data`; how much of `data` the socket took, or -errno. */
static ssize_t send_both(struct tls *t, const char *data, size_t len) {
        struct iovec parts[] = {{t->held, t->n_held}, {(char *)(uintptr_t)data, len}};
        const struct msghdr message = {.msg_iov = parts, .msg_iovlen = NET_COUNT_OF(parts)};
        ssize_t n = t->held ? sendmsg(t->fd, &message, MSG_NOSIGNAL)
                            : send(t->fd, data, len, MSG_NOSIGNAL);
        if (n < 0)
                return -errno;
        if (!t->held)
                return n;
        size_t of_held = (size_t)n < t->n_held ? (size_t)n : t->n_held;
        held_eat(t, of_held);
        return n - (ssize_t)of_held;
}

static int on_bio_write(BIO *b, const char *data, size_t len, size_t *n) {
        struct tls *t = BIO_get_data(b);
        BIO_clear_retry_flags(b);
        *n = len;
        if (t->is_holding && hold(t, data, len))
                return 1;
        ssize_t r = send_both(t, data, len);
        if (r > 0) {
                *n = (size_t)r;
                return 1;
        }
        if (r == 0 || is_worth_waiting((int)-r))
                BIO_set_retry_write(b);
        return 0;
}

static int on_bio_read(BIO *b, char *data, size_t size, size_t *n) {
        struct tls *t = BIO_get_data(b);
        BIO_clear_retry_flags(b);
        if (t->is_dry) {
                BIO_set_retry_read(b);
                return 0;
        }
        ssize_t r = recv(t->fd, data, size, 0);
        if (r > 0) {
                *n = (size_t)r;
                t->is_dry = *n < size;
                return 1;
        }
        t->is_at_end = r == 0;
        if (r < 0 && is_worth_waiting(errno))
                BIO_set_retry_read(b);
        return 0;
}

static long on_bio_ctrl(BIO *b, int what, long number, void *pointer) {
        const struct tls *t = BIO_get_data(b);
        (void)number;
        (void)pointer;
        if (what == BIO_CTRL_EOF)
                return t->is_at_end;
        return what == BIO_CTRL_FLUSH;
}

static void socket_method_make(void) {
        BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket of tls.c");
        int ok = m && BIO_meth_set_write_ex(m, on_bio_write) == 1 &&
                 BIO_meth_set_read_ex(m, on_bio_read) == 1 &&
                 BIO_meth_set_ctrl(m, on_bio_ctrl) == 1;
        assert(ok);
        (void)ok;
        socket_method = m;
}

static bool socket_attach(struct tls *t) {
        (void)pthread_once(&socket_once, socket_method_make);
        BIO *b = BIO_new(socket_method);
        if (!b)
                return false;
        BIO_set_data(b, t);
        BIO_set_init(b, 1);
        SSL_set_bio(t->ssl, b, b);
        return true;
}

/* ---- callbacks of the handshake ---- */

static const struct {
        enum tls_alpn bit;
        struct span name;
} alpn_names[] = {
        {TLS_ALPN_H2, {"h2", 2}},
        {TLS_ALPN_HTTP11, {"http/1.1", 8}},
};

static bool alpn_find(const unsigned char *list, unsigned len, struct span name,
                      const unsigned char **at) {
        for (unsigned i = 0; i < len; i += 1u + list[i]) {
                if (list[i] == 0 || list[i] >= len - i)
                        return false;
                if (list[i] == name.len && memcmp(list + i + 1, name.p, name.len) == 0) {
                        *at = list + i + 1;
                        return true;
                }
        }
        return false;
}

static int on_alpn_select(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                          const unsigned char *list, unsigned len, void *arg) {
        const struct tls_context *c = arg;
        (void)ssl;
        for (size_t i = 0; i < NET_COUNT_OF(alpn_names); i++) {
                if ((c->alpn & alpn_names[i].bit) &&
                    alpn_find(list, len, alpn_names[i].name, out)) {
                        *out_len = (unsigned char)alpn_names[i].name.len;
                        return SSL_TLSEXT_ERR_OK;
                }
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* The select callback is not called for a client without the extension, so
 * its absence is judged here. */
static int on_client_hello(SSL *ssl, int *alert, void *arg) {
        const struct tls_context *c = arg;
        const unsigned char *data;
        size_t len;
        if ((c->alpn & TLS_ALPN_HTTP11) == 0 &&
            SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation,
                                      &data, &len) != 1) {
                *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
                return SSL_CLIENT_HELLO_ERROR;
        }
        return SSL_CLIENT_HELLO_SUCCESS;
}

static void on_message(int is_write, int version, int type, const void *data, size_t len, SSL *ssl,
                       void *arg) {
        (void)version;
        (void)arg;
        if (is_write || type != SSL3_RT_HANDSHAKE || len == 0 ||
            *(const unsigned char *)data != SSL3_MT_KEY_UPDATE)
                return;
        struct tls *t = SSL_get_app_data(ssl);
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        if ((uint32_t)now.tv_sec != t->key_update_s) {
                t->key_update_s = (uint32_t)now.tv_sec;
                t->key_updates = 0;
        }
        if (t->key_updates < UINT16_MAX)
                t->key_updates++;
        /* A read goes through key updates for as long as there are any, without
         * coming back to us; at an end of the stream it stops. */
        if (t->key_updates > KEY_UPDATES_PER_S)
                SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN);
}

static int on_new_session(SSL *ssl, SSL_SESSION *session) {
        struct tls_context *c = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
        pthread_mutex_lock(&c->lock);
        SSL_SESSION *before = c->last_session;
        c->last_session = session;
        pthread_mutex_unlock(&c->lock);
        SSL_SESSION_free(before);
        return 1; /* the reference is ours now */
}

/* A daemon has nobody to ask for a passphrase. */
static int on_passphrase(char *out, int size, int is_write, void *arg) {
        (void)out;
        (void)size;
        (void)is_write;
        (void)arg;
        return 0;
}

/* ---- contexts ---- */

static struct tls_context *context_new(const SSL_METHOD *method, unsigned alpn) {
        struct tls_context *c = calloc(1, sizeof *c);
        SSL_CTX *ctx = c ? SSL_CTX_new(method) : NULL;
        if (!ctx) {
                free(c);
                return NULL;
        }
        c->ssl_ctx = ctx;
        c->alpn = alpn;
        atomic_init(&c->refs, 1);
        pthread_mutex_init(&c->lock, NULL);
        SSL_CTX_set_app_data(ctx, c);
        SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
        SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_IGNORE_UNEXPECTED_EOF);
        SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_read_ahead(ctx, 1);
        SSL_CTX_set_msg_callback(ctx, on_message);
        return c;
}

void tls_context_take(struct tls_context *c) {
        atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

void tls_context_free(struct tls_context **cp) {
        struct tls_context *c = *cp;
        *cp = NULL;
        if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
                return;
        SSL_SESSION_free(c->last_session);
        SSL_CTX_free(c->ssl_ctx);
        tls_tickets_free(&c->tickets);
        pthread_mutex_destroy(&c->lock);
        free(c);
}

static int server_keys_load(SSL_CTX *ctx, const struct tls_server_conf *conf, char *why,
                            size_t why_len) {
        SSL_CTX_set_default_passwd_cb(ctx, on_passphrase);
        if (SSL_CTX_use_certificate_chain_file(ctx, conf->certificate_file) != 1)
                return fail_why(why, why_len, "cannot use certificate file",
                                conf->certificate_file);
        if (SSL_CTX_use_PrivateKey_file(ctx, conf->key_file, SSL_FILETYPE_PEM) != 1)
                return fail_why(why, why_len, "cannot use key file", conf->key_file);
        if (SSL_CTX_check_private_key(ctx) != 1)
                return fail_why(why, why_len, "key does not belong to certificate", conf->key_file);
        return 0;
}

static int server_setup(struct tls_context *c, const struct tls_server_conf *conf) {
        SSL_CTX *ctx = c->ssl_ctx;
        SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
        if (SSL_CTX_set_cipher_list(ctx, CIPHERS_TLS12) != 1 ||
            SSL_CTX_set_ciphersuites(ctx, CIPHERS_TLS13) != 1 ||
            SSL_CTX_set1_groups_list(ctx, GROUPS) != 1 || SSL_CTX_set_num_tickets(ctx, 1) != 1 ||
            SSL_CTX_set_max_early_data(ctx, 0) != 1 ||
            SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"sluice", 6) != 1)
                return -EINVAL;
        if (conf->tickets)
                tls_tickets_take(conf->tickets);
        c->tickets = conf->tickets ? conf->tickets : tls_tickets_new();
        if (!c->tickets || tls_tickets_attach(ctx, c->tickets) != 1)
                return -EINVAL;
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_timeout(ctx, conf->ticket_life_s ? conf->ticket_life_s : TICKET_LIFE_S);
        SSL_CTX_set_alpn_select_cb(ctx, on_alpn_select, c);
        SSL_CTX_set_client_hello_cb(ctx, on_client_hello, c);
        return 0;
}

int tls_server_new(const struct tls_server_conf *conf, struct tls_context **out, char *why,
                   size_t why_len) {
        ERR_clear_error();
        struct tls_context *c = context_new(TLS_server_method(), conf->alpn);
        if (!c)
                return fail_why(why, why_len, "cannot set up TLS", NULL);
        int r = server_keys_load(c->ssl_ctx, conf, why, why_len);
        if (r == 0 && server_setup(c, conf) != 0)
                r = fail_why(why, why_len, "cannot set up TLS", NULL);
        if (r != 0)
                tls_context_free(&c);
        *out = c;
        return r;
}

static int client_alpn_set(struct tls_context *c) {
        unsigned char list[16];
        unsigned len = 0;
        for (size_t i = 0; i < NET_COUNT_OF(alpn_names); i++) {
                if ((c->alpn & alpn_names[i].bit) == 0)
                        continue;
                list[len] = (unsigned char)alpn_names[i].name.len;
                memcpy(list + len + 1, alpn_names[i].name.p, alpn_names[i].name.len);
                len += 1u + list[len];
        }
        return len == 0 ? 0 : SSL_CTX_set_alpn_protos(c->ssl_ctx, list, len);
}

int tls_client_new(const struct tls_client_conf *conf, struct tls_context **out, char *why,
                   size_t why_len) {
        ERR_clear_error();
        int r = 0;
        struct tls_context *c = context_new(TLS_client_method(), conf->alpn);
        *out = NULL;
        if (!c)
                return fail_why(why, why_len, "cannot set up TLS", NULL);
        c->resume = conf->resume;
        SSL_CTX *ctx = c->ssl_ctx;
        if (client_alpn_set(c) != 0 || SSL_CTX_set_cipher_list(ctx, CIPHERS_TLS12) != 1 ||
            SSL_CTX_set1_groups_list(ctx, GROUPS) != 1)
                r = fail_why(why, why_len, "cannot set up TLS", NULL);
        if (r == 0 && conf->ca_file) {
                SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
                if (SSL_CTX_load_verify_locations(ctx, conf->ca_file, NULL) != 1)
                        r = fail_why(why, why_len, "cannot use CA file", conf->ca_file);
        }
        if (conf->resume) {
                SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT |
                                                            SSL_SESS_CACHE_NO_INTERNAL_STORE);
                SSL_CTX_sess_set_new_cb(ctx, on_new_session);
        }
        if (r != 0)
                tls_context_free(&c);
        *out = c;
        return r;
}

/* ---- connections ---- */

void tls_free(struct tls **tp) {
        struct tls *t = *tp;
        *tp = NULL;
        if (!t)
                return;
        /* Freeing a connection that was not shut down spoils its session, which
         * the next one may want to resume. */
        if (t->ssl)
                SSL_set_shutdown(t->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        SSL_free(t->ssl);
        tls_context_free(&t->context);
        free(t->held);
        free(t);
}

static struct tls *tls_new(struct tls_context *c, int fd) {
        ERR_clear_error();
        struct tls *t = calloc(1, sizeof *t);
        if (!t)
                return NULL;
        tls_context_take(c);
        t->context = c;
        t->fd = fd;
        t->ssl = SSL_new(c->ssl_ctx);
        if (!t->ssl || !socket_attach(t)) {
                tls_free(&t);
                return NULL;
        }
        SSL_set_app_data(t->ssl, t);
        return t;
}

struct tls *tls_accept_new(struct tls_context *c, int fd) {
        struct tls *t = tls_new(c, fd);
        if (!t)
                return NULL;
        t->is_server = true;
        SSL_set_accept_state(t->ssl);
        return t;
}

/* RFC 6066 allows no addresses as server names; they are only checked. */
static bool peer_name_set(SSL *ssl, const char *name) {
        unsigned char address[sizeof(struct in6_addr)];
        if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
                return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
        SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

struct tls *tls_connect_new(struct tls_context *c, int fd, const char *server_name) {
        struct tls *t = tls_new(c, fd);
        if (!t)
                return NULL;
        if (server_name && !peer_name_set(t->ssl, server_name)) {
                tls_free(&t);
                return NULL;
        }
        if (c->resume) {
                pthread_mutex_lock(&c->lock);
                if (c->last_session)
                        (void)SSL_set_session(t->ssl, c->last_session);
                pthread_mutex_unlock(&c->lock);
        }
        SSL_set_connect_state(t->ssl);
        return t;
}

/* What a call that did not succeed means. `errno` must still be its own. */
static int outcome_of(struct tls *t, int result) {
        int saved = errno;
        switch (SSL_get_error(t->ssl, result)) {
        case SSL_ERROR_NONE:
                return TLS_DONE;
        case SSL_ERROR_WANT_READ:
                return TLS_WANT_READ;
        case SSL_ERROR_WANT_WRITE:
                return TLS_WANT_WRITE;
        case SSL_ERROR_ZERO_RETURN:
                return TLS_CLOSED;
        case SSL_ERROR_SYSCALL:
                return saved ? -saved : TLS_CLOSED;
        default:
                return -EPROTO;
        }
}

int tls_flush(struct tls *t) {
        while (t->held) {
                ssize_t r = send_both(t, NULL, 0);
                if (r < 0)
                        return is_worth_waiting((int)-r) ? TLS_WANT_WRITE : (int)r;
        }
        return TLS_DONE;
}

int tls_handshake(struct tls *t) {
        int flushed = tls_flush(t);
        if (flushed != TLS_DONE)
                return flushed;
        ERR_clear_error();
        errno = 0;
        t->is_holding = t->is_server;
        t->is_dry = false;
        int r = SSL_do_handshake(t->ssl);
        t->is_holding = false;
        if (r == 1 && SSL_version(t->ssl) >= TLS1_3_VERSION)
                return TLS_DONE; /* what is left is a ticket, and has time */
        int outcome = r == 1 ? TLS_DONE : outcome_of(t, r);
        flushed = tls_flush(t); /* the peer waits for it, or for the alert */
        if (outcome == TLS_DONE)
                return flushed;
        return outcome == TLS_WANT_READ && flushed != TLS_DONE ? flushed : outcome;
}

unsigned tls_alpn(const struct tls *t) {
        const unsigned char *name;
        unsigned len;
        SSL_get0_alpn_selected(t->ssl, &name, &len);
        struct span got = {(const char *)name, len};
        for (size_t i = 0; len > 0 && i < NET_COUNT_OF(alpn_names); i++) {
                if (span_eq(got, alpn_names[i].name))
                        return alpn_names[i].bit;
        }
        return 0;
}

bool tls_is_resumed(const struct tls *t) {
        return SSL_session_reused(t->ssl) == 1;
}

int tls_read(struct tls *t, void *data, size_t size, size_t *n) {
        ERR_clear_error();
        errno = 0;
        t->is_dry = false;
        int r = SSL_read_ex(t->ssl, data, size, n);
        if (t->key_updates > KEY_UPDATES_PER_S)
                return TLS_ABUSE;
        if (r == 1)
                return TLS_DONE;
        *n = 0;
        return outcome_of(t, r);
}

int tls_write(struct tls *t, const void *data, size_t len, size_t *n) {
        ERR_clear_error();
        errno = 0;
        t->is_dry = false;
        int r = SSL_write_ex(t->ssl, data, len, n);
        if (r == 1)
                return TLS_DONE;
        *n = 0;
        return outcome_of(t, r);
}

bool tls_has_pending(const struct tls *t) {
        return SSL_has_pending(t->ssl) == 1;
}

void tls_shutdown(struct tls *t) {
        ERR_clear_error();
        if (SSL_is_init_finished(t->ssl))
                (void)SSL_shutdown(t->ssl);
        ERR_clear_error();
}
