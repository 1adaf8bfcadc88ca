#include "net/limits.h"
#include "peer.h"

enum { MANY = 200, RECONNECTS = 2000 };

/* ---- the everyday ---- */

static void bytes_go_both_ways(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	struct peer client;

	(void)state;
	host_init(&host, loop, NULL);
	host.peer.echoes = true;
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	peer_write(&client, SLICE("hello, "));
	TURN_UNTIL(loop, client.opened == 1);
	peer_write(&client, SLICE("world"));
	TURN_UNTIL(loop, client.received.length == 12);
	assert_memory_equal(client.received.data, "hello, world", 12);
	assert_int_equal(stream_pending_bytes(client.stream), 0);
	assert_true(client.drained >= 1);
	peer_destroy(&client);
	TURN_UNTIL(loop, host.peer.closed == 1);
	assert_int_equal(host.peer.err.code, ERROR_ENDED);
	assert_string_equal(host.peer.err.text, "EOF");
	host_destroy(&host);
	loop_destroy(loop);
}

/* ---- much ---- */

struct pauser {
	struct peer peer;
	struct loop_timer timer;
	unsigned calls, pauses;
};

static void go_on(void *context)
{
	struct pauser *pauser = context;

	if (pauser->peer.stream != NULL)
		stream_resume(pauser->peer.stream);
}

static void pause_often(struct peer *peer, struct slice bytes)
{
	struct pauser *pauser = (struct pauser *)peer;

	(void)bytes;
	if (++pauser->calls % 7 != 0)
		return;
	pauser->pauses++;
	stream_pause(peer->stream);
	loop_timer_start(peer->loop, &pauser->timer, NS_PER_MS / 10, go_on, pauser);
}

