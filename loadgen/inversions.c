/* loadgen/inversions.c - the pairs are counted in a sweep over time.
 *
 * Those who waited (A) are visited in the order of their last waiting
 * request. Before each visit, everyone admitted (B) earlier than that instant
 * enters a Fenwick tree at the rank of its join. The visit then asks the tree
 * how many joins lie behind A's ticket. A itself is never among them: it
 * joined before it had its ticket.
 */
#include "loadgen/inversions.h"

#include <errno.h>
#include <stdlib.h>

struct point {
        int64_t at;    /* what is sorted by */
        int64_t other; /* what is asked or entered */
};

static int by_instant(const void *a, const void *b) {
        const struct point *x = a, *y = b;
        return (x->at > y->at) - (x->at < y->at);
}

static int by_value(const void *a, const void *b) {
        const int64_t *x = a, *y = b;
        return (*x > *y) - (*x < *y);
}

/* How many of the sorted `joins` are at or before `at`. */
static size_t rank_of(const int64_t *joins, size_t n, int64_t at) {
        size_t low = 0, high = n;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (joins[middle] <= at)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static void tree_add(uint32_t *tree, size_t n, size_t rank) {
        for (size_t i = rank; i <= n; i += i & -i)
                tree[i]++;
}

static uint64_t tree_sum(const uint32_t *tree, size_t rank) {
        uint64_t sum = 0;
        for (size_t i = rank; i > 0; i -= i & -i)
                sum += tree[i];
        return sum;
}

static int64_t sweep(struct point *waited, size_t n_waited, struct point *admitted,
                     size_t n_admitted, int64_t *joins, uint32_t *tree) {
        for (size_t i = 0; i < n_admitted; i++)
                joins[i] = admitted[i].other;
        qsort(joins, n_admitted, sizeof(*joins), by_value);
        qsort(waited, n_waited, sizeof(*waited), by_instant);
        qsort(admitted, n_admitted, sizeof(*admitted), by_instant);

        uint64_t pairs = 0;
        size_t entered = 0;
        for (size_t i = 0; i < n_waited; i++) {
                while (entered < n_admitted && admitted[entered].at < waited[i].at) {
                        tree_add(tree, n_admitted,
                                 rank_of(joins, n_admitted, admitted[entered].other));
                        entered++;
                }
                pairs += entered - tree_sum(tree, rank_of(joins, n_admitted, waited[i].other));
        }
        return (int64_t)pairs;
}

int64_t lg_inversions_count(const struct lg_trace *traces, size_t n) {
        struct point *waited = calloc(n + 1, sizeof(*waited));
        struct point *admitted = calloc(n + 1, sizeof(*admitted));
        int64_t *joins = calloc(n + 1, sizeof(*joins));
        uint32_t *tree = calloc(n + 1, sizeof(*tree));
        int64_t pairs = -ENOMEM;
        if (waited && admitted && joins && tree) {
                size_t n_waited = 0, n_admitted = 0;
                for (size_t i = 0; i < n; i++) {
                        const struct lg_trace *t = &traces[i];
                        if (t->last_waiting_us != LG_NEVER && t->ticket_us != LG_NEVER)
                                waited[n_waited++] =
                                        (struct point){t->last_waiting_us, t->ticket_us};
                        if (t->admitted_us != LG_NEVER && t->joined_us != LG_NEVER)
                                admitted[n_admitted++] =
                                        (struct point){t->admitted_us, t->joined_us};
                }
                pairs = sweep(waited, n_waited, admitted, n_admitted, joins, tree);
        }
        free(waited);
        free(admitted);
        free(joins);
        free(tree);
        return pairs;
}
