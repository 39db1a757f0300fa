/* conf/limits.h - what the machine allows this process. */
#ifndef CONF_LIMITS_H
#define CONF_LIMITS_H

#include "net/base.h"

/* Raises the soft limit of open files to the hard one and returns what it is
 * now. It cannot fail in a way that matters: then the old one stays. */
size_t conf_raise_file_limit(void);

/* Cores this process may run on, at least 1. */
uint32_t conf_cores(void);

#endif
