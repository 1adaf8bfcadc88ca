#include "sandbox/plugin_release.h"

#include <stdio.h>
#include <string.h>

#include "codec/json_reader.h"
#include "gen/plugin_slots.gen.h"

/* protoVersion (generations 2.1). */
enum { V1_0 = 1, V1_1, V2_0, V2_1, V3_0, V4_0, V5_0 };

enum { CPU_MILLI = 1000 };

/* Surroundings 1.2, generations 2.6. */
static const struct plugin_release RELEASES[] = {
	{ .name = "v0.19", .others = "v0.7 to v0.19", .lowest = V1_0, .highest = V2_0, .best = V2_0 },
	{ .name = "v0.21", .others = "v0.20 and v0.21", .lowest = V1_0, .highest = V2_1, .best = V2_1 },
	{ .name = "v0.22", .others = "v0.22", .lowest = V1_0, .highest = V3_0, .best = V3_0 },
	{ .name = "v0.25",
	  .others = "v0.23 to v0.25",
	  .lowest = V1_0,
	  .highest = V4_0,
	  .best = V4_0,
	  .knows_bytes = true,
	  .unit_rule = PLUGIN_UNIT_BY_VERSION },
	{ .name = "v0.27",
	  .others = "v0.26 and v0.27",
	  .lowest = V1_0,
	  .highest = V4_0,
	  .best = V4_0,
	  .knows_bytes = true,
	  .unit_rule = PLUGIN_UNIT_ALWAYS },
	{ .name = "v0.41",
	  .others = "v0.28 to v0.41",
	  .lowest = V3_0,
	  .highest = V5_0,
	  .best = V5_0,
	  .knows_bytes = true,
	  .unit_rule = PLUGIN_UNIT_ALWAYS,
	  .checks_metrics = true },
	{ .name = "newest",
	  .others = "since v0.42",
	  .lowest = V5_0,
	  .highest = V5_0,
	  .best = V5_0,
	  .knows_bytes = true,
	  .unit_rule = PLUGIN_UNIT_ALWAYS,
	  .small_letters = true,
	  .keeps_annotations = true },
};

enum { RELEASE_COUNT = sizeof RELEASES / sizeof RELEASES[0] };

const struct plugin_release *plugin_release_find(const char *name)
{
	for (size_t i = 0; i < RELEASE_COUNT; i++) {
		if (strcmp(RELEASES[i].name, name) == 0)
			return &RELEASES[i];
	}
	return NULL;
}

const struct plugin_release *plugin_release_at(unsigned index)
{
	return index < RELEASE_COUNT ? &RELEASES[index] : NULL;
}

const struct plugin_release *plugin_release_newest(void)
{
	return &RELEASES[RELEASE_COUNT - 1];
}

/* ---- reading ---- */

static struct plugin_resources as_it_is(struct plugin_slots_resources amount)
{
	return (struct plugin_resources){ .cpu_milli = amount.cpu_milli, .mem_bytes = amount.mem_slots };
}

static bool read_slots(struct json_reader *reader, struct plugin_agent_request *ret_request, struct error *err)
{
	struct plugin_slots_agent_request request;

	if (!plugin_slots_agent_request_decode(reader, &request, err))
		return false;
	*ret_request = (struct plugin_agent_request){
		.proto_version = request.proto_version,
		.pod = request.pod,
		.resources = as_it_is(request.resources),
		.last_permit_presence = request.last_permit_presence,
		.last_permit = as_it_is(request.last_permit),
		.metrics_presence = request.metrics_presence,
		.metrics = request.metrics,
	};
	return true;
}

bool plugin_release_read(const struct plugin_release *release, struct slice body, struct arena *arena,
                         struct plugin_agent_request *ret_request)
{
	struct json_reader reader;
	struct error err;

	if (!json_reader_open(&reader, body, arena, &err))
		return false;
	return release->knows_bytes ? plugin_agent_request_decode(&reader, ret_request, &err)
	                            : read_slots(&reader, ret_request, &err);
}

/* ---- refusing ---- */

static const char *const VERSIONS[] = {
	[V1_0] = "v1.0", [V1_1] = "v1.1", [V2_0] = "v2.0", [V2_1] = "v2.1",
	[V3_0] = "v3.0", [V4_0] = "v4.0", [V5_0] = "v5.0",
};

const char *plugin_release_version_name(uint32_t version)
{
	return version >= V1_0 && version <= V5_0 ? VERSIONS[version] + 1 : "";
}

/* As a speaker writes it that knows none above `highest`. */
static void print_version(uint32_t version, uint32_t highest, char text[32])
{
	if (version <= highest)
		(void)snprintf(text, 32, "%s", VERSIONS[version]);
	else
		(void)snprintf(text, 32, "<unknown = %s + %u>", VERSIONS[highest], version - highest);
}

static bool refuse_version(const struct plugin_release *release, uint32_t version,
                           char ret_text[PLUGIN_RELEASE_TEXT_BYTES])
{
	const char *start =
		release->small_letters ? "protocol version mismatch: need" : "Protocol version mismatch: Need";
	char got[32];

	print_version(version, release->highest, got);
	if (release->lowest == release->highest)
		(void)snprintf(ret_text, PLUGIN_RELEASE_TEXT_BYTES, "%s %s but got %s", start,
		               VERSIONS[release->lowest], got);
	else
		(void)snprintf(ret_text, PLUGIN_RELEASE_TEXT_BYTES, "%s %s to %s but got %s", start,
		               VERSIONS[release->lowest], VERSIONS[release->highest], got);
	return false;
}

