#include "gateway/page.h"

#include <stdio.h>

#include "net/clock.h"
#include "page_assets.h"

/* The style and the script are the same bytes on every page, so that the
 * policy can name each by its hash; what differs stands in the markup and in
 * data attributes. */
static const char csp[] = "default-src 'none'; style-src 'sha256-" GW_PAGE_STYLE_SHA256 "'; "
                          "script-src 'sha256-" GW_PAGE_SCRIPT_SHA256 "'; connect-src 'self'; "
                          "base-uri 'none'; form-action 'self'; frame-ancestors 'self'";

struct face {
        const char *state; /* the line's word for it, which the script compares */
        const char *title;
        const char *text;
        bool in_line; /* shows a place and may be left */
};

static const struct face faces[GW_PAGE_FACES] = {
        [GW_PAGE_NOT_OPEN] =
                {"not_open", "Not open yet",
                 "The sale has not opened. You need not reload: this page comes back by itself.",
                 false},
        [GW_PAGE_PREQUEUE] =
                {"waiting", "You are in line",
                 "The sale has not opened yet. Your place is kept; this page moves on by itself.",
                 true},
        [GW_PAGE_WAITING] = {"waiting", "You are in line",
                             "Keep this page open. Reloading is harmless and changes nothing.",
                             true},
        [GW_PAGE_READY] = {"ready", "It is your turn",
                           "Go on now: the place is kept for a short time only.", false},
        [GW_PAGE_ALL_HELD] =
                {"all_held", "Every unit is in somebody's hands",
                 "Not all of them are paid for. Units may come back, and you keep your place.",
                 true},
        [GW_PAGE_PAUSED] = {"paused", "The sale is paused",
                            "Nobody is let in at the moment. You keep your place.", true},
        [GW_PAGE_SOLD_OUT] = {"sold_out", "Sold out",
                              "Every unit has been sold. Thank you for waiting.", false},
        [GW_PAGE_CLOSED] = {"closed", "The sale is over", "It is closed and takes no more orders.",
                            false},
        [GW_PAGE_LINE_FULL] =
                {"line_full", "The line is full",
                 "More people came than the line can hold. This page tries again by itself.",
                 false},
        [GW_PAGE_SIGN_IN] =
                {"sign_in", "Sign in to join the line",
                 "This sale gives each account one fair share, so it needs to know yours.", false},
};

static const char *const reasons[] = {
        [GW_PAGE_NO_REASON] = NULL,
        [GW_PAGE_FORGOTTEN] = "You were away for too long, so you have a new place.",
        [GW_PAGE_TURN_MISSED] = "Your turn came and passed unused. You are served next.",
        [GW_PAGE_TICKET_INVALID] = "Your old ticket could not be read, so you have a new place.",
        [GW_PAGE_OTHER_ACCOUNT] =
                "Your old ticket belongs to another account, so you have a new place.",
        [GW_PAGE_ROUND_OVER] = "The line was started anew by the shop, so you have a new place.",
};

static const char *const reason_words[] = {
        [GW_PAGE_NO_REASON] = "",
        [GW_PAGE_FORGOTTEN] = "forgotten",
        [GW_PAGE_TURN_MISSED] = "turn_missed",
        [GW_PAGE_TICKET_INVALID] = "ticket_invalid",
        [GW_PAGE_OTHER_ACCOUNT] = "other_account",
        [GW_PAGE_ROUND_OVER] = "round_over",
};

struct text {
        char *p;
        size_t cap, len;
        bool overflow;
};

static void put_bytes(struct text *t, const char *p, size_t n) {
        if (t->overflow || n > t->cap - t->len) {
                t->overflow = true;
                return;
        }
        memcpy(t->p + t->len, p, n);
        t->len += n;
}

static void put(struct text *t, const char *s) {
        put_bytes(t, s, strlen(s));
}

static void put_escaped(struct text *t, struct span s) {
        for (size_t i = 0; i < s.len; i++) {
                switch (s.p[i]) {
                case '&':
                        put(t, "&amp;");
                        break;
                case '<':
                        put(t, "&lt;");
                        break;
                case '>':
                        put(t, "&gt;");
                        break;
                case '"':
                        put(t, "&quot;");
                        break;
                case '\'':
                        put(t, "&#39;");
                        break;
                default:
                        put_bytes(t, s.p + i, 1);
                        break;
                }
        }
}

static void put_int(struct text *t, int64_t n) {
        char digits[24];
        int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
        put_bytes(t, digits, (size_t)len);
}

