/*
 * The public catalogue of WebSocket cases (tests/vectors/websocket/autobahn.txt), against a server and a client of ours
 * that echo; the other side is a raw stream which writes and reads frames by itself.
 */
#include "websocket_end.h"

#include <stdio.h>
#include <stdlib.h>

#include "http_vectors.h"
#include "net/websocket_handshake.h"
#include "tests/support/vector_file.h"

enum {
	LIMIT_BYTES = 4 * 1024 * 1024,
	WIRE_BYTES = 64 * 1024 * 1024,
	WRITE_BYTES = 1024 * 1024,
	WAIT_TURNS = 20000,
	OPCODE_CLOSE = 8,
	CASES = 300,
};

struct scene {
	struct loop *loop;
	bool ours_is_server;
	struct site site;         /* ours, as a server */
	struct host host;         /* the raw side, as a server */
	struct peer client;       /* the raw side, as a client */
	struct peer *raw;         /* one of the two */
	struct websocket_end end; /* ours */
	struct buffer wire;       /* what the raw side sends */
	size_t *cuts;             /* ends of frames in it */
	size_t cut_count;
	struct buffer expected; /* frames, as note_frame writes them */
	struct buffer seen;
	size_t read; /* of raw->received */
	const struct vector_row *row;
};

static bool running_as_server;
static struct websocket_end *accepted;

#define CHECK(scene, condition, ...)                                                               \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail_msg("case %s, ours is the %s: " __VA_ARGS__, (scene)->row->fields[0], \
			         (scene)->ours_is_server ? "server" : "client");                   \
	} while (0)

/* ---- frames ---- */

/* In a form to be compared: of a close frame the code alone. */
static void note_frame(struct buffer *log, unsigned opcode, struct slice payload)
{
	if (opcode == OPCODE_CLOSE && payload.length > 2)
		payload.length = 2;
	buffer_append_format(log, "%u,%zu:", opcode, payload.length);
	buffer_append_slice(log, payload);
	buffer_append_char(log, '\n');
}

/* Short ones in the ordinary form, whatever the opcode. */
static void append_frame(struct scene *scene, unsigned first, struct slice payload)
{
	static const unsigned char MASK[] = { 0x37, 0xfa, 0x21, 0x3d };
	unsigned masked = scene->ours_is_server ? 0x80 : 0;
	struct buffer *wire = &scene->wire;
	size_t length = payload.length;
	char *room;

	buffer_append_char(wire, (char)first);
	if (length < 126) {
		buffer_append_char(wire, (char)(masked | length));
	} else if (length < 65536) {
		buffer_append_char(wire, (char)(masked | 126));
		buffer_append_char(wire, (char)(length >> 8));
		buffer_append_char(wire, (char)length);
	} else {
		buffer_append_char(wire, (char)(masked | 127));
		for (int shift = 56; shift >= 0; shift -= 8)
			buffer_append_char(wire, (char)((uint64_t)length >> shift));
	}
	if (masked != 0)
		buffer_append(wire, MASK, sizeof MASK);
	room = length > 0 ? buffer_reserve(wire, length) : NULL;
	for (size_t i = 0; room != NULL && i < length; i++)
		room[i] = masked != 0 ? (char)(payload.data[i] ^ MASK[i % 4]) : payload.data[i];
	buffer_advance(wire, length);
	scene->cuts = memory_resize(scene->cuts, (scene->cut_count + 1) * sizeof *scene->cuts);
	assert_non_null(scene->cuts);
	scene->cuts[scene->cut_count++] = wire->length;
}

/* One frame as the file writes it. */
struct written_frame {
	unsigned opcode;
	bool more;
	unsigned reserved;
	size_t fragment_bytes; /* 0: whole */
	unsigned times;
	const char *payload;
};

static unsigned opcode_of(const char *text, size_t length)
{
	static const struct {
		const char *name;
		unsigned opcode;
	} NAMES[] = { { "cont", 0 }, { "text", 1 }, { "bin", 2 }, { "close", OPCODE_CLOSE },
		      { "ping", 9 }, { "pong", 10 } };
	unsigned long number;
	char *end;

	for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
		if (strlen(NAMES[i].name) == length && strncmp(text, NAMES[i].name, length) == 0)
			return NAMES[i].opcode;
	number = strtoul(text, &end, 10);
	assert_ptr_equal(end, text + length);
	assert_true(number < 16);
	return (unsigned)number;
}

