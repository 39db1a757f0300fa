/* admission/account.h - how admission names shoppers and sales.
 *
 * Admission never keeps an account's name. It keeps a tag: the first 16
 * bytes of SHA-256 over a kind byte ('a' account, 'g' guest) and the name.
 * The kind byte keeps a guest from ever meeting a shopper who bears the
 * same name. A sale is named by a 64-bit hash of its id, which binds a
 * ticket to its sale; the sale's table entry compares the id itself.
 *
 * Ownership  plain values.
 * Context    any thread; no state, no clock.
 */
#ifndef ADMISSION_ACCOUNT_H
#define ADMISSION_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADM_TAG_LEN 16

struct adm_tag {
        uint8_t b[ADM_TAG_LEN];
};

/* The tag of `name`, `len` bytes, any content. */
struct adm_tag adm_account_tag(const char *name, size_t len, bool guest);

/* Not constant-time: a tag is no secret. */
bool adm_tag_equal(const struct adm_tag *a, const struct adm_tag *b);

/* Never 0. */
uint64_t adm_sale_hash(const char *id, size_t len);

#endif