static bool check_unit(const struct plugin_release *release, const struct plugin_agent_request *request,
                       char ret_text[PLUGIN_RELEASE_TEXT_BYTES])
{
	const char *version = VERSIONS[request->proto_version];
	struct plugin_resources unit = request->compute_unit;

	if (release->unit_rule == PLUGIN_UNIT_IGNORED)
		return true;
	if (release->unit_rule == PLUGIN_UNIT_BY_VERSION) {
		bool wanted = request->proto_version >= V4_0;

		if (wanted == request->has_compute_unit)
			return true;
		(void)snprintf(ret_text, PLUGIN_RELEASE_TEXT_BYTES,
		               wanted ? "computeUnit required for protocol version %s"
		                      : "computeUnit field not supported for protocol version %s",
		               version);
		return false;
	}
	if (unit.cpu_milli != 0 && unit.mem_bytes != 0)
		return true;
	(void)snprintf(ret_text, PLUGIN_RELEASE_TEXT_BYTES, "computeUnit fields must be non-zero: %s must be non-zero",
	               unit.cpu_milli == 0 ? "vCPUs" : "mem");
	return false;
}

static bool check_metrics(const struct plugin_release *release, const struct plugin_agent_request *request,
                          char ret_text[PLUGIN_RELEASE_TEXT_BYTES])
{
	bool wanted = request->proto_version < V5_0;
	bool there = request->metrics.has_load_average_5_min && request->metrics.has_memory_usage_bytes;
	bool some = request->metrics.has_load_average_5_min || request->metrics.has_memory_usage_bytes;

	if (!release->checks_metrics || request->metrics_presence != JSON_VALUE || (wanted ? there : !some))
		return true;
	(void)snprintf(ret_text, PLUGIN_RELEASE_TEXT_BYTES,
	               "%s metrics.{loadAvg5M,memoryUsageBytes} not supported for protocol version %s",
	               wanted ? "nil" : "non-nil", VERSIONS[request->proto_version]);
	return false;
}

bool plugin_release_check(const struct plugin_release *release, const struct plugin_agent_request *request,
                          char ret_text[PLUGIN_RELEASE_TEXT_BYTES])
{
	uint32_t version = request->proto_version;

	if (version == 0) {
		(void)snprintf(ret_text, PLUGIN_RELEASE_TEXT_BYTES, "%snvalid protocol version <invalid: zero>",
		               release->small_letters ? "i" : "I");
		return false;
	}
	if (version < release->lowest || version > release->highest)
		return refuse_version(release, version, ret_text);
	if (version == V1_0 && request->metrics_presence != JSON_VALUE) {
		(void)snprintf(ret_text, PLUGIN_RELEASE_TEXT_BYTES,
		               "nil metrics not supported for protocol version v1.0");
		return false;
	}
	return check_unit(release, request, ret_text) && check_metrics(release, request, ret_text);
}

bool plugin_release_check_pod(const struct plugin_release *release, const struct plugin_agent_request *request,
                              uint64_t slot_bytes, char ret_text[PLUGIN_RELEASE_TEXT_BYTES])
{
	if (!release->keeps_annotations && request->has_compute_unit &&
	    request->compute_unit.mem_bytes % slot_bytes != 0) {
		(void)snprintf(ret_text, PLUGIN_RELEASE_TEXT_BYTES,
		               "computeUnit is not divisible by VM memory slot size: %llu not divisible by %llu",
		               (unsigned long long)request->compute_unit.mem_bytes, (unsigned long long)slot_bytes);
		return false;
	}
	if (request->proto_version < V2_0 && request->resources.cpu_milli % CPU_MILLI != 0) {
		(void)snprintf(ret_text, PLUGIN_RELEASE_TEXT_BYTES,
		               "agent requested fractional CPU with protocol version that does not support it");
		return false;
	}
	return true;
}

/* ---- slots and bytes ---- */

void plugin_release_to_bytes(const struct plugin_release *release, uint64_t slot_bytes,
                             struct plugin_agent_request *request)
{
	if (request->proto_version >= V4_0)
		return;
	request->resources.mem_bytes *= slot_bytes;
	/* The releases that know bytes take slots of the last permit for bytes: a fault of theirs (generations 2.6). */
	if (!release->knows_bytes)
		request->last_permit.mem_bytes *= slot_bytes;
}

static struct plugin_slots_resources in_slots(struct resources amount, uint64_t slot_bytes)
{
	return (struct plugin_slots_resources){ .cpu_milli = amount.cpu_milli,
		                                .mem_slots = (uint16_t)(amount.mem_bytes / slot_bytes) };
}

bool plugin_release_write(uint32_t version, struct resources permit, struct resources compute_unit, uint64_t slot_bytes,
                          struct buffer *body, struct error *err)
{
	if (version >= V4_0) {
		const struct plugin_plugin_response response = {
			.has_permit = true,
			.permit = { .cpu_milli = permit.cpu_milli, .mem_bytes = permit.mem_bytes },
		};

		return plugin_plugin_response_to_json(&response, body, err);
	}

	const struct plugin_slots_plugin_response response = {
		.has_permit = true,
		.permit = in_slots(permit, slot_bytes),
		.has_resource_unit = version < V3_0,
		.resource_unit = in_slots(compute_unit, slot_bytes),
	};

	return plugin_slots_plugin_response_to_json(&response, body, err);
}
