/*
 * Any bytes as frames from a peer. The first byte chooses our side and when we close ourselves; the rest is read whole
 * and in pieces, and must come out the same.
 */
#include <stdint.h>
#include <stdlib.h>

#include "net/websocket_engine.h"

enum { LIMIT_BYTES = 1000, SIDE_BIT = 1, CLOSE_BIT = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool no_mask(void *context, void *data, size_t length)
{
	(void)context;
	for (size_t i = 0; i < length; i++)
		((char *)data)[i] = 0;
	return true;
}

static void note_event(struct buffer *log, enum websocket_event event, const struct websocket_details *details)
{
	switch (event) {
	case WEBSOCKET_EVENT_MORE:
		return;
	case WEBSOCKET_EVENT_MESSAGE:
		require(details->payload.length <= LIMIT_BYTES);
		require(!details->is_text || slice_is_utf8(details->payload));
		break;
	case WEBSOCKET_EVENT_CLOSE:
		require(websocket_code_is_valid(details->code) ||
		        (details->code == WEBSOCKET_NO_STATUS && details->payload.length == 0));
		require(slice_is_utf8(details->payload) && details->payload.length <= WEBSOCKET_REASON_BYTES);
		break;
	case WEBSOCKET_EVENT_FAULT:
		require(details->code == WEBSOCKET_PROTOCOL_ERROR || details->code == WEBSOCKET_INVALID_DATA ||
		        details->code == WEBSOCKET_TOO_BIG);
		break;
	}
	buffer_append_format(log, "%d %d ", (int)event,
	                     event == WEBSOCKET_EVENT_MESSAGE ? details->is_text : details->code);
	buffer_append_slice(log, details->payload);
}

/* Appends events and then everything that is to be sent. */
static void read_frames(struct slice bytes, uint8_t choice, size_t step, struct buffer *log)
{
	struct websocket_engine engine;
	struct websocket_details details;
	struct error err;

	websocket_engine_init(&engine, (choice & SIDE_BIT) != 0 ? WEBSOCKET_SERVER : WEBSOCKET_CLIENT, LIMIT_BYTES,
	                      no_mask, NULL);
	if ((choice & CLOSE_BIT) != 0)
		require(websocket_engine_close(&engine, WEBSOCKET_NORMAL, SLICE("bye"), &err));
	while (bytes.length > 0) {
		struct slice piece = slice_from(bytes.data, bytes.length < step ? bytes.length : step);
		enum websocket_event event;

		bytes = slice_from_offset(bytes, piece.length);
		do {
			event = websocket_engine_next(&engine, &piece, &details);
			note_event(log, event, &details);
			require(engine.message.length <= LIMIT_BYTES);
		} while (event != WEBSOCKET_EVENT_MORE);
		require(piece.length == 0);
	}
	buffer_append_slice(log, buffer_slice(&engine.output));
	websocket_engine_destroy(&engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t STEPS[] = { SIZE_MAX, 1, 3 };
	struct buffer logs[3];

	if (size == 0)
		return 0;
	for (size_t i = 0; i < 3; i++) {
		buffer_init(&logs[i], SIZE_MAX);
		read_frames(slice_from(data + 1, size - 1), data[0], STEPS[i], &logs[i]);
		require(slice_equal(buffer_slice(&logs[i]), buffer_slice(&logs[0])));
	}
	for (size_t i = 0; i < 3; i++)
		buffer_destroy(&logs[i]);
	return 0;
}
