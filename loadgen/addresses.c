#include "loadgen/addresses.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ADDRESSES_BYTES 65536

/* 0 with *len bytes, -errno. */
static int read_file(const char *path, char *out, size_t cap, size_t *len) {
        FILE *file = fopen(path, "re");
        if (!file)
                return -errno;
        *len = fread(out, 1, cap, file);
        int r = ferror(file) ? -EIO : *len == cap ? -EFBIG : 0;
        fclose(file);
        return r;
}

/* Four numbers 0..255, the first of them 127. */
static bool is_loopback_v4(const char *host) {
        unsigned part[4];
        char rest;
        if (strspn(host, "0123456789.") != strlen(host))
                return false;
        if (sscanf(host, "%3u.%3u.%3u.%3u%c", &part[0], &part[1], &part[2], &part[3], &rest) != 4)
                return false;
        return part[0] == 127 && part[1] <= 255 && part[2] <= 255 && part[3] <= 255;
}

static int parse_port(struct span text) {
        int port = 0;
        if (text.len == 0 || text.len > 5)
                return -1;
        for (size_t i = 0; i < text.len; i++) {
                if (text.p[i] < '0' || text.p[i] > '9')
                        return -1;
                port = port * 10 + (text.p[i] - '0');
        }
        return port >= 1 && port <= 65535 ? port : -1;
}

int lg_endpoint_parse(struct lg_endpoint *e, struct span url, char *why, size_t why_cap) {
        static const struct span https = {"https://", 8}, http = {"http://", 7};
        *e = (struct lg_endpoint){.tls = span_starts(url, https)};
        if (!e->tls && !span_starts(url, http)) {
                snprintf(why, why_cap, "expected http:// or https://");
                return 1;
        }
        size_t skip = e->tls ? https.len : http.len;
        struct span rest = {url.p + skip, url.len - skip};
        if (rest.len > 0 && rest.p[rest.len - 1] == '/')
                rest.len--;
        const char *colon = rest.len ? memrchr(rest.p, ':', rest.len) : NULL;
        size_t host_len = colon ? (size_t)(colon - rest.p) : 0;
        int port = colon ? parse_port((struct span){colon + 1, rest.len - host_len - 1}) : -1;
        if (port < 0 || host_len == 0 || host_len >= sizeof(e->host)) {
                snprintf(why, why_cap, "expected a host and a port 1..65535");
                return 1;
        }
        memcpy(e->host, rest.p, host_len);
        if (strcmp(e->host, "[::1]") == 0) {
                snprintf(e->address, sizeof(e->address), "[::1]:%d", port);
                snprintf(e->host, sizeof(e->host), "::1");
                return 0;
        }
        if (strcmp(e->host, "localhost") != 0 && !is_loopback_v4(e->host)) {
                snprintf(why, why_cap,
                         "expected a loopback address (127.0.0.0/8, [::1], localhost)");
                return 1;
        }
        bool named = strcmp(e->host, "localhost") == 0;
        snprintf(e->address, sizeof(e->address), "%s:%d", named ? "127.0.0.1" : e->host, port);
        return 0;
}

struct reader {
        const json_t *root;
        const char *path;
        char *why;
        size_t why_cap;
};

static int field_fault(const struct reader *r, const char *name, const char *expected) {
        snprintf(r->why, r->why_cap, "%s: field `%s`: %s", r->path, name, expected);
        return 1;
}

static int read_url(const struct reader *r, const char *name, const json_t *value,
                    struct lg_endpoint *e) {
        char expected[96];
        if (!json_is_string(value))
                return field_fault(r, name, "expected a URL");
        struct span url = {json_string_value(value), json_string_length(value)};
        if (lg_endpoint_parse(e, url, expected, sizeof(expected)) != 0)
                return field_fault(r, name, expected);
        return 0;
}

/* The list `many` or, where it is missing, the single `one`. */
static int read_urls(const struct reader *r, const char *many, const char *one,
                     struct lg_endpoint *out, size_t *n) {
        const json_t *list = json_object_get(r->root, many);
        if (!list || json_is_null(list)) {
                *n = 1;
                return read_url(r, one, json_object_get(r->root, one), &out[0]);
        }
        *n = json_array_size(list);
        if (!json_is_array(list) || *n == 0 || *n > LG_GATEWAYS_MAX)
                return field_fault(r, many, "expected an array of 1..16 URLs");
        for (size_t i = 0; i < *n; i++) {
                if (read_url(r, many, json_array_get(list, i), &out[i]) != 0)
                        return 1;
        }
        return 0;
}

