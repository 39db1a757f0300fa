/* gateway/rule.h - which sale a path belongs to: the sales' `match` and
 * `bypass` rules.
 *
 * The longest matching rule decides; at equal length one that names a host
 * before one that does not, an exact one before a prefix, a sale that still
 * runs before one that is over. Inside a sale its `bypass` rules are exceptions
 * from its `match` rules, whatever their length.
 *
 * Ownership  rules point into their snapshot.
 * Context    sorting: the control thread; looking: any.
 */
#ifndef GATEWAY_RULE_H
#define GATEWAY_RULE_H

#include "gateway/snapshot.h"

enum gw_rule_kind {
        GW_RULE_NONE = 0, /* no rule: 404 */
        GW_RULE_GATED,    /* gated: a pass is needed */
        GW_RULE_BYPASSED, /* bypassed: forwarded as it is */
};

/* `path` without its query; `host` in lower case without port. */
bool gw_rule_matches(const struct gw_rule *rule, struct span host, struct span path);

enum gw_rule_kind gw_rules_find(const struct gw_snapshot *s, struct span host, struct span path,
                                const struct gw_sale **sale);

/* Builds s->ranked from the sales' rules. 0 or -ENOMEM. */
NET_MUST int gw_rules_build(struct gw_snapshot *s);

#endif
