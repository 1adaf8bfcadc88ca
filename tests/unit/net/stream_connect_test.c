/*
 * How streams come about, or don't.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/limits.h"
#include "peer.h"

static void names_are_looked_up(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	struct peer client;
	struct stream_connect_options options = { .host = "localhost" };

	(void)state;
	host_init(&host, loop, NULL);
	options.port = host.address.port;
	peer_init(&client, loop);
	peer_connect(&client, &options);
	TURN_UNTIL(loop, client.opened == 1 && host.accepted == 1);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void nothing_calls_back_from_inside_a_call(void **state)
{
	struct loop *loop = new_loop();
	struct peer client;
	struct stream_connect_options options = { .host = "127.0.0.1", .port = 1 };

	(void)state;
	peer_init(&client, loop);
	peer_connect(&client, &options);
	assert_int_equal(client.opened + client.closed, 0);
	peer_write(&client, SLICE("x"));
	assert_int_equal(client.opened + client.closed + client.drained, 0);
	TURN_UNTIL(loop, client.closed == 1);
	peer_destroy(&client);
	loop_destroy(loop);
}

static void both_ends_know_both_addresses(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	struct peer client;
	struct address from, local, peer;
	struct stream_connect_options options = { .host = "127.0.0.1" };

	(void)state;
	address_parse(slice_of("127.0.0.77"), 0, &from);
	host_init(&host, loop, NULL);
	options.port = host.address.port;
	options.local = &from;
	peer_init(&client, loop);
	peer_connect(&client, &options);
	assert_false(stream_peer_address(client.stream, &peer));
	TURN_UNTIL(loop, client.opened == 1 && host.accepted == 1);
	assert_true(stream_local_address(client.stream, &local));
	assert_memory_equal(local.bytes, from.bytes, 4);
	assert_true(stream_peer_address(host.peer.stream, &peer));
	assert_true(address_equal(&local, &peer));
	assert_true(stream_peer_address(client.stream, &peer));
	assert_true(address_equal(&peer, &host.address));
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void sockets_are_set_up_to_find_a_dead_peer(void **state)
{
	static const struct {
		int level, name, value;
	} OPTIONS[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, NET_KEEPALIVE_IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, NET_KEEPALIVE_INTERVAL_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, NET_KEEPALIVE_COUNT },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, NET_USER_TIMEOUT_MS },
	};
	struct loop *loop = new_loop();
	struct host host;
	struct peer client;
	unsigned checked = 0;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, client.opened == 1 && host.accepted == 1);
	for (int descriptor = 3; descriptor < 64; descriptor++) {
		struct sockaddr_storage address;
		socklen_t length = sizeof address;

		if (getpeername(descriptor, (struct sockaddr *)&address, &length) != 0 || address.ss_family != AF_INET)
			continue;
		checked++;
		for (size_t i = 0; i < sizeof OPTIONS / sizeof OPTIONS[0]; i++) {
			int value = 0;

			length = sizeof value;
			assert_int_equal(getsockopt(descriptor, OPTIONS[i].level, OPTIONS[i].name, &value, &length), 0);
			assert_int_equal(value, OPTIONS[i].value);
		}
	}
	assert_int_equal(checked, 2);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

/* ---- connecting in vain ---- */

