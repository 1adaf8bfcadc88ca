/*
 * Our addresses as the system's, for the real loop alone.
 */
#ifndef BALLAST_NET_SOCKET_ADDRESS_H
#define BALLAST_NET_SOCKET_ADDRESS_H

#include <sys/socket.h>

#include "net/address.h"

/* Fills *ret_system; returns its length. */
socklen_t socket_address_to_system(const struct address *address, struct sockaddr_storage *ret_system);

/* False if it is neither IPv4 nor IPv6. IPv4 within IPv6 (RFC 4291 2.5.5.2) becomes IPv4. */
bool socket_address_from_system(const struct sockaddr *system, struct address *ret_address);

#endif
