#include "websocket_end.h"

#include <malloc.h>
#include <stdio.h>

#include "net/websocket_handshake.h"
#include "test_clock.h"

/* ---- a site that accepts websockets; the newest is `server` ---- */

static struct websocket_end *server;

static void accept_websocket(struct site *site, struct http_call *call)
{
	struct error err;

	server->websocket = websocket_accept(site->loop, call, 32768, &END_HANDLER, server, &err);
	if (server->websocket == NULL)
		http_call_respond(call, 400, "text/plain", slice_of(err.text));
}

/* A server and a client, connected. */
struct pair {
	struct loop *loop;
	struct site site;
	struct websocket_end client, server;
};

static void pair_init(struct pair *pair)
{
	pair->loop = new_loop();
	site_init(&pair->site, pair->loop);
	pair->site.on_request = accept_websocket;
	end_init(&pair->client);
	end_init(&pair->server);
	server = &pair->server;
}

static void pair_connect(struct pair *pair)
{
	pair_init(pair);
	end_connect(&pair->client, pair->loop, pair->site.address.port);
	TURN_UNTIL(pair->loop, pair->client.opened == 1 && pair->server.websocket != NULL);
}

static void pair_destroy(struct pair *pair)
{
	end_destroy(&pair->client);
	end_destroy(&pair->server);
	site_destroy(&pair->site);
	loop_destroy(pair->loop);
}

/* A raw server and a client whose handshake it has answered. */
struct raw {
	struct loop *loop;
	struct host host;
	struct websocket_end client;
};

static void raw_init(struct raw *raw)
{
	raw->loop = new_loop();
	host_init(&raw->host, raw->loop, NULL);
	end_init(&raw->client);
	end_connect(&raw->client, raw->loop, raw->host.address.port);
	TURN_UNTIL(raw->loop, received_at_end(&raw->host.peer, "\r\n\r\n"));
}

static struct slice request_key(const struct raw *raw)
{
	const char *found =
		memmem(raw->host.peer.received.data, raw->host.peer.received.length, "Sec-WebSocket-Key: ", 19);

	assert_non_null(found);
	return slice_from(found + 19, WEBSOCKET_KEY_BYTES - 1);
}

static void raw_accept(struct raw *raw, const char *more)
{
	char accept[WEBSOCKET_ACCEPT_BYTES];
	char text[400];

	websocket_make_accept(request_key(raw), accept);
	snprintf(text, sizeof text,
	         "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
	         "Sec-WebSocket-Accept: %s\r\n\r\n%s",
	         accept, more);
	peer_write(&raw->host.peer, slice_of(text));
	TURN_UNTIL(raw->loop, raw->client.opened == 1);
	buffer_clear(&raw->host.peer.received);
}

static void raw_destroy(struct raw *raw)
{
	end_destroy(&raw->client);
	host_destroy(&raw->host);
	loop_destroy(raw->loop);
}

/* Undoes the mask of the one frame at the start of what came. */
static struct slice unmasked(const struct peer *peer, char *storage)
{
	size_t length = (size_t)(peer->received.data[1] & 0x7f);

	assert_true((peer->received.data[1] & 0x80) != 0);
	assert_true(peer->received.length >= 6 + length);
	for (size_t i = 0; i < length; i++)
		storage[i] = (char)(peer->received.data[6 + i] ^ peer->received.data[2 + i % 4]);
	return slice_from(storage, length);
}

/* ---- messages ---- */

static void messages_go_both_ways(void **state)
{
	(void)state;
	struct pair pair;
	struct error err;

	pair_connect(&pair);
	pair.server.echoes = true;
	end_send(&pair.client, "{\"min\":1,\"max\":1}");
	assert_true(websocket_send(pair.client.websocket, SLICE("\0\xff"), false, &err));
	end_send(&pair.client, "");
	TURN_UNTIL(pair.loop, pair.client.messages == 3);
	assert_true(slice_equal(buffer_slice(&pair.client.text), SLICE("{\"min\":1,\"max\":1}\n\0\xff\n\n")));
	end_send(&pair.server, "unasked");
	TURN_UNTIL(pair.loop, pair.client.messages == 4);
	assert_true(websocket_ping(pair.client.websocket, SLICE("ping"), &err));
	end_send(&pair.client, "after the ping");
	TURN_UNTIL(pair.loop, pair.client.messages == 5);
	pair_destroy(&pair);
}

