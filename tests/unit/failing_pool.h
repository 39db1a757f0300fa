/* tests/unit/failing_pool.h - net/pool.h on malloc, where the test says which
 * of the pieces taken from now on is not given. A program that links this has
 * no other pool, since the linker finds these functions first. pool_free()
 * still wants all pieces back.
 */
#ifndef TESTS_UNIT_FAILING_POOL_H
#define TESTS_UNIT_FAILING_POOL_H

#include "net/pool.h"

/* The n-th piece from now (1 is the next) is not given, nor is any behind it if
 * `for_good`. 0: all are. */
void failing_pool_arm(unsigned n, bool for_good);
/* Whether that piece was asked for. */
bool failing_pool_failed(void);

#endif
