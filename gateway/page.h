/* gateway/page.h - the pages a shopper's browser sees while it may not pass:
 * waiting, ready, paused, all held, sold out, closed, not open yet, line full,
 * sign in first.
 *
 * One page a face, rendered into the caller's buffer. Without script the page
 * reloads itself when told; with script it polls the line by its cookie, says
 * changes in a polite live region, and reloads once when it is one's turn. No
 * foreign assets; the policy in gw_page_csp() allows just its own style and
 * script.
 *
 * Units      milliseconds; sale time since 1970.
 * Ownership  borrows everything; allocates nothing.
 * Context    any thread.
 */
#ifndef GATEWAY_PAGE_H
#define GATEWAY_PAGE_H

#include "net/base.h"

enum gw_page_face {
        GW_PAGE_NOT_OPEN, /* scheduled: no line yet */
        GW_PAGE_PREQUEUE, /* in line before the opening */
        GW_PAGE_WAITING,
        GW_PAGE_READY,    /* one's turn: reload to enter */
        GW_PAGE_ALL_HELD, /* units may come back */
        GW_PAGE_PAUSED,
        GW_PAGE_SOLD_OUT, /* public */
        GW_PAGE_CLOSED,   /* public */
        GW_PAGE_LINE_FULL,
        GW_PAGE_SIGN_IN, /* an account is needed */
        GW_PAGE_FACES,
};

enum gw_page_reason {
        GW_PAGE_NO_REASON,
        GW_PAGE_FORGOTTEN,
        GW_PAGE_TURN_MISSED,
        GW_PAGE_TICKET_INVALID,
        GW_PAGE_OTHER_ACCOUNT,
        GW_PAGE_ROUND_OVER,
};

struct gw_page_facts {
        enum gw_page_face face;
        enum gw_page_reason reason;
        struct span sale;  /* its id */
        int64_t position;  /* 1 is next; -1 unknown */
        int64_t ahead;     /* -1 unknown */
        int64_t eta_low_s; /* -1 unknown */
        int64_t eta_high_s;
        int likely;            /* 1 yes, 0 no, -1 unknown */
        int64_t poll_after_ms; /* 0: the page does not come back by itself */
        int64_t opens_at_ms;   /* 0: not shown */
        struct span login_url; /* SIGN_IN only; empty: no link */
};

/* Enough for every page whose sale and login_url are within their limits
 * (63 and 512 bytes). */
#define GW_PAGE_MAX_BYTES 12288

/* Bytes written, 0 when `cap` was too small. */
NET_MUST size_t gw_page_render(const struct gw_page_facts *f, char *out, size_t cap);

/* The content-security-policy value that goes with every page. */
struct span gw_page_csp(void);

#endif
