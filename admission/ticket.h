/* admission/ticket.h - the place in line that a shopper carries.
 *
 * A ticket is 55 bytes of facts and 20 bytes of HMAC-SHA256 over all of
 * them, written as 100 characters of base64url (75 bytes leave no spare
 * bits, so there is one spelling of a ticket and no second one). 55 bytes
 * are what fits one SHA-256 block with its padding: checking costs two
 * compressions, signing two.
 *
 * Units      milliseconds since the epoch by the origin's clock.
 * Ownership  plain values; the key ring is wiped by fini.
 * Context    the ring is read-only after init: any thread, no lock, no
 *            allocation.
 */
#ifndef ADMISSION_TICKET_H
#define ADMISSION_TICKET_H

#include "admission/account.h"

#define ADM_TICKET_LEN 75
#define ADM_TICKET_TEXT_LEN 100 /* without a closing NUL */
#define ADM_TICKET_KEYS_MAX 4
#define ADM_TICKET_SECRET_MIN 32

/* `ahead` of a ticket that was never told one. */
#define ADM_AHEAD_UNTOLD UINT32_MAX

enum adm_ticket_flag {
        ADM_TICKET_GUEST = 1,  /* the shopper is a guest */
        ADM_TICKET_MISSED = 2, /* missed one turn; is served next */
};

struct adm_ticket {
        uint8_t flags;          /* enum adm_ticket_flag, or-ed */
        uint32_t round;         /* which line of this sale */
        uint64_t sale;          /* adm_sale_hash of its id */
        uint64_t key;           /* order key: lower goes first */
        struct adm_tag tag;     /* whose it is */
        int64_t issued_at_ms;   /* 48 bits: when the place was given */
        int64_t promised_at_ms; /* 48 bits: when the shopper was told to
                                 * come back, or later than any answer */
        uint32_t ahead;         /* last told, or ADM_AHEAD_UNTOLD */
};

struct adm_ticket_keys; /* the ring; the first key signs */

struct adm_ticket_secret {
        uint8_t id;           /* unique in the ring */
        const uint8_t *bytes; /* borrowed for the call */
        size_t len;           /* >= ADM_TICKET_SECRET_MIN */
};

enum adm_ticket_outcome {
        ADM_TICKET_GOOD = 0,
        ADM_TICKET_MALFORMED, /* length, alphabet, version */
        ADM_TICKET_FORGED,    /* unknown key or wrong MAC */
        ADM_TICKET_BAD_RING,  /* new: no key, too many, twice an id, short */
};

/* 0, ADM_TICKET_BAD_RING or -ENOMEM. */
__attribute__((warn_unused_result)) int adm_ticket_keys_new(const struct adm_ticket_secret *secrets,
                                                            size_t n, struct adm_ticket_keys **out);
void adm_ticket_keys_free(struct adm_ticket_keys **keys);

/* Writes exactly ADM_TICKET_TEXT_LEN characters, no NUL. */
void adm_ticket_encode(const struct adm_ticket_keys *keys, const struct adm_ticket *t, char *text);

/* An enum adm_ticket_outcome; `out` is written only when it is good.
 * `text` may be anything, of any length. The MAC is compared in constant
 * time. Sale, round and account are for the caller to judge. */
__attribute__((warn_unused_result)) int adm_ticket_decode(const struct adm_ticket_keys *keys,
                                                          const char *text, size_t len,
                                                          struct adm_ticket *out);

#endif
