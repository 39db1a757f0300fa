/* conf/redis.h - redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], taken apart.
 *
 * USER and PASSWORD may be percent-encoded, and have to be where they hold one
 * of @ : / or %. An IPv6 address stands in brackets.
 *
 * Ownership  plain text to embed; wipe it where it holds a password.
 */
#ifndef CONF_REDIS_H
#define CONF_REDIS_H

#include "net/base.h"

struct conf_redis {
        char host[256];
        char user[128];     /* "": none */
        char password[256]; /* "": none */
        uint32_t port;      /* 1..65535 */
        uint32_t database;  /* 0..9999 */
};

/* NULL, or what was expected. */
const char *conf_redis_parse(const char *text, struct conf_redis *out);

#endif