static int read_name(const struct reader *r, const char *name, char *out) {
        const json_t *value = json_object_get(r->root, name);
        size_t len = json_string_length(value);
        if (!json_is_string(value) || len == 0 || len >= LG_FILE_MAX)
                return field_fault(r, name, "expected the name of a file");
        memcpy(out, json_string_value(value), len + 1);
        return 0;
}

static int read_token(const struct reader *r, const char *name, char *out) {
        char file[LG_FILE_MAX];
        size_t len = 0;
        if (read_name(r, name, file) != 0)
                return 1;
        int failed = read_file(file, out, LG_TOKEN_MAX, &len);
        if (failed != 0) {
                snprintf(r->why, r->why_cap, "%s: %s", file, strerror(-failed));
                return 1;
        }
        while (len > 0 && (out[len - 1] == '\n' || out[len - 1] == '\r'))
                len--;
        out[len] = '\0';
        if (len == 0 || strcspn(out, "\r\n \t") != len)
                return field_fault(r, name, "expected a file with one token");
        return 0;
}

static int read_account_keys(const struct reader *r, struct lg_addresses *a) {
        char file[LG_FILE_MAX], expected[160];
        if (read_name(r, "account_key", file) != 0)
                return 1;
        if (jwt_keys_new(&a->account_keys) != 0)
                return field_fault(r, "account_key", "out of memory");
        int failed = jwt_keys_add_file(a->account_keys, file, expected, sizeof(expected));
        if (failed < 0)
                snprintf(expected, sizeof(expected), "%s", strerror(-failed));
        if (failed == 0 && !jwt_keys_can_sign(a->account_keys, 0)) {
                snprintf(expected, sizeof(expected), "expected a key that can sign");
                failed = 1;
        }
        if (failed != 0)
                snprintf(r->why, r->why_cap, "%s: %s", file, expected);
        return failed != 0;
}

static int read_all(const struct reader *r, struct lg_addresses *a) {
        if (read_urls(r, "gateways", "gateway", a->gateways, &a->n_gateways) != 0)
                return 1;
        if (read_urls(r, "admins", "admin", a->admins, &a->n_admins) != 0)
                return 1;
        if (read_url(r, "origin", json_object_get(r->root, "origin"), &a->origin) != 0)
                return 1;
        if (a->origin.tls)
                return field_fault(r, "origin", "expected http://");
        for (size_t i = 0; i < a->n_gateways; i++) {
                if (!a->gateways[i].tls)
                        return field_fault(r, "gateways", "expected https://");
        }
        if (read_name(r, "ca", a->ca_file) != 0)
                return 1;
        if (read_token(r, "service_token", a->service_token) != 0)
                return 1;
        return read_account_keys(r, a);
}

int lg_addresses_load(struct lg_addresses *a, const char *path, char *why, size_t why_cap) {
        *a = (struct lg_addresses){.n_gateways = 0};
        char *text = malloc(ADDRESSES_BYTES);
        if (!text) {
                snprintf(why, why_cap, "out of memory");
                return 1;
        }
        size_t len = 0;
        int failed = read_file(path, text, ADDRESSES_BYTES, &len);
        if (failed != 0) {
                snprintf(why, why_cap, "%s: %s", path, strerror(-failed));
                free(text);
                return 1;
        }
        json_error_t error;
        json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
        free(text);
        if (!root) {
                snprintf(why, why_cap, "%s: line %d: %s", path, error.line, error.text);
                return 1;
        }
        struct reader r = {.root = root, .path = path, .why = why, .why_cap = why_cap};
        int bad = read_all(&r, a);
        json_decref(root);
        if (bad)
                lg_addresses_fini(a);
        return bad;
}

void lg_addresses_fini(struct lg_addresses *a) {
        explicit_bzero(a->service_token, sizeof(a->service_token));
        jwt_keys_free(&a->account_keys);
}
