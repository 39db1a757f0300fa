#include "gateway/flag.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/etag.h"
#include "gateway/place.h"

#define LEFT_NULL (-1)
#define LEFT_FEW (-2)
#define FEW 10 /* units: at or below, `left: few` says so */
#define END_POLL_MS 30000
#define END_TEXT_MAX 1024

struct gw_flag gw_flag_of(const struct gw_sale *s) {
        struct gw_flag f = {
                .state = s->state,
                .left = LEFT_NULL,
                .opens_at_ms = s->facts.opens_at_ms,
                .closes_at_ms = s->facts.closes_at_ms,
        };
        int64_t available = s->facts.stock.available;
        if (!s->facts.has_item || s->left == GW_LEFT_HIDDEN)
                return f;
        if (s->left == GW_LEFT_EXACT)
                f.left = available < 0 ? 0 : available;
        else if (available > 0 && available <= FEW)
                f.left = LEFT_FEW;
        return f;
}

bool gw_flag_equal(const struct gw_flag *a, const struct gw_flag *b) {
        return a->state == b->state && a->left == b->left && a->opens_at_ms == b->opens_at_ms &&
               a->closes_at_ms == b->closes_at_ms;
}

size_t gw_flag_render(const struct gw_sale *s, char out[GW_FLAG_MAX]) {
        struct gw_flag f = gw_flag_of(s);
        struct json_out o;
        json_out_init(&o, out, GW_FLAG_MAX);
        json_out_object(&o, NULL);
        json_out_text(&o, "sale", s->facts.id);
        json_out_text(&o, "state", adm_sale_state_name(s->state));
        json_out_bool(&o, "sold_out", s->state == ADM_SALE_SOLD_OUT);
        json_out_time(&o, "opens_at", f.opens_at_ms);
        json_out_time(&o, "closes_at", f.closes_at_ms ? f.closes_at_ms : JSON_NO_TIME);
        if (f.left == LEFT_FEW)
                json_out_text(&o, "left", "few");
        else if (f.left == LEFT_NULL)
                json_out_null(&o, "left");
        else
                json_out_int(&o, "left", f.left);
        json_out_uint(&o, "version", s->flag_version);
        json_out_time(&o, "as_of", s->flag_as_of_ms);
        json_out_object_end(&o);
        size_t len = json_out_done(&o).len;
        assert(len > 0);
        return len;
}

static bool is_last(const struct gw_sale *s) {
        return s->state == ADM_SALE_SOLD_OUT || s->state == ADM_SALE_CLOSED;
}

static const struct span shared_short = SPAN("public, s-maxage=1, stale-while-revalidate=2, "
                                             "stale-if-error=60");
static const struct span shared_long = SPAN("public, s-maxage=5, stale-while-revalidate=10, "
                                            "stale-if-error=300");

static int render_flag(struct gw_sale *s) {
        char text[GW_FLAG_MAX], key[ADM_ID_LEN + 16];
        struct span body = {text, gw_flag_render(s, text)};
        int n = snprintf(key, sizeof key, "sluice sale-%s", s->facts.id);
        gw_etag_of(body, s->pages.etag);
        struct http_header headers[] = {
                {.name = SPAN("content-type"), .value = SPAN("application/json")},
                {.name = SPAN("cache-control"), .value = is_last(s) ? shared_long : shared_short},
                {.name = SPAN("etag"), .value = span_of(s->pages.etag)},
                {.name = SPAN("surrogate-key"), .value = {key, (size_t)n}},
                {.name = SPAN("access-control-allow-origin"), .value = SPAN("*")},
        };
        return gw_etag_pages(headers, NET_COUNT_OF(headers), body, &s->pages.flag,
                             &s->pages.flag_304);
}

/* ---- when it is over ---- */

struct end {
        struct gw_sale *sale;
        struct adm_place place;
        enum problem_code line, hold;
};

static struct end end_of(struct gw_sale *s) {
        bool sold_out = s->state == ADM_SALE_SOLD_OUT && s->facts.queue != ADM_QUEUE_REJECT;
        return (struct end){
                .sale = s,
                .place = {.state = sold_out ? ADM_SOLD_OUT : ADM_CLOSED,
                          .position = -1,
                          .ahead = -1,
                          .eta_low_s = -1,
                          .eta_high_s = -1,
                          .likely = -1,
                          .poll_after_ms = END_POLL_MS,
                          .opens_at_ms = s->facts.opens_at_ms},
                .line = sold_out ? PROBLEM_SOLD_OUT : PROBLEM_CLOSED,
                .hold = sold_out ? PROBLEM_SOLD_OUT_HOLD : PROBLEM_CLOSED,
        };
}

