#include "net/socket_address.h"

#include <netinet/in.h>
#include <string.h>

socklen_t socket_address_to_system(const struct address *address, struct sockaddr_storage *ret_system)
{
	memset(ret_system, 0, sizeof *ret_system);
	if (address->is_ipv6) {
		struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(address->port) };

		memcpy(&six.sin6_addr, address->bytes, sizeof six.sin6_addr);
		memcpy(ret_system, &six, sizeof six);
		return sizeof six;
	}

	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(address->port) };

	memcpy(&four.sin_addr, address->bytes, sizeof four.sin_addr);
	memcpy(ret_system, &four, sizeof four);
	return sizeof four;
}

bool socket_address_from_system(const struct sockaddr *system, struct address *ret_address)
{
	struct address address = { 0 };

	if (system->sa_family == AF_INET) {
		struct sockaddr_in four;

		memcpy(&four, system, sizeof four);
		memcpy(address.bytes, &four.sin_addr, sizeof four.sin_addr);
		address.port = ntohs(four.sin_port);
	} else if (system->sa_family == AF_INET6) {
		struct sockaddr_in6 six;

		memcpy(&six, system, sizeof six);
		address.port = ntohs(six.sin6_port);
		address.is_ipv6 = !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr);
		if (address.is_ipv6)
			memcpy(address.bytes, &six.sin6_addr, sizeof six.sin6_addr);
		else
			memcpy(address.bytes, six.sin6_addr.s6_addr + 12, 4);
	} else {
		return false;
	}
	*ret_address = address;
	return true;
}