static void a_message_as_long_as_allowed_passes_and_a_longer_one_closes(void **state)
{
	(void)state;
	static char big[32769];
	struct pair pair;
	struct error err;

	memset(big, 'x', sizeof big);
	pair_connect(&pair);
	assert_true(websocket_send(pair.server.websocket, slice_from(big, 32768), true, &err));
	TURN_UNTIL(pair.loop, pair.client.messages == 1);
	assert_int_equal(pair.client.text.length, 32769);
	assert_true(websocket_send(pair.server.websocket, slice_from(big, 32769), true, &err));
	TURN_UNTIL(pair.loop, pair.client.closed == 1 && pair.server.closed == 1);
	assert_int_equal(pair.client.messages, 1);
	assert_int_equal(pair.client.code, 1009);
	assert_string_equal(pair.client.reason, "read limited at 32769 bytes");
	assert_int_equal(pair.client.err.code, ERROR_LIMIT);
	assert_int_equal(pair.server.code, 1009);
	assert_string_equal(pair.server.reason, "read limited at 32769 bytes");
	assert_true(pair.server.clean);
	pair_destroy(&pair);
}

static void a_sender_that_isnt_read_hits_the_write_limit(void **state)
{
	(void)state;
	static char big[1 << 20];
	struct raw raw;
	struct error err;
	int sent = 0;

	raw_init(&raw);
	raw_accept(&raw, "");
	stream_pause(raw.host.peer.stream);
	while (websocket_send(raw.client.websocket, slice_from(big, sizeof big), false, &err)) {
		turn_for(raw.loop, 1);
		assert_true(++sent < 100);
	}
	assert_int_equal(err.code, ERROR_LIMIT);
	raw_destroy(&raw);
}

/* ---- closing ---- */

static void either_side_may_close(void **state)
{
	(void)state;
	for (int by_server = 0; by_server < 2; by_server++) {
		struct pair pair;

		pair_connect(&pair);
		websocket_close(by_server ? pair.server.websocket : pair.client.websocket, 1000, SLICE("normal exit"));
		assert_int_equal(pair.client.closed + pair.server.closed, 0); /* not from inside the call */
		TURN_UNTIL(pair.loop, pair.client.closed == 1 && pair.server.closed == 1);
		assert_int_equal(pair.client.code, 1000);
		assert_int_equal(pair.server.code, 1000);
		assert_string_equal(pair.client.reason, "normal exit");
		assert_string_equal(pair.server.reason, "normal exit");
		assert_true(pair.client.clean && pair.server.clean);
		pair_destroy(&pair);
	}
}

static void both_sides_may_close_at_once(void **state)
{
	(void)state;
	struct pair pair;

	pair_connect(&pair);
	websocket_close(pair.client.websocket, 1000, SLICE("client"));
	websocket_close(pair.server.websocket, 1001, SLICE("server"));
	TURN_UNTIL(pair.loop, pair.client.closed == 1 && pair.server.closed == 1);
	assert_int_equal(pair.client.code, 1001);
	assert_int_equal(pair.server.code, 1000);
	pair_destroy(&pair);
}

static void after_a_close_nothing_can_be_sent_and_messages_are_dropped(void **state)
{
	(void)state;
	struct raw raw;
	struct error err;
	char storage[200];

	raw_init(&raw);
	raw_accept(&raw, "");
	websocket_close(raw.client.websocket, 1011, SLICE("reason"));
	websocket_close(raw.client.websocket, 1000, SLICE("once is enough"));
	assert_false(websocket_send(raw.client.websocket, SLICE("late"), true, &err));
	assert_int_equal(err.code, ERROR_CLOSED);
	assert_false(websocket_ping(raw.client.websocket, SLICE("late"), &err));
	TURN_UNTIL(raw.loop, raw.host.peer.received.length > 0);
	assert_true(slice_equal(unmasked(&raw.host.peer, storage), SLICE("\x03\xf3reason")));
	peer_write(&raw.host.peer, SLICE("\x81\x04late\x88\x02\x03\xe8"));
	TURN_UNTIL(raw.loop, raw.client.closed == 1);
	assert_int_equal(raw.client.messages, 0);
	assert_int_equal(raw.client.code, 1000);
	assert_true(raw.client.clean);
	raw_destroy(&raw);
}

static void a_peer_that_doesnt_answer_a_close_is_left_after_five_seconds(void **state)
{
	(void)state;
	struct raw raw;

	raw_init(&raw);
	raw_accept(&raw, "");
	websocket_close(raw.client.websocket, 1000, SLICE("normal exit"));
	TURN_UNTIL(raw.loop, raw.host.peer.received.length > 0);
	turn_for(raw.loop, 5);
	skip_time_ms(WEBSOCKET_CLOSE_REPLY_TIMEOUT_MS - 500);
	turn_for(raw.loop, 5);
	assert_int_equal(raw.client.closed, 0);
	skip_time_ms(500);
	TURN_UNTIL(raw.loop, raw.client.closed == 1 && raw.host.peer.closed == 1);
	assert_int_equal(raw.client.code, 1006);
	assert_string_equal(error_root(&raw.client.err), "context deadline exceeded");
	assert_int_equal(raw.client.err.code, ERROR_TIMEOUT);
	raw_destroy(&raw);
}

