#include "tests/unit/server_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

/* What the handler keeps of an exchange that takes its time. */
struct job {
        struct loop_timer timer;
        struct http_exchange *x;
        struct world *w;
        size_t left;
        int said;
};

static char blob[16384];

/* ---- handlers ---- */

static void on_gone(struct http_exchange *x) {
        struct job *j = x->user;
        loop_timer_cancel(&j->timer);
        atomic_fetch_add(&j->w->gone, 1);
}

static void on_body(struct http_exchange *x, int outcome) {
        switch ((enum http_body_outcome)outcome) {
        case HTTP_BODY_DONE:
                http_answer(x, 200, NULL, 0, x->body);
                break;
        case HTTP_BODY_TOO_LARGE:
                http_answer(x, 413, NULL, 0, SPAN("too large"));
                break;
        case HTTP_BODY_LATE:
                http_answer(x, 408, NULL, 0, SPAN("late"));
                break;
        }
}

static void on_drain(struct http_exchange *x) {
        struct job *j = x->user;
        size_t queued = 0;
        while (queued < HTTP_ANSWER_QUEUE) {
                size_t n = j->left < sizeof blob ? j->left : sizeof blob;
                j->left -= n;
                queued = http_answer_data(x, (struct span){blob, n}, j->left == 0);
                if (j->left == 0)
                        return;
        }
}

static const struct http_exchange_events job_events = {
        .on_body = on_body,
        .on_gone = on_gone,
        .on_drain = on_drain,
};

static void on_timer(struct loop_timer *t) {
        static const char *const words[] = {"one", "two", "three"};
        struct job *j = NET_CONTAINER_OF(t, struct job, timer);
        int at = j->said++;
        if (at < 2)
                loop_timer_start(t, 5);
        (void)http_answer_data(j->x, span_of(words[at]), at == 2);
}

static void name_fields(struct http_exchange *x) {
        char text[8192];
        size_t n = 0;
        for (size_t i = 0; i < x->request.n_headers; i++) {
                const struct http_header *h = &x->request.headers[i];
                n += (size_t)snprintf(text + n, sizeof text - n, "[%.*s=%.*s]", (int)h->name.len,
                                      h->name.p, (int)h->value.len, h->value.p);
        }
        http_answer(x, 200, NULL, 0, (struct span){text, n});
}

static void toil(void) {
        int64_t until_us = loop_clock_us() + 1000;
        while (loop_clock_us() < until_us)
                ;
}

static void on_request(void *owner, struct http_exchange *x) {
        struct world *w = owner;
        struct span path = x->request.path;
        struct job *j = http_exchange_alloc(x, sizeof *j);
        atomic_fetch_add(&w->requests, 1);
        *j = (struct job){.x = x, .w = w, .left = WORLD_BIG};
        x->user = j;
        x->events = &job_events;
        loop_timer_init(x->loop, &j->timer, on_timer);
        if (span_eq(path, SPAN("/page"))) {
                http_answer_page(x, w->page);
        } else if (span_eq(path, SPAN("/echo"))) {
                http_exchange_read_body(x, 100000);
        } else if (span_eq(path, SPAN("/small"))) {
                http_exchange_read_body(x, 4096);
        } else if (span_eq(path, SPAN("/named"))) {
                name_fields(x);
        } else if (span_eq(path, SPAN("/stream"))) {
                http_answer_start(x, 200, NULL, 0, -1);
                loop_timer_start(&j->timer, 5);
        } else if (span_eq(path, SPAN("/big"))) {
                http_answer_start(x, 200, NULL, 0, (int64_t)WORLD_BIG);
                on_drain(x);
        } else if (span_eq(path, SPAN("/nap"))) {
                usleep(1600000);
                http_answer_page(x, w->page);
        } else if (span_eq(path, SPAN("/toil"))) {
                toil();
                http_answer_page(x, w->page);
        } else if (!span_eq(path, SPAN("/hold"))) {
                http_answer(x, 404, NULL, 0, SPAN("nothing here"));
        }
}

/* ---- the server's thread ---- */

static void on_drained(void *owner) {
        struct world *w = owner;
        atomic_fetch_add(&w->drained, 1);
}

