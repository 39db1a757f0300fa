/* gateway/ctl_call.h - one request of sluicectl to an admin listener, and its
 * answer, as a plain call that waits.
 *
 * Ownership  the connection is opened by the first call and closed by fini;
 *            an answer's text and JSON belong to the caller (ctl_answer_fini).
 * Context    one thread, no other loop.
 */
#ifndef GATEWAY_CTL_CALL_H
#define GATEWAY_CTL_CALL_H

#include <jansson.h>

#include "net/base.h"

#define CTL_ANSWER_MAX ((size_t)8 * 1024 * 1024)

struct ctl {
        const char *url;        /* https://host:port */
        const char *token_file; /* bearer token of an operator */
        const char *ca_file;    /* NULL: the machine's own authorities */
        bool json;              /* print what the server said, as it is */
        struct ctl_link *link;  /* ours */
};

struct ctl_answer {
        int status;
        char etag[96]; /* "" when the answer had none */
        char *text;    /* terminated */
        json_t *tree;  /* NULL when the text is no JSON */
};

/* `body` NULL sends none; `if_match` NULL or a version with its quotes.
 * 0, or 1 with one line said on standard error. */
NET_MUST int ctl_call(struct ctl *c, const char *method, const char *path, const json_t *body,
                      const char *if_match, struct ctl_answer *out);
void ctl_answer_fini(struct ctl_answer *a);
void ctl_fini(struct ctl *c);

#endif