static void a_close_frame_that_cant_be_written_is_given_up_after_five_seconds(void **state)
{
	(void)state;
	static char big[1 << 20];
	struct raw raw;
	struct error err;

	raw_init(&raw);
	raw_accept(&raw, "");
	stream_pause(raw.host.peer.stream);
	for (int i = 0; i < 7; i++) {
		assert_true(websocket_send(raw.client.websocket, slice_from(big, sizeof big), false, &err));
		turn_for(raw.loop, 1);
	}
	while (websocket_send(raw.client.websocket, slice_from(big, 100000), false, &err))
		;
	websocket_close(raw.client.websocket, 1000, SLICE("normal exit"));
	turn_for(raw.loop, 5);
	skip_time_ms(WEBSOCKET_CLOSE_WRITE_TIMEOUT_MS);
	TURN_UNTIL(raw.loop, raw.client.closed == 1);
	assert_int_equal(raw.client.code, 1006);
	assert_string_equal(error_root(&raw.client.err), "context deadline exceeded");
	raw_destroy(&raw);
}

static void the_peers_five_seconds_begin_when_the_close_frame_has_left(void **state)
{
	(void)state;
	static char big[1 << 20];
	struct raw raw;
	struct error err;

	raw_init(&raw);
	raw_accept(&raw, "");
	stream_pause(raw.host.peer.stream);
	while (websocket_send(raw.client.websocket, slice_from(big, sizeof big), false, &err))
		turn_for(raw.loop, 1);
	websocket_close(raw.client.websocket, 1000, SLICE("normal exit"));
	turn_for(raw.loop, 5);
	skip_time_ms(WEBSOCKET_CLOSE_WRITE_TIMEOUT_MS - 1000);
	stream_resume(raw.host.peer.stream);
	TURN_UNTIL(raw.loop, raw.host.peer.received.length > 8 << 20 &&
	                             slice_contains(slice_from_offset(buffer_slice(&raw.host.peer.received),
	                                                              raw.host.peer.received.length - 19),
	                                            SLICE("\x88\x8d")));
	turn_for(raw.loop, 5);
	skip_time_ms(WEBSOCKET_CLOSE_REPLY_TIMEOUT_MS - 1000);
	turn_for(raw.loop, 5);
	assert_int_equal(raw.client.closed, 0);
	skip_time_ms(1000);
	TURN_UNTIL(raw.loop, raw.client.closed == 1);
	assert_string_equal(error_root(&raw.client.err), "context deadline exceeded");
	raw_destroy(&raw);
}

static void a_detached_close_runs_in_the_background_without_callbacks(void **state)
{
	(void)state;
	struct raw raw;
	char storage[200];

	raw_init(&raw);
	raw_accept(&raw, "");
	websocket_detach_and_close(raw.client.websocket, 1000, SLICE("normal exit"));
	raw.client.websocket = NULL;
	TURN_UNTIL(raw.loop, raw.host.peer.received.length > 0);
	assert_true(slice_equal(unmasked(&raw.host.peer, storage), SLICE("\x03\xe8normal exit")));
	turn_for(raw.loop, 10);
	assert_int_equal(raw.host.peer.closed, 0); /* it waits for the answer */
	peer_write(&raw.host.peer, SLICE("\x81\x04late\x88\x02\x03\xe8"));
	TURN_UNTIL(raw.loop, raw.host.peer.closed == 1);
	assert_int_equal(raw.client.closed + raw.client.messages, 0);
	raw_destroy(&raw);

	/* Without an answer it ends by itself. */
	raw_init(&raw);
	raw_accept(&raw, "");
	websocket_detach_and_close(raw.client.websocket, 1000, SLICE("normal exit"));
	raw.client.websocket = NULL;
	TURN_UNTIL(raw.loop, raw.host.peer.received.length > 0);
	turn_for(raw.loop, 5);
	skip_time_ms(WEBSOCKET_CLOSE_REPLY_TIMEOUT_MS);
	TURN_UNTIL(raw.loop, raw.host.peer.closed == 1);
	assert_int_equal(raw.client.closed, 0);
	raw_destroy(&raw);

	/* The loop may go before: nothing is left behind (the sanitizers watch). */
	raw_init(&raw);
	raw_accept(&raw, "");
	websocket_detach_and_close(raw.client.websocket, 1000, SLICE("normal exit"));
	raw.client.websocket = NULL;
	raw_destroy(&raw);
}

