#include "agent/scaling_events.h"

#include <math.h>

#include "agent/core/float_math.h"

/*
 * Components closer than this to the last event's don't make a new one (reporting E9): fixed, whatever the
 * configuration says.
 */
static const double CLOSE_CU = 0.25;

void scaling_events_init(struct scaling_event_source *ret_source, const struct scaling_event_sink *sink,
                         struct agent_metrics *metrics, double cu_multiplier)
{
	*ret_source = (struct scaling_event_source){ .sink = sink, .metrics = metrics, .cu_multiplier = cu_multiplier };
}

uint32_t scaling_events_milli_cu(uint32_t compute_units, double multiplier)
{
	return float_to_u32(round((1000.0 * (double)compute_units) * multiplier));
}

static bool submit(struct scaling_event_source *source, const struct scaling_event *event, struct error *err)
{
	agent_metrics_count_scaling_event(source->metrics, event->kind);
	return source->sink->submit == NULL || source->sink->submit(source->sink->context, event, err);
}

bool scaling_events_actual(struct scaling_event_source *source, int64_t wall_ns, struct slice endpoint_id,
                           uint32_t current_cu, uint32_t target_cu, struct error *err)
{
	const struct scaling_event event = {
		.kind = AGENT_SCALING_EVENT_ACTUAL,
		.wall_ns = wall_ns,
		.endpoint_id = endpoint_id,
		.current_milli_cu = scaling_events_milli_cu(current_cu, source->cu_multiplier),
		.target_milli_cu = scaling_events_milli_cu(target_cu, source->cu_multiplier),
	};

	return submit(source, &event, err);
}

static struct goal_parts parts_times(const struct goal_parts *parts, double factor)
{
	struct goal_parts product = *parts;

	product.cpu = parts->has_cpu ? parts->cpu * factor : 0;
	product.mem = parts->has_mem ? parts->mem * factor : 0;
	product.lfc = parts->has_lfc ? parts->lfc * factor : 0;
	return product;
}

static bool close_to(bool has_a, double a, bool has_b, double b)
{
	return has_a == has_b && (!has_a || fabs(a - b) < CLOSE_CU);
}

static bool held_back(const struct scaling_event_source *source, uint32_t target_milli_cu,
                      const struct goal_parts *parts)
{
	const struct goal_parts *last = &source->last_parts;

	return source->has_last && source->last_target_milli_cu == target_milli_cu &&
	       close_to(last->has_cpu, last->cpu, parts->has_cpu, parts->cpu) &&
	       close_to(last->has_mem, last->mem, parts->has_mem, parts->mem) &&
	       close_to(last->has_lfc, last->lfc, parts->has_lfc, parts->lfc);
}

bool scaling_events_hypothetical(struct scaling_event_source *source, int64_t wall_ns, struct slice endpoint_id,
                                 struct slice namespace, struct slice name, uint32_t current_cu, uint32_t goal_cu,
                                 const struct goal_parts *parts, struct error *err)
{
	const struct scaling_desired_cu desired = {
		.total = (double)goal_cu * source->cu_multiplier,
		.parts = parts_times(parts, source->cu_multiplier),
	};
	const struct scaling_event event = {
		.kind = AGENT_SCALING_EVENT_HYPOTHETICAL,
		.wall_ns = wall_ns,
		.endpoint_id = endpoint_id,
		.current_milli_cu = scaling_events_milli_cu(current_cu, source->cu_multiplier),
		.target_milli_cu = scaling_events_milli_cu(goal_cu, source->cu_multiplier),
		.parts = desired.parts,
	};

	if (source->sink->set_desired_cu != NULL)
		source->sink->set_desired_cu(source->sink->context, namespace, name, &desired);
	if (held_back(source, event.target_milli_cu, &event.parts))
		return true;
	source->has_last = true;
	source->last_target_milli_cu = event.target_milli_cu;
	source->last_parts = event.parts;
	return submit(source, &event, err);
}
