/* gateway/ctl_sale.h - a sale's fields on sluicectl's command line.
 *
 *   create drop tenant=shop item=grinder opens_at=2026-11-29T09:00:00Z
 *          match=/drop 'bypass=/drop/assets/...' per_account=2
 *
 * `null` clears a field; `opens_at=now` is this machine's present time; a
 * path ending in a slash and a star (above, dots) is a prefix; HOST/path
 * limits a rule to a host.
 *
 * Ownership  the tree belongs to the caller.
 */
#ifndef GATEWAY_CTL_SALE_H
#define GATEWAY_CTL_SALE_H

#include <jansson.h>

#include "net/base.h"

/* 0, or 2 with one line on standard error naming the word that is wrong. */
NET_MUST int ctl_sale_fields(char *const *words, size_t n, json_t **out);

/* True if every member of `want` is in `have` with an equal value. */
bool ctl_sale_has(const json_t *have, const json_t *want);

#endif
