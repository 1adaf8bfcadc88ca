/*
 * Somebody between a TLS client and a TLS server of ours, who changes, adds, drops and cuts what goes by, as the input
 * says: the first byte chooses the version and whether the client shows a certificate; then come edits of EDIT_BYTES and
 * what they put in.
 *
 *   kind and side (1), offset in that side's bytes (2), length (1), bytes (length, unless it deletes)
 *
 * Checked: whatever is done, neither side ever reads anything but what the other wrote, from its beginning; where nothing
 * is done, all of it; a failure has a reason, and both sides come to an end. Randomness and time are simulated, so an input
 * always does the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "net/loop_sim.h"
#include "net/tls_ca.h"
#include "net/tls_connection.h"
#include "net/tls_internal.h"

enum {
	OLD_VERSION_BIT = 1,
	CLIENT_CERTIFICATE_BIT = 2,
	EDIT_BYTES = 4,
	EDITS = 16,
	PIPE_BYTES = 256 * 1024,
	TEXT_BYTES = 3000,
	CHUNK_BYTES = 512,
	STEPS = 400,
};

enum edit_kind { EDIT_XOR, EDIT_INSERT, EDIT_DELETE, EDIT_CUT };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* ---- what goes by ---- */

struct edit {
	enum edit_kind kind;
	unsigned side;
	size_t offset, length;
	struct slice bytes;
};

struct pipe {
	struct buffer bytes;
	size_t read;
	size_t passed; /* bytes written into it, before any edit */
	bool cut;
};

struct middle {
	struct edit edits[EDITS];
	size_t edit_count;
};

struct side {
	struct pipe *in, *out;
	const struct middle *middle;
	unsigned number; /* 0: the client */
	struct tls_connection *connection;
	bool open, over;
	size_t sent;
	struct buffer received;
};

static void read_edits(struct slice input, struct middle *middle)
{
	middle->edit_count = 0;
	while (middle->edit_count < EDITS && input.length >= EDIT_BYTES) {
		const uint8_t *bytes = (const uint8_t *)input.data;
		struct edit *edit = &middle->edits[middle->edit_count++];

		edit->kind = (enum edit_kind)(bytes[0] & 3);
		edit->side = bytes[0] >> 2 & 1;
		edit->offset = (size_t)bytes[1] << 8 | bytes[2];
		edit->length = bytes[3];
		input = slice_from_offset(input, EDIT_BYTES);
		edit->bytes = slice_from(input.data, 0);
		if (edit->kind == EDIT_XOR || edit->kind == EDIT_INSERT) {
			edit->bytes.length = edit->length < input.length ? edit->length : input.length;
			edit->length = edit->bytes.length;
			input = slice_from_offset(input, edit->length);
		}
	}
}

static void pass_byte(struct side *side, char byte)
{
	struct pipe *pipe = side->out;
	size_t offset = pipe->passed++;
	bool dropped = false;

	for (size_t i = 0; i < side->middle->edit_count; i++) {
		const struct edit *edit = &side->middle->edits[i];

		if (edit->side != side->number || offset < edit->offset)
			continue;
		if (edit->kind == EDIT_CUT)
			pipe->cut = true;
		else if (edit->kind == EDIT_INSERT && offset == edit->offset)
			buffer_append_slice(&pipe->bytes, edit->bytes);
		else if (edit->kind == EDIT_XOR && offset - edit->offset < edit->length)
			byte = (char)(byte ^ edit->bytes.data[offset - edit->offset]);
		else if (edit->kind == EDIT_DELETE && offset - edit->offset < edit->length)
			dropped = true;
	}
	if (!dropped && !pipe->cut)
		buffer_append_char(&pipe->bytes, byte);
}

static enum socket_result pipe_read(void *context, void *data, size_t size, size_t *ret_length, struct error *err)
{
	struct pipe *pipe = ((struct side *)context)->in;
	size_t length = pipe->bytes.length - pipe->read;