static void an_abort_sends_no_close_frame_but_what_was_queued(void **state)
{
	(void)state;
	struct pair pair;

	pair_connect(&pair);
	end_send(&pair.server, "the last word");
	websocket_abort(pair.server.websocket);
	pair.server.websocket = NULL;
	TURN_UNTIL(pair.loop, pair.client.closed == 1);
	assert_true(end_has(&pair.client, "the last word\n"));
	assert_int_equal(pair.client.code, 1006);
	assert_string_equal(error_root(&pair.client.err), "EOF");
	assert_int_equal(pair.server.closed, 0);
	pair_destroy(&pair);
}

static void a_broken_connection_is_told(void **state)
{
	(void)state;
	for (int reset = 0; reset < 2; reset++) {
		struct raw raw;

		raw_init(&raw);
		raw_accept(&raw, "");
		if (reset)
			stream_abort(raw.host.peer.stream);
		else
			stream_close(raw.host.peer.stream);
		raw.host.peer.stream = NULL;
		TURN_UNTIL(raw.loop, raw.client.closed == 1);
		assert_int_equal(raw.client.code, 1006);
		assert_string_equal(raw.client.reason, "");
		assert_string_equal(error_root(&raw.client.err), reset ? "connection reset by peer" : "EOF");
		raw_destroy(&raw);
	}
}

/* ---- a hostile server ---- */

static void faults_of_the_peer_close_with_their_codes(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t length;
		int code;
	} CASES[] = {
#define BYTES(text) text, sizeof(text) - 1
		{ BYTES("\xc1\x01x"), 1002 },
		{ BYTES("\x83\x01x"), 1002 },
		{ BYTES("\x81\x81mask"), 1002 },
		{ BYTES("\x09\x01x"), 1002 },
		{ BYTES("\x89\x7e\x01\x00"), 1002 },
		{ BYTES("\x80\x01x"), 1002 },
		{ BYTES("\x88\x01x"), 1002 },
		{ BYTES("\x88\x02\x03\xed"), 1002 },
		{ BYTES("\x81\x01\xff"), 1007 },
		{ BYTES("\x01\x02\xc3\xa9\x80\x01\x80"), 1007 },
		{ BYTES("\x82\x7f\0\0\0\0\0\x01\0\0"), 1009 },
#undef BYTES
	};

	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct raw raw;
		char storage[200];

		raw_init(&raw);
		raw_accept(&raw, "");
		peer_write(&raw.host.peer, slice_from(CASES[i].bytes, CASES[i].length));
		TURN_UNTIL(raw.loop, raw.client.closed == 1 && raw.host.peer.closed == 1);
		assert_int_equal(raw.client.code, CASES[i].code);
		assert_false(raw.client.clean);
		assert_string_equal(error_root(&raw.client.err), raw.client.reason);

		struct slice close = unmasked(&raw.host.peer, storage);

		assert_int_equal(raw.host.peer.received.data[0], (char)0x88);
		assert_int_equal((unsigned char)close.data[0] << 8 | (unsigned char)close.data[1], CASES[i].code);
		assert_true(slice_equal_text(slice_from_offset(close, 2), raw.client.reason));
		raw_destroy(&raw);
	}
}

static void pings_are_answered(void **state)
{
	(void)state;
	struct raw raw;
	char storage[200];

	raw_init(&raw);
	raw_accept(&raw, "");
	peer_write(&raw.host.peer, SLICE("\x89\x05hello"));
	TURN_UNTIL(raw.loop, raw.host.peer.received.length == 11);
	assert_int_equal(raw.host.peer.received.data[0], (char)0x8a);
	assert_true(slice_equal(unmasked(&raw.host.peer, storage), SLICE("hello")));
	raw_destroy(&raw);
}

static void masks_are_random(void **state)
{
	(void)state;
	struct raw raw;
	char first[4];

	raw_init(&raw);
	raw_accept(&raw, "");
	end_send(&raw.client, "a");
	TURN_UNTIL(raw.loop, raw.host.peer.received.length == 7);
	memcpy(first, raw.host.peer.received.data + 2, 4);
	buffer_clear(&raw.host.peer.received);
	end_send(&raw.client, "a");
	TURN_UNTIL(raw.loop, raw.host.peer.received.length == 7);
	assert_memory_not_equal(first, raw.host.peer.received.data + 2, 4);
	raw_destroy(&raw);
}

/* ---- the handshake ---- */

static void the_request_is_as_the_agents_must_be(void **state)
{
	(void)state;
	struct raw raw;
	char text[400];
	struct slice key;

	raw_init(&raw);
	key = request_key(&raw);
	snprintf(text, sizeof text,
	         "GET /monitor HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	         "Sec-WebSocket-Version: 13\r\n"
	         "Sec-WebSocket-Key: %.*s\r\n\r\n",
	         raw.host.address.port, SLICE_ARGS(key));
	assert_true(slice_equal_text(buffer_slice(&raw.host.peer.received), text));
	assert_true(slice_equal(slice_from_offset(key, 22), SLICE("==")));
	raw_destroy(&raw);
}

