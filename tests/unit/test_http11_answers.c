#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/http11_client_rig.h"

struct answer {
        const char *why;
        struct span bytes;
        const char *story;
        const char *method; /* GET when NULL */
        bool ends;          /* the peer closes behind it */
        bool at_once;       /* the story depends on how it was cut */
};

static void check_answer(const struct answer *a) {
        struct span method = a->method ? span_of(a->method) : SPAN("GET");
        struct story *s = malloc(sizeof(*s));

        assert_non_null(s);
        play(method, a->bytes, 0, 0, a->ends, s);
        if (strcmp(s->text, a->story) != 0)
                fail_msg("%s: got '%s', not '%s'", a->why, s->text, a->story);
        for (size_t cut = 1; cut < a->bytes.len && !a->at_once; cut++) {
                play(method, a->bytes, cut, 0, a->ends, s);
                if (strcmp(s->text, a->story) != 0)
                        fail_msg("%s, cut at %zu: got '%s'", a->why, cut, s->text);
        }
        if (!a->at_once) {
                play(method, a->bytes, 0, 1, a->ends, s);
                assert_string_equal(s->text, a->story);
        }
        free(s);
}

static void check_answers(const struct answer *a, size_t n) {
        for (size_t i = 0; i < n; i++)
                check_answer(&a[i]);
}