static struct span render_end(const struct end *e, enum problem_code code, bool with_place,
                              char out[END_TEXT_MAX]) {
        struct json_out o;
        struct gw_place_text text = {.sale = span_of(e->sale->facts.id), .place = &e->place};
        json_out_init(&o, out, END_TEXT_MAX);
        problem_begin(&o, code, NULL);
        if (with_place)
                gw_place_members(&o, &text);
        problem_end(&o);
        assert(!o.overflow);
        return json_out_done(&o);
}

#define RETRY                                                                                      \
        { .name = SPAN("retry-after"), .value = SPAN("30") }
#define PRIVATE                                                                                    \
        { .name = SPAN("cache-control"), .value = SPAN("private, no-store") }
#define PUBLIC                                                                                     \
        { .name = SPAN("cache-control"), .value = SPAN("public, max-age=5, s-maxage=5") }
#define VARY                                                                                       \
        { .name = SPAN("vary"), .value = SPAN("Accept, Accept-Language") }
#define JSON                                                                                       \
        { .name = SPAN("content-type"), .value = SPAN(PROBLEM_MEDIA_TYPE) }
#define HTML                                                                                       \
        { .name = SPAN("content-type"), .value = SPAN("text/html; charset=utf-8") }
#define NOSNIFF                                                                                    \
        { .name = SPAN("x-content-type-options"), .value = SPAN("nosniff") }

static int render_json_ends(struct gw_pages *p, const struct end *e) {
        char text[END_TEXT_MAX];
        struct http_header line[] = {JSON, PRIVATE, RETRY};
        struct http_header gated[] = {JSON, PUBLIC, VARY, RETRY};
        struct http_header hold[] = {JSON, PRIVATE};
        struct span body = render_end(e, e->line, true, text);
        int status = problem_of(e->line)->status;
        p->end_line[GW_FORM_JSON] = http_page_new(status, line, NET_COUNT_OF(line), body);
        p->end_gated[GW_FORM_JSON] = http_page_new(status, gated, NET_COUNT_OF(gated), body);
        body = render_end(e, e->hold, false, text);
        p->end_hold = http_page_new(problem_of(e->hold)->status, hold, NET_COUNT_OF(hold), body);
        bool all = p->end_line[GW_FORM_JSON] && p->end_gated[GW_FORM_JSON] && p->end_hold;
        return all ? 0 : -ENOMEM;
}

static int render_html_ends(struct gw_pages *p, const struct end *e) {
        static char text[GW_PAGE_MAX_BYTES];
        struct http_header csp = {.name = SPAN("content-security-policy"), .value = gw_page_csp()};
        struct http_header line[] = {HTML, PRIVATE, VARY, NOSNIFF, RETRY, csp};
        struct http_header gated[] = {HTML, PUBLIC, VARY, NOSNIFF, RETRY, csp};
        struct gw_page_facts facts = gw_place_page(&e->place, span_of(e->sale->facts.id), false);
        facts.poll_after_ms = 0;
        struct span body = {text, gw_page_render(&facts, text, sizeof text)};
        assert(body.len > 0);
        int status = problem_of(e->line)->status;
        p->end_line[GW_FORM_HTML] = http_page_new(status, line, NET_COUNT_OF(line), body);
        p->end_gated[GW_FORM_HTML] = http_page_new(status, gated, NET_COUNT_OF(gated), body);
        return p->end_line[GW_FORM_HTML] && p->end_gated[GW_FORM_HTML] ? 0 : -ENOMEM;
}

int gw_flag_pages(struct gw_sale *s) {
        int r = render_flag(s);
        if (r < 0 || (!is_last(s) && s->facts.queue != ADM_QUEUE_REJECT))
                return r;
        struct end e = end_of(s);
        r = render_json_ends(&s->pages, &e);
        return r < 0 ? r : render_html_ends(&s->pages, &e);
}

int gw_flag_list(struct gw_snapshot *s) {
        size_t cap = s->n_sales * (GW_FLAG_MAX + 1) + 32, n = 0;
        char *text = malloc(cap);
        if (!text)
                return -ENOMEM;
        n += (size_t)snprintf(text, cap, "{\"sales\":[");
        for (size_t i = 0; i < s->n_sales; i++) {
                struct span flag = http_page_body(s->sales[i].pages.flag);
                if (i > 0)
                        text[n++] = ',';
                memcpy(text + n, flag.p, flag.len);
                n += flag.len;
        }
        memcpy(text + n, "]}", 2);
        struct span body = {text, n + 2};
        gw_etag_of(body, s->list_etag);
        struct http_header headers[] = {
                {.name = SPAN("content-type"), .value = SPAN("application/json")},
                {.name = SPAN("cache-control"), .value = shared_short},
                {.name = SPAN("etag"), .value = span_of(s->list_etag)},
                {.name = SPAN("surrogate-key"), .value = SPAN("sluice")},
                {.name = SPAN("access-control-allow-origin"), .value = SPAN("*")},
        };
        int r = gw_etag_pages(headers, NET_COUNT_OF(headers), body, &s->list, &s->list_304);
        free(text);
        return r;
}
