#include "gateway/ctl_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/secret.h"
#include "net/buf.h"
#include "net/http_client.h"
#include "net/log.h"

#define CALL_MS 10000

struct ctl_link {
        struct loop *loop;
        struct tls_context *tls;
        struct http_client *client;
        char address[256];
        char host[256];
        char bearer[CONF_SECRET_MAX + 8];
        bool ready;
        int closed_why; /* 1 while it stands */
        /* the call under way */
        struct http_call call;
        struct ctl_answer *answer;
        struct buf text;
        bool too_large;
        enum http_call_outcome outcome;
};

static int complain(const struct ctl *c, const char *what, const char *why) {
        fprintf(stderr, "sluicectl: %s: %s: %s\n", c->url, what, why);
        return 1;
}

static void on_ready(void *owner, struct http_client *client) {
        (void)client;
        struct ctl_link *l = owner;
        l->ready = true;
        loop_stop(l->loop);
}

static void on_closed(void *owner, struct http_client *client, int why) {
        (void)client;
        struct ctl_link *l = owner;
        l->client = NULL;
        l->ready = false;
        l->closed_why = why;
        loop_stop(l->loop);
}

static void on_head(struct http_call *call, int status, const struct http_header *headers,
                    size_t n) {
        struct ctl_link *l = call->owner;
        l->answer->status = status;
        for (size_t i = 0; i < n; i++)
                if (span_eq(headers[i].name, SPAN("etag")) &&
                    headers[i].value.len < sizeof l->answer->etag)
                        memcpy(l->answer->etag, headers[i].value.p, headers[i].value.len);
}

static void on_data(struct http_call *call, struct span data) {
        struct ctl_link *l = call->owner;
        if (buf_append(&l->text, data.p, data.len) < 0)
                l->too_large = true;
}

static void on_done(struct http_call *call, enum http_call_outcome outcome) {
        struct ctl_link *l = call->owner;
        l->outcome = outcome;
        loop_stop(l->loop);
}

static const struct http_call_events call_events = {
        .on_head = on_head,
        .on_data = on_data,
        .on_done = on_done,
};

/* "https://host:port" into the link's address and host. */
static int split_url(const struct ctl *c, struct ctl_link *l) {
        struct span url = span_of(c->url), scheme = SPAN("https://");
        if (!span_starts(url, scheme))
                return complain(c, "address", "expected https://HOST:PORT");
        const char *rest = c->url + scheme.len;
        size_t len = strcspn(rest, "/");
        const char *colon = memrchr(rest, ':', len);
        if (!colon || colon == rest || len >= sizeof l->address)
                return complain(c, "address", "expected https://HOST:PORT");
        snprintf(l->address, sizeof l->address, "%.*s", (int)len, rest);
        snprintf(l->host, sizeof l->host, "%.*s", (int)(colon - rest), rest);
        return 0;
}

static int read_token(const struct ctl *c, struct ctl_link *l) {
        char token[CONF_SECRET_MAX];
        size_t len = 0;
        if (!c->token_file)
                return complain(c, "operator token", "give its file with -k FILE");
        int r = conf_secret_read(c->token_file, token, sizeof token, &len);
        bool is_one = r == 0;
        for (size_t i = 0; is_one && i < len; i++)
                is_one = token[i] > ' ' && token[i] <= '~';
        if (r == 0 && !is_one)
                explicit_bzero(token, sizeof token);
        if (!is_one)
                return complain(c, c->token_file,
                                r < 0 ? strerror(-r)
                                      : "expected one line, a token of printable characters "
                                        "without blanks");
        snprintf(l->bearer, sizeof l->bearer, "Bearer %.*s", (int)len, token);
        explicit_bzero(token, sizeof token);
        return 0;
}

static int link_open(struct ctl *c) {
        struct ctl_link *l = calloc(1, sizeof *l);
        assert(l);
        c->link = l;
        buf_init(&l->text, CTL_ANSWER_MAX);
        if (split_url(c, l) != 0 || read_token(c, l) != 0)
                return 1;
        char why[256] = "";
        struct tls_client_conf tls = {.ca_file = c->ca_file ? c->ca_file
                                                            : "/etc/ssl/certs/ca-certificates.crt",
                                      .alpn = TLS_ALPN_H2};
        if (tls_client_new(&tls, &l->tls, why, sizeof why) != 0)
                return complain(c, "TLS", why);
        l->loop = loop_new();
        assert(l->loop);
        return 0;
}

