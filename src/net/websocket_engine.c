/*
 * Reading goes frame by frame: header bytes gather until the header is complete and checked, then payload is unmasked
 * on its way into the message (or into `control`, which may come between a message's fragments), then the frame's end
 * is acted upon. Any cut between two reads falls into one of these states, so none of them needs more input than there
 * is.
 */
#include "net/websocket_engine.h"

#include <stdio.h>
#include <string.h>

enum opcode {
	OPCODE_CONTINUATION = 0,
	OPCODE_TEXT = 1,
	OPCODE_BINARY = 2,
	OPCODE_CLOSE = 8,
	OPCODE_PING = 9,
	OPCODE_PONG = 10
};

enum {
	FINAL_BIT = 0x80,
	RESERVED_BITS = 0x70,
	OPCODE_BITS = 0x0f,
	CONTROL_BIT = 0x08,
	MASK_BIT = 0x80,
	LENGTH_BITS = 0x7f,
	LENGTH_16 = 126, /* the next two bytes have it */
	LENGTH_64 = 127, /* the next eight bytes have it */
};

void websocket_engine_init(struct websocket_engine *engine, enum websocket_role role, size_t max_message_bytes,
                           bool (*random)(void *context, void *data, size_t length), void *random_context)
{
	*engine = (struct websocket_engine){
		.role = role,
		.max_message_bytes = max_message_bytes,
		.random = random,
		.random_context = random_context,
	};
	buffer_init(&engine->output, SIZE_MAX); /* its owner bounds what may wait to be sent */
	buffer_init(&engine->message, max_message_bytes);
}

void websocket_engine_destroy(struct websocket_engine *engine)
{
	buffer_destroy(&engine->output);
	buffer_destroy(&engine->message);
}

bool websocket_code_is_valid(int code)
{
	if (code >= 3000 && code < 5000)
		return true;
	return code >= 1000 && code <= 1014 && code != 1004 && code != WEBSOCKET_NO_STATUS &&
	       code != WEBSOCKET_ABNORMAL;
}

/* ---- UTF-8 in pieces (RFC 3629 section 4) ---- */

/* Takes one byte that begins a character. */
static bool begin_character(struct websocket_utf8 *state, unsigned char byte)
{
	if (byte < 0x80)
		return true;
	if (byte < 0xc2 || byte > 0xf4)
		return false;
	*state = (struct websocket_utf8){ .needed = byte < 0xe0   ? 1
		                                    : byte < 0xf0 ? 2
		                                                  : 3,
		                          .least = 0x80,
		                          .most = 0xbf };
	if (byte == 0xe0)
		state->least = 0xa0; /* overlong below */
	else if (byte == 0xed)
		state->most = 0x9f; /* surrogates above */
	else if (byte == 0xf0)
		state->least = 0x90; /* overlong below */
	else if (byte == 0xf4)
		state->most = 0x8f; /* over U+10FFFF above */
	return true;
}

static bool check_utf8(struct websocket_utf8 *state, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (state->needed == 0) {
			if (!begin_character(state, byte))
				return false;
			continue;
		}
		if (byte < state->least || byte > state->most)
			return false;
		state->needed--;
		state->least = 0x80;
		state->most = 0xbf;
	}
	return true;
}

/* ---- sending ---- */

static size_t put_header(const struct websocket_engine *engine, enum opcode opcode, size_t length,
                         unsigned char header[WEBSOCKET_HEADER_BYTES])
{
	unsigned char mask_bit = engine->role == WEBSOCKET_CLIENT ? MASK_BIT : 0;
	unsigned length_bytes = length < LENGTH_16 ? 0 : length <= UINT16_MAX ? 2 : 8;
	unsigned short_length = length_bytes == 0 ? (unsigned)length : length_bytes == 2 ? LENGTH_16 : LENGTH_64;

	header[0] = (unsigned char)(FINAL_BIT | opcode);
	header[1] = (unsigned char)(mask_bit | short_length);
	for (unsigned i = 0; i < length_bytes; i++)
		header[2 + i] = (unsigned char)((uint64_t)length >> (8 * (length_bytes - 1 - i)));
	return 2 + length_bytes;
}

