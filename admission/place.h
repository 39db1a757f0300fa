/* admission/place.h - one shopper's place, as it is told.
 *
 * Units      milliseconds; instants are ms since the epoch by the origin's
 *            clock; -1 stands for JSON's null.
 * Ownership  plain values.
 * Context    any thread.
 */
#ifndef ADMISSION_PLACE_H
#define ADMISSION_PLACE_H

#include "admission/ticket.h"

#define ADM_JTI_LEN 16

enum adm_place_state {
        ADM_NOT_OPEN = 0,
        ADM_WAITING,
        ADM_READY,
        ADM_ADMITTED,
        ADM_ALL_HELD,
        ADM_PAUSED,
        ADM_SOLD_OUT,
        ADM_CLOSED,
        ADM_LINE_FULL,
};

enum adm_reason {
        ADM_REASON_NONE = 0,
        ADM_FORGOTTEN,
        ADM_TURN_MISSED,
        ADM_TICKET_INVALID,
        ADM_OTHER_ACCOUNT,
        ADM_ROUND_OVER,
};

enum adm_pass_life {
        ADM_PASS_FIRST = 1, /* shown nowhere yet */
        ADM_PASS_USED,      /* shown on a gated path or with a hold */
        ADM_PASS_HOLDER,    /* has a hold; takes no slot */
};

/* A pass as the gateway signs it. "The same pass" is jti and exp. */
struct adm_pass {
        uint8_t jti[ADM_JTI_LEN];
        int64_t iat_ms;
        int64_t exp_ms;
        uint32_t round;
        enum adm_pass_life life;
        bool renewed; /* exp differs from the one that was shown */
};

struct adm_place {
        enum adm_place_state state;
        enum adm_reason reason;
        int64_t position;  /* 1 is next; 0 ready or admitted; -1 null */
        int64_t ahead;     /* position - 1, at least 0; -1 null */
        int64_t eta_low_s; /* -1: the range is null */
        int64_t eta_high_s;
        int likely; /* 1 yes, 0 no, -1 null */
        int64_t poll_after_ms;
        int64_t opens_at_ms;
        bool has_ticket; /* `ticket` is to be encoded and given */
        bool has_pass;   /* `pass` is in force */
        bool issued;     /* this very call issued the pass */
        struct adm_ticket ticket;
        struct adm_pass pass;
};

const char *adm_place_state_name(enum adm_place_state s);

/* NULL for ADM_REASON_NONE. */
const char *adm_reason_name(enum adm_reason r);

#endif