static struct written_frame parse_frame(const char *text)
{
	struct written_frame frame = { .times = 1 };
	const char *colon = strchr(text, ':');
	const char *at;

	assert_non_null(colon);
	at = text + strcspn(text, "+/%@:");
	frame.opcode = opcode_of(text, (size_t)(at - text));
	while (at < colon) {
		char kind = *at++;
		unsigned long number = strtoul(at, NULL, 10); /* 0 behind a '+' */

		at += strspn(at, "0123456789");
		if (kind == '+')
			frame.more = true;
		else if (kind == '/')
			frame.reserved = (unsigned)number;
		else if (kind == '%')
			frame.fragment_bytes = number;
		else
			frame.times = (unsigned)number;
	}
	frame.payload = colon + 1;
	return frame;
}

static void add_sent(struct scene *scene, const struct written_frame *frame, struct slice payload)
{
	size_t step = frame->fragment_bytes > 0 ? frame->fragment_bytes : payload.length;
	unsigned opcode = frame->opcode;

	do {
		size_t length = payload.length < step ? payload.length : step;
		bool last = length == payload.length;
		unsigned first = opcode | frame->reserved << 4 | (last && !frame->more ? 0x80 : 0);

		append_frame(scene, first, slice_from(payload.data, length));
		payload = slice_from_offset(payload, length);
		opcode = 0;
	} while (payload.length > 0);
}

static void add_expected(struct scene *scene, const struct written_frame *frame, struct slice payload)
{
	char code[2];

	if (frame->opcode == OPCODE_CLOSE && payload.length > 0) {
		int number = atoi(frame->payload);

		code[0] = (char)(number >> 8);
		code[1] = (char)number;
		payload = slice_from(code, 2);
	}
	note_frame(&scene->expected, frame->opcode, payload);
}

static void walk_frames(struct scene *scene, const char *list,
                        void (*add)(struct scene *scene, const struct written_frame *frame, struct slice payload))
{
	char *copy = memory_copy_text(list, strlen(list));
	char *state;

	assert_non_null(copy);
	for (char *text = strtok_r(copy, " ", &state); text != NULL; text = strtok_r(NULL, " ", &state)) {
		struct written_frame frame;
		struct buffer payload;

		if (strcmp(text, "-") == 0)
			continue;
		frame = parse_frame(text);
		buffer_init(&payload, WIRE_BYTES);
		vector_append_bytes(&payload, frame.payload);
		for (unsigned i = 0; i < frame.times; i++)
			add(scene, &frame, buffer_slice(&payload));
		buffer_destroy(&payload);
	}
	memory_release(copy);
}

/* ---- reading what ours sends ---- */

/* One frame from the front of what the raw side has received; false if it isn't complete. */
static bool read_frame(struct scene *scene)
{
	const unsigned char *bytes = (unsigned char *)scene->raw->received.data + scene->read;
	size_t there = scene->raw->received.length - scene->read;
	bool masked = !scene->ours_is_server;
	size_t header = 2 + (masked ? 4U : 0U);
	uint64_t length;
	size_t extra;

	if (there < 2)
		return false;
	CHECK(scene, ((bytes[1] & 0x80) != 0) == masked, "masked the wrong way");
	CHECK(scene, (bytes[0] & 0xf0) == 0x80, "a fragment, or reserved bits");
	length = bytes[1] & 0x7f;
	extra = length == 126 ? 2 : length == 127 ? 8 : 0;
	header += extra;
	if (there < header)
		return false;
	for (size_t i = 0; i < extra; i++)
		length = (i == 0 ? 0 : length << 8) | bytes[2 + i];
	if (there - header < length)
		return false;
	for (size_t i = 0; masked && i < length; i++)
		scene->raw->received.data[scene->read + header + i] =
			(char)(bytes[header + i] ^ bytes[header - 4 + i % 4]);
	note_frame(&scene->seen, bytes[0] & 0x0f, slice_from(bytes + header, length));
	scene->read += header + length;
	return true;
}

