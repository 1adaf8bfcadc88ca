#include "agent/event_json.h"

#include "base/clock.h"
#include "base/local_time.h"
#include "codec/rfc3339.h"
#include "gen/events.gen.h"

enum { STAMP_BYTES = 64, KEY_BYTES = 1024 };

static void print_stamp(int64_t wall_ns, struct buffer *out)
{
	rfc3339_print_nanoseconds_at(wall_ns, local_time_offset_s(wall_ns / NS_PER_S), out);
}

void billing_event_print_key(const struct billing_event *event, struct buffer *out)
{
	int64_t below_us = (event->stop_wall_ns % NS_PER_US + NS_PER_US) % NS_PER_US;

	rfc3339_print_nanoseconds(event->stop_wall_ns - below_us, out);
	buffer_append_format(out, "-%.*s-%zu/%zu", SLICE_ARGS(event->host_name), event->number, event->count);
}

bool billing_event_print_json(const struct billing_event *event, struct buffer *out, struct error *err)
{
	struct buffer key, start, stop;
	bool ok;

	buffer_init(&key, KEY_BYTES);
	buffer_init(&start, STAMP_BYTES);
	buffer_init(&stop, STAMP_BYTES);
	billing_event_print_key(event, &key);
	print_stamp(event->start_wall_ns, &start);
	print_stamp(event->stop_wall_ns, &stop);
	ok = buffer_check(&key, "idempotency key", err) && buffer_check(&start, "start of a window", err) &&
	     buffer_check(&stop, "end of a window", err);
	if (ok) {
		const struct events_billing_event message = {
			.idempotency_key = buffer_slice(&key),
			.metric = event->metric,
			.type = SLICE("incremental"),
			.endpoint_id = event->endpoint_id,
			.start_time = buffer_slice(&start),
			.stop_time = buffer_slice(&stop),
			.value = event->value,
		};

		ok = events_billing_event_to_json(&message, out, err);
	}
	buffer_destroy(&key);
	buffer_destroy(&start);
	buffer_destroy(&stop);
	return ok;
}

bool scaling_event_print_json(const struct scaling_event *event, struct slice region, struct buffer *out,
                              struct error *err)
{
	struct events_scaling_event message = {
		.region = region,
		.endpoint_id = event->endpoint_id,
		.kind = event->kind == AGENT_SCALING_EVENT_ACTUAL ? SLICE("actual") : SLICE("hypothetical"),
		.current_cu = event->current_milli_cu,
		.target_cu = event->target_milli_cu,
		.has_goal_components = event->kind == AGENT_SCALING_EVENT_HYPOTHETICAL,
		.goal_components = { .has_cpu = event->parts.has_cpu,
		                     .cpu = event->parts.cpu,
		                     .has_mem = event->parts.has_mem,
		                     .mem = event->parts.mem,
		                     .has_lfc = event->parts.has_lfc,
		                     .lfc = event->parts.lfc },
	};
	struct buffer stamp;
	bool ok;

	buffer_init(&stamp, STAMP_BYTES);
	print_stamp(event->wall_ns, &stamp);
	ok = buffer_check(&stamp, "time of a scaling event", err);
	if (ok) {
		message.timestamp = buffer_slice(&stamp);
		ok = events_scaling_event_to_json(&message, out, err);
	}
	buffer_destroy(&stamp);
	return ok;
}
