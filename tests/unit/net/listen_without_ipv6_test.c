/*
 * "All addresses" on a machine whose kernel was started without IPv6, as hardening guides want it.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "peer.h"

static bool ipv6_is_missing;

int socket(int domain, int type, int protocol)
{
	if (ipv6_is_missing && domain == AF_INET6) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}

static void accept_nobody(void *context, struct stream *stream)
{
	(void)context;
	stream_close(stream);
}

static struct stream_listener *listen_at(struct loop *loop, const char *address, struct error *err)
{
	struct stream_listener_options options = { 0 };

	assert_true(address_parse(slice_of(address), 0, &options.address));
	return stream_listen(loop, &options, accept_nobody, NULL, err);
}

static void all_addresses_are_those_of_ipv4(void **state)
{
	struct error err;
	struct loop *loop = loop_epoll_create(&err);
	struct stream_listener *listener = listen_at(loop, "::", &err);
	struct address address;

	(void)state;
	assert_non_null(listener);
	assert_true(stream_listener_address(listener, &address));
	assert_false(address.is_ipv6);
	assert_int_not_equal(address.port, 0);
	stream_listener_close(listener);
	loop_destroy(loop);
}

static void one_address_of_ipv6_is_an_error(void **state)
{
	struct error err;
	struct loop *loop = loop_epoll_create(&err);

	(void)state;
	assert_null(listen_at(loop, "::1", &err));
	assert_string_equal(err.text, "listen tcp [::1]:0: socket: address family not supported by protocol");
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_addresses_are_those_of_ipv4),
		cmocka_unit_test(one_address_of_ipv6_is_an_error),
	};

	ipv6_is_missing = true;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
