#include "sandbox/vm_monitor_messages.h"

#include <stdio.h>

#include "base/arena.h"
#include "gen/monitor.gen.h"

enum {
	VERSION = 1,        /* the only one it speaks */
	VERSION_MOST = 255, /* that the original's type can hold */
	VERSION_TEXT_BYTES = 32,
	ARENA_BYTES_MAX = 256 << 20, /* a dozen times the largest message */
};

bool vm_monitor_read_range(struct slice text, struct vm_monitor_range *ret_range)
{
	struct monitor_protocol_range range;
	struct arena arena;
	struct error err;

	arena_init(&arena, ARENA_BYTES_MAX);

	bool good = monitor_protocol_range_from_json(text, &arena, &range, &err) && range.min <= range.max &&
	            range.max <= VERSION_MOST;

	arena_destroy(&arena);
	if (good)
		*ret_range = (struct vm_monitor_range){ .min = range.min, .max = range.max };
	return good;
}

static const char *version_text(uint16_t version, char text[VERSION_TEXT_BYTES])
{
	if (version == 0)
		return "<invalid: zero>";
	if (version == VERSION)
		return "v1.0";
	/* The original dies trying to print these. */
	snprintf(text, VERSION_TEXT_BYTES, "<unknown: %u>", version);
	return text;
}

bool vm_monitor_answer_range(const struct vm_monitor_range *range, struct buffer *out)
{
	bool overlap = range->min <= VERSION && range->max >= VERSION;
	struct monitor_protocol_response response = { .version = VERSION };
	char min_text[VERSION_TEXT_BYTES], max_text[VERSION_TEXT_BYTES];
	char text[256];
	struct error err;

	if (!overlap) {
		const char *min = version_text(range->min, min_text);
		const char *max = version_text(range->max, max_text);
		bool single = range->min == range->max;

		snprintf(text, sizeof text, "Received protocol version range %s%s%s which does not overlap with v1.0",
		         min, single ? "" : " to ", single ? "" : max);
		response = (struct monitor_protocol_response){ .has_error = true, .error = slice_of(text) };
	}

	struct json_writer writer;

	json_writer_init(&writer, out);
	writer.escape_html = false; /* the original isn't Go */
	monitor_protocol_response_encode(&writer, &response);
	return json_writer_check(&writer, "the version answer", &err) && overlap;
}

/* Reads the whole message by its type; false also if the type isn't known. */
static bool read_by_type(struct slice text, struct slice type, struct arena *arena,
                         struct vm_monitor_request *ret_request)
{
	struct vm_monitor_request request = { 0 };
	struct error err;

	if (slice_equal_text(type, "HealthCheck")) {
		struct monitor_health_check check;

		if (!monitor_health_check_from_json(text, arena, &check, &err))
			return false;
		request = (struct vm_monitor_request){ .kind = VM_MONITOR_HEALTH_CHECK, .id = check.id };
	} else if (slice_equal_text(type, "DownscaleRequest")) {
		struct monitor_downscale_request downscale;

		if (!monitor_downscale_request_from_json(text, arena, &downscale, &err))
			return false;
		request = (struct vm_monitor_request){ .kind = VM_MONITOR_DOWNSCALE,
			                               .id = downscale.id,
			                               .memory_bytes = downscale.content.target.mem_bytes,
			                               .cpus = downscale.content.target.cpu };
	} else if (slice_equal_text(type, "UpscaleNotification")) {
		struct monitor_upscale_notification upscale;

		if (!monitor_upscale_notification_from_json(text, arena, &upscale, &err))
			return false;
		request = (struct vm_monitor_request){ .kind = VM_MONITOR_UPSCALE,
			                               .id = upscale.id,
			                               .memory_bytes = upscale.content.granted.mem_bytes,
			                               .cpus = upscale.content.granted.cpu };
	} else if (slice_equal_text(type, "InvalidMessage") || slice_equal_text(type, "InternalError")) {
		struct monitor_error_message complaint;

		if (!monitor_error_message_from_json(text, arena, &complaint, &err))
			return false;
		request = (struct vm_monitor_request){ .kind = VM_MONITOR_COMPLAINT, .id = complaint.id };
	} else {
		return false;
	}
	*ret_request = request;
	return true;
}

bool vm_monitor_read_request(struct slice text, struct vm_monitor_request *ret_request)
{
	struct monitor_agent_envelope envelope;
	struct arena arena;
	struct error err;

	arena_init(&arena, ARENA_BYTES_MAX);

	bool good = monitor_agent_envelope_from_json(text, &arena, &envelope, &err) &&
	            read_by_type(text, envelope.type, &arena, ret_request);

	arena_destroy(&arena);
	return good;
}

void vm_monitor_write_message(struct buffer *out, struct slice type, uint64_t id)
{
	struct json_writer writer;

	json_writer_init(&writer, out);
	monitor_monitor_message_encode(&writer, &(struct monitor_monitor_message){ .type = type, .id = id });
}

void vm_monitor_write_downscale_result(struct buffer *out, bool agreed, struct slice status, uint64_t id)
{
	struct monitor_monitor_downscale_result result = {
		.type = SLICE("DownscaleResult"), .ok = agreed, .status = status, .id = id
	};
	struct json_writer writer;

	json_writer_init(&writer, out);
	writer.escape_html = false; /* a denial has a '<' in it */
	monitor_monitor_downscale_result_encode(&writer, &result);
}

void vm_monitor_write_internal_error(struct buffer *out, struct slice text, uint64_t id)
{
	struct json_writer writer;

	json_writer_init(&writer, out);
	monitor_monitor_error_encode(
		&writer, &(struct monitor_monitor_error){ .type = SLICE("InternalError"), .error = text, .id = id });
}
