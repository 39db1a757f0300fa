/* conf/limits.h - what the machine allows this process, and what its
 * configuration allows a listener. */
#ifndef CONF_LIMITS_H
#define CONF_LIMITS_H

#include "conf/conf.h"
#include "net/http_server.h"

/* Raises the soft limit of open files to the hard one and returns what it is
 * now. It cannot fail in a way that matters: then the old one stays. */
size_t conf_raise_file_limit(void);

/* Cores this process may run on, at least 1. */
uint32_t conf_cores(void);

/* What a listener bears. Each of `loops` (>= 1) loops that listen in its name
 * gets its share of what is counted for the whole process, rounded up. */
struct http_server_limits conf_server_limits(const struct conf_limits *l, uint32_t loops);

#endif
