#include "origin/demo.h"

#include <stdlib.h>

#include "net/buf.h"

#define PAGE_MAX ((size_t)64 << 10)
#define JSON_MAX ((size_t)48 << 10)

static const char page_head[] =
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>Hand grinder No. 4</title>\n<style>\n"
        ":root{color-scheme:light dark;--ink:#1d1b18;--soft:#6b655c;--paper:#faf7f2;"
        "--card:#fff;--line:#e4ddd2;--accent:#8a4b20}\n"
        "@media(prefers-color-scheme:dark){:root{--ink:#f1ece4;--soft:#a89f92;"
        "--paper:#171512;--card:#211e1a;--line:#38332c;--accent:#d9925c}}\n"
        "*{box-sizing:border-box}\n"
        "body{margin:0;background:var(--paper);color:var(--ink);"
        "font:17px/1.55 system-ui,sans-serif}\n"
        "header{padding:1.1rem clamp(1rem,5vw,4rem);border-bottom:1px solid var(--line);"
        "display:flex;justify-content:space-between;gap:1rem;flex-wrap:wrap}\n"
        "header b{letter-spacing:.04em}\nheader span{color:var(--soft)}\n"
        "main{max-width:62rem;margin:0 auto;padding:clamp(1.5rem,5vw,4rem) "
        "clamp(1rem,5vw,4rem);display:grid;gap:clamp(1.5rem,4vw,3.5rem);"
        "grid-template-columns:repeat(auto-fit,minmax(17rem,1fr));align-items:center}\n"
        "figure{margin:0;background:var(--card);border:1px solid var(--line);"
        "border-radius:18px;padding:2rem}\nsvg{display:block;width:100%;height:auto;"
        "max-height:22rem}\n"
        "h1{font-size:clamp(1.7rem,4vw,2.5rem);line-height:1.15;margin:0 0 .6rem}\n"
        ".price{font-size:1.25rem;color:var(--accent);font-weight:600;margin:0 0 1rem}\n"
        "dl{display:grid;grid-template-columns:auto 1fr;gap:.3rem 1.2rem;margin:1.5rem 0 0;"
        "padding-top:1.2rem;border-top:1px solid var(--line)}\n"
        "dt{color:var(--soft)}\ndd{margin:0;overflow-wrap:anywhere}\n"
        "</style>\n</head>\n<body>\n<header><b>Mill &amp; Bean</b>"
        "<span>hand-made in small numbers</span></header>\n<main>\n<figure>"
        "<svg viewBox=\"0 0 200 240\" role=\"img\" aria-label=\"A hand grinder\">"
        "<g fill=\"none\" stroke=\"currentColor\" stroke-width=\"5\" stroke-linejoin=\"round\" "
        "stroke-linecap=\"round\"><path d=\"M70 92h60l10 118a10 10 0 0 1-10 10H70a10 10 0 0 "
        "1-10-10z\"/><path d=\"M64 150h72\"/><path d=\"M76 92c0-22 10-30 24-30s24 8 24 30\"/>"
        "<path d=\"M100 62V40h64\"/><circle cx=\"170\" cy=\"34\" r=\"11\"/></g></svg></figure>\n"
        "<section>\n<h1>Hand grinder No. 4</h1>\n<p class=\"price\">149.00</p>\n"
        "<p>Forty steps from espresso to filter, steel burrs, walnut handle. You are in: "
        "take your time, a unit is yours once you hold it.</p>\n<dl>\n";
static const char page_tail[] = "</dl>\n</section>\n</main>\n</body>\n</html>\n";

static int put(struct buf *b, struct span s) {
        return s.len > 0 ? buf_append(b, s.p, s.len) : 0;
}

static int put_escaped(struct buf *b, struct span s) {
        int r = 0;

        for (size_t i = 0; i < s.len && r == 0; i++) {
                switch (s.p[i]) {
                case '&':
                        r = put(b, SPAN("&amp;"));
                        break;
                case '<':
                        r = put(b, SPAN("&lt;"));
                        break;
                case '>':
                        r = put(b, SPAN("&gt;"));
                        break;
                case '"':
                        r = put(b, SPAN("&quot;"));
                        break;
                default:
                        r = buf_append(b, &s.p[i], 1);
                        break;
                }
        }
        return r;
}

static int put_row(struct buf *b, struct span term, struct span text) {
        int r = put(b, SPAN("<dt>"));

        r = r ? r : put(b, term);
        r = r ? r : put(b, SPAN("</dt><dd>"));
        r = r ? r : put_escaped(b, text.p && text.len > 0 ? text : SPAN("none"));
        return r ? r : put(b, SPAN("</dd>\n"));
}

static void answer_page(struct org_call *c) {
        const struct http_request *q = &c->x->request;
        struct buf b;
        int r;

        buf_init(&b, PAGE_MAX);
        r = put(&b, span_of(page_head));
        r = r ? r : put_row(&b, SPAN("Account"), http_request_field(q, HTTP_FIELD_SLUICE_ACCOUNT));
        r = r ? r : put_row(&b, SPAN("Sale"), http_request_field(q, HTTP_FIELD_SLUICE_SALE));
        r = r ? r : put(&b, span_of(page_tail));
        if (r < 0)
                org_call_problem(c, PROBLEM_INTERNAL, NULL, NULL, NULL);
        else
                org_call_answer(c, 200, "text/html; charset=utf-8", buf_span(&b));
        buf_fini(&b);
}

static void answer_json(struct org_call *c) {
        const struct http_request *q = &c->x->request;
        char *text = malloc(JSON_MAX), name[256];
        struct json_out o;

        if (!text) {
                org_call_problem(c, PROBLEM_INTERNAL, NULL, NULL, NULL);
                return;
        }
        json_out_init(&o, text, JSON_MAX);
        json_out_object(&o, NULL);
        json_out_str(&o, "method", q->method_text);
        json_out_str(&o, "path", q->path);
        json_out_object(&o, "headers");
        for (size_t i = 0; i < q->n_headers; i++) {
                struct span n = q->headers[i].name;

                if (n.len >= sizeof(name))
                        continue;
                memcpy(name, n.p, n.len);
                name[n.len] = '\0';
                json_out_str(&o, name, q->headers[i].value);
        }
        json_out_object_end(&o);
        json_out_object_end(&o);
        if (o.overflow)
                org_call_problem(c, PROBLEM_HEADERS_TOO_LARGE, NULL, NULL, NULL);
        else
                org_call_json(c, 200, json_out_done(&o));
        free(text);
}

void org_demo(struct org_call *c) {
        struct span accept = http_request_field(&c->x->request, HTTP_FIELD_ACCEPT);
        unsigned json = http_accept_q(accept, SPAN("application/json"));
        unsigned html = http_accept_q(accept, SPAN("text/html"));

        metrics_add(&c->s->metrics.pages, 1);
        org_call_header(c, "vary", SPAN("Accept"));
        if (json > html)
                answer_json(c);
        else
                answer_page(c);
}