static void turn_briefly(struct loop *loop, uint64_t ns)
{
	struct loop_timer timer = { 0 };
	struct error err;
	bool over = false;

	loop_timer_start(loop, &timer, ns, too_late, &over);
	assert_true(loop_turn(loop, &err));
	loop_timer_stop(loop, &timer);
}

static bool saw_all(struct scene *scene)
{
	while (read_frame(scene))
		;
	return scene->seen.length >= scene->expected.length;
}

static void wait_for_expected(struct scene *scene)
{
	int turns = 0;

	while (!saw_all(scene) && scene->raw->closed == 0 && turns++ < WAIT_TURNS)
		turn_briefly(scene->loop, NS_PER_MS);
	(void)saw_all(scene);
	CHECK(scene, slice_equal(buffer_slice(&scene->seen), buffer_slice(&scene->expected)),
	      "%zu bytes instead of %zu: \"%.200s\" instead of \"%.200s\"", scene->seen.length, scene->expected.length,
	      scene->seen.length > 0 ? scene->seen.data : "", scene->expected.length > 0 ? scene->expected.data : "");
}

/* ---- the two sides ---- */

static void accept_websocket(struct site *site, struct http_call *call)
{
	struct error err;

	accepted->websocket = websocket_accept(site->loop, call, LIMIT_BYTES, &END_HANDLER, accepted, &err);
	if (accepted->websocket == NULL)
		fail_msg("%s", err.text);
}

static bool ends_head(const struct peer *peer)
{
	const struct buffer *received = &peer->received;

	return received->length >= 4 && memcmp(received->data + received->length - 4, "\r\n\r\n", 4) == 0;
}

static void open_server(struct scene *scene)
{
	site_init(&scene->site, scene->loop);
	scene->site.on_request = accept_websocket;
	accepted = &scene->end;
	peer_connect_site(&scene->client, &scene->site);
	scene->raw = &scene->client;
	peer_write(scene->raw,
	           SLICE("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"));
	TURN_UNTIL(scene->loop, ends_head(scene->raw) && scene->end.websocket != NULL);
}

static void open_client(struct scene *scene)
{
	struct websocket_connect_options options;
	char accept[WEBSOCKET_ACCEPT_BYTES];
	char text[200];
	const char *key;
	struct error err;

	host_init(&scene->host, scene->loop, NULL);
	scene->raw = &scene->host.peer;
	options = end_options(scene->host.address.port);
	options.max_message_bytes = LIMIT_BYTES;
	scene->end.websocket = websocket_connect(scene->loop, &options, &END_HANDLER, &scene->end, &err);
	assert_non_null(scene->end.websocket);
	TURN_UNTIL(scene->loop, ends_head(scene->raw));
	key = memmem(scene->raw->received.data, scene->raw->received.length, "Sec-WebSocket-Key: ", 19);
	assert_non_null(key);
	websocket_make_accept(slice_from(key + 19, WEBSOCKET_KEY_BYTES - 1), accept);
	snprintf(text, sizeof text,
	         "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	         "Sec-WebSocket-Accept: %s\r\n\r\n",
	         accept);
	peer_write(scene->raw, slice_of(text));
	TURN_UNTIL(scene->loop, scene->end.opened == 1);
}

/* ---- a case ---- */

/* Ours may close while it is still being talked to. */
static void send_piece(struct scene *scene, struct slice piece)
{
	struct error err;

	if (scene->raw->stream == NULL)
		return;
	while (!stream_write(scene->raw->stream, piece, &err)) {
		CHECK(scene, err.code == ERROR_LIMIT, "%s", err.text);
		turn_briefly(scene->loop, NS_PER_MS);
		if (scene->raw->stream == NULL)
			return;
	}
}