static void much_arrives_whole_in_spite_of_pauses(void **state)
{
	enum { LENGTH = 20 * 1024 * 1024 };
	struct loop *loop = new_loop();
	char *data = pattern(LENGTH);
	struct host host;
	struct pauser client = { 0 };
	size_t sent = 0, most_pending = 0;

	(void)state;
	host_init(&host, loop, NULL);
	host.peer.echoes = true;
	peer_init(&client.peer, loop);
	client.peer.on_data = pause_often;
	peer_connect_to(&client.peer, &host);
	while (client.peer.received.length < LENGTH) {
		while (sent < LENGTH && sent - client.peer.received.length < 4 * 1024 * 1024) {
			size_t piece = LENGTH - sent < 100003 ? LENGTH - sent : 100003;

			peer_write(&client.peer, slice_from(data + sent, piece));
			sent += piece;
		}
		if (stream_pending_bytes(client.peer.stream) > most_pending)
			most_pending = stream_pending_bytes(client.peer.stream);
		size_t before = client.peer.received.length;

		TURN_UNTIL(loop, client.peer.received.length > before);
	}
	assert_int_equal(client.peer.received.length, LENGTH);
	assert_memory_equal(client.peer.received.data, data, LENGTH);
	assert_true(client.pauses > 10);
	assert_true(most_pending > 0);
	loop_timer_stop(loop, &client.timer);
	memory_release(data);
	peer_destroy(&client.peer);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_reader_that_pauses_makes_the_writer_wait(void **state)
{
	enum { LIMIT = 32 * 1024 * 1024, PIECE = 64 * 1024 };
	struct loop *loop = new_loop();
	char *piece = pattern(PIECE);
	struct host host;
	struct peer client;
	size_t sent = 0, drained;
	struct error err;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	TURN_UNTIL(loop, host.accepted == 1 && client.opened == 1);
	stream_pause(host.peer.stream);
	stream_set_write_limit(client.stream, LIMIT);
	while (sent < LIMIT) {
		peer_write(&client, slice_from(piece, PIECE));
		sent += PIECE;
	}
	turn_for(loop, 50);
	assert_int_equal(host.peer.received.length, 0);
	assert_true(stream_pending_bytes(client.stream) > 0);
	assert_int_equal(client.drained, 0);
	assert_false(
		stream_write(client.stream, slice_from(piece, LIMIT - stream_pending_bytes(client.stream) + 1), &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "more than 33554432 bytes wait to be written");
	drained = client.drained;
	stream_resume(host.peer.stream);
	TURN_UNTIL(loop, client.drained > drained);
	TURN_UNTIL(loop, host.peer.received.length == sent);
	assert_int_equal(stream_pending_bytes(client.stream), 0);
	memory_release(piece);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void one_stream_does_not_take_a_whole_turn(void **state)
{
	enum { LENGTH = 8 * 1024 * 1024 };
	struct loop *loop = new_loop();
	char *data = pattern(LENGTH);
	struct host host;
	struct peer client;
	size_t before = 0, most = 0;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	peer_write(&client, slice_from(data, LENGTH));
	while (host.peer.received.length < LENGTH) {
		uint64_t turns = loop_turn_count(loop);

		TURN_UNTIL(loop, loop_turn_count(loop) > turns);
		if (host.peer.received.length - before > most)
			most = host.peer.received.length - before;
		before = host.peer.received.length;
	}
	assert_true(most > 0);
	assert_true(most < NET_TURN_READ_BYTES + NET_READ_CHUNK_BYTES);
	assert_memory_equal(host.peer.received.data, data, LENGTH);
	memory_release(data);
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

/* Counts what its clients send and gives it back. */
static void echo_data(void *context, struct slice bytes)
{
	struct error err;

	assert_true(stream_write(*(struct stream **)context, bytes, &err));
}

static void echo_close(void *context, const struct error *err)
{
	(void)err;
	*(struct stream **)context = NULL;
}

struct echo_host {
	struct stream *streams[MANY];
	size_t count;
};

static void echo_accept(void *context, struct stream *stream)
{
	static const struct stream_handler HANDLER = { .on_data = echo_data, .on_close = echo_close };
	struct echo_host *host = context;

	assert_true(host->count < MANY);
	host->streams[host->count] = stream;
	stream_set_handler(stream, &HANDLER, &host->streams[host->count++]);
}

static void many_connections_live_side_by_side(void **state)
{
	static struct peer clients[MANY];
	struct echo_host host = { 0 };
	struct loop *loop = new_loop();
	struct stream_listener_options options = host_options(NULL);
	struct error err;
	struct address address;
	struct stream_listener *listener = stream_listen(loop, &options, echo_accept, &host, &err);
	size_t closed = 0;

	(void)state;
	assert_non_null(listener);
	assert_true(stream_listener_address(listener, &address));
	for (size_t i = 0; i < MANY; i++) {
		struct stream_connect_options to = { .host = "127.0.0.1", .port = address.port };

		peer_init(&clients[i], loop);
		peer_connect(&clients[i], &to);
		peer_write(&clients[i], slice_from(&clients[i], 100));
	}
	for (size_t i = 0; i < MANY; i++) {
		TURN_UNTIL(loop, clients[i].received.length == 100);
		peer_destroy(&clients[i]);
	}
	for (size_t i = 0; i < MANY; i++) {
		TURN_UNTIL(loop, host.streams[i] == NULL);
		closed++;
	}
	assert_int_equal(host.count, MANY);
	assert_int_equal(closed, MANY);
	stream_listener_close(listener);
	loop_destroy(loop);
}

static void descriptors_stay_flat_over_many_connections(void **state)
{
	struct loop *loop = new_loop();
	struct host host;
	size_t before = 0;

	(void)state;
	host_init(&host, loop, NULL);
	for (int i = 0; i < RECONNECTS; i++) {
		struct peer client;

		peer_init(&client, loop);
		peer_connect_to(&client, &host);
		peer_write(&client, SLICE("x"));
		TURN_UNTIL(loop, host.peer.received.length == 1);
		buffer_clear(&host.peer.received);
		if (i % 3 == 0) {
			stream_close(host.peer.stream);
			host.peer.stream = NULL;
			TURN_UNTIL(loop, client.closed == 1);
		} else if (i % 3 == 1) {
			stream_abort(client.stream);
			client.stream = NULL;
		} else {
			stream_finish(client.stream, NS_PER_S);
			client.stream = NULL;
		}
		peer_destroy(&client);
		if (i == 10)
			before = open_descriptors();
	}
	turn_for(loop, 20);
	assert_true(open_descriptors() <= before + 1);
	host_destroy(&host);
	loop_destroy(loop);
}

/* ---- handlers ---- */

static void count_bytes(void *context, struct slice bytes)
{
	*(size_t *)context += bytes.length;
}

static void the_handler_can_be_changed_while_data_flows(void **state)
{
	static const struct stream_handler COUNTER = { .on_data = count_bytes };
	struct loop *loop = new_loop();
	struct host host;
	struct peer client;
	size_t counted = 0;

	(void)state;
	host_init(&host, loop, NULL);
	peer_init(&client, loop);
	peer_connect_to(&client, &host);
	peer_write(&client, SLICE("abc"));
	TURN_UNTIL(loop, host.peer.received.length == 3);
	stream_set_handler(host.peer.stream, &COUNTER, &counted);
	peer_write(&client, SLICE("defgh"));
	TURN_UNTIL(loop, counted == 5);
	assert_int_equal(host.peer.received.length, 3);
	stream_close(host.peer.stream);
	host.peer.stream = NULL;
	peer_destroy(&client);
	host_destroy(&host);
	loop_destroy(loop);
}

/* ---- the cap ---- */

static void beyond_the_cap_accepting_waits(void **state)
{
	struct loop *loop = new_loop();
	struct stream_listener_options options = host_options(NULL);
	struct host host;
	struct echo_host echo = { 0 };
	struct peer clients[3];
	struct error err;

	(void)state;
	options.max_connections = 2;
	host = (struct host){ .listener = stream_listen(loop, &options, echo_accept, &echo, &err) };
	assert_non_null(host.listener);
	assert_true(stream_listener_address(host.listener, &host.address));
	for (int i = 0; i < 3; i++) {
		peer_init(&clients[i], loop);
		peer_connect_to(&clients[i], &host);
		peer_write(&clients[i], SLICE("x"));
	}
	TURN_UNTIL(loop, clients[0].received.length == 1 && clients[1].received.length == 1);
	uint64_t turns = loop_turn_count(loop);

	turn_for(loop, 50);
	assert_true(loop_turn_count(loop) - turns < 10); /* and it isn't asked in vain */
	assert_int_equal(echo.count, 2);
	assert_int_equal(clients[2].received.length, 0);
	peer_destroy(&clients[0]);
	TURN_UNTIL(loop, clients[2].received.length == 1);
	assert_int_equal(echo.count, 3);
	peer_destroy(&clients[1]);
	peer_destroy(&clients[2]);
	stream_listener_close(host.listener);
	TURN_UNTIL(loop, echo.streams[1] == NULL && echo.streams[2] == NULL);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_go_both_ways),
		cmocka_unit_test(much_arrives_whole_in_spite_of_pauses),
		cmocka_unit_test(a_reader_that_pauses_makes_the_writer_wait),
		cmocka_unit_test(one_stream_does_not_take_a_whole_turn),
		cmocka_unit_test(many_connections_live_side_by_side),
		cmocka_unit_test(descriptors_stay_flat_over_many_connections),
		cmocka_unit_test(the_handler_can_be_changed_while_data_flows),
		cmocka_unit_test(beyond_the_cap_accepting_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
