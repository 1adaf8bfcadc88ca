/*
 * IPv6 is printed by hand as RFC 5952 wants it: the C libraries differ (musl shortens a single group of zeros, glibc
 * doesn't).
 */
#include "net/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

bool address_parse(struct slice text, uint16_t port, struct address *ret_address)
{
	struct address address = { .port = port };
	char copy[INET6_ADDRSTRLEN];

	if (text.length == 0 || text.length >= sizeof copy || memchr(text.data, '\0', text.length) != NULL)
		return false;
	memcpy(copy, text.data, text.length);
	copy[text.length] = '\0';
	if (inet_pton(AF_INET, copy, address.bytes) != 1) {
		if (inet_pton(AF_INET6, copy, address.bytes) != 1)
			return false;
		address.is_ipv6 = true;
	}
	*ret_address = address;
	return true;
}

/* Finds the first longest run of at least two zero groups. */
static void find_zeros(const unsigned groups[8], int *ret_start, int *ret_length)
{
	*ret_start = -1;
	*ret_length = 1;
	for (int start = 0; start < 8; start++) {
		int length = 0;

		while (start + length < 8 && groups[start + length] == 0)
			length++;
		if (length > *ret_length) {
			*ret_start = start;
			*ret_length = length;
		}
	}
}

static void print_ipv6(const uint8_t bytes[16], char text[INET6_ADDRSTRLEN])
{
	unsigned groups[8];
	int zeros, zeros_length;
	size_t length = 0;

	for (int i = 0; i < 8; i++)
		groups[i] = (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1];
	find_zeros(groups, &zeros, &zeros_length);
	text[0] = '\0';
	for (int i = 0; i < 8;) {
		if (i == zeros) {
			length += (size_t)snprintf(text + length, INET6_ADDRSTRLEN - length, "::");
			i += zeros_length;
			continue;
		}
		const char *colon = i > 0 && text[length - 1] != ':' ? ":" : "";

		length += (size_t)snprintf(text + length, INET6_ADDRSTRLEN - length, "%s%x", colon, groups[i]);
		i++;
	}
}

void address_print_host(const struct address *address, bool brackets, char text[ADDRESS_TEXT_BYTES])
{
	char six[INET6_ADDRSTRLEN];

	if (!address->is_ipv6) {
		snprintf(text, ADDRESS_TEXT_BYTES, "%u.%u.%u.%u", address->bytes[0], address->bytes[1],
		         address->bytes[2], address->bytes[3]);
		return;
	}
	print_ipv6(address->bytes, six);
	snprintf(text, ADDRESS_TEXT_BYTES, brackets ? "[%s]" : "%s", six);
}

void address_print(const struct address *address, char text[ADDRESS_TEXT_BYTES])
{
	address_print_host(address, true, text);

	size_t length = strlen(text);

	snprintf(text + length, ADDRESS_TEXT_BYTES - length, ":%u", address->port);
}

bool address_equal(const struct address *a, const struct address *b)
{
	return a->is_ipv6 == b->is_ipv6 && a->port == b->port && memcmp(a->bytes, b->bytes, a->is_ipv6 ? 16 : 4) == 0;
}