static void the_accept_value_of_the_rfc_comes_out(void **state)
{
	(void)state;
	char accept[WEBSOCKET_ACCEPT_BYTES];
	char key[WEBSOCKET_KEY_BYTES];

	websocket_make_accept(SLICE("dGhlIHNhbXBsZSBub25jZQ=="), accept); /* RFC 6455 section 1.3 */
	assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	websocket_make_key((const unsigned char *)"the sample nonce", key);
	assert_string_equal(key, "dGhlIHNhbXBsZSBub25jZQ==");
}

/* ACCEPT stands for the right value. */
static void wrong_answers_to_the_handshake_are_refused(void **state)
{
	(void)state;
#define START "HTTP/1.1 101 Switching Protocols\r\n"
#define UPGRADE "Upgrade: websocket\r\n"
#define CONNECTION "Connection: Upgrade\r\n"
#define ACCEPT "Sec-WebSocket-Accept: ACCEPT\r\n"
	static const char *const CASES[][2] = {
		{ "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "status is 404, not 101" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", "status is 200, not 101" },
		{ START CONNECTION ACCEPT "\r\n", "Upgrade header doesn't have \"websocket\"" },
		{ START "Upgrade: h2c\r\n" CONNECTION ACCEPT "\r\n", "Upgrade header doesn't have \"websocket\"" },
		{ START UPGRADE ACCEPT "\r\n", "Connection header doesn't have \"upgrade\"" },
		{ START UPGRADE "Connection: close\r\n" ACCEPT "\r\n", "Connection header doesn't have \"upgrade\"" },
		{ START UPGRADE CONNECTION "\r\n", "Sec-WebSocket-Accept doesn't match the key" },
		{ START UPGRADE CONNECTION "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
		  "Sec-WebSocket-Accept doesn't match the key" },
		{ START UPGRADE CONNECTION ACCEPT ACCEPT "\r\n", "Sec-WebSocket-Accept doesn't match the key" },
		{ START UPGRADE CONNECTION ACCEPT "Sec-WebSocket-Protocol: chat\r\n\r\n",
		  "Sec-WebSocket-Protocol was not asked for" },
		{ START UPGRADE CONNECTION ACCEPT "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
		  "Sec-WebSocket-Extensions was not asked for" },
		{ "SSH-2.0-OpenSSH\r\n", "Expected HTTP/, RTSP/ or ICE/" },
		{ "", "EOF" },
		{ "HTTP/1.1 101", "unexpected EOF" },
	};
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct raw raw;
		char accept[WEBSOCKET_ACCEPT_BYTES];
		char answer[500] = "";

		raw_init(&raw);
		websocket_make_accept(request_key(&raw), accept);
		for (const char *rest = CASES[i][0]; *rest != '\0';) {
			const char *mark = strstr(rest, "ACCEPT");
			int length = mark != NULL ? (int)(mark - rest) : (int)strlen(rest);

			snprintf(answer + strlen(answer), sizeof answer - strlen(answer), "%.*s%s", length, rest,
			         mark != NULL ? accept : "");
			rest += length + (mark != NULL ? 6 : 0);
		}
		peer_write(&raw.host.peer, slice_of(answer));
		if (strstr(CASES[i][1], "EOF") != NULL) {
			stream_finish(raw.host.peer.stream, NS_PER_S);
			raw.host.peer.stream = NULL;
		}
		TURN_UNTIL(raw.loop, raw.client.closed == 1);
		if (strcmp(error_root(&raw.client.err), CASES[i][1]) != 0)
			fail_msg("%s: %s", CASES[i][1], raw.client.err.text);
		assert_int_equal(raw.client.opened, 0);
		assert_int_equal(raw.client.code, 1006);
		TURN_UNTIL(raw.loop, raw.host.peer.stream == NULL);
		raw_destroy(&raw);
	}
}

static void a_handshake_that_takes_too_long_or_is_refused_is_told(void **state)
{
	(void)state;
	struct raw raw;
	struct websocket_end late;

	raw_init(&raw);
	peer_write(&raw.host.peer, SLICE("HTTP/1.1 101 Switching"));
	turn_for(raw.loop, 5);
	assert_int_equal(raw.client.closed, 0);
	skip_time_ms(4000);
	TURN_UNTIL(raw.loop, raw.client.closed == 1 && raw.host.peer.closed == 1);
	assert_string_equal(error_root(&raw.client.err), "context deadline exceeded");
	assert_int_equal(raw.client.err.code, ERROR_TIMEOUT);

	stream_listener_close(raw.host.listener);
	raw.host.listener = NULL;
	end_init(&late);
	end_connect(&late, raw.loop, raw.host.address.port);
	assert_int_equal(late.closed, 0);
	TURN_UNTIL(raw.loop, late.closed == 1);
	assert_string_equal(error_root(&late.err), "connection refused");
	end_destroy(&late);
	raw_destroy(&raw);
}

