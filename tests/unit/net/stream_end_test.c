/*
 * How streams end: finished, closed, reset, half closed, inside callbacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/limits.h"
#include "net/socket_address.h"
#include "peer.h"

/* A client without any of our code behind it. */
static int raw_connect(const struct host *host)
{
	struct sockaddr_storage system;
	socklen_t length = socket_address_to_system(&host->address, &system);
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(descriptor >= 0);
	assert_int_equal(connect(descriptor, (const struct sockaddr *)&system, length), 0);
	assert_int_equal(fcntl(descriptor, F_SETFL, O_NONBLOCK), 0);
	return descriptor;
}

static void raw_reset(int descriptor)
{
	const struct linger at_once = { .l_onoff = 1 };

	assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
	close(descriptor);
}

/* What the raw client has to read now: > 0 bytes, 0 at the end, -errno. */
static ssize_t raw_read(int descriptor, void *data, size_t size)
{
	ssize_t length = recv(descriptor, data, size, 0);

	return length >= 0 ? length : -errno;
}

static void a_reset_is_told_apart_from_an_end(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	int raw;

	(void)state;
	host_init(&host, loop, NULL);
	raw = raw_connect(&host);
	TURN_UNTIL(loop, host.accepted == 1);
	raw_reset(raw);
	TURN_UNTIL(loop, host.peer.closed == 1);
	assert_string_equal(host.peer.err.text, "read: connection reset by peer");
	assert_string_equal(error_root(&host.peer.err), "connection reset by peer");
	host_destroy(&host);
	loop_destroy(loop);
}

static void aborting_resets_the_peer(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	char byte;
	int raw;

	(void)state;
	host_init(&host, loop, NULL);
	raw = raw_connect(&host);
	TURN_UNTIL(loop, host.accepted == 1);
	stream_abort(host.peer.stream);
	host.peer.stream = NULL;
	TURN_UNTIL(loop, raw_read(raw, &byte, 1) == -ECONNRESET);
	close(raw);
	host_destroy(&host);
	loop_destroy(loop);
}

