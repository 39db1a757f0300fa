/* gateway/parse.h - the origin's snapshot document, read into facts.
 *
 * Fields that are missing take the defaults of a sale; one that is of
 * another type or out of range makes its sale unusable, never the whole.
 *
 * Ownership  nothing of the document is kept: rules are copied.
 * Context    the control thread.
 */
#ifndef GATEWAY_PARSE_H
#define GATEWAY_PARSE_H

#include <jansson.h>

#include "admission/store.h"
#include "gateway/snapshot.h"

#define GW_SALES_MAX 4096
#define GW_RULES_MAX 256 /* of one sale, each kind */

/* The document's items, to be found by tenant and name. */
struct gw_items {
        const json_t **at; /* open addressing; NULL: free */
        size_t mask;
};

/* `rows` is borrowed until fini. 0 or -ENOMEM. */
NET_MUST int gw_items_init(struct gw_items *items, const json_t *rows);
void gw_items_fini(struct gw_items *items);

/* Fills facts, rules and the texts of one sale. 0, 1 when it is unusable,
 * -ENOMEM. */
NET_MUST int gw_parse_sale(const json_t *sale, const struct gw_items *items, int64_t now_ms,
                           struct gw_sale *out);

/* What the store is told besides the facts: arrays for this sale alone, to be
 * freed by gw_parse_free_update. 0 or -ENOMEM. */
NET_MUST int gw_parse_update(const json_t *document, const struct gw_sale *sale,
                             struct adm_sale_update *out);
void gw_parse_free_update(struct adm_sale_update *u);

#endif
