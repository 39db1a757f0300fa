/* origin/pool_hosts.h - the servers that database.url names, one at a time; only
 * for the pool's own files.
 *
 * libpq would walk through several hosts by itself, but it waits for a silent
 * one as long as the kernel does, and begins with the first each time. So each
 * attempt is for one host, with a time limit of its own, and where the last one
 * succeeded the next begins.
 *
 * Ownership  org_hosts_init .. org_hosts_fini.
 */
#ifndef ORIGIN_POOL_HOSTS_H
#define ORIGIN_POOL_HOSTS_H

#include <libpq-fe.h>

#include "net/base.h"

#define ORG_HOSTS_MAX 8

struct org_hosts {
        const char *url;
        PQconninfoOption *options; /* NULL: libpq cannot read the url, and will say why */
        size_t n;                  /* >= 1 */
        size_t good;               /* the last that was what we wanted */
};

void org_hosts_init(struct org_hosts *h, const char *url);
void org_hosts_fini(struct org_hosts *h);

/* Begins a connection to the k-th; NULL when out of memory. `attrs` is libpq's
 * target_session_attrs. */
PGconn *org_hosts_connect(const struct org_hosts *h, size_t k, const char *name, const char *attrs);

#endif