static void what_was_queued_reaches_a_peer_that_ended_its_side(void **state)
{
	enum { LENGTH = 6 * 1024 * 1024 };
	struct loop *loop = new_loop();
	char *data = pattern(LENGTH), *received = pattern(LENGTH + 1);
	struct host host;
	size_t length = 0;
	ssize_t got = 0;
	int raw;

	(void)state;
	memset(received, 0, LENGTH);
	host_init(&host, loop, NULL);
	raw = raw_connect(&host);
	TURN_UNTIL(loop, host.accepted == 1);
	peer_write(&host.peer, slice_from(data, LENGTH));
	assert_int_equal(shutdown(raw, SHUT_WR), 0);
	TURN_UNTIL(loop, host.peer.closed == 1);
	assert_string_equal(host.peer.err.text, "EOF");
	TURN_UNTIL(loop, (got = raw_read(raw, received + length, LENGTH + 1 - length)) == 0 ||
	                         (length += got > 0 ? (size_t)got : 0) > LENGTH);
	assert_int_equal(length, LENGTH);
	assert_memory_equal(received, data, LENGTH);
	close(raw);
	memory_release(data);
	memory_release(received);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_paused_stream_notices_the_end_when_it_is_resumed(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	char text[8] = "";
	int raw;

	(void)state;
	host_init(&host, loop, NULL);
	raw = raw_connect(&host);
	TURN_UNTIL(loop, host.accepted == 1);
	stream_pause(host.peer.stream);
	assert_int_equal(write(raw, "ask", 3), 3);
	assert_int_equal(shutdown(raw, SHUT_WR), 0);
	turn_for(loop, 20);
	assert_int_equal(host.peer.closed, 0);
	assert_int_equal(host.peer.received.length, 0);
	peer_write(&host.peer, SLICE("answer"));
	TURN_UNTIL(loop, raw_read(raw, text, sizeof text) == 6);
	assert_memory_equal(text, "answer", 6);
	stream_resume(host.peer.stream);
	TURN_UNTIL(loop, host.peer.closed == 1);
	assert_int_equal(host.peer.received.length, 3);
	close(raw);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_paused_stream_whose_peer_is_gone_does_not_keep_the_loop_busy(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	uint64_t turns;
	int raw;

	(void)state;
	host_init(&host, loop, NULL);
	raw = raw_connect(&host);
	TURN_UNTIL(loop, host.accepted == 1);
	stream_pause(host.peer.stream);
	raw_reset(raw);
	turns = loop_turn_count(loop);
	turn_for(loop, 50);
	assert_true(loop_turn_count(loop) - turns < 10);
	stream_resume(host.peer.stream);
	TURN_UNTIL(loop, host.peer.closed == 1);
	host_destroy(&host);
	loop_destroy(loop);
}

/* ---- finishing ---- */

static void finishing_sends_everything_and_then_ends(void **state)
{
	enum { LENGTH = 7 * 1024 * 1024 };
	struct loop *loop = new_loop();
	char *data = pattern(LENGTH);
	struct host host;
	struct peer client;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, client.opened == 1 && host.accepted == 1);
	peer_write(&client, slice_from(data, LENGTH));
	stream_finish(client.stream, 10ULL * NS_PER_S);
	client.stream = NULL;
	TURN_UNTIL(loop, host.peer.closed == 1);
	assert_string_equal(host.peer.err.text, "EOF");
	assert_int_equal(host.peer.received.length, LENGTH);
	assert_memory_equal(host.peer.received.data, data, LENGTH);
	assert_int_equal(client.closed + client.drained, 0);
	memory_release(data);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

/* Closing with unread bytes would send a reset, which destroys the answer under way. */
static void finishing_while_the_peer_still_talks_does_not_destroy_the_answer(void **state)
{
	enum { CHUNK = 256 * 1024 };
	struct loop *loop = new_loop();
	char *data = pattern(CHUNK), text[8] = "";
	struct host host;
	ssize_t got;
	int raw;

	(void)state;
	host_init(&host, loop, NULL);
	raw = raw_connect(&host);
	TURN_UNTIL(loop, host.accepted == 1);
	assert_true(write(raw, data, CHUNK) > 0);
	peer_write(&host.peer, SLICE("no"));
	stream_finish(host.peer.stream, 10ULL * NS_PER_S);
	host.peer.stream = NULL;
	for (int i = 0; i < 20; i++) {
		turn_for(loop, 1);
		got = send(raw, data, CHUNK, MSG_NOSIGNAL);
		assert_true(got > 0 || errno == EAGAIN);
	}
	assert_int_equal(raw_read(raw, text, sizeof text), 2);
	assert_memory_equal(text, "no", 2);
	assert_int_equal(raw_read(raw, text, sizeof text), 0);
	close(raw);
	memory_release(data);
	host_destroy(&host);
	loop_destroy(loop);
}

static void finishing_takes_no_longer_than_allowed(void **state)
{
	enum { LENGTH = 8 * 1024 * 1024 };
	struct loop *loop = new_loop();
	char *data = pattern(LENGTH);
	struct host host;
	uint64_t start_ns;
	size_t before;
	int raw;

	(void)state;
	host_init(&host, loop, NULL);
	raw = raw_connect(&host);
	TURN_UNTIL(loop, host.accepted == 1);
	before = open_descriptors();
	peer_write(&host.peer, slice_from(data, LENGTH));
	start_ns = loop_now_ns(loop);
	stream_finish(host.peer.stream, 30 * NS_PER_MS);
	host.peer.stream = NULL;
	assert_int_equal(open_descriptors(), before);
	TURN_UNTIL(loop, open_descriptors() == before - 1);
	assert_true(loop_now_ns(loop) - start_ns >= 30 * NS_PER_MS);
	close(raw);
	memory_release(data);
	host_destroy(&host);
	loop_destroy(loop);
}

static void destroying_the_loop_ends_what_is_still_being_sent(void **state)
{
	enum { LENGTH = 8 * 1024 * 1024 };
	size_t before = open_descriptors();
	struct loop *loop = new_loop();
	char *data = pattern(LENGTH);
	struct host host;
	int raw;

	(void)state;
	host_init(&host, loop, NULL);
	raw = raw_connect(&host);
	TURN_UNTIL(loop, host.accepted == 1);
	peer_write(&host.peer, slice_from(data, LENGTH));
	stream_finish(host.peer.stream, 10ULL * NS_PER_S);
	host.peer.stream = NULL;
	turn_for(loop, 2);
	host_destroy(&host);
	loop_destroy(loop);
	close(raw);
	memory_release(data);
	assert_int_equal(open_descriptors(), before);
}

static void finishing_what_is_not_open_closes_it(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	struct peer client;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	stream_finish(client.stream, NS_PER_S);
	client.stream = NULL;
	turn_for(loop, 5);
	assert_int_equal(client.opened + client.closed, 0);
	assert_int_equal(host.accepted, 0);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

/* ---- inside callbacks ---- */

enum moment { ON_OPEN, ON_DATA, ON_DRAINED, MOMENTS };

enum manner { CLOSE, ABORT, FINISH, MANNERS };

struct ender {
	struct peer peer;
	enum moment moment;
	enum manner manner;
	unsigned calls; /* after the end */
	bool ended;
};

static void end_at(struct ender *ender, enum moment moment)
{
	struct stream *stream = ender->peer.stream;

	if (ender->ended)
		ender->calls++;
	if (ender->ended || moment != ender->moment)
		return;
	ender->ended = true;
	ender->peer.stream = NULL;
	if (ender->manner == CLOSE)
		stream_close(stream);
	else if (ender->manner == ABORT)
		stream_abort(stream);
	else
		stream_finish(stream, NS_PER_S);
}

static void ender_opened(void *context)
{
	end_at(context, ON_OPEN);
}

static void ender_data(void *context, struct slice bytes)
{
	(void)bytes;
	end_at(context, ON_DATA);
}

static void ender_drained(void *context)
{
	end_at(context, ON_DRAINED);
}

static void ender_closed(void *context, const struct error *err)
{
	(void)err;
	((struct ender *)context)->calls++;
}

static void a_stream_may_be_ended_inside_any_of_its_callbacks(void **state)
{
	static const struct stream_handler HANDLER = {
		.on_open = ender_opened,
		.on_data = ender_data,
		.on_drained = ender_drained,
		.on_close = ender_closed,
	};
	struct loop *loop = new_loop();
	struct host host;
	char data[40000] = "";

	(void)state;
	host_init(&host, loop, NULL);
	host.peer.echoes = true;
	for (int i = 0; i < MOMENTS * MANNERS; i++) {
		struct ender ender = { .moment = (enum moment)(i / MANNERS), .manner = (enum manner)(i % MANNERS) };
		struct stream_connect_options options = { .host = "127.0.0.1", .port = host.address.port };
		struct error err;

		ender.peer.stream = stream_connect(loop, &options, &HANDLER, &ender, &err);
		assert_non_null(ender.peer.stream);
		assert_true(stream_write(ender.peer.stream, slice_from(data, sizeof data), &err));
		TURN_UNTIL(loop, ender.ended);
		turn_for(loop, 5);
		assert_int_equal(ender.calls, 0);
	}
	host_destroy(&host);
	loop_destroy(loop);
}

struct closer {
	struct stream_listener *listener;
	struct peer peer;
	bool keeps;
	unsigned accepted;
};

static void accept_and_close(void *context, struct stream *stream)
{
	struct closer *closer = context;

	closer->accepted++;
	if (closer->keeps) {
		closer->peer.stream = stream;
		stream_set_handler(stream, &PEER_HANDLER, &closer->peer);
	} else {
		stream_close(stream);
	}
	stream_listener_close(closer->listener);
	closer->listener = NULL;
}

static void a_listener_may_be_closed_inside_its_callback(void **state)
{
	struct loop *loop = new_loop();
	struct stream_listener_options options = host_options(NULL);

	(void)state;
	for (int keeps = 0; keeps < 2; keeps++) {
		struct closer closer = { .keeps = keeps != 0 };
		struct peer clients[2];
		struct error err;
		struct address address;

		peer_init(&closer.peer, loop);
		closer.listener = stream_listen(loop, &options, accept_and_close, &closer, &err);
		assert_non_null(closer.listener);
		assert_true(stream_listener_address(closer.listener, &address));
		for (int i = 0; i < 2; i++) {
			struct stream_connect_options to = { .host = "127.0.0.1", .port = address.port };

			peer_init(&clients[i], loop);
			peer_connect(&clients[i], &to);
			peer_write(&clients[i], SLICE("x"));
		}
		TURN_UNTIL(loop, closer.accepted == 1 && clients[1].closed == 1);
		if (keeps != 0)
			TURN_UNTIL(loop, closer.peer.received.length == 1);
		else
			TURN_UNTIL(loop, clients[0].closed == 1);
		assert_int_equal(closer.accepted, 1);
		for (int i = 0; i < 2; i++)
			peer_destroy(&clients[i]);
		peer_destroy(&closer.peer);
	}
	loop_destroy(loop);
}

static void a_stream_may_close_another_in_its_callback(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	struct peer clients[2];

	(void)state;
	host_init(&host, loop, NULL);
	stream_listener_close(host.listener);
	host.listener = NULL;
	/* Both connects fail in the same wait; each owner would close the other. */
	for (int i = 0; i < 2; i++) {
		peer_init(&clients[i], loop);
		peer_connect_to(&clients[i], &host);
	}
	TURN_UNTIL(loop, clients[0].closed == 1 || clients[1].closed == 1);
	for (int i = 0; i < 2; i++)
		peer_destroy(&clients[i]);
	host_destroy(&host);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reset_is_told_apart_from_an_end),
		cmocka_unit_test(aborting_resets_the_peer),
		cmocka_unit_test(what_was_queued_reaches_a_peer_that_ended_its_side),
		cmocka_unit_test(a_paused_stream_notices_the_end_when_it_is_resumed),
		cmocka_unit_test(a_paused_stream_whose_peer_is_gone_does_not_keep_the_loop_busy),
		cmocka_unit_test(finishing_sends_everything_and_then_ends),
		cmocka_unit_test(finishing_while_the_peer_still_talks_does_not_destroy_the_answer),
		cmocka_unit_test(finishing_takes_no_longer_than_allowed),
		cmocka_unit_test(destroying_the_loop_ends_what_is_still_being_sent),
		cmocka_unit_test(finishing_what_is_not_open_closes_it),
		cmocka_unit_test(a_stream_may_be_ended_inside_any_of_its_callbacks),
		cmocka_unit_test(a_listener_may_be_closed_inside_its_callback),
		cmocka_unit_test(a_stream_may_close_another_in_its_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