static void the_handshakes_deadline_ends_with_it(void **state)
{
	(void)state;
	struct raw raw;

	raw_init(&raw);
	raw_accept(&raw, "");
	skip_time_ms(60000);
	turn_for(raw.loop, 10);
	assert_int_equal(raw.client.closed, 0); /* nor is there any other without a close under way */
	raw_destroy(&raw);
}

static void what_cant_be_sent_in_a_request_is_refused(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct websocket_connect_options options = end_options(1);
	struct error err;

	options.path = "/a\r\nX: y";
	assert_null(websocket_connect(loop, &options, &END_HANDLER, NULL, &err));
	options.path = "monitor";
	assert_null(websocket_connect(loop, &options, &END_HANDLER, NULL, &err));
	options.path = "/";
	options.user_agent = "a\nb";
	assert_null(websocket_connect(loop, &options, &END_HANDLER, NULL, &err));
	options.user_agent = NULL;
	options.stream.host = "10.0.0.5/x?"; /* nor is such a name looked up */
	assert_null(websocket_connect(loop, &options, &END_HANDLER, NULL, &err));
	assert_int_equal(err.code, ERROR_SYNTAX);
	loop_destroy(loop);
}

static void wrong_requests_are_left_to_the_handler(void **state)
{
	(void)state;
#define GET "GET /monitor HTTP/1.1\r\nHost: x\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define CLOSE "Connection: close\r\n\r\n"
	static const char *const CASES[][2] = {
		{ GET UPGRADE VERSION KEY CLOSE, "Connection header doesn't have \"upgrade\"" },
		{ GET CONNECTION VERSION KEY CLOSE, "Upgrade header doesn't have \"websocket\"" },
		{ GET CONNECTION UPGRADE KEY CLOSE, "Sec-WebSocket-Version is not 13" },
		{ GET CONNECTION UPGRADE "Sec-WebSocket-Version: 8\r\n" KEY CLOSE, "Sec-WebSocket-Version is not 13" },
		{ GET CONNECTION UPGRADE VERSION CLOSE, "Sec-WebSocket-Key is not base64 of 16 bytes" },
		{ GET CONNECTION UPGRADE VERSION "Sec-WebSocket-Key: short\r\n" CLOSE,
		  "Sec-WebSocket-Key is not base64 of 16 bytes" },
		{ GET CONNECTION UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ!=\r\n" CLOSE,
		  "Sec-WebSocket-Key is not base64 of 16 bytes" },
		{ GET CONNECTION UPGRADE VERSION KEY KEY CLOSE, "Sec-WebSocket-Key is not base64 of 16 bytes" },
		{ "POST /monitor HTTP/1.1\r\nHost: x\r\n" CONNECTION UPGRADE VERSION KEY CLOSE, "method is not GET" },
		{ "GET /monitor HTTP/1.0\r\n" CONNECTION UPGRADE VERSION KEY "\r\n", "HTTP/1.0 can't be upgraded" },
	};
	struct pair pair;

	pair_init(&pair);
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct peer peer;

		ask_and_close(&peer, &pair.site, slice_of(CASES[i][0]));
		assert_true(received(&peer, "HTTP/1.1 400 Bad Request\r\n"));
		if (!received_at_end(&peer, CASES[i][1]))
			fail_msg("%s: %.*s", CASES[i][1], (int)peer.received.length, peer.received.data);
		assert_null(pair.server.websocket);
		peer_destroy(&peer);
	}
	pair_destroy(&pair);
}

static void frames_right_behind_the_handshake_count(void **state)
{
	(void)state;
	struct raw raw;
	struct pair pair;
	struct peer peer;

	raw_init(&raw);
	raw_accept(&raw, "\x81\x05hello\x81\x03you");
	TURN_UNTIL(raw.loop, raw.client.messages == 2);
	assert_true(end_has(&raw.client, "hello\nyou\n"));
	raw_destroy(&raw);

	pair_init(&pair);
	peer_connect_site(&peer, &pair.site);
	peer_write(&peer, SLICE(GET CONNECTION UPGRADE VERSION KEY
	                        "\r\n\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58\x81\x85\x37\xfa\x21"));
	TURN_UNTIL(pair.loop, pair.server.messages == 1 && received_at_end(&peer, "\r\n\r\n"));
	assert_true(received(&peer, "\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
	                            "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"));
	peer_write(&peer, SLICE("\x3d\x7f\x9f\x4d\x51\x58"));
	TURN_UNTIL(pair.loop, pair.server.messages == 2);
	assert_true(end_has(&pair.server, "Hello\nHello\n"));
	peer_destroy(&peer);
	TURN_UNTIL(pair.loop, pair.server.closed == 1);
	pair_destroy(&pair);
}

