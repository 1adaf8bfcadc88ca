/*
 * The real loop with a server, a client and websockets on it, over a system whose n-th call fails, for every n; and
 * without the n-th allocation.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/failing_calls.h"
#include "websocket_end.h"

enum { WAIT_TURNS = 3000 };

/* ---- the calls ---- */

ssize_t recv(int descriptor, void *data, size_t size, int flags)
{
	if (torture_fails(TORTURE_RECV))
		return -1;
	return syscall(SYS_recvfrom, descriptor, data, torture_shortened(TORTURE_RECV, size), flags, NULL, NULL);
}

ssize_t send(int descriptor, const void *data, size_t length, int flags)
{
	if (torture_fails(TORTURE_SEND))
		return -1;
	return syscall(SYS_sendto, descriptor, data, torture_shortened(TORTURE_SEND, length), flags, NULL, 0);
}

/* As glibc declares it, with a union of all kinds of addresses. */
int connect(int descriptor, __CONST_SOCKADDR_ARG address, socklen_t length)
{
	return torture_fails(TORTURE_CONNECT) ? -1
	                                      : (int)syscall(SYS_connect, descriptor, address.__sockaddr__, length);
}

int accept4(int descriptor, __SOCKADDR_ARG address, socklen_t *length, int flags)
{
	return torture_fails(TORTURE_ACCEPT)
	               ? -1
	               : (int)syscall(SYS_accept4, descriptor, address.__sockaddr__, length, flags);
}

int socket(int domain, int type, int protocol)
{
	return torture_fails(TORTURE_SOCKET) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int bind(int descriptor, __CONST_SOCKADDR_ARG address, socklen_t length)
{
	return torture_fails(TORTURE_BIND) ? -1 : (int)syscall(SYS_bind, descriptor, address.__sockaddr__, length);
}

int listen(int descriptor, int backlog)
{
	return torture_fails(TORTURE_LISTEN) ? -1 : (int)syscall(SYS_listen, descriptor, backlog);
}

int setsockopt(int descriptor, int level, int name, const void *value, socklen_t length)
{
	return torture_fails(TORTURE_SETSOCKOPT) ? -1
	                                         : (int)syscall(SYS_setsockopt, descriptor, level, name, value, length);
}

int epoll_create1(int flags)
{
	return torture_fails(TORTURE_EPOLL_CREATE) ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

int epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event)
{
	/* What is in the set can be taken out. */
	if (operation != EPOLL_CTL_DEL && torture_fails(TORTURE_EPOLL_CTL))
		return -1;
	return (int)syscall(SYS_epoll_ctl, epoll, operation, descriptor, event);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
	return torture_fails(TORTURE_EPOLL_WAIT)
	               ? -1
	               : (int)syscall(SYS_epoll_pwait, epoll, events, most, timeout_ms, NULL, (size_t)8);
}

/* ---- the scenario: an exchange, then a websocket with a message each way ---- */

struct world {
	struct loop *loop;
	struct http_server *server;
	struct address address;
	struct http_client *client;
	struct websocket_end near, far;
	bool done;
	bool answered;
};

static bool turn_briefly(struct loop *loop)
{
	struct loop_timer timer = { 0 };
	struct error err;
	bool over = false;
	bool ok;

	loop_timer_start(loop, &timer, NS_PER_MS, too_late, &over);
	ok = loop_turn(loop, &err);
	loop_timer_stop(loop, &timer);
	return ok;
}

static bool wait_for(struct world *world, const bool *flag)
{
	for (int i = 0; i < WAIT_TURNS && !*flag; i++)
		if (!turn_briefly(world->loop))
			return false; /* the loop itself has failed, as epoll_wait did */
	if (!*flag)
		fail_msg("call %d, the %lu. with error %d: it never ends", torture_state.fault.call, torture_state.at,
		         torture_state.fault.error);
	return true;
}

static void on_request(void *context, struct http_call *call)
{
	struct world *world = context;
	struct error err;

	if (slice_equal_text(http_call_path(call), "/monitor"))
		world->far.websocket = websocket_accept(world->loop, call, 1000, &END_HANDLER, &world->far, &err);
	else
		http_call_respond(call, 200, "text/plain", http_call_body(call));
	if (slice_equal_text(http_call_path(call), "/monitor") && world->far.websocket == NULL)
		http_call_respond(call, 503, "text/plain", SLICE("no"));
}

static void on_abort(void *context, struct http_call *call)
{
	(void)context;
	(void)call;
}

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct world *world = context;

	world->done = true;
	world->answered = err == NULL && response->status == 200 && slice_equal_text(response->body, "hello");
	assert_true(err == NULL || (err->code != ERROR_NONE && err->text[0] != '\0'));
}

static bool exchange(struct world *world)
{
	static const struct http_handler HANDLER = { .on_done = on_done };
	struct http_request request = {
		.origin = { .host = "127.0.0.1", .port = world->address.port },
		.method = SLICE("PUT"), /* idempotent: a broken connection gives another try */
		.target = SLICE("/"),
		.body = SLICE("hello"),
		.max_body_bytes = 1000,
		.total_timeout_ns = NS_PER_S,
	};
	struct error err;

	world->done = world->answered = false;
	if (http_client_send(world->client, &request, &HANDLER, world, &err) == NULL)
		return false;
	return wait_for(world, &world->done) && world->answered;
}

