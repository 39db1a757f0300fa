/* tests/unit/http11_client_rig.h - one HTTP/1.1 client session, fed answers, and
 * what it told as a line of text: "200 name=value |body| OK keep".
 */
#ifndef TESTS_UNIT_HTTP11_CLIENT_RIG_H
#define TESTS_UNIT_HTTP11_CLIENT_RIG_H

#include "net/http11_client.h"

#define HEADER_BYTES 2048
#define WINDOW_BYTES 65536
#define OK "HTTP/1.1 200 OK\r\n"
#define BAD_HEAD "BAD close"

struct story {
        char text[65536];
        size_t len;
};

struct http11_client *make(void);
/* A request without a body, put out. */
void ask(struct http11_client *h, struct client_call *call, struct span method);
void feed(struct http11_client *h, struct span part, struct story *s, bool *in_body);
/* Feeds `answer` cut before `first` and then every `step` bytes; 0: whole. */
void play(struct span method, struct span answer, size_t first, size_t step, bool ends,
          struct story *s);

#endif