	(void)err;
	if (length == 0)
		return pipe->cut ? SOCKET_END : SOCKET_AGAIN;
	if (length > size)
		length = size;
	memcpy(data, pipe->bytes.data + pipe->read, length);
	pipe->read += length;
	*ret_length = length;
	return SOCKET_OK;
}

static enum socket_result pipe_write(void *context, const void *data, size_t length, size_t *ret_written,
                                     struct error *err)
{
	(void)err;
	for (size_t i = 0; i < length; i++)
		pass_byte(context, ((const char *)data)[i]);
	*ret_written = length;
	return SOCKET_OK;
}

/* ---- the two sides ---- */

static char text_of(unsigned side, size_t at)
{
	return (char)('A' + side * 32 + at % 23);
}

static void take_result(struct side *side, enum tls_result result, const struct error *err)
{
	if (result == TLS_FAILED)
		require(err->text[0] != '\0' && err->code != ERROR_NONE && err->code != ERROR_INVARIANT);
	if (result == TLS_FAILED || result == TLS_END)
		side->over = true;
}

static void receive(struct side *side)
{
	char chunk[CHUNK_BYTES];
	size_t length = 0;
	struct error err = { .code = ERROR_NONE };
	enum tls_result result = tls_connection_read(side->connection, chunk, sizeof chunk, &length, &err);

	if (result != TLS_OK) {
		take_result(side, result, &err);
		return;
	}
	require(length > 0 && length <= sizeof chunk && side->received.length + length <= TEXT_BYTES);
	for (size_t i = 0; i < length; i++)
		require(chunk[i] == text_of(1 - side->number, side->received.length + i));
	buffer_append(&side->received, chunk, length);
}

static void transmit(struct side *side)
{
	char text[TEXT_BYTES];
	size_t written = 0;
	struct error err = { .code = ERROR_NONE };
	enum tls_result result;

	if (side->over || side->sent == TEXT_BYTES)
		return;
	for (size_t i = 0; i < TEXT_BYTES; i++)
		text[i] = text_of(side->number, i);
	result = tls_connection_write(side->connection, text + side->sent,
	                              side->sent < 1000 ? 1000 - side->sent : TEXT_BYTES - side->sent, &written, &err);
	if (result == TLS_OK)
		side->sent += written;
	take_result(side, result, &err);
}

static void step(struct side *side)
{
	struct error err = { .code = ERROR_NONE };
	enum tls_result result;

	if (side->over)
		return;
	if (side->open) {
		receive(side);
		transmit(side);
		return;
	}
	result = tls_connection_handshake(side->connection, &err);
	side->open = result == TLS_OK;
	take_result(side, result, &err);
}

/* ---- settings ---- */

/* Made once; nothing of a run depends on how. */
struct identity {
	struct buffer ca, server_certificate, server_key, client_certificate, client_key;
};

static const struct address ADDRESS = { .bytes = { 10, 0, 0, 1 } };

static struct loop *new_loop(struct sim_world **ret_world)
{
	struct error err;
	struct loop *loop;

	*ret_world = sim_world_create(1, INT64_C(1700000000) * NS_PER_S, &err);
	require(*ret_world != NULL);
	loop = loop_sim_create(*ret_world, "both", &ADDRESS, &err);
	require(loop != NULL);
	return loop;
}

static void make_identity(struct identity *identity)
{
	static const char *const NAMES[] = { "server.example" };
	const struct tls_ca_request server = { .common_name = "server", .names = NAMES, .name_count = 1 };
	const struct tls_ca_request client = { .common_name = "client", .names = NAMES, .name_count = 1 };
	struct sim_world *world;
	struct loop *loop = new_loop(&world);
	struct error err;
	struct tls_ca *ca = tls_ca_create(loop, "authority", &err);

	require(ca != NULL);
	buffer_init(&identity->ca, PIPE_BYTES);
	buffer_append_slice(&identity->ca, tls_ca_certificate_pem(ca));
	require(tls_ca_issue(ca, &server, &identity->server_certificate, &identity->server_key, &err));
	require(tls_ca_issue(ca, &client, &identity->client_certificate, &identity->client_key, &err));
	tls_ca_destroy(ca);
	loop_destroy(loop);
	sim_world_destroy(world);
}

