#include "gateway/page.h"

#include <stdio.h>

#include "net/clock.h"

/* The style and the script are the same bytes on every page, so that the
 * policy can name each by its hash; what differs stands in the markup and in
 * data attributes. test_page recomputes the hashes. */
static const char page_style[] =
        ":root{color-scheme:light dark;--ink:#16202a;--dim:#5b6b7a;--paper:#f3f6f8;--card:#fff;--edge:#dbe3ea;--mark:#0b6e4f}"
        "@media(prefers-color-scheme:dark){:root{--ink:#eef3f6;--dim:#9fb0be;--paper:#10171d;--card:#18222b;--edge:#2b3945;--mark:#5cc7a0}}"
        "*{box-sizing:border-box}body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem;"
        "background:var(--paper);color:var(--ink);font:1.05rem/1.55 system-ui,sans-serif}"
        "main{width:100%;max-width:34rem;background:var(--card);border:1px solid var(--edge);border-radius:14px;padding:2.2rem 2rem}"
        "h1{margin:0 0 .6rem;font-size:1.5rem;line-height:1.25}p{margin:.5rem 0}"
        ".sale{margin:0 0 1.4rem;color:var(--dim);font-size:.9rem;overflow-wrap:anywhere}"
        ".place{margin:1.3rem 0;padding:1rem 1.2rem;border-left:4px solid var(--mark);background:var(--paper);border-radius:0 8px 8px 0}"
        ".place b{display:block;font-size:2.3rem;line-height:1.15;font-variant-numeric:tabular-nums}"
        ".note{color:var(--dim);font-size:.92rem}.why{font-weight:600}"
        "a.go,button{display:inline-block;margin-top:1rem;padding:.6rem 1.1rem;border:1px solid var(--edge);border-radius:8px;"
        "background:none;color:var(--ink);font:inherit;text-decoration:none;cursor:pointer}a.go{background:var(--mark);border-color:var(--mark);color:#fff}";

static const char page_script[] =
        "(function(){var m=document.querySelector('main'),d=m.dataset,wait=+d.poll,url='/_sluice/v1/sales/'+d.sale+'/line',fails=0;"
        "function q(s){return m.querySelector(s)}function put(s,t){var e=q(s);if(e&&e.textContent!==t)e.textContent=t}"
        "var t=q('time');if(t)t.textContent=new Date(t.dateTime).toLocaleString();"
        "if(!wait)return;"
        "function mins(s){return s<90?s+' seconds':Math.round(s/60)+' minutes'}"
        "function show(p){put('#n',p.position==null?'':String(p.position));"
        "put('#ahead',p.ahead==null?'':p.ahead===0?'You are next.':p.ahead===1?'1 person is ahead of you.':p.ahead+' people are ahead of you.');"
        "put('#eta',p.eta_seconds?'About '+mins(p.eta_seconds.low)+' to '+mins(p.eta_seconds.high)+'.':'');"
        "put('#likely',p.likely===false?'There are more people ahead of you than units left. You may wait on, but it is unlikely to reach you.':'')}"
        "function ask(){fetch(url,{headers:{Accept:'application/json'},cache:'no-store'}).then(function(r){return r.json()}).then(function(p){"
        "fails=0;if(p.state!==d.state||p.reason&&p.reason!==d.reason||p.code==='not_found'||d.opens&&Date.now()>=+d.opens){location.reload();return}show(p);later(p.poll_after_ms)})"
        ".catch(function(){fails++;later(Math.min(30000,2000*Math.pow(2,fails)))})}"
        "function later(ms){setTimeout(ask,Math.max(1000,ms||wait))}"
        "var b=q('#leave');if(b){b.hidden=false;b.onclick=function(){fetch(url,{method:'DELETE'}).then(function(){m.innerHTML='<h1>You left the line</h1>"
        "<p>Your place went to the next person. Reload the page to join again.</p>';wait=0;later=function(){};ask=function(){}})}}"
        "later(wait)})()";

static const char csp[] =
        "default-src 'none'; style-src 'sha256-4en1BK7mzlg54AHFHPXFroiNGiPONv2gQ1vYRQ3OOsI='; "
        "script-src 'sha256-aLIuCsnkR5ih09KOp3QVy50FsUtVNB7em2OSRJeOG7A='; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'self'";

struct face {
        const char *state; /* the line's word for it, which the script compares */
        const char *title;
        const char *text;
        bool in_line; /* shows a place and may be left */
};

static const struct face faces[GW_PAGE_FACES] = {
        [GW_PAGE_NOT_OPEN] = { "not_open", "Not open yet",
                "The sale has not opened. You need not reload: this page comes back by itself.", false },
        [GW_PAGE_PREQUEUE] = { "waiting", "You are in line",
                "The sale has not opened yet. Your place is kept; this page moves on by itself.", true },
        [GW_PAGE_WAITING] = { "waiting", "You are in line",
                "Keep this page open. Reloading is harmless and changes nothing.", true },
        [GW_PAGE_READY] = { "ready", "It is your turn",
                "Go on now: the place is kept for a short time only.", false },
        [GW_PAGE_ALL_HELD] = { "all_held", "Every unit is in somebody's hands",
                "Not all of them are paid for. Units may come back, and you keep your place.", true },
        [GW_PAGE_PAUSED] = { "paused", "The sale is paused",
                "Nobody is let in at the moment. You keep your place.", true },
        [GW_PAGE_SOLD_OUT] = { "sold_out", "Sold out",
                "Every unit has been sold. Thank you for waiting.", false },
        [GW_PAGE_CLOSED] = { "closed", "The sale is over",
                "It is closed and takes no more orders.", false },
        [GW_PAGE_LINE_FULL] = { "line_full", "The line is full",
                "More people came than the line can hold. This page tries again by itself.", false },
        [GW_PAGE_SIGN_IN] = { "sign_in", "Sign in to join the line",
                "This sale gives each account one fair share, so it needs to know yours.", false },
};

static const char *const reasons[] = {
        [GW_PAGE_NO_REASON] = NULL,
        [GW_PAGE_FORGOTTEN] = "You were away for too long, so you have a new place.",
        [GW_PAGE_TURN_MISSED] = "Your turn came and passed unused. You are served next.",
        [GW_PAGE_TICKET_INVALID] = "Your old ticket could not be read, so you have a new place.",
        [GW_PAGE_OTHER_ACCOUNT] = "Your old ticket belongs to another account, so you have a new place.",
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
                case '&': put(t, "&amp;"); break;
                case '<': put(t, "&lt;"); break;
                case '>': put(t, "&gt;"); break;
                case '"': put(t, "&quot;"); break;
                case '\'': put(t, "&#39;"); break;
                default: put_bytes(t, s.p + i, 1); break;
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
        put(t, "<div class=\"place\" role=\"status\" aria-live=\"polite\">Your number in line<b id=\"n\">");
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
        put(t, page_style);
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
        struct text t = { .p = out, .cap = cap };

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
        put(&t, page_script);
        put(&t, "</script></body></html>\n");
        return t.overflow ? 0 : t.len;
}

struct span gw_page_csp(void) {
        return (struct span){ csp, sizeof csp - 1 };
}
