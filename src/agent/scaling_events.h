/*
 * Scaling events: what the runner tells the world about its decisions (spec agent-core 5.1, reporting 4).
 *
 * An `actual` event is made when a NeonVM request starts, a `hypothetical` one for each computed goal, unless it is
 * close to the last one made. Amounts leave here in reported units: compute units of the core times the configured
 * multiplier. One source per run of a runner: a restarted runner starts with an empty limiter.
 */
#ifndef BALLAST_AGENT_SCALING_EVENTS_H
#define BALLAST_AGENT_SCALING_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent_metrics.h"
#include "agent/core/goal.h"
#include "base/error.h"
#include "base/slice.h"

struct scaling_event {
	enum agent_scaling_event kind;
	int64_t wall_ns;
	struct slice endpoint_id; /* may be empty */
	uint32_t current_milli_cu;
	uint32_t target_milli_cu;
	struct goal_parts parts; /* hypothetical only; reported units, not milli, not rounded */
};

/* The goal in reported units, for the gauges autoscaling_vm_desired_cu; an absent part's series goes away. */
struct scaling_desired_cu {
	double total;
	struct goal_parts parts;
};

/* Where events and goals go. Either function may be NULL. */
struct scaling_event_sink {
	void *context;
	/*
	 * Queues a copy. False (an amount that can't be encoded) is an internal failure of the runner (reporting E6).
	 */
	bool (*submit)(void *context, const struct scaling_event *event, struct error *err);
	/* Does nothing for a VM that has no per-VM metrics. */
	void (*set_desired_cu)(void *context, struct slice namespace, struct slice name,
	                       const struct scaling_desired_cu *desired);
};

struct scaling_event_source {
	const struct scaling_event_sink *sink;
	struct agent_metrics *metrics;
	double cu_multiplier;
	bool has_last; /* the limiter: the last hypothetical event made */
	uint32_t last_target_milli_cu;
	struct goal_parts last_parts;
};

/* Owns nothing; sink and metrics must outlive it. */
void scaling_events_init(struct scaling_event_source *ret_source, const struct scaling_event_sink *sink,
                         struct agent_metrics *metrics, double cu_multiplier);

/* round(1000 * cu * multiplier), evaluated in this order. */
uint32_t scaling_events_milli_cu(uint32_t compute_units, double multiplier);

bool scaling_events_actual(struct scaling_event_source *source, int64_t wall_ns, struct slice endpoint_id,
                           uint32_t current_cu, uint32_t target_cu, struct error *err);

/* Updates the gauges always, and makes an event unless the limiter holds it back (reporting E8, E9). */
bool scaling_events_hypothetical(struct scaling_event_source *source, int64_t wall_ns, struct slice endpoint_id,
                                 struct slice namespace, struct slice name, uint32_t current_cu, uint32_t goal_cu,
                                 const struct goal_parts *parts, struct error *err);

#endif