static void frames_behind_the_handshake_keep_their_order(void **state)
{
	(void)state;
	enum { COUNT = 5000 }; /* several reads, of which the first has the request */
	struct pair pair;
	struct peer peer;
	struct buffer frames, expected;

	buffer_init(&frames, 1 << 20);
	buffer_init(&expected, 1 << 20);
	buffer_append_text(&frames, GET CONNECTION UPGRADE VERSION KEY "\r\n");
	for (int i = 0; i < COUNT; i++) {
		buffer_append(&frames, "\x81\x84\0\0\0\0", 6);
		buffer_append_format(&frames, "%04d", i);
		buffer_append_format(&expected, "%04d\n", i);
	}
	pair_init(&pair);
	peer_connect_site(&peer, &pair.site);
	peer_write(&peer, buffer_slice(&frames));
	TURN_UNTIL(pair.loop, pair.server.messages == COUNT);
	assert_true(slice_equal(buffer_slice(&pair.server.text), buffer_slice(&expected)));
	buffer_destroy(&frames);
	buffer_destroy(&expected);
	peer_destroy(&peer);
	TURN_UNTIL(pair.loop, pair.server.closed == 1);
	pair_destroy(&pair);
}

/* ---- inside callbacks ---- */

static void abort_it(struct websocket_end *end)
{
	if (end->websocket != NULL)
		websocket_abort(end->websocket);
	end->websocket = NULL;
}

static void detach_it(struct websocket_end *end)
{
	if (end->websocket != NULL)
		websocket_detach_and_close(end->websocket, 1000, SLICE("bye"));
	end->websocket = NULL;
}

static void close_it(struct websocket_end *end)
{
	if (end->websocket != NULL)
		websocket_close(end->websocket, 1000, SLICE("bye"));
}

static void every_way_to_end_it_is_fine_inside_every_callback(void **state)
{
	(void)state;
	static void (*const WAYS[])(struct websocket_end * end) = { abort_it, detach_it, close_it };

	for (size_t way = 0; way < 3; way++)
		for (int callback = 0; callback < 2; callback++) {
			struct raw raw;

			raw_init(&raw);
			if (callback == 0)
				raw.client.in_open = WAYS[way];
			else
				raw.client.in_message = WAYS[way];
			raw_accept(&raw, "\x81\x05hello\x81\x03you\x89\x01p");
			TURN_UNTIL(raw.loop, raw.client.messages == (callback == 0 ? 0 : 1));
			turn_for(raw.loop, 5);
			assert_int_equal(raw.client.messages, callback == 0 ? 0 : 1);
			assert_int_equal(raw.client.closed, 0);
			if (raw.host.peer.stream != NULL)
				peer_write(&raw.host.peer, SLICE("\x88\x02\x03\xe8"));
			TURN_UNTIL(raw.loop, raw.host.peer.closed == 1);
			assert_int_equal(raw.client.closed, way == 2 ? 1 : 0);
			raw_destroy(&raw);
		}
}

static void ending_it_before_it_is_open_is_fine(void **state)
{
	(void)state;
	struct raw raw;

	raw_init(&raw);
	websocket_close(raw.client.websocket, 1000, SLICE("bye"));
	assert_int_equal(raw.client.closed, 0);
	TURN_UNTIL(raw.loop, raw.client.closed == 1 && raw.host.peer.closed == 1);
	assert_int_equal(raw.client.code, 1006);
	assert_string_equal(error_root(&raw.client.err), "context canceled");
	raw_destroy(&raw);

	raw_init(&raw);
	detach_it(&raw.client);
	TURN_UNTIL(raw.loop, raw.host.peer.closed == 1);
	assert_int_equal(raw.client.closed, 0);
	raw_destroy(&raw);

	raw_init(&raw);
	abort_it(&raw.client);
	TURN_UNTIL(raw.loop, raw.host.peer.closed == 1);
	assert_int_equal(raw.client.closed, 0);
	raw_destroy(&raw);
}

/* ---- memory ---- */

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd; /* zero under the sanitizers, which look for leaks themselves */
}

