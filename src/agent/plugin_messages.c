#include "agent/plugin_messages.h"

#include "agent/json_cause.h"
#include "agent/limits.h"
#include "codec/json_reader.h"
#include "gen/plugin.gen.h"
#include "gen/plugin_slots.gen.h"

enum { REPLY_ARENA_BYTES = 12 * AGENT_SCHEDULER_REPLY_BYTES, SLOTS_MAX = UINT16_MAX };

static bool is_in_slots(enum plugin_protocol version)
{
	return version < PLUGIN_PROTOCOL_4_0;
}

/* ---- requests ---- */

static struct plugin_metrics metrics_of(const struct core_plugin_request *request, enum plugin_protocol version)
{
	bool all = version < PLUGIN_PROTOCOL_5_0;

	return (struct plugin_metrics){
		.load_average_1_min = request->load_average_1_min,
		.has_load_average_5_min = all,
		.load_average_5_min = request->load_average_5_min,
		.has_memory_usage_bytes = all,
		.memory_usage_bytes = request->memory_usage_bytes,
	};
}

static struct plugin_resources in_bytes(struct resources amount)
{
	return (struct plugin_resources){ .cpu_milli = amount.cpu_milli, .mem_bytes = amount.mem_bytes };
}

static bool write_in_bytes(const struct plugin_message_context *context, const struct core_plugin_request *request,
                           struct buffer *body, struct error *err)
{
	const struct plugin_agent_request message = {
		.proto_version = (uint32_t)context->version,
		.pod = { .namespace = slice_of(context->namespace), .name = slice_of(context->pod_name) },
		.has_compute_unit = true,
		.compute_unit = in_bytes(context->compute_unit),
		.resources = in_bytes(request->target),
		.last_permit_presence = request->last_permit.present ? JSON_VALUE : JSON_NULL,
		.last_permit = in_bytes(request->last_permit.value),
		.metrics_presence = request->has_metrics ? JSON_VALUE : JSON_NULL,
		.metrics = metrics_of(request, context->version),
	};

	return plugin_agent_request_to_json(&message, body, err);
}

static bool in_slots(const struct plugin_message_context *context, struct resources amount,
                     struct plugin_slots_resources *ret_amount, struct error *err)
{
	uint64_t slots;

	if (context->slot_bytes == 0)
		return error_set(err, ERROR_INVARIANT, "the memory slot size is 0");
	slots = amount.mem_bytes / context->slot_bytes;
	if (slots > SLOTS_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d memory slots", SLOTS_MAX);
	*ret_amount = (struct plugin_slots_resources){ .cpu_milli = amount.cpu_milli, .mem_slots = (uint16_t)slots };
	return true;
}

static bool write_in_slots(const struct plugin_message_context *context, const struct core_plugin_request *request,
                           struct buffer *body, struct error *err)
{
	struct plugin_slots_agent_request message = {
		.proto_version = (uint32_t)context->version,
		.pod = { .namespace = slice_of(context->namespace), .name = slice_of(context->pod_name) },
		.last_permit_presence = JSON_ABSENT,
		.metrics_presence = request->has_metrics ? JSON_VALUE : JSON_NULL,
		.metrics = metrics_of(request, context->version),
	};

	if (context->version >= PLUGIN_PROTOCOL_2_1)
		message.last_permit_presence = request->last_permit.present ? JSON_VALUE : JSON_NULL;
	return in_slots(context, request->target, &message.resources, err) &&
	       (!request->last_permit.present ||
	        in_slots(context, request->last_permit.value, &message.last_permit, err)) &&
	       plugin_slots_agent_request_to_json(&message, body, err);
}

bool plugin_request_write(const struct plugin_message_context *context, const struct core_plugin_request *request,
                          struct buffer *body, struct error *err)
{
	return is_in_slots(context->version) ? write_in_slots(context, request, body, err)
	                                     : write_in_bytes(context, request, body, err);
}

/* ---- replies ---- */

static bool decode_in_bytes(struct json_reader *reader, struct plugin_reply *ret_reply, struct buffer *form,
                            struct error *err)
{
	struct plugin_plugin_response reply;

	if (!plugin_plugin_response_decode(reader, &reply, err) || !json_reader_finish(reader, err))
		return false;
	if (!reply.has_permit)
		reply = (struct plugin_plugin_response){ .has_permit = true };
	ret_reply->permit =
		(struct resources){ .cpu_milli = reply.permit.cpu_milli, .mem_bytes = reply.permit.mem_bytes };
	return plugin_plugin_response_to_json(&reply, form, err);
}

static struct resources from_slots(const struct plugin_message_context *context, struct plugin_slots_resources amount)
{
	return (struct resources){ .cpu_milli = amount.cpu_milli, .mem_bytes = amount.mem_slots * context->slot_bytes };
}

static bool decode_in_slots(const struct plugin_message_context *context, struct json_reader *reader,
                            struct plugin_reply *ret_reply, struct buffer *form, struct error *err)
{
	struct plugin_slots_plugin_response reply;

	if (!plugin_slots_plugin_response_decode(reader, &reply, err) || !json_reader_finish(reader, err))
		return false;
	if (!reply.has_permit) {
		reply.has_permit = true;
		reply.permit = (struct plugin_slots_resources){ 0 };
	}
	ret_reply->permit = from_slots(context, reply.permit);
	if (reply.has_resource_unit && context->version <= PLUGIN_PROTOCOL_2_1)
		ret_reply->compute_unit = from_slots(context, reply.resource_unit);
	return plugin_slots_plugin_response_to_json(&reply, form, err);
}

bool plugin_reply_read(const struct plugin_message_context *context, struct slice body, struct plugin_reply *ret_reply,
                       struct buffer *form, struct error *err)
{
	struct plugin_reply reply = { .permit = { .cpu_milli = 0 } };
	struct json_reader reader;
	struct arena arena;
	bool done;

	arena_init(&arena, REPLY_ARENA_BYTES);
	done = json_reader_open(&reader, body, &arena, err) &&
	       (is_in_slots(context->version) ? decode_in_slots(context, &reader, &reply, form, err)
	                                      : decode_in_bytes(&reader, &reply, form, err));
	if (done) {
		*ret_reply = reply;
	} else {
		(void)json_cause_restate(&reader, false, err);
		error_wrap(err, "bad JSON response");
	}
	arena_destroy(&arena);
	return done;
}
