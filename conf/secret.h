/* conf/secret.h - small secret files: bearer tokens and MAC keys.
 *
 * Ownership  the caller's buffer; it wipes it when done.
 * Context    start and reload.
 */
#ifndef CONF_SECRET_H
#define CONF_SECRET_H

#include "net/base.h"

#define CONF_SECRET_MAX 4096

/* Reads the whole file without one line end behind it. 0 with *len bytes,
 * -errno; -EFBIG when it does not fit `cap`, -ENODATA when it is empty. */
NET_MUST int conf_secret_read(const char *path, char *out, size_t cap, size_t *len);

#endif
