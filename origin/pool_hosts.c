#include "origin/pool_hosts.h"

#include <string.h>

#define WORDS_MAX 64
#define VALUE_MAX 256

static const char *value_of(const struct org_hosts *h, const char *word) {
        for (const PQconninfoOption *o = h->options; o && o->keyword; o++)
                if (strcmp(o->keyword, word) == 0)
                        return o->val && o->val[0] ? o->val : NULL;
        return NULL;
}

static size_t count(const char *list) {
        size_t n = 1;

        for (; list && *list; list++)
                n += *list == ',';
        return n;
}

void org_hosts_init(struct org_hosts *h, const char *url) {
        const char *named;

        *h = (struct org_hosts){.url = url, .n = 1};
        h->options = PQconninfoParse(url, NULL);
        named = value_of(h, "hostaddr");
        h->n = count(named ? named : value_of(h, "host"));
        if (h->n > ORG_HOSTS_MAX)
                h->n = ORG_HOSTS_MAX;
}

void org_hosts_fini(struct org_hosts *h) {
        PQconninfoFree(h->options);
        *h = (struct org_hosts){0};
}

/* The k-th of a list with commas; of a list of one, that one. */
static const char *part(const char *list, size_t k, char out[VALUE_MAX]) {
        size_t len;

        if (strchr(list, ','))
                for (; k > 0 && list; k--)
                        list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL;
        len = list ? strcspn(list, ",") : 0;
        if (len == 0 || len >= VALUE_MAX)
                return NULL;
        memcpy(out, list, len);
        out[len] = '\0';
        return out;
}

PGconn *org_hosts_connect(const struct org_hosts *h, size_t k, const char *name,
                          const char *attrs) {
        char split[3][VALUE_MAX];
        const char *words[WORDS_MAX] = {"application_name", "target_session_attrs",
                                        "client_encoding"};
        const char *values[WORDS_MAX] = {name, attrs, "UTF8"};
        size_t n = 3, at = 0;

        if (!h->options) {
                words[n] = "dbname";
                values[n] = h->url;
                return PQconnectStartParams(words, values, 1);
        }
        for (const PQconninfoOption *o = h->options; o->keyword && n + 1 < WORDS_MAX; o++) {
                bool ours = strcmp(o->keyword, words[0]) == 0 ||
                            strcmp(o->keyword, words[1]) == 0 || strcmp(o->keyword, words[2]) == 0;
                bool many = strcmp(o->keyword, "host") == 0 ||
                            strcmp(o->keyword, "hostaddr") == 0 || strcmp(o->keyword, "port") == 0;

                if (ours || !o->val || !o->val[0])
                        continue;
                words[n] = o->keyword;
                values[n] = many ? part(o->val, k, split[at++]) : o->val;
                n += values[n] != NULL;
        }
        words[n] = NULL;
        return PQconnectStartParams(words, values, 0);
}
