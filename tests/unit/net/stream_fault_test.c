/*
 * Streams over a system that answers short, late, interrupted, or not at all; and without memory.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "net/limits.h"
#include "peer.h"

/* What the system calls below do; they take no context. */
static struct {
	struct rng rng;
	bool stingy;       /* sometimes nothing, sometimes interrupted, else a few bytes */
	unsigned sends;    /* calls */
	int send_errno;    /* answered by the next send */
	int recv_errno;    /* … recv */
	int connect_errno; /* … connect, after connecting */
	int accept_errno;  /* answered by accept4, accept_failures times */
	int accept_failures;
	unsigned accepts;   /* calls */
	int epoll_failures; /* of the next calls that don\'t take out */
} faults;

/* Returns how many bytes to let pass, or 0 with errno. */
static size_t stingy_length(size_t length)
{
	uint64_t dice = rng_between(&faults.rng, 0, 10);

	if (!faults.stingy)
		return length;
	if (dice < 3) {
		errno = dice == 0 ? EINTR : EAGAIN;
		return 0;
	}
	return dice < 8 || length < 2 ? 1 : (size_t)rng_between(&faults.rng, 1, length);
}

static ssize_t faulty_recv(int descriptor, void *data, size_t size, int flags)
{
	size_t length = stingy_length(size);

	if (faults.recv_errno != 0) {
		errno = faults.recv_errno;
		faults.recv_errno = 0;
		return -1;
	}
	return length == 0 ? -1 : recv(descriptor, data, length, flags);
}

static ssize_t faulty_send(int descriptor, const void *data, size_t size, int flags)
{
	size_t length = stingy_length(size);

	faults.sends++;
	if (faults.send_errno != 0) {
		errno = faults.send_errno;
		faults.send_errno = 0;
		return -1;
	}
	return length == 0 ? -1 : send(descriptor, data, length, flags);
}

static int faulty_connect(int descriptor, const struct sockaddr *address, socklen_t length)
{
	int result = connect(descriptor, address, length);

	if (faults.connect_errno == 0)
		return result;
	errno = faults.connect_errno;
	faults.connect_errno = 0;
	return -1;
}

static int faulty_accept(int descriptor, struct sockaddr *address, socklen_t *length, int flags)
{
	faults.accepts++;
	if (faults.accept_failures > 0) {
		faults.accept_failures--;
		errno = faults.accept_errno;
		return -1;
	}
	return accept4(descriptor, address, length, flags);
}

static int faulty_epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event)
{
	if (faults.epoll_failures > 0 && operation != EPOLL_CTL_DEL) {
		faults.epoll_failures--;
		errno = ENOSPC; /* the limit on watches */
		return -1;
	}
	return epoll_ctl(epoll, operation, descriptor, event);
}

static const struct loop_epoll_calls CALLS = {
	.recv = faulty_recv,
	.send = faulty_send,
	.connect = faulty_connect,
	.accept4 = faulty_accept,
	.epoll_ctl = faulty_epoll_ctl,
	.getaddrinfo = getaddrinfo,
};

static struct loop *faulty_loop(void)
{
	struct error err;
	struct loop *loop = loop_epoll_create_with_calls(&CALLS, &err);

	assert_non_null(loop);
	memset(&faults, 0, sizeof faults);
	rng_seed(&faults.rng, 7);
	return loop;
}

