/*
 * Billing and scaling events as the world outside reads them (spec reporting B11, B13, E5). Stamps are in the process's
 * time zone, the one inside a key in UTC.
 */
#ifndef BALLAST_AGENT_EVENT_JSON_H
#define BALLAST_AGENT_EVENT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/scaling_events.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

/* One of the events of a drain. */
struct billing_event {
	int64_t start_wall_ns, stop_wall_ns; /* the drain's window; stop is the instant of the drain */
	struct slice host_name;
	size_t number, count; /* this one, from 1, of so many */
	struct slice metric;
	struct slice endpoint_id;
	uint64_t value;
};

/* Appends the key that every delivery of the event has. */
void billing_event_print_key(const struct billing_event *event, struct buffer *out);
bool billing_event_print_json(const struct billing_event *event, struct buffer *out, struct error *err);

/* False for an amount that JSON can't say (E6), too. */
bool scaling_event_print_json(const struct scaling_event *event, struct slice region, struct buffer *out,
                              struct error *err);

#endif