static void thousands_of_reconnects_leave_memory_and_descriptors_flat(void **state)
{
	(void)state;
	enum { RECONNECTS = 10000, WARM = 100 };
	struct pair pair;
	size_t descriptors = 0;
	size_t heap = 0;

	pair_init(&pair);
	pair.server.echoes = true;
	for (int i = 0; i < RECONNECTS; i++) {
		unsigned closed = pair.server.closed;

		end_destroy(&pair.client);
		end_init(&pair.client);
		end_connect(&pair.client, pair.loop, pair.site.address.port);
		TURN_UNTIL(pair.loop, pair.client.opened == 1);
		end_send(&pair.client, "hello");
		TURN_UNTIL(pair.loop, pair.client.messages == 1);
		buffer_release(&pair.server.text);
		switch (i % 3) {
		case 0:
			websocket_close(pair.client.websocket, 1000, SLICE("normal exit"));
			TURN_UNTIL(pair.loop, pair.client.closed == 1 && pair.server.closed > closed);
			break;
		case 1:
			detach_it(&pair.client);
			TURN_UNTIL(pair.loop, pair.server.closed > closed);
			break;
		default:
			abort_it(&pair.server);
			TURN_UNTIL(pair.loop, pair.client.closed == 1);
			break;
		}
		if (i == WARM) {
			turn_for(pair.loop, 5);
			descriptors = open_descriptors();
			heap = heap_bytes();
		}
	}
	turn_for(pair.loop, 5);
	assert_int_equal(pair.site.requests, RECONNECTS);
	assert_in_range(open_descriptors(), 0, descriptors);
	assert_in_range(heap_bytes(), 0, heap + 1024);
	pair_destroy(&pair);
}

static void every_failing_allocation_is_survived(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	size_t descriptors = open_descriptors();
	unsigned complete = 0;
	bool failed = true;

	for (unsigned long n = 1; failed; n++) {
		struct pair pair = { .loop = loop };
		struct websocket_connect_options options;
		struct error err;

		site_init(&pair.site, loop);
		pair.site.on_request = accept_websocket;
		end_init(&pair.client);
		end_init(&pair.server);
		server = &pair.server;
		pair.server.echoes = true;
		options = end_options(pair.site.address.port);
		memory_fail_at(n);
		pair.client.websocket = websocket_connect(loop, &options, &END_HANDLER, &pair.client, &err);
		for (int i = 0; i < 300 && pair.client.websocket != NULL && pair.client.messages == 0; i++) {
			if (pair.client.opened == 1 && i % 2 == 0)
				(void)websocket_send(pair.client.websocket, SLICE("hello"), true, &err);
			turn_for(loop, 1);
		}
		complete += pair.client.messages > 0;
		if (pair.client.websocket != NULL)
			websocket_close(pair.client.websocket, 1000, SLICE("normal exit"));
		for (int i = 0; i < 300 && pair.client.websocket != NULL; i++)
			turn_for(loop, 1);
		assert_null(pair.client.websocket);
		failed = memory_allocation_count() >= n;
		memory_fail_at(0);
		end_destroy(&pair.client);
		end_destroy(&pair.server);
		site_destroy(&pair.site);
		for (int i = 0; i < 100 && open_descriptors() != descriptors; i++)
			turn_for(loop, 1);
		assert_int_equal(open_descriptors(), descriptors);
	}
	assert_true(complete > 0);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_go_both_ways),
		cmocka_unit_test(a_message_as_long_as_allowed_passes_and_a_longer_one_closes),
		cmocka_unit_test(a_sender_that_isnt_read_hits_the_write_limit),
		cmocka_unit_test(either_side_may_close),
		cmocka_unit_test(both_sides_may_close_at_once),
		cmocka_unit_test(after_a_close_nothing_can_be_sent_and_messages_are_dropped),
		cmocka_unit_test(a_peer_that_doesnt_answer_a_close_is_left_after_five_seconds),
		cmocka_unit_test(a_close_frame_that_cant_be_written_is_given_up_after_five_seconds),
		cmocka_unit_test(the_peers_five_seconds_begin_when_the_close_frame_has_left),
		cmocka_unit_test(a_detached_close_runs_in_the_background_without_callbacks),
		cmocka_unit_test(an_abort_sends_no_close_frame_but_what_was_queued),
		cmocka_unit_test(a_broken_connection_is_told),
		cmocka_unit_test(faults_of_the_peer_close_with_their_codes),
		cmocka_unit_test(pings_are_answered),
		cmocka_unit_test(masks_are_random),
		cmocka_unit_test(the_request_is_as_the_agents_must_be),
		cmocka_unit_test(the_accept_value_of_the_rfc_comes_out),
		cmocka_unit_test(wrong_answers_to_the_handshake_are_refused),
		cmocka_unit_test(a_handshake_that_takes_too_long_or_is_refused_is_told),
		cmocka_unit_test(the_handshakes_deadline_ends_with_it),
		cmocka_unit_test(what_cant_be_sent_in_a_request_is_refused),
		cmocka_unit_test(wrong_requests_are_left_to_the_handler),
		cmocka_unit_test(frames_right_behind_the_handshake_count),
		cmocka_unit_test(frames_behind_the_handshake_keep_their_order),
		cmocka_unit_test(every_way_to_end_it_is_fine_inside_every_callback),
		cmocka_unit_test(ending_it_before_it_is_open_is_fine),
		cmocka_unit_test(thousands_of_reconnects_leave_memory_and_descriptors_flat),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
