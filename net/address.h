/* net/address.h - the socket address of a peer, IPv4 or IPv6, in no more bytes
 * than those need.
 */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <netinet/in.h>

union net_address {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
};

#endif