static struct tls_settings *client_settings(struct loop *loop, const struct identity *identity, uint8_t choice)
{
	bool shows = (choice & CLIENT_CERTIFICATE_BIT) != 0;
	const struct tls_client_options options = {
		.ca_pem = buffer_slice(&identity->ca),
		.certificate_pem = shows ? buffer_slice(&identity->client_certificate) : SLICE(""),
		.key_pem = shows ? buffer_slice(&identity->client_key) : SLICE(""),
	};
	struct error err;
	struct tls_settings *settings = tls_client_settings_create(loop, &options, &err);

	require(settings != NULL);
	if ((choice & OLD_VERSION_BIT) != 0)
		tls_settings_limit_to_1_2(settings);
	return settings;
}

static struct tls_settings *server_settings(struct loop *loop, const struct identity *identity, uint8_t choice)
{
	const struct tls_server_options options = {
		.certificate_pem = buffer_slice(&identity->server_certificate),
		.key_pem = buffer_slice(&identity->server_key),
		.client_ca_pem = (choice & CLIENT_CERTIFICATE_BIT) != 0 ? buffer_slice(&identity->ca) : SLICE(""),
	};
	struct error err;
	struct tls_settings *settings = tls_server_settings_create(loop, &options, &err);

	require(settings != NULL);
	return settings;
}

/* Grows with everything that happens. */
static size_t progress(const struct side sides[2])
{
	size_t sum = 0;

	for (size_t i = 0; i < 2; i++)
		sum += sides[i].out->passed + sides[i].in->read + sides[i].received.length + sides[i].open +
		       sides[i].out->cut;
	return sum;
}

/* Until nothing moves any more. Whoever gives up ends its side. */
static void converse(struct side sides[2])
{
	size_t before;
	int steps = 0;

	do {
		before = progress(sides);
		for (size_t i = 0; i < 2; i++) {
			step(&sides[i]);
			sides[i].out->cut = sides[i].out->cut || sides[i].over;
		}
	} while (progress(sides) > before && ++steps < STEPS);
	require(steps < STEPS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct identity identity;
	struct middle middle;
	struct pipe pipes[2] = { 0 };
	struct side sides[2];
	struct tls_settings *settings[2];
	struct sim_world *world;
	struct loop *loop;
	struct error err;

	if (size == 0)
		return 0;
	if (identity.ca.data == NULL)
		make_identity(&identity);
	read_edits(slice_from(data + 1, size - 1), &middle);
	loop = new_loop(&world);
	settings[0] = client_settings(loop, &identity, data[0]);
	settings[1] = server_settings(loop, &identity, data[0]);
	for (unsigned i = 0; i < 2; i++) {
		buffer_init(&pipes[i].bytes, PIPE_BYTES);
		sides[i] = (struct side){ .in = &pipes[1 - i], .out = &pipes[i], .middle = &middle, .number = i };
		buffer_init(&sides[i].received, TEXT_BYTES);
	}
	const struct tls_transport transports[2] = { { pipe_read, pipe_write, &sides[0] },
		                                     { pipe_read, pipe_write, &sides[1] } };

	sides[0].connection = tls_connection_create_client(settings[0], "server.example", 443, &transports[0], &err);
	sides[1].connection = tls_connection_create_server(settings[1], &ADDRESS, &transports[1], &err);
	require(sides[0].connection != NULL && sides[1].connection != NULL);
	converse(sides);
	if (middle.edit_count == 0)
		require(sides[0].received.length == TEXT_BYTES && sides[1].received.length == TEXT_BYTES);
	for (unsigned i = 0; i < 2; i++) {
		tls_connection_destroy(sides[i].connection);
		tls_settings_release(settings[i]);
		buffer_destroy(&sides[i].received);
		buffer_destroy(&pipes[i].bytes);
	}
	loop_destroy(loop);
	sim_world_destroy(world);
	return 0;
}