static bool send_frame(struct websocket_engine *engine, enum opcode opcode, struct slice payload, struct error *err)
{
	unsigned char header[WEBSOCKET_HEADER_BYTES];
	unsigned char mask[4] = { 0 };
	size_t header_length = put_header(engine, opcode, payload.length, header);

	if (engine->role == WEBSOCKET_CLIENT) {
		if (!engine->random(engine->random_context, mask, sizeof mask))
			return error_set(err, ERROR_SYSTEM, "the system has no random bytes for a websocket mask");
		memcpy(header + header_length, mask, sizeof mask);
		header_length += sizeof mask;
	}

	char *room = payload.length < SIZE_MAX - header_length
	                     ? buffer_reserve(&engine->output, header_length + payload.length)
	                     : NULL;

	if (room == NULL) {
		engine->output.failed = false; /* what was queued before is whole */
		engine->output.no_memory = false;
		return error_set(err, ERROR_NO_MEMORY, "no memory for a websocket frame of %zu bytes", payload.length);
	}
	memcpy(room, header, header_length);
	for (size_t i = 0; i < payload.length; i++)
		room[header_length + i] = (char)(payload.data[i] ^ (char)mask[i % 4]);
	buffer_advance(&engine->output, header_length + payload.length);
	return true;
}

bool websocket_engine_send(struct websocket_engine *engine, struct slice message, bool is_text, struct error *err)
{
	if (engine->close_sent)
		return error_set(err, ERROR_CLOSED, "the websocket is closing");
	if (is_text && !slice_is_utf8(message))
		return error_set(err, ERROR_SYNTAX, "the text of a websocket message isn't UTF-8");
	return send_frame(engine, is_text ? OPCODE_TEXT : OPCODE_BINARY, message, err);
}

bool websocket_engine_ping(struct websocket_engine *engine, struct slice payload, struct error *err)
{
	if (engine->close_sent)
		return error_set(err, ERROR_CLOSED, "the websocket is closing");
	if (payload.length > WEBSOCKET_CONTROL_BYTES)
		return error_set(err, ERROR_LIMIT, "the payload of a ping is over %d bytes", WEBSOCKET_CONTROL_BYTES);
	return send_frame(engine, OPCODE_PING, payload, err);
}

/* What of the reason may be sent: whole characters of valid UTF-8, at most 123 bytes. */
static struct slice cut_reason(struct slice reason)
{
	size_t length = 0;
	uint32_t code_point;

	while (length < reason.length) {
		size_t next = slice_utf8_next(slice_from_offset(reason, length), &code_point);

		if (next == 0 || length + next > WEBSOCKET_REASON_BYTES)
			break;
		length += next;
	}
	return slice_from(reason.data, length);
}

bool websocket_engine_close(struct websocket_engine *engine, int code, struct slice reason, struct error *err)
{
	char payload[WEBSOCKET_CONTROL_BYTES];
	size_t length = 0;

	if (engine->close_sent)
		return true;
	if (websocket_code_is_valid(code)) {
		reason = cut_reason(reason);
		payload[0] = (char)(code >> 8);
		payload[1] = (char)(code & 0xff);
		if (reason.length > 0)
			memcpy(payload + 2, reason.data, reason.length);
		length = 2 + reason.length;
	}
	engine->close_sent = send_frame(engine, OPCODE_CLOSE, slice_from(payload, length), err);
	return engine->close_sent;
}

/* ---- reading ---- */

static enum websocket_event fault(struct websocket_engine *engine, struct websocket_details *details, int code,
                                  enum error_code error_code, const char *reason)
{
	struct error ignored; /* no memory for the close frame: the connection just ends */

	engine->over = true;
	buffer_release(&engine->message);
	websocket_engine_close(engine, code, slice_of(reason), &ignored);
	error_set(&details->err, error_code, "%s", reason);
	details->code = code;
	details->payload = slice_of(error_root(&details->err));
	return WEBSOCKET_EVENT_FAULT;
}

static enum websocket_event protocol_fault(struct websocket_engine *engine, struct websocket_details *details,
                                           const char *reason)
{
	return fault(engine, details, WEBSOCKET_PROTOCOL_ERROR, ERROR_SYNTAX, reason);
}

static enum websocket_event too_big(struct websocket_engine *engine, struct websocket_details *details)
{
	char reason[64];

	snprintf(reason, sizeof reason, "read limited at %zu bytes",
	         engine->max_message_bytes + 1); /* spec agent-runtime 11.3.2 */
	return fault(engine, details, WEBSOCKET_TOO_BIG, ERROR_LIMIT, reason);
}

static enum opcode frame_opcode(const struct websocket_engine *engine)
{
	return (enum opcode)(engine->header[0] & OPCODE_BITS);
}

static bool frame_is_final(const struct websocket_engine *engine)
{
	return (engine->header[0] & FINAL_BIT) != 0;
}

static bool frame_is_control(const struct websocket_engine *engine)
{
	return (engine->header[0] & CONTROL_BIT) != 0;
}