static void put_span_of_time(struct text *t, int64_t s) {
        put_int(t, s < 90 ? s : (s + 30) / 60);
        put(t, s < 90 ? " seconds" : " minutes");
}

static void put_ahead(struct text *t, int64_t ahead) {
        if (ahead < 0)
                return;
        if (ahead == 0) {
                put(t, "You are next.");
        } else if (ahead == 1) {
                put(t, "1 person is ahead of you.");
        } else {
                put_int(t, ahead);
                put(t, " people are ahead of you.");
        }
}

static void put_place(struct text *t, const struct gw_page_facts *f) {
        put(t, "<div class=\"place\" role=\"status\" aria-live=\"polite\">Your number in line<b "
               "id=\"n\">");
        if (f->position > 0)
                put_int(t, f->position);
        put(t, "</b><span id=\"ahead\">");
        put_ahead(t, f->ahead);
        put(t, "</span> <span id=\"eta\">");
        if (f->eta_low_s >= 0) {
                put(t, "About ");
                put_span_of_time(t, f->eta_low_s);
                put(t, " to ");
                put_span_of_time(t, f->eta_high_s);
                put(t, ".");
        }
        put(t, "</span></div><p class=\"note\" id=\"likely\">");
        if (f->likely == 0)
                put(t, "There are more people ahead of you than units left. "
                       "You may wait on, but it is unlikely to reach you.");
        put(t, "</p>");
}

static void put_opening(struct text *t, int64_t opens_at_ms) {
        char at[CLOCK_TEXT_MAX];
        (void)clock_format_rfc3339(at, opens_at_ms);
        put(t, "<p>It opens at <time datetime=\"");
        put(t, at);
        put(t, "\">");
        put(t, at);
        put(t, "</time>.</p>");
}

static void put_head(struct text *t, const struct gw_page_facts *f, const struct face *face) {
        put(t, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
               "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
               "<meta name=\"robots\" content=\"noindex\"><title>");
        put(t, face->title);
        put(t, "</title>");
        if (f->poll_after_ms > 0) {
                put(t, "<noscript><meta http-equiv=\"refresh\" content=\"");
                put_int(t, (f->poll_after_ms + 999) / 1000);
                put(t, "\"></noscript>");
        }
        put(t, "<style>");
        put(t, gw_page_style);
        put(t, "</style></head><body><main data-sale=\"");
        put_escaped(t, f->sale);
        put(t, "\" data-state=\"");
        put(t, face->state);
        put(t, "\" data-reason=\"");
        put(t, reason_words[f->reason]);
        put(t, "\" data-poll=\"");
        put_int(t, f->poll_after_ms);
        if (f->face == GW_PAGE_PREQUEUE && f->opens_at_ms > 0) {
                put(t, "\" data-opens=\"");
                put_int(t, f->opens_at_ms);
        }
        put(t, "\"><p class=\"sale\">");
        put_escaped(t, f->sale);
        put(t, "</p><h1>");
        put(t, face->title);
        put(t, "</h1>");
}

size_t gw_page_render(const struct gw_page_facts *f, char *out, size_t cap) {
        assert(f->face < GW_PAGE_FACES);
        const struct face *face = &faces[f->face];
        struct text t = {.p = out, .cap = cap};

        put_head(&t, f, face);
        if (reasons[f->reason]) {
                put(&t, "<p class=\"why\">");
                put(&t, reasons[f->reason]);
                put(&t, "</p>");
        }
        put(&t, "<p>");
        put(&t, face->text);
        put(&t, "</p>");
        if ((f->face == GW_PAGE_NOT_OPEN || f->face == GW_PAGE_PREQUEUE) && f->opens_at_ms > 0)
                put_opening(&t, f->opens_at_ms);
        if (face->in_line)
                put_place(&t, f);
        if (f->face == GW_PAGE_READY)
                put(&t, "<p><a class=\"go\" href=\"\">Enter now</a></p>");
        if (f->face == GW_PAGE_SIGN_IN && f->login_url.len > 0) {
                put(&t, "<p><a class=\"go\" href=\"");
                put_escaped(&t, f->login_url);
                put(&t, "\">Sign in</a></p>");
        }
        if (face->in_line)
                put(&t, "<button id=\"leave\" type=\"button\" hidden>Leave the line</button>");
        put(&t, "</main><script>");
        put(&t, gw_page_script);
        put(&t, "</script></body></html>\n");
        return t.overflow ? 0 : t.len;
}

struct span gw_page_csp(void) {
        return (struct span){csp, sizeof csp - 1};
}