static int link_connect(struct ctl *c) {
        struct ctl_link *l = c->link;
        struct http_client_conf conf = {
                .address = l->address,
                .tls = l->tls,
                .server_name = l->host,
                .connect_ms = CALL_MS,
                .max_streams = 1,
                .header_bytes = 16384,
                .window_bytes = 1 << 20,
                .on_ready = on_ready,
                .on_closed = on_closed,
                .owner = l,
        };
        l->closed_why = 1;
        int r = http_client_open(l->loop, &conf, &l->client);
        if (r < 0)
                return complain(c, "connect", strerror(-r));
        while (!l->ready && l->closed_why == 1)
                loop_run(l->loop);
        if (!l->ready)
                return complain(c, "connect",
                                l->closed_why < 0 ? strerror(-l->closed_why)
                                                  : "closed by the other side");
        return 0;
}

static const char *outcome_text(enum http_call_outcome o) {
        switch (o) {
        case HTTP_CALL_OK:
                return "done";
        case HTTP_CALL_UNSENT:
                return "not sent";
        case HTTP_CALL_TIMEOUT:
                return "no answer in time; it may have been done";
        case HTTP_CALL_LOST:
                return "connection lost; it may have been done";
        case HTTP_CALL_PROTOCOL:
                return "malformed answer";
        }
        return "?";
}

static int exchange(struct ctl *c, const struct http_call_request *request,
                    struct ctl_answer *out) {
        struct ctl_link *l = c->link;
        l->answer = out;
        l->too_large = false;
        buf_release(&l->text);
        l->call = (struct http_call){.events = &call_events, .owner = l};
        int r = http_client_start(l->client, &l->call, request);
        if (r < 0)
                return complain(c, "request", strerror(-r));
        loop_run(l->loop);
        while (l->call.client)
                loop_run(l->loop);
        if (l->outcome != HTTP_CALL_OK)
                return complain(c, "request", outcome_text(l->outcome));
        if (l->too_large)
                return complain(c, "answer", "larger than 8 MiB");
        struct span text = buf_span(&l->text);
        out->text = strndup(text.p, text.len);
        assert(out->text);
        out->tree = json_loads(out->text, 0, NULL);
        return 0;
}

int ctl_call(struct ctl *c, const char *method, const char *path, const json_t *body,
             const char *if_match, struct ctl_answer *out) {
        *out = (struct ctl_answer){0};
        if (!c->link && link_open(c) != 0)
                return 1;
        if (!c->link->client && link_connect(c) != 0)
                return 1;
        struct http_header headers[4] = {
                {.name = SPAN("authorization"), .value = span_of(c->link->bearer)},
                {.name = SPAN("accept"), .value = SPAN("application/json")},
        };
        size_t n = 2;
        char *text = NULL;
        if (body) {
                headers[n++] = (struct http_header){.name = SPAN("content-type"),
                                                    .value = SPAN("application/json")};
                text = json_dumps(body, JSON_COMPACT);
                assert(text);
        }
        if (if_match)
                headers[n++] =
                        (struct http_header){.name = SPAN("if-match"), .value = span_of(if_match)};
        struct http_call_request request = {
                .method = span_of(method),
                .scheme = SPAN("https"),
                .authority = span_of(c->link->address),
                .path = span_of(path),
                .headers = headers,
                .n_headers = n,
                .body = span_of(text),
                .deadline_ms = CALL_MS,
        };
        int r = exchange(c, &request, out);
        free(text);
        return r;
}

void ctl_answer_fini(struct ctl_answer *a) {
        free(a->text);
        json_decref(a->tree);
        *a = (struct ctl_answer){0};
}

void ctl_fini(struct ctl *c) {
        struct ctl_link *l = c->link;
        if (!l)
                return;
        if (l->client)
                http_client_close(l->client);
        loop_free(&l->loop);
        tls_context_free(&l->tls);
        buf_fini(&l->text);
        explicit_bzero(l->bearer, sizeof l->bearer);
        free(l);
        c->link = NULL;
}
