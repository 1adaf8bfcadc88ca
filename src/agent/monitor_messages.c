#include "agent/monitor_messages.h"

#include "agent/json_cause.h"
#include "agent/quoted.h"
#include "codec/json_reader.h"
#include "codec/json_writer.h"
#include "gen/monitor.gen.h"

static const struct slice TYPE_NAMES[] = {
	[MONITOR_UNKNOWN_TYPE] = { "other", 5 },
	[MONITOR_DOWNSCALE_REQUEST] = { "DownscaleRequest", 16 },
	[MONITOR_UPSCALE_NOTIFICATION] = { "UpscaleNotification", 19 },
	[MONITOR_HEALTH_CHECK] = { "HealthCheck", 11 },
	[MONITOR_INVALID_MESSAGE] = { "InvalidMessage", 14 },
	[MONITOR_INTERNAL_ERROR] = { "InternalError", 13 },
	[MONITOR_UPSCALE_REQUEST] = { "UpscaleRequest", 14 },
	[MONITOR_UPSCALE_CONFIRMATION] = { "UpscaleConfirmation", 19 },
	[MONITOR_DOWNSCALE_RESULT] = { "DownscaleResult", 15 },
};

const char *monitor_type_name(enum monitor_type type)
{
	return TYPE_NAMES[type].data;
}

/* ---- writing ---- */

/* The reference multiplies: 700 * 0.001 isn't 700 / 1000 in doubles (agent-runtime, pitfall 9). */
static struct monitor_allocation allocation_of(struct resources resources)
{
	return (struct monitor_allocation){
		.cpu = (double)resources.cpu_milli * 0.001,
		.mem_bytes = resources.mem_bytes,
	};
}

void monitor_write_protocol_range(struct buffer *out)
{
	const struct monitor_protocol_range range = { .min = 1, .max = 1 };
	struct json_writer writer;

	json_writer_init(&writer, out);
	monitor_protocol_range_encode(&writer, &range);
	buffer_append_char(out, '\n');
}

void monitor_write_downscale_request(struct buffer *out, uint64_t id, struct resources target)
{
	const struct monitor_downscale_request request = {
		.content = { .target = allocation_of(target) },
		.type = TYPE_NAMES[MONITOR_DOWNSCALE_REQUEST],
		.id = id,
	};
	struct json_writer writer;

	json_writer_init(&writer, out);
	monitor_downscale_request_encode(&writer, &request);
	buffer_append_char(out, '\n');
}

void monitor_write_upscale_notification(struct buffer *out, uint64_t id, struct resources granted)
{
	const struct monitor_upscale_notification notification = {
		.content = { .granted = allocation_of(granted) },
		.type = TYPE_NAMES[MONITOR_UPSCALE_NOTIFICATION],
		.id = id,
	};
	struct json_writer writer;

	json_writer_init(&writer, out);
	monitor_upscale_notification_encode(&writer, &notification);
	buffer_append_char(out, '\n');
}

void monitor_write_health_check(struct buffer *out, uint64_t id)
{
	const struct monitor_health_check check = { .type = TYPE_NAMES[MONITOR_HEALTH_CHECK], .id = id };
	struct json_writer writer;

	json_writer_init(&writer, out);
	monitor_health_check_encode(&writer, &check);
	buffer_append_char(out, '\n');
}

void monitor_write_invalid_message(struct buffer *out, uint64_t id, struct slice text)
{
	const struct monitor_error_message message = {
		.content = { .error = text },
		.type = TYPE_NAMES[MONITOR_INVALID_MESSAGE],
		.id = id,
	};
	struct json_writer writer;

	json_writer_init(&writer, out);
	monitor_error_message_encode(&writer, &message);
	buffer_append_char(out, '\n');
}

/* ---- reading ---- */

static enum monitor_type type_of(struct slice text)
{
	/* The two that only the agent sends are unknown from a monitor. */
	for (enum monitor_type type = MONITOR_HEALTH_CHECK; type <= MONITOR_DOWNSCALE_RESULT; type++) {
		if (slice_equal(text, TYPE_NAMES[type]))
			return type;
	}
	return MONITOR_UNKNOWN_TYPE;
}

static enum monitor_reading bad_form(struct slice text, struct error *err)
{
	struct buffer quoted;

	if (err->code == ERROR_NO_MEMORY)
		return MONITOR_BAD_FORM;
	quoted_init(&quoted, text);
	error_set(err, ERROR_SYNTAX, "error deserializing message: %.*s", SLICE_ARGS(buffer_slice(&quoted)));
	buffer_destroy(&quoted);
	return MONITOR_BAD_FORM;
}