static bool talk_over_websocket(struct world *world)
{
	struct websocket_connect_options options = end_options(world->address.port);
	struct error err;
	bool ok;

	options.handshake_timeout_ns = NS_PER_S;
	options.max_message_bytes = 1000;
	world->far.echoes = true;
	world->near.websocket = websocket_connect(world->loop, &options, &END_HANDLER, &world->near, &err);
	if (world->near.websocket == NULL)
		return false;
	for (int i = 0; i < WAIT_TURNS && world->near.opened + world->near.closed == 0; i++)
		if (!turn_briefly(world->loop))
			return false;
	if (world->near.closed > 0 || world->near.opened == 0)
		return false;
	ok = websocket_send(world->near.websocket, SLICE("ping"), true, &err);
	for (int i = 0; ok && i < WAIT_TURNS && world->near.messages + world->near.closed == 0; i++)
		if (!turn_briefly(world->loop))
			return false;
	return ok && world->near.messages == 1 && end_has(&world->near, "ping\n");
}

static bool prepare(struct world *world)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request, .on_abort = on_abort };
	struct http_server_options options = { .address = { .bytes = { 127, 0, 0, 1 } }, .max_body_bytes = 1000 };
	struct error err;

	world->loop = loop_epoll_create(&err);
	if (world->loop == NULL)
		return false;
	world->server = http_server_start(world->loop, &options, &HANDLER, world, &err);
	if (world->server == NULL || !http_server_address(world->server, &world->address))
		return false;
	world->client = http_client_create(world->loop, &err);
	return world->client != NULL;
}

static bool talk_on_loopback(void *context)
{
	struct world *world = context;
	bool ok;

	*world = (struct world){ 0 };
	end_init(&world->near);
	end_init(&world->far);
	torture_arm();
	ok = prepare(world) && exchange(world) && exchange(world) && talk_over_websocket(world);
	end_destroy(&world->near);
	end_destroy(&world->far);
	if (world->client != NULL)
		http_client_destroy(world->client);
	if (world->server != NULL)
		http_server_destroy(world->server);
	if (world->loop != NULL)
		loop_destroy(world->loop);
	torture_disarm();
	return ok;
}

static void every_failing_call_is_survived(void **state)
{
	(void)state;
	static const struct torture_fault FAULTS[] = {
		{ TORTURE_RECV, EINTR, true },
		{ TORTURE_RECV, EAGAIN, true },
		{ TORTURE_RECV, TORTURE_SHORT, true },
		{ TORTURE_RECV, ENOBUFS, false },
		{ TORTURE_RECV, ECONNRESET, false },
		{ TORTURE_SEND, EINTR, true },
		{ TORTURE_SEND, EAGAIN, true },
		{ TORTURE_SEND, TORTURE_SHORT, true },
		{ TORTURE_SEND, ENOBUFS, false },
		{ TORTURE_SEND, EPIPE, false },
		{ TORTURE_CONNECT, EADDRNOTAVAIL, false },
		{ TORTURE_CONNECT, EAGAIN, false },
		{ TORTURE_CONNECT, ENETUNREACH, false },
		{ TORTURE_ACCEPT, EINTR, true },
		{ TORTURE_ACCEPT, EAGAIN, true },
		{ TORTURE_ACCEPT, ECONNABORTED, true },
		{ TORTURE_ACCEPT, EMFILE, true },
		{ TORTURE_ACCEPT, ENFILE, true },
		{ TORTURE_ACCEPT, ENOBUFS, true },
		{ TORTURE_ACCEPT, ENOMEM, true },
		{ TORTURE_SOCKET, EMFILE, false },
		{ TORTURE_SOCKET, ENOBUFS, false },
		{ TORTURE_BIND, EADDRINUSE, false },
		{ TORTURE_LISTEN, EADDRINUSE, false },
		{ TORTURE_SETSOCKOPT, ENOPROTOOPT, true },
		{ TORTURE_EPOLL_CREATE, EMFILE, false },
		{ TORTURE_EPOLL_CTL, ENOSPC, false },
		{ TORTURE_EPOLL_CTL, ENOMEM, false },
		{ TORTURE_EPOLL_WAIT, EINTR, true },
	};
	struct world *world = memory_allocate(sizeof *world);
	unsigned long all = 0;

	assert_non_null(world);
	for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++) {
		unsigned long calls = torture_calls(&FAULTS[i], talk_on_loopback, world);

		if (calls == 0)
			fail_msg("call %d is never made", FAULTS[i].call);
		all += calls;
	}
	print_message("%lu failing calls\n", all);
	memory_release(world);
}

static void every_failing_allocation_is_survived(void **state)
{
	(void)state;
	struct world *world = memory_allocate(sizeof *world);
	unsigned long count;

	assert_non_null(world);
	count = torture_allocations(talk_on_loopback, world);
	print_message("%lu failing allocations\n", count);
	assert_true(count > 10);
	memory_release(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failing_call_is_survived),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