static void on_drain_wake(struct loop_wake *wake) {
        struct world *w = NET_CONTAINER_OF(wake, struct world, drain);
        http_server_drain(w->server, on_drained);
}

static void on_stop_wake(struct loop_wake *wake) {
        loop_stop(wake->loop);
}

static void *world_main(void *arg) {
        struct world *w = arg;
        loop_run(w->loop);
        return NULL;
}

void world_init(struct world *w) {
        memset(w, 0, sizeof *w);
        w->conf = (struct http_server_conf){
                .http11 = true,
                .keep_unknown = true,
                .limits = {.connections = 1000,
                           .handshakes = 100,
                           .handshakes_per_turn = 50,
                           .streams = 100,
                           .requests_per_connection = 100000,
                           .header_fields = 100,
                           .header_bytes = 16384,
                           .queued_bytes = 65536,
                           .glitch_burst = 1000,
                           .glitch_per_s = 10,
                           .reset_burst = 100,
                           .reset_per_s = 20,
                           .handshake_ms = 5000,
                           .header_ms = 5000,
                           .body_ms = 10000,
                           .stall_ms = 10000,
                           .idle_ms = 150000},
                .on_request = on_request,
                .owner = w,
        };
}

void world_start(struct world *w) {
        const struct http_header headers[] = {{SPAN("content-type"), SPAN("text/plain"), 0}};
        w->loop = loop_new();
        assert_non_null(w->loop);
        w->page = http_page_new(200, headers, 1, SPAN("hello"));
        assert_int_equal(http_server_new(w->loop, &w->conf, &w->server), 0);
        assert_int_equal(http_server_listen(w->server, "127.0.0.1:0", false), 0);
        w->port = http_server_port(w->server, 0);
        loop_wake_init(w->loop, &w->stop, on_stop_wake);
        loop_wake_init(w->loop, &w->drain, on_drain_wake);
        assert_int_equal(pthread_create(&w->thread, NULL, world_main, w), 0);
}

void world_drain(struct world *w) {
        loop_wake_send(&w->drain);
}

void world_stop(struct world *w) {
        loop_wake_send(&w->stop);
        assert_int_equal(pthread_join(w->thread, NULL), 0);
        http_server_free(&w->server);
        loop_wake_fini(&w->stop);
        loop_wake_fini(&w->drain);
        http_page_free(&w->page);
        loop_free(&w->loop);
}

void world_wait(const atomic_uint *counter, unsigned value) {
        for (int i = 0; i < 10000; i++) {
                if (atomic_load(counter) == value)
                        return;
                usleep(1000);
        }
        assert_int_equal(atomic_load(counter), value);
}

/* ---- clients ---- */

int client_open_from(const struct world *w, const char *address) {
        struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons(w->port),
                                 .sin_addr = {htonl(INADDR_LOOPBACK)}};
        struct sockaddr_in from = {.sin_family = AF_INET};
        struct timeval patience = {.tv_sec = 10};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
        assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
        return fd;
}

int client_open(const struct world *w) {
        return client_open_from(w, "127.0.0.1");
}

void client_send(int fd, const void *data, size_t n) {
        assert_int_equal(send(fd, data, n, MSG_NOSIGNAL), n);
}

void client_say(int fd, const char *text) {
        client_send(fd, text, strlen(text));
}

size_t client_read(int fd, char *to, size_t size, const char *enough) {
        size_t n = 0;
        for (;;) {
                to[n] = '\0';
                if (enough && memmem(to, n, enough, strlen(enough)))
                        return n;
                ssize_t r = recv(fd, to + n, size - 1 - n, 0);
                if (r < 0)
                        fail_msg("reading: %s, after %zu bytes: %s", strerror(errno), n, to);
                if (r == 0 && enough)
                        fail_msg("closed before \"%s\", after: %s", enough, to);
                if (r == 0)
                        return n;
                n += (size_t)r;
        }
}

bool client_is_closed(int fd) {
        char some[4096];
        ssize_t r;
        while ((r = recv(fd, some, sizeof some, 0)) > 0)
                ;
        return r == 0 || errno == ECONNRESET;
}
