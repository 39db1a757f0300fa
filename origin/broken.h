/* origin/broken.h - which item a violated CHECK was about, from what PostgreSQL
 * says of the row: "Failing row contains (shop, grinder, , 5, …)." in whatever
 * language. Names of ours hold neither comma nor space, so the first ones of a
 * row can be told apart.
 */
#ifndef ORIGIN_BROKEN_H
#define ORIGIN_BROKEN_H

#include "net/base.h"

/* True with both, which point into `detail`. */
bool org_broken_row(struct span table, struct span detail, struct span *tenant, struct span *item);

#endif
