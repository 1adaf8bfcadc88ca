/*
 * An IP address and a port.
 */
#ifndef BALLAST_NET_ADDRESS_H
#define BALLAST_NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct address {
	bool is_ipv6;
	uint8_t bytes[16]; /* network order; IPv4 uses the first four */
	uint16_t port;     /* host order */
};

enum { ADDRESS_TEXT_BYTES = 64 };

/* Reads a literal IPv4 or IPv6 address (no brackets, no zone). */
bool address_parse(struct slice text, uint16_t port, struct address *ret_address);
/* "10.0.0.5:9100", "[::1]:9100". */
void address_print(const struct address *address, char text[ADDRESS_TEXT_BYTES]);
/* The address alone, brackets around IPv6 if asked. */
void address_print_host(const struct address *address, bool brackets, char text[ADDRESS_TEXT_BYTES]);
bool address_equal(const struct address *a, const struct address *b);

#endif