static void a_closed_port_refuses(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	struct peer client;
	char expected[128];

	(void)state;
	host_init(&host, loop, NULL);
	stream_listener_close(host.listener);
	host.listener = NULL;
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, client.closed == 1);
	snprintf(expected, sizeof expected, "dial tcp 127.0.0.1:%u: connect: connection refused", host.address.port);
	assert_string_equal(client.err.text, expected);
	assert_string_equal(error_root(&client.err), "connection refused");
	assert_int_equal(client.opened, 0);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_host_name_that_is_too_long_is_refused_at_once(void **state)
{
	struct loop *loop = new_loop();
	char host[NET_HOST_BYTES + 1];
	struct stream_connect_options options = { .host = host, .port = 1 };
	struct error err;

	(void)state;
	memset(host, 'a', sizeof host);
	host[NET_HOST_BYTES] = '\0';
	assert_null(stream_connect(loop, &options, &PEER_HANDLER, NULL, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "host name of 254 bytes is not within 1 and 253");
	loop_destroy(loop);
}

static void a_port_in_use_can_not_be_listened_on(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	struct stream_listener_options options = host_options(NULL);
	struct error err;
	char expected[128];

	(void)state;
	host_init(&host, loop, NULL);
	options.address = host.address;
	assert_null(stream_listen(loop, &options, host_accept, &host, &err));
	snprintf(expected, sizeof expected, "listen tcp 127.0.0.1:%u: bind: address already in use", host.address.port);
	assert_string_equal(err.text, expected);
	host_destroy(&host);
	loop_destroy(loop);
}

/* ---- a resolver of ours: two addresses, the first of which refuses, unless the name says otherwise ---- */

/* "none.…" has no address, "same.…" has 127.0.0.1 twice. */
static int resolve(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list)
{
	struct addrinfo numeric = *hints, *second = NULL;

	if (strncmp(host, "none.", 5) == 0)
		return EAI_NONAME;
	numeric.ai_flags = AI_NUMERICHOST;
	if (getaddrinfo(strncmp(host, "same.", 5) == 0 ? "127.0.0.1" : "127.0.0.2", service, &numeric, ret_list) != 0)
		return EAI_FAIL;
	if (getaddrinfo("127.0.0.1", service, &numeric, &second) != 0)
		return EAI_FAIL;
	(*ret_list)->ai_next = second;
	return 0;
}

static struct loop *loop_with_resolver(void)
{
	static struct loop_epoll_calls calls;
	struct error err;
	struct loop *loop;

	calls = LOOP_EPOLL_SYSTEM_CALLS;
	calls.getaddrinfo = resolve;
	loop = loop_epoll_create_with_calls(&calls, &err);
	assert_non_null(loop);
	return loop;
}

/* A port where nobody answers: a listener whose backlog is full. */
struct silent_port {
	int listener;
	int fillers[3];
	uint16_t port;
};

static void silent_port_open(struct silent_port *silent)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;

	silent->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(silent->listener, (const struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(silent->listener, 0), 0);
	assert_int_equal(getsockname(silent->listener, (struct sockaddr *)&address, &length), 0);
	silent->port = ntohs(address.sin_port);
	for (int i = 0; i < 3; i++) {
		silent->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		assert_true(connect(silent->fillers[i], (const struct sockaddr *)&address, length) == 0 ||
		            errno == EINPROGRESS);
	}
	usleep(20000);
}

static void silent_port_close(struct silent_port *silent)
{
	for (int i = 0; i < 3; i++)
		close(silent->fillers[i]);
	close(silent->listener);
}

static void a_peer_that_does_not_answer_costs_the_connect_timeout(void **state)
{
	static const char *const HOSTS[] = { "127.0.0.1", "same.example" };
	struct loop *loop = loop_with_resolver();
	struct silent_port silent;
	char expected[128];

	(void)state;
	silent_port_open(&silent);
	for (size_t i = 0; i < 2; i++) {
		struct stream_connect_options options = {
			.host = HOSTS[i],
			.port = silent.port,
			.connect_timeout_ns = 50 * NS_PER_MS,
		};
		uint64_t start_ns = clock_monotonic_ns();
		struct peer client;

		peer_init(&client, loop);
		peer_connect(&client, &options);
		TURN_UNTIL(loop, client.closed == 1);
		assert_true(clock_monotonic_ns() - start_ns >= 50 * NS_PER_MS);
		assert_int_equal(client.err.code, ERROR_TIMEOUT);
		snprintf(expected, sizeof expected, "dial tcp 127.0.0.1:%u: context deadline exceeded", silent.port);
		assert_string_equal(client.err.text, expected);
		peer_destroy(&client);
	}
	silent_port_close(&silent);
	loop_destroy(loop);
}

static void a_name_without_addresses_is_told(void **state)
{
	struct loop *loop = loop_with_resolver();
	struct stream_connect_options options = { .host = "none.example", .port = 1 };
	struct peer client;

	(void)state;
	peer_init(&client, loop);
	peer_connect(&client, &options);
	TURN_UNTIL(loop, client.closed == 1);
	assert_memory_equal(client.err.text, "dial tcp: lookup none.example on ", 33);
	assert_string_equal(client.err.text + strlen(client.err.text) - 14, ": no such host");
	peer_destroy(&client);
	loop_destroy(loop);
}

static void each_address_of_a_name_is_tried(void **state)
{
	struct loop *loop = loop_with_resolver();
	struct host host;
	struct peer client;
	struct stream_connect_options options = { .host = "two.example" };
	char expected[128];

	(void)state;
	host_init(&host, loop, NULL);
	options.port = host.address.port;
	peer_init(&client, loop);
	peer_connect(&client, &options);
	TURN_UNTIL(loop, client.opened == 1 && host.accepted == 1);
	stream_close(client.stream);
	stream_listener_close(host.listener);
	host.listener = NULL;
	peer_connect(&client, &options);
	TURN_UNTIL(loop, client.closed == 1);
	snprintf(expected, sizeof expected, "dial tcp 127.0.0.2:%u: connect: connection refused", options.port);
	assert_string_equal(client.err.text, expected); /* the first failure */
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_looked_up),
		cmocka_unit_test(nothing_calls_back_from_inside_a_call),
		cmocka_unit_test(both_ends_know_both_addresses),
		cmocka_unit_test(sockets_are_set_up_to_find_a_dead_peer),
		cmocka_unit_test(a_closed_port_refuses),
		cmocka_unit_test(a_peer_that_does_not_answer_costs_the_connect_timeout),
		cmocka_unit_test(a_host_name_that_is_too_long_is_refused_at_once),
		cmocka_unit_test(a_port_in_use_can_not_be_listened_on),
		cmocka_unit_test(a_name_without_addresses_is_told),
		cmocka_unit_test(each_address_of_a_name_is_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