/* How long the header is, as far as its first two bytes tell. */
static size_t header_needed(const struct websocket_engine *engine)
{
	if (engine->header_length < 2)
		return 2;

	unsigned short_length = engine->header[1] & LENGTH_BITS;
	size_t length_bytes = short_length == LENGTH_16 ? 2 : short_length == LENGTH_64 ? 8 : 0;

	return 2 + length_bytes + ((engine->header[1] & MASK_BIT) != 0 ? 4 : 0);
}

/* What is wrong with the first two bytes, or NULL. */
static const char *check_start(const struct websocket_engine *engine)
{
	enum opcode opcode = frame_opcode(engine);
	bool masked = (engine->header[1] & MASK_BIT) != 0;

	if ((engine->header[0] & RESERVED_BITS) != 0)
		return "reserved bits are set";
	if (opcode > OPCODE_PONG || (opcode > OPCODE_BINARY && opcode < OPCODE_CLOSE))
		return "unknown opcode";
	if (masked != (engine->role == WEBSOCKET_SERVER))
		return masked ? "frame from the server is masked" : "frame from the client isn't masked";
	if (frame_is_control(engine)) {
		if (!frame_is_final(engine))
			return "control frame is fragmented";
		if ((engine->header[1] & LENGTH_BITS) > WEBSOCKET_CONTROL_BYTES)
			return "control frame is over 125 bytes";
		return NULL;
	}
	if (opcode == OPCODE_CONTINUATION && !engine->in_message)
		return "continuation without a message";
	if (opcode != OPCODE_CONTINUATION && engine->in_message)
		return "new message inside a fragmented one";
	return NULL;
}

/* Reads the length out of a complete header; what is wrong with it, or NULL. */
static const char *read_length(struct websocket_engine *engine)
{
	unsigned short_length = engine->header[1] & LENGTH_BITS;
	size_t length_bytes = short_length == LENGTH_16 ? 2 : short_length == LENGTH_64 ? 8 : 0;
	uint64_t length = length_bytes == 0 ? short_length : 0;

	for (size_t i = 0; i < length_bytes; i++)
		length = length << 8 | engine->header[2 + i];
	if (length > INT64_MAX)
		return "length has its top bit set";
	if ((length_bytes == 2 && length < LENGTH_16) || (length_bytes == 8 && length <= UINT16_MAX))
		return "length isn't written in the shortest way";
	engine->payload_left = length;
	return NULL;
}

/*
 * The header is complete: checks what its first two bytes couldn't tell, and prepares for the payload. MORE: all is
 * well.
 */
static enum websocket_event begin_payload(struct websocket_engine *engine, struct websocket_details *details)
{
	const char *wrong = read_length(engine);

	if (wrong != NULL)
		return protocol_fault(engine, details, wrong);
	engine->mask_at = 0;
	if ((engine->header[1] & MASK_BIT) != 0)
		memcpy(engine->mask, engine->header + engine->header_length - 4, 4);
	engine->in_payload = true;
	engine->control_length = 0;
	if (frame_is_control(engine))
		return WEBSOCKET_EVENT_MORE;
	if (!engine->in_message) {
		engine->in_message = true;
		engine->is_text = frame_opcode(engine) == OPCODE_TEXT;
		engine->utf8 = (struct websocket_utf8){ 0 };
	}
	if (!engine->close_sent && engine->payload_left > engine->max_message_bytes - engine->message.length)
		return too_big(engine, details);
	return WEBSOCKET_EVENT_MORE;
}

/* Takes header bytes; MORE with in_payload set when the header is complete. */
static enum websocket_event take_header(struct websocket_engine *engine, struct slice *bytes,
                                        struct websocket_details *details)
{
	while (bytes->length > 0) {
		engine->header[engine->header_length++] = (unsigned char)bytes->data[0];
		*bytes = slice_from_offset(*bytes, 1);
		if (engine->header_length == 2) {
			const char *wrong = check_start(engine);

			if (wrong != NULL)
				return protocol_fault(engine, details, wrong);
		}
		if (engine->header_length >= 2 && engine->header_length == header_needed(engine))
			return begin_payload(engine, details);
	}
	return WEBSOCKET_EVENT_MORE;
}

static void unmask(struct websocket_engine *engine, char *data, size_t length)
{
	if (engine->role == WEBSOCKET_CLIENT)
		return;
	for (size_t i = 0; i < length; i++)
		data[i] = (char)(data[i] ^ (char)engine->mask[(engine->mask_at + i) % 4]);
	engine->mask_at = (unsigned char)((engine->mask_at + length) % 4);
}