/* Finds type and id; the message's other fields aren't looked at. */
static enum monitor_reading read_head(struct slice text, struct arena *arena,
                                      struct monitor_from_monitor_head *ret_head, struct error *err)
{
	struct monitor_from_monitor_keys keys;
	struct json_reader reader;

	if (!json_reader_open(&reader, text, arena, err) || !json_reader_finish(&reader, err))
		return err->code == ERROR_SYNTAX ? MONITOR_NOT_JSON : MONITOR_BAD_FORM;
	if (!monitor_from_monitor_keys_from_json(text, arena, &keys, err))
		return bad_form(text, err);
	if (keys.type.length == 0) {
		error_set(err, ERROR_SYNTAX, "data had no key \"type\"");
		return MONITOR_BAD_FORM;
	}
	if (json_kind_of(keys.type) != JSON_KIND_STRING) {
		error_set(err, ERROR_SYNTAX, "data[\"type\"] was not of type string");
		return MONITOR_BAD_FORM;
	}
	if (keys.id.length == 0) {
		error_set(err, ERROR_SYNTAX, "data had no key \"id\"");
		return MONITOR_BAD_FORM;
	}
	if (json_kind_of(keys.id) != JSON_KIND_NUMBER) {
		error_set(err, ERROR_SYNTAX, "data[\"id\"] was not of type float64");
		return MONITOR_BAD_FORM;
	}
	return monitor_from_monitor_head_from_json(text, arena, ret_head, err) ? MONITOR_READ : MONITOR_BAD_FORM;
}

static bool decode_fields(struct json_reader *reader, struct monitor_message *message, struct error *err)
{
	struct monitor_from_monitor_downscale_result result;
	struct monitor_from_monitor_error error;

	switch (message->type) {
	case MONITOR_DOWNSCALE_RESULT:
		if (!monitor_from_monitor_downscale_result_decode(reader, &result, err))
			return false;
		message->ok = result.ok;
		message->status = result.status;
		return true;
	case MONITOR_INVALID_MESSAGE:
	case MONITOR_INTERNAL_ERROR:
		if (!monitor_from_monitor_error_decode(reader, &error, err))
			return false;
		message->error = error.error;
		return true;
	default:
		return true;
	}
}

/* That the text is JSON, and nothing else, is known. */
static bool read_fields(struct slice text, struct arena *arena, struct monitor_message *message, struct error *err)
{
	struct json_reader reader;

	if (json_reader_open(&reader, text, arena, err) && decode_fields(&reader, message, err))
		return true;
	return json_cause_restate(&reader, false, err);
}

enum monitor_reading monitor_read_message(struct slice text, struct arena *arena, struct monitor_message *ret_message,
                                          struct error *err)
{
	struct monitor_from_monitor_head head = { 0 };
	struct monitor_message message = { 0 };
	enum monitor_reading reading = read_head(text, arena, &head, err);

	if (reading != MONITOR_READ)
		return reading;
	message.type = type_of(head.type);
	message.type_text = head.type;
	message.id = head.id;
	*ret_message = message;
	if (message.type == MONITOR_UNKNOWN_TYPE)
		return MONITOR_TYPE_UNKNOWN;
	if (!read_fields(text, arena, &message, err)) {
		error_wrap(err, "error unmarshaling %s", monitor_type_name(message.type));
		return err->code == ERROR_NO_MEMORY ? MONITOR_BAD_FORM : MONITOR_BAD_FIELDS;
	}
	*ret_message = message;
	return MONITOR_READ;
}

bool monitor_read_protocol_response(struct slice text, struct arena *arena, struct error *err)
{
	struct monitor_protocol_response response;
	struct json_reader reader;
	struct buffer quoted;

	if (!json_reader_open(&reader, text, arena, err) ||
	    !monitor_protocol_response_decode(&reader, &response, err) || !json_reader_finish(&reader, err)) {
		if (err->code != ERROR_NO_MEMORY)
			err->code = ERROR_SYNTAX;
		return json_cause_restate(&reader, false, err);
	}
	if (!response.has_error)
		return true;
	quoted_init(&quoted, response.error);
	error_set(err, ERROR_REFUSED, "monitor returned error during protocol handshake: %.*s",
	          SLICE_ARGS(buffer_slice(&quoted)));
	buffer_destroy(&quoted);
	return false;
}
