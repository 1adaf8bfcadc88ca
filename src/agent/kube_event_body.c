#include "agent/kube_event_body.h"

#include <stdio.h>

#include "base/clock.h"
#include "codec/rfc3339.h"
#include "gen/kube_event.gen.h"

enum {
	/* What the API server takes (ValidateEvent of core/v1). */
	MESSAGE_BYTES = 1024,
	INSTANCE_BYTES = 128,
	NAME_BYTES = 253,

	SUFFIX_BYTES = 1 + 16, /* ".18738a0e4b1f2c3d" */
	INSTANT_BYTES = 64,
};

static const char COMPONENT[] = "autoscaler-agent";

static const struct {
	const char *name;
	const char *type;
	const char *action;
} REASONS[KUBE_EVENT_REASONS] = {
	[KUBE_EVENT_SCALED] = { "Scaled", "Normal", "Scaling" },
	[KUBE_EVENT_SCALING_FAILED] = { "ScalingFailed", "Warning", "Scaling" },
	[KUBE_EVENT_UPSCALE_DENIED] = { "UpscaleDenied", "Warning", "Scaling" },
	/* A VM that needs what it has: nothing is wrong. */
	[KUBE_EVENT_DOWNSCALE_DENIED] = { "DownscaleDenied", "Normal", "Scaling" },
	[KUBE_EVENT_MONITOR_LOST] = { "MonitorLost", "Warning", "Monitoring" },
	[KUBE_EVENT_MONITOR_BACK] = { "MonitorBack", "Normal", "Monitoring" },
	[KUBE_EVENT_RUNNER_RESTARTED] = { "RunnerRestarted", "Warning", "Supervising" },
	[KUBE_EVENT_STUCK] = { "Stuck", "Warning", "Supervising" },
	[KUBE_EVENT_RECOVERED] = { "Recovered", "Normal", "Supervising" },
};

const char *kube_event_reason_name(enum kube_event_reason reason)
{
	return REASONS[reason].name;
}

/* At most so many bytes of it, and no part of a character. */
static struct slice cut_text(struct slice text, size_t most_bytes)
{
	size_t length = most_bytes;

	if (text.length <= most_bytes)
		return text;
	while (length > 0 && ((unsigned char)text.data[length] & 0xC0) == 0x80)
		length--;
	return slice_from(text.data, length);
}

/* A DNS subdomain: what stands before the dot must not end in one, or in a hyphen. */
static void append_name(const struct kube_event_facts *facts, struct buffer *name)
{
	struct slice vm = cut_text(facts->event->name, NAME_BYTES - SUFFIX_BYTES);

	while (vm.length > 0 && (vm.data[vm.length - 1] == '.' || vm.data[vm.length - 1] == '-'))
		vm.length--;
	buffer_append_slice(name, vm);
	buffer_append_format(name, ".%llx", (unsigned long long)facts->name_suffix);
}

static void append_micro_time(int64_t ns, struct buffer *text)
{
	int64_t fraction_ns = ns % NS_PER_S;

	if (fraction_ns < 0)
		fraction_ns += NS_PER_S;
	rfc3339_print_seconds(ns - fraction_ns, text);
	if (text->length > 0)
		text->length--; /* the Z */
	buffer_append_format(text, ".%06dZ", (int)(fraction_ns / 1000));
}

bool kube_event_append_body(const struct kube_event_facts *facts, struct buffer *body, struct error *err)
{
	const struct kube_event *event = facts->event;
	struct buffer name;
	struct buffer event_time;
	bool done = false;

	buffer_init(&name, NAME_BYTES);
	buffer_init(&event_time, INSTANT_BYTES);
	append_name(facts, &name);
	append_micro_time(facts->last_ns, &event_time);
	if (buffer_check(&name, "the name of an Event", err) &&
	    buffer_check(&event_time, "the time of an Event", err)) {
		const struct kube_event_event message = {
			.api_version = SLICE("v1"),
			.kind = SLICE("Event"),
			.metadata = { .name = buffer_slice(&name), .namespace = event->namespace },
			.involved_object = { .kind = SLICE("VirtualMachine"),
			                     .namespace = event->namespace,
			                     .name = event->name,
			                     .uid = facts->uid,
			                     .api_version = SLICE("vm.neon.tech/v1") },
			.reason = slice_of(REASONS[event->reason].name),
			.message = cut_text(event->message, MESSAGE_BYTES),
			.source = { .component = slice_of(COMPONENT), .host = facts->node_name },
			.first_timestamp_ns = facts->first_ns,
			.last_timestamp_ns = facts->last_ns,
			.count = facts->count < INT32_MAX ? (int32_t)facts->count : INT32_MAX,
			.type = slice_of(REASONS[event->reason].type),
			.event_time = buffer_slice(&event_time),
			.action = slice_of(REASONS[event->reason].action),
			.reporting_component = slice_of(COMPONENT),
			.reporting_instance = cut_text(facts->node_name, INSTANCE_BYTES),
		};

		done = kube_event_event_to_json(&message, body, err);
	}
	buffer_destroy(&name);
	buffer_destroy(&event_time);
	return done;
}