/* Takes payload bytes of the frame at hand. */
static enum websocket_event take_payload(struct websocket_engine *engine, struct slice *bytes,
                                         struct websocket_details *details)
{
	size_t length = bytes->length < engine->payload_left ? bytes->length : (size_t)engine->payload_left;
	struct slice piece = slice_from(bytes->data, length);

	*bytes = slice_from_offset(*bytes, length);
	engine->payload_left -= length;
	if (frame_is_control(engine)) {
		memcpy(engine->control + engine->control_length, piece.data, length);
		unmask(engine, (char *)engine->control + engine->control_length, length);
		engine->control_length = (unsigned char)(engine->control_length + length);
		return WEBSOCKET_EVENT_MORE;
	}
	if (engine->close_sent)
		return WEBSOCKET_EVENT_MORE; /* nobody waits for it any more */

	char *room = buffer_reserve(&engine->message, length);

	if (room == NULL)
		return fault(engine, details, WEBSOCKET_INTERNAL_ERROR, ERROR_NO_MEMORY,
		             "no memory for a websocket message");
	memcpy(room, piece.data, length);
	unmask(engine, room, length);
	buffer_advance(&engine->message, length);
	if (engine->is_text && !check_utf8(&engine->utf8, room, length))
		return fault(engine, details, WEBSOCKET_INVALID_DATA, ERROR_SYNTAX, "text message isn't UTF-8");
	return WEBSOCKET_EVENT_MORE;
}

static enum websocket_event end_close(struct websocket_engine *engine, struct websocket_details *details)
{
	struct slice payload = slice_from(engine->control, engine->control_length);
	struct error ignored;

	details->code = WEBSOCKET_NO_STATUS;
	details->payload = (struct slice){ 0 };
	if (payload.length == 1)
		return protocol_fault(engine, details, "close frame has half a status code");
	if (payload.length >= 2) {
		details->code = engine->control[0] << 8 | engine->control[1];
		details->payload = slice_from_offset(payload, 2);
		if (!websocket_code_is_valid(details->code))
			return protocol_fault(engine, details, "close frame has an invalid status code");
		if (!slice_is_utf8(details->payload))
			return fault(engine, details, WEBSOCKET_INVALID_DATA, ERROR_SYNTAX, "close reason isn't UTF-8");
	}
	engine->over = true;
	buffer_release(&engine->message);
	if (!engine->close_sent)
		engine->close_sent = send_frame(engine, OPCODE_CLOSE, payload, &ignored);
	return WEBSOCKET_EVENT_CLOSE;
}

/* The frame is complete. */
static enum websocket_event end_frame(struct websocket_engine *engine, struct websocket_details *details)
{
	struct error ignored;

	engine->in_payload = false;
	engine->header_length = 0;
	switch (frame_opcode(engine)) {
	case OPCODE_CLOSE:
		return end_close(engine, details);
	case OPCODE_PING:
		/* Without memory the pong is left out; the peer will ask again. */
		if (!engine->close_sent)
			(void)send_frame(engine, OPCODE_PONG, slice_from(engine->control, engine->control_length),
			                 &ignored);
		return WEBSOCKET_EVENT_MORE;
	case OPCODE_PONG:
		return WEBSOCKET_EVENT_MORE;
	default:
		break;
	}
	if (!frame_is_final(engine))
		return WEBSOCKET_EVENT_MORE;
	engine->in_message = false;
	if (engine->close_sent)
		return WEBSOCKET_EVENT_MORE;
	if (engine->is_text && engine->utf8.needed > 0)
		return fault(engine, details, WEBSOCKET_INVALID_DATA, ERROR_SYNTAX, "text message isn't UTF-8");
	details->payload = buffer_slice(&engine->message);
	details->is_text = engine->is_text;
	engine->message_given = true;
	return WEBSOCKET_EVENT_MESSAGE;
}

enum websocket_event websocket_engine_next(struct websocket_engine *engine, struct slice *bytes,
                                           struct websocket_details *ret_details)
{
	if (engine->message_given) {
		engine->message_given = false;
		buffer_release(&engine->message);
	}
	while (!engine->over && bytes->length > 0) {
		enum websocket_event event;

		if (!engine->in_payload)
			event = take_header(engine, bytes, ret_details);
		else
			event = take_payload(engine, bytes, ret_details);
		if (event == WEBSOCKET_EVENT_MORE && engine->in_payload && engine->payload_left == 0)
			event = end_frame(engine, ret_details);
		if (event != WEBSOCKET_EVENT_MORE)
			return event;
	}
	if (engine->over)
		*bytes = slice_from_offset(*bytes, bytes->length);
	return WEBSOCKET_EVENT_MORE;
}
