#include "gateway/rule.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

/* `/shop` is a border for `/shop` and `/shop/x`, not for `/shopping`; `/shop/`
 * for whatever stands behind it. */
static bool prefix_matches(struct span prefix, struct span path) {
        if (!span_starts(path, prefix))
                return false;
        return path.len == prefix.len || path.p[prefix.len] == '/' ||
               (prefix.len > 0 && prefix.p[prefix.len - 1] == '/');
}

bool gw_rule_matches(const struct gw_rule *rule, struct span host, struct span path) {
        if (rule->host.p &&
            (rule->host.len != host.len || strncasecmp(rule->host.p, host.p, host.len) != 0))
                return false;
        return rule->prefix ? prefix_matches(rule->path, path) : span_eq(rule->path, path);
}

static bool any_matches(const struct gw_rules *rules, struct span host, struct span path) {
        for (size_t i = 0; i < rules->count; i++)
                if (gw_rule_matches(&rules->at[i], host, path))
                        return true;
        return false;
}

enum gw_rule_kind gw_rules_find(const struct gw_snapshot *s, struct span host, struct span path,
                                const struct gw_sale **sale) {
        for (size_t i = 0; i < s->n_ranked; i++) {
                const struct gw_ranked_rule *g = &s->ranked[i];
                if (!gw_rule_matches(g->rule, host, path))
                        continue;
                *sale = &s->sales[g->sale];
                bool is_open = g->is_bypass || any_matches(&(*sale)->bypass, host, path);
                return is_open ? GW_RULE_BYPASSED : GW_RULE_GATED;
        }
        *sale = NULL;
        return GW_RULE_NONE;
}

static bool is_over(const struct gw_sale *s) {
        return s->state == ADM_SALE_CLOSED || s->facts.queue == ADM_QUEUE_REJECT;
}

/* qsort has no context argument: the sort keys are copied next to the rows. */
struct ranked {
        struct gw_ranked_rule gate;
        size_t length;
        bool names_host, is_exact, is_over;
        size_t order; /* keeps equal ones in the order of sale ids */
};

static int first_true(bool a, bool b) {
        return (int)b - (int)a;
}

static int by_rank(const void *pa, const void *pb) {
        const struct ranked *a = pa, *b = pb;
        if (a->length != b->length)
                return a->length > b->length ? -1 : 1;
        if (a->names_host != b->names_host)
                return first_true(a->names_host, b->names_host);
        if (a->is_exact != b->is_exact)
                return first_true(a->is_exact, b->is_exact);
        if (a->is_over != b->is_over)
                return -first_true(a->is_over, b->is_over);
        return a->order < b->order ? -1 : 1;
}

static size_t rank_rules(struct ranked *out, const struct gw_snapshot *s, uint32_t sale,
                         bool is_bypass, size_t at) {
        const struct gw_sale *owner = &s->sales[sale];
        const struct gw_rules *rules = is_bypass ? &owner->bypass : &owner->match;
        for (size_t i = 0; i < rules->count; i++, at++) {
                const struct gw_rule *rule = &rules->at[i];
                out[at] = (struct ranked){
                        .gate = {.rule = rule, .sale = sale, .is_bypass = is_bypass},
                        .length = rule->path.len,
                        .names_host = rule->host.p != NULL,
                        .is_exact = !rule->prefix,
                        .is_over = is_over(owner),
                        .order = at,
                };
        }
        return at;
}

int gw_rules_build(struct gw_snapshot *s) {
        size_t n = 0, at = 0;
        for (size_t i = 0; i < s->n_sales; i++)
                n += s->sales[i].match.count + s->sales[i].bypass.count;
        if (n == 0)
                return 0;
        struct ranked *ranked = calloc(n, sizeof *ranked);
        s->ranked = calloc(n, sizeof *s->ranked);
        if (!ranked || !s->ranked) {
                free(ranked);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < s->n_sales; i++) {
                at = rank_rules(ranked, s, i, true, at);
                at = rank_rules(ranked, s, i, false, at);
        }
        qsort(ranked, n, sizeof *ranked, by_rank);
        for (size_t i = 0; i < n; i++)
                s->ranked[i] = ranked[i].gate;
        s->n_ranked = n;
        free(ranked);
        return 0;
}
