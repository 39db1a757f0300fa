/* conf/address.h - host:port and address blocks in a configuration.
 *
 * Context    start and reload; a name is looked up here and may take as long
 *            as the machine's resolver does. Numeric addresses ask nobody.
 */
#ifndef CONF_ADDRESS_H
#define CONF_ADDRESS_H

#include "conf/arena.h"
#include "conf/conf.h"

/* NULL, or what was expected. Port 0 only for listeners. */
const char *conf_address_parse(struct conf_arena *arena, const char *text, bool is_listener,
                               struct conf_address *out);

/* 10.0.0.0/8, 2001:db8::/32, or one address. Bits behind the length must be
 * zero. */
const char *conf_network_parse(const char *text, struct conf_network *out);
void conf_network_text(const struct conf_network *network, char *out, size_t cap);

#endif