static void bytes_pass_whole_through_a_stingy_system(void **state)
{
	enum { LENGTH = 20000 };
	struct loop *loop = faulty_loop();
	char *data = pattern(LENGTH);
	struct host host;
	struct peer client;

	(void)state;
	faults.stingy = true;
	host_init(&host, loop, NULL);
	host.peer.echoes = true;
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	peer_write(&client, slice_from(data, LENGTH));
	TURN_UNTIL(loop, client.received.length == LENGTH);
	assert_memory_equal(client.received.data, data, LENGTH);
	stream_finish(client.stream, NS_PER_S);
	client.stream = NULL;
	TURN_UNTIL(loop, host.peer.closed == 1);
	assert_string_equal(host.peer.err.text, "EOF");
	memory_release(data);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void writes_of_one_turn_leave_together(void **state)
{
	struct loop *loop = faulty_loop();
	struct host host;
	struct peer client;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, client.opened == 1);
	faults.sends = 0;
	for (int i = 0; i < 10; i++)
		peer_write(&client, SLICE("0123456789"));
	TURN_UNTIL(loop, host.peer.received.length == 100);
	assert_int_equal(faults.sends, 1);
	assert_int_equal(client.drained, 1);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void an_interrupted_connect_goes_on(void **state)
{
	struct loop *loop = faulty_loop();
	struct host host;
	struct peer client;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	faults.connect_errno = EINTR;
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, client.opened == 1 && host.accepted == 1);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_connect_that_can_not_start_is_told_later(void **state)
{
	struct loop *loop = faulty_loop();
	struct host host;
	struct peer client;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	faults.connect_errno = EHOSTUNREACH;
	peer_connect_to(&client, &host);
	assert_int_equal(client.closed, 0);
	TURN_UNTIL(loop, client.closed == 1);
	assert_string_equal(error_root(&client.err), "no route to host");
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_failed_read_ends_the_stream(void **state)
{
	struct loop *loop = faulty_loop();
	struct host host;
	struct peer client;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, client.opened == 1 && host.accepted == 1);
	peer_write(&client, SLICE("x"));
	faults.recv_errno = ETIMEDOUT;
	TURN_UNTIL(loop, host.peer.closed == 1);
	assert_string_equal(host.peer.err.text, "read: connection timed out");
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void what_the_peer_said_before_a_write_fails_is_heard(void **state)
{
	struct loop *loop = faulty_loop();
	struct host host;
	struct peer client;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, client.opened == 1 && host.accepted == 1);
	stream_pause(client.stream); /* so that it is read by nobody else */
	peer_write(&host.peer, SLICE("too large"));
	TURN_UNTIL(loop, host.peer.drained == 1);
	stream_resume(client.stream);
	peer_write(&client, SLICE("more and more"));
	faults.send_errno = EPIPE;
	TURN_UNTIL(loop, client.closed == 1);
	assert_int_equal(client.received.length, 9);
	assert_string_equal(client.err.text, "write: broken pipe");
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void without_descriptors_accepting_pauses_and_goes_on(void **state)
{
	struct loop *loop = faulty_loop();
	struct host host;
	struct peer client;
	uint64_t start_ns, turns;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	faults.accept_errno = EMFILE;
	faults.accept_failures = 2;
	start_ns = clock_monotonic_ns();
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, host.errors == 1);
	assert_memory_equal(host.err.text, "accepting on 127.0.0.1:", 23);
	assert_string_equal(error_root(&host.err), "too many open files");
	turns = loop_turn_count(loop);
	turn_for(loop, NET_ACCEPT_PAUSE_MS / 2);
	assert_int_equal(faults.accepts, 1);
	assert_true(loop_turn_count(loop) - turns < 10);
	TURN_UNTIL(loop, host.accepted == 1);
	assert_int_equal(host.errors, 2);
	assert_true(clock_monotonic_ns() - start_ns >= 2ULL * NET_ACCEPT_PAUSE_MS * NS_PER_MS);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_connection_gone_before_it_is_accepted_stops_nobody(void **state)
{
	struct loop *loop = faulty_loop();
	struct host host;
	struct peer client;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	faults.accept_errno = ECONNABORTED;
	faults.accept_failures = 5;
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, host.accepted == 1);
	assert_int_equal(host.errors, 0);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_stream_that_can_not_be_watched_fails(void **state)
{
	struct loop *loop = faulty_loop();
	struct host host;
	struct peer client;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, client.opened == 1 && host.accepted == 1);
	stream_pause(client.stream);
	faults.epoll_failures = 2;
	stream_resume(client.stream);
	assert_int_equal(client.closed, 0);
	TURN_UNTIL(loop, client.closed == 1);
	assert_string_equal(client.err.text, "epoll_ctl: no space left on device");
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_passing_want_of_watches_is_overcome(void **state)
{
	struct loop *loop = faulty_loop();
	struct host host;
	struct peer client;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, client.opened == 1 && host.accepted == 1);
	stream_pause(client.stream);
	peer_write(&host.peer, SLICE("x"));
	faults.epoll_failures = 1;
	stream_resume(client.stream);
	TURN_UNTIL(loop, client.received.length == 1);
	assert_int_equal(client.closed, 0);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_connect_that_can_not_be_watched_fails(void **state)
{
	struct loop *loop = faulty_loop();
	size_t before = open_descriptors();
	struct peer client;
	struct stream_connect_options options = { .host = "127.0.0.1", .port = 1 };

	(void)state;
	peer_init(&client, loop);
	faults.epoll_failures = 1;
	peer_connect(&client, &options);
	TURN_UNTIL(loop, client.closed == 1);
	assert_string_equal(client.err.text, "dial tcp 127.0.0.1:1: epoll_ctl: no space left on device");
	assert_int_equal(open_descriptors(), before);
	peer_destroy(&client);
	loop_destroy(loop);
}

/* ---- memory ---- */

static void give_up(void *context)
{
	*(bool *)context = true;
}

/* One exchange: connect, send, hear it back, finish. Whatever fails on the way is told and leaves nothing behind. */
static bool exchange(struct loop *loop, struct host *host)
{
	static char data[3000];
	struct stream_connect_options options = { .host = "127.0.0.1", .port = host->address.port };
	struct loop_timer timer = { 0 };
	struct peer client;
	struct error err;
	bool late = false, done;

	peer_init(&client, loop);
	loop_timer_start(loop, &timer, 10ULL * NS_PER_S, give_up, &late);
	client.stream = stream_connect(loop, &options, &PEER_HANDLER, &client, &err);
	if (client.stream != NULL && !stream_write(client.stream, slice_from(data, sizeof data), &err)) {
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		stream_close(client.stream);
		client.stream = NULL;
	}
	/* A recording that failed for want of memory is the test's own. */
	while (client.stream != NULL && client.received.length < sizeof data && !client.received.failed &&
	       !host->peer.received.failed && host->errors == 0 && !late)
		assert_true(loop_turn(loop, &err));
	assert_false(late);
	loop_timer_stop(loop, &timer);
	done = client.received.length == sizeof data;
	if (client.stream != NULL)
		stream_finish(client.stream, 10 * NS_PER_MS);
	client.stream = NULL;
	peer_destroy(&client);
	return done;
}

static void each_allocation_may_fail(void **state)
{
	size_t before = open_descriptors();
	unsigned failures = 0;
	bool reached = true;

	(void)state;
	for (unsigned long n = 1; reached; n++) {
		struct loop *loop = faulty_loop();
		struct host host;
		bool done;

		host_init(&host, loop, NULL);
		host.peer.echoes = true;
		memory_fail_at(n);
		done = exchange(loop, &host);
		reached = memory_allocation_count() >= n;
		memory_fail_at(0);
		if (!done)
			failures++;
		if (!reached)
			assert_true(done);
		host_destroy(&host);
		loop_destroy(loop);
		assert_int_equal(open_descriptors(), before);
		assert_true(n < 1000);
	}
	assert_true(failures > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_pass_whole_through_a_stingy_system),
		cmocka_unit_test(writes_of_one_turn_leave_together),
		cmocka_unit_test(an_interrupted_connect_goes_on),
		cmocka_unit_test(a_connect_that_can_not_start_is_told_later),
		cmocka_unit_test(a_failed_read_ends_the_stream),
		cmocka_unit_test(what_the_peer_said_before_a_write_fails_is_heard),
		cmocka_unit_test(without_descriptors_accepting_pauses_and_goes_on),
		cmocka_unit_test(a_connection_gone_before_it_is_accepted_stops_nobody),
		cmocka_unit_test(a_stream_that_can_not_be_watched_fails),
		cmocka_unit_test(a_passing_want_of_watches_is_overcome),
		cmocka_unit_test(a_connect_that_can_not_be_watched_fails),
		cmocka_unit_test(each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