static const struct answer good[] = {
        {.why = "a length",
         SPAN(OK "Content-Length: 2\r\nX-Y: z\r\n\r\nhi"),
         "200 content-length=2 x-y=z |hi| OK keep"},
        {.why = "no body", SPAN(OK "content-length: 0\r\n\r\n"), "200 content-length=0 || OK keep"},
        {.why = "no reason",
         SPAN("HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n"),
         "200 content-length=0 || OK keep"},
        {.why = "chunks",
         SPAN(OK "Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
         "200 |abcde| OK keep"},
        {.why = "chunks with extensions and trailers",
         SPAN(OK "transfer-encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nx: y\r\n\r\n"),
         "200 |abc| OK keep"},
        {.why = "until the end", SPAN(OK "x: y\r\n\r\nabc"), "200 x=y |abc| OK", .ends = true},
        {.why = "1xx before it",
         SPAN("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" OK
              "content-length: 1\r\n\r\nx"),
         "200 content-length=1 |x| OK keep"},
        {.why = "204", SPAN("HTTP/1.1 204 No Content\r\n\r\n"), "204 || OK keep"},
        {.why = "304 with the length of what it stands for",
         SPAN("HTTP/1.1 304 Not Modified\r\ncontent-length: 50\r\n\r\n"),
         "304 content-length=50 || OK keep"},
        {.why = "HEAD",
         SPAN(OK "content-length: 50\r\n\r\n"),
         "200 content-length=50 || OK keep",
         "HEAD"},
        {.why = "HEAD of what comes in chunks",
         SPAN(OK "transfer-encoding: chunked\r\n\r\n"),
         "200 || OK keep",
         "HEAD"},
        {.why = "it says close",
         SPAN(OK "connection: close\r\ncontent-length: 1\r\n\r\nx"),
         "200 content-length=1 |x| OK close"},
        {.why = "HTTP/1.0",
         SPAN("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx"),
         "200 content-length=1 |x| OK close"},
        {.why = "about the connection",
         SPAN(OK "Connection: keep-alive, X-Hop ,x-two\r\nkeep-alive: timeout=5\r\nx-hop: 1\r\n"
                 "x-two: 2\r\nx-three: 3\r\nupgrade: h2c\r\nproxy-connection: a\r\ntrailer: b\r\n"
                 "te: c\r\ncontent-length: 0\r\n\r\n"),
         "200 x-three=3 content-length=0 || OK keep"},
        {.why = "values keep their inside",
         SPAN(OK "a:  b\tc  \r\nd:\r\ncontent-length: 0\r\n\r\n"),
         "200 a=b\tc d= content-length=0 || OK keep"},
        {.why = "leftover bytes",
         SPAN(OK "content-length: 1\r\n\r\nxy"),
         "200 content-length=1 |x| OK close",
         .at_once = true},
        {.why = "an answer to nothing behind it",
         SPAN(OK "content-length: 0\r\n\r\n" OK),
         "200 content-length=0 || OK close",
         .at_once = true},
        {.why = "a body where none may be",
         SPAN("HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\nhi"),
         "204 content-length=2 || OK close",
         .at_once = true},
};

static void test_answers_that_are_taken(void **state) {
        (void)state;
        check_answers(good, NET_COUNT_OF(good));
}

static const struct answer bad[] = {
        {.why = "a length and chunks",
         SPAN(OK "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
         BAD_HEAD},
        {.why = "chunks and a length",
         SPAN(OK "transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n"),
         BAD_HEAD},
        {.why = "two lengths", SPAN(OK "content-length: 1\r\ncontent-length: 2\r\n\r\n"), BAD_HEAD},
        {.why = "the same length twice",
         SPAN(OK "content-length: 1\r\ncontent-length: 1\r\n\r\n"),
         BAD_HEAD},
        {.why = "a list of lengths", SPAN(OK "content-length: 1, 1\r\n\r\n"), BAD_HEAD},
        {.why = "a sign", SPAN(OK "content-length: +1\r\n\r\n"), BAD_HEAD},
        {.why = "negative", SPAN(OK "content-length: -1\r\n\r\n"), BAD_HEAD},
        {.why = "an empty length", SPAN(OK "content-length: \r\n\r\n"), BAD_HEAD},
        {.why = "hexadecimal", SPAN(OK "content-length: 0x1\r\n\r\n"), BAD_HEAD},
        {.why = "2^64", SPAN(OK "content-length: 18446744073709551616\r\n\r\n"), BAD_HEAD},
        {.why = "chunks twice",
         SPAN(OK "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n"),
         BAD_HEAD},
        {.why = "another coding", SPAN(OK "transfer-encoding: gzip, chunked\r\n\r\n"), BAD_HEAD},
        {.why = "nearly chunked", SPAN(OK "transfer-encoding: xchunked\r\n\r\n"), BAD_HEAD},
        {.why = "chunks in HTTP/1.0",
         SPAN("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
         BAD_HEAD},
        {.why = "another version", SPAN("HTTP/2.0 200 OK\r\n\r\n"), BAD_HEAD},
        {.why = "no version", SPAN("200 OK\r\n\r\n"), BAD_HEAD},
        {.why = "no answer", SPAN("\r\n\r\n"), BAD_HEAD},
        {.why = "an empty line before it", SPAN("\r\n" OK "content-length: 0\r\n\r\n"), BAD_HEAD},
        {.why = "two digits", SPAN("HTTP/1.1 20 OK\r\n\r\n"), BAD_HEAD},
        {.why = "below 100", SPAN("HTTP/1.1 099 OK\r\n\r\n"), BAD_HEAD},
        {.why = "switching protocols", SPAN("HTTP/1.1 101 Switching Protocols\r\n\r\n"), BAD_HEAD},
        {.why = "bare line feeds", SPAN("HTTP/1.1 200 OK\ncontent-length: 0\n\n"), BAD_HEAD},
        {.why = "one bare line feed", SPAN(OK "a: b\ncontent-length: 0\r\n\r\n"), BAD_HEAD},
        {.why = "a bare CR in a value",
         SPAN(OK "a: b\rc: d\r\ncontent-length: 0\r\n\r\n"),
         BAD_HEAD},
        {.why = "a NUL in a value", SPAN(OK "a: b\0c\r\ncontent-length: 0\r\n\r\n"), BAD_HEAD},
        {.why = "a folded line", SPAN(OK "a: b\r\n c\r\ncontent-length: 0\r\n\r\n"), BAD_HEAD},
        {.why = "a folded first line", SPAN(OK " a: b\r\ncontent-length: 0\r\n\r\n"), BAD_HEAD},
        {.why = "a space before the colon", SPAN(OK "content-length : 5\r\n\r\n"), BAD_HEAD},
        {.why = "a space in a name", SPAN(OK "a b: 5\r\n\r\n"), BAD_HEAD},
        {.why = "no name", SPAN(OK ": 5\r\n\r\n"), BAD_HEAD},
        {.why = "no colon", SPAN(OK "abc\r\n\r\n"), BAD_HEAD},
        {.why = "no size of a chunk",
         SPAN(OK "transfer-encoding: chunked\r\n\r\n\r\nabc\r\n"),
         "200 || BAD close"},
        {.why = "a chunk's size in error",
         SPAN(OK "transfer-encoding: chunked\r\n\r\n0x3\r\nabc\r\n"),
         "200 || BAD close"},
        {.why = "a chunk of 2^64",
         SPAN(OK "transfer-encoding: chunked\r\n\r\n10000000000000000\r\nabc\r\n"),
         "200 || BAD close"},
        {.why = "a chunk longer than it says",
         SPAN(OK "transfer-encoding: chunked\r\n\r\n2\r\nabc\r\n"),
         "200 |ab| BAD close"},
        {.why = "a chunk's size ended by LF",
         SPAN(OK "transfer-encoding: chunked\r\n\r\n1\na\r\n"),
         "200 || BAD close"},
        {.why = "a chunk ended by LF",
         SPAN(OK "transfer-encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n"),
         "200 |a| BAD close"},
        {.why = "cut in its body",
         SPAN(OK "content-length: 5\r\n\r\nab"),
         "200 content-length=5 |ab| BROKEN",
         .ends = true},
        {.why = "cut in a chunk",
         SPAN(OK "transfer-encoding: chunked\r\n\r\n5\r\nab"),
         "200 |ab| BROKEN",
         .ends = true},
        {.why = "cut before the last chunk",
         SPAN(OK "transfer-encoding: chunked\r\n\r\n2\r\nab\r\n"),
         "200 |ab| BROKEN",
         .ends = true},
        {.why = "cut in its head", SPAN(OK "a: b"), "", .ends = true},
};

static void test_answers_that_are_not_taken(void **state) {
        (void)state;
        check_answers(bad, NET_COUNT_OF(bad));
}

/* ---- limits ---- */

static struct span filled(char *to, size_t size, const char *unit, size_t times) {
        size_t n = (size_t)snprintf(to, size, "%s", OK);

        for (size_t i = 0; i < times; i++)
                n += (size_t)snprintf(to + n, size - n, "%s", unit);
        n += (size_t)snprintf(to + n, size - n, "content-length: 0\r\n\r\n");
        assert_true(n < size);
        return (struct span){to, n};
}

static void test_heads_have_a_ceiling(void **state) {
        static char text[65536];
        struct story *s = malloc(sizeof(*s));
        char value[1200];

        (void)state;
        assert_non_null(s);
        play(SPAN("GET"), filled(text, sizeof(text), "a:b\r\n", 127), 0, 0, false, s);
        assert_non_null(strstr(s->text, "OK keep"));
        play(SPAN("GET"), filled(text, sizeof(text), "a:b\r\n", 128), 0, 0, false, s);
        assert_string_equal(s->text, BAD_HEAD);

        (void)snprintf(value, sizeof(value), "a: %01000d\r\n", 7);
        play(SPAN("GET"), filled(text, sizeof(text), value, 3), 0, 0, false, s);
        assert_string_equal(s->text, BAD_HEAD);
        play(SPAN("GET"), filled(text, sizeof(text), value, 1), 0, 7, false, s);
        assert_non_null(strstr(s->text, "OK keep"));

        /* 1xx count, and have a number of their own. */
        size_t n = 0;
        for (int i = 0; i < 16; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "HTTP/1.1 100 C\r\n\r\n");
        n += (size_t)snprintf(text + n, sizeof(text) - n, OK "content-length: 0\r\n\r\n");
        play(SPAN("GET"), (struct span){text, n}, 0, 0, false, s);
        assert_non_null(strstr(s->text, "OK keep"));
        play(SPAN("GET"), (struct span){text, n}, 0, 1, false, s);
        assert_non_null(strstr(s->text, "OK keep"));
        n = 0;
        for (int i = 0; i < 17; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "HTTP/1.1 100 C\r\n\r\n");
        play(SPAN("GET"), (struct span){text, n}, 0, 0, false, s);
        assert_string_equal(s->text, BAD_HEAD);
        free(s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answers_that_are_taken),
                cmocka_unit_test(test_answers_that_are_not_taken),
                cmocka_unit_test(test_heads_have_a_ceiling),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
