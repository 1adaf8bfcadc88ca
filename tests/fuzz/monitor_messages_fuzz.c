/*
 * Any bytes as a message of a vm-monitor, or as its answer to the protocol range. The guest isn't trusted, so: what is read
 * has a type and an id, what isn't has a reason, a reason fits into an answer, and our own messages read back as what
 * they are.
 */
#include <stdint.h>
#include <stdlib.h>

#include "agent/limits.h"
#include "agent/monitor_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static enum monitor_reading read_message(struct slice text, struct arena *arena, struct monitor_message *ret_message)
{
	struct error err = { .code = ERROR_NONE };
	enum monitor_reading reading = monitor_read_message(text, arena, ret_message, &err);

	require(reading == MONITOR_READ || reading == MONITOR_TYPE_UNKNOWN ||
	        (err.code != ERROR_NONE && err.text[0] != '\0'));
	return reading;
}

/* What we answer to a fault is a message that the other side can read, whatever was wrong. */
static void answer(uint64_t id, struct slice why, struct arena *arena)
{
	struct monitor_message message;
	struct buffer out;

	buffer_init(&out, (size_t)8 * AGENT_MONITOR_MESSAGE_BYTES);
	monitor_write_invalid_message(&out, id, why);
	require(!out.failed && out.data[out.length - 1] == '\n');
	require(read_message(buffer_slice(&out), arena, &message) == MONITOR_READ);
	require(message.type == MONITOR_INVALID_MESSAGE);
	buffer_clear(&out);
	monitor_write_health_check(&out, id);
	require(read_message(buffer_slice(&out), arena, &message) == MONITOR_READ);
	require(message.type == MONITOR_HEALTH_CHECK);
	buffer_destroy(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size);
	struct monitor_message message = { 0 };
	struct error err = { .code = ERROR_NONE };
	struct arena arena;

	if (size > AGENT_MONITOR_MESSAGE_BYTES)
		return 0;
	arena_init(&arena, MONITOR_ARENA_BYTES);
	switch (read_message(text, &arena, &message)) {
	case MONITOR_READ:
		require(message.type != MONITOR_UNKNOWN_TYPE && message.type <= MONITOR_DOWNSCALE_RESULT);
		require(slice_equal_text(message.type_text, monitor_type_name(message.type)));
		answer(message.id, message.error, &arena);
		break;
	case MONITOR_TYPE_UNKNOWN:
	case MONITOR_BAD_FIELDS:
		require(message.type_text.data != NULL);
		answer(message.id, message.type_text, &arena);
		break;
	case MONITOR_NOT_JSON:
	case MONITOR_BAD_FORM:
		break;
	}
	arena_reset(&arena);
	if (!monitor_read_protocol_response(text, &arena, &err))
		require(err.code == ERROR_SYNTAX || err.code == ERROR_REFUSED || err.code == ERROR_LIMIT);
	arena_destroy(&arena);
	return 0;
}