static void send_wire(struct scene *scene)
{
	const char *how = scene->row->fields[1];
	size_t step = strcmp(how, "whole") == 0 ? WRITE_BYTES : (size_t)atoi(how);
	size_t at = 0;

	for (size_t cut = 0; at < scene->wire.length; cut++) {
		size_t end = strcmp(how, "frames") == 0 ? scene->cuts[cut] : at + step;

		if (end > scene->wire.length)
			end = scene->wire.length;
		send_piece(scene, slice_from(scene->wire.data + at, end - at));
		at = end;
		turn_briefly(scene->loop, 1);
	}
}

static bool expects_close(const struct scene *scene)
{
	const char *close = strstr(scene->row->fields[3], "close:");

	return close != NULL && (close == scene->row->fields[3] || close[-1] == ' ');
}

static void close_from_raw(struct scene *scene)
{
	static const struct written_frame CLOSE = { .opcode = OPCODE_CLOSE, .payload = "1000" };
	size_t before = scene->wire.length;

	append_frame(scene, 0x80 | OPCODE_CLOSE, SLICE("\x03\xe8"));
	send_piece(scene, slice_from_offset(buffer_slice(&scene->wire), before));
	add_expected(scene, &CLOSE, SLICE("1000"));
	wait_for_expected(scene);
}

static void check_end(struct scene *scene)
{
	const char *close = strstr(scene->row->fields[3], "close:");
	int code = close != NULL && close[6] != '\0' ? atoi(close + 6) : close != NULL ? WEBSOCKET_NO_STATUS : 1000;
	int turns = 0;

	/* A server ends the connection itself; a client waits for its server to do so (RFC 6455 7.1.1). */
	if (scene->ours_is_server) {
		while (scene->raw->closed == 0 && turns++ < WAIT_TURNS)
			turn_briefly(scene->loop, NS_PER_MS);
		CHECK(scene, scene->raw->closed == 1, "the connection stays open");
	} else if (scene->raw->stream != NULL) {
		stream_close(scene->raw->stream);
		scene->raw->stream = NULL;
	}
	while (scene->end.closed == 0 && turns++ < WAIT_TURNS)
		turn_briefly(scene->loop, NS_PER_MS);
	CHECK(scene, scene->end.closed == 1, "ours isn't told the end");
	CHECK(scene, scene->end.code == code, "ours is told %d instead of %d", scene->end.code, code);
}

static void run_case(const struct vector_row *row)
{
	struct scene *scene = memory_allocate(sizeof *scene);

	assert_int_equal(row->count, 4);
	assert_non_null(scene);
	scene->loop = new_loop();
	scene->row = row;
	scene->ours_is_server = running_as_server;
	end_init(&scene->end);
	scene->end.echoes = true;
	buffer_init(&scene->wire, WIRE_BYTES);
	buffer_init(&scene->expected, WIRE_BYTES);
	buffer_init(&scene->seen, WIRE_BYTES);
	walk_frames(scene, row->fields[2], add_sent);
	walk_frames(scene, row->fields[3], add_expected);
	assert_false(scene->wire.failed || scene->expected.failed);
	if (scene->ours_is_server)
		open_server(scene);
	else
		open_client(scene);
	buffer_clear(&scene->raw->received);
	send_wire(scene);
	wait_for_expected(scene);
	if (!expects_close(scene))
		close_from_raw(scene);
	check_end(scene);
	end_destroy(&scene->end);
	if (scene->ours_is_server) {
		peer_destroy(&scene->client);
		site_destroy(&scene->site);
	} else {
		host_destroy(&scene->host);
	}
	buffer_destroy(&scene->wire);
	buffer_destroy(&scene->expected);
	buffer_destroy(&scene->seen);
	memory_release(scene->cuts);
	loop_destroy(scene->loop);
	memory_release(scene);
}

static void our_server_passes_every_case(void **state)
{
	(void)state;
	running_as_server = true;
	assert_int_equal(vector_table_walk("vectors/websocket/autobahn.txt", run_case), CASES);
}

static void our_client_passes_every_case(void **state)
{
	(void)state;
	running_as_server = false;
	assert_int_equal(vector_table_walk("vectors/websocket/autobahn.txt", run_case), CASES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_server_passes_every_case),
		cmocka_unit_test(our_client_passes_every_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
