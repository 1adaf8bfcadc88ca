/*
 * What the VM should have (spec agent-core 4.2): the goal of the metrics, raised by what the vm-monitor asked for or
 * refused to give back, then cut to the VM's bounds. Bounds win over everything but a refused downscale, which holds
 * what it holds.
 */
#include "agent/core/core.h"
#include "agent/core/core_internal.h"

static const char WARN_ABOVE_MAXIMUM[] =
	"Can't decrease desired resources to within VM maximum because of vm-monitor previously denied downscale request";

static uint32_t units_above_cpu(struct resources amount, struct resources unit)
{
	return 1 + amount.cpu_milli / unit.cpu_milli;
}

static uint32_t units_above_mem(struct resources amount, struct resources unit)
{
	return (uint32_t)(1 + amount.mem_bytes / unit.mem_bytes);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static bool calculate_goal(const struct core *core, struct goal *ret_goal, struct error *err)
{
	struct scaling_config config = core_scaling_config(core);
	struct goal_input input = {
		.config = &config,
		.compute_unit = core->compute_unit,
		.whole_unit_parts = core->config.whole_unit_parts,
		.system = core->has_metrics ? &core->metrics : NULL,
		.lfc = core->has_lfc_metrics ? &core->lfc_metrics : NULL,
		.warn = core->callbacks.warn,
		.warn_context = core->callbacks.context,
	};

	return goal_calculate(&input, ret_goal, err);
}

/* N-4: tells what would happen if the goal alone decided. */
static bool report_hypothetical(const struct core *core, int64_t now_ns, const struct goal *goal, struct error *err)
{
	struct resources_quotient current_cu;

	if (!goal->has_all_metrics || core->callbacks.hypothetical_scaling == NULL)
		return true;
	if (!resources_divide(core_using(core), core->compute_unit, &current_cu, err))
		return false;
	if (current_cu.whole)
		core->callbacks.hypothetical_scaling(core->callbacks.context, now_ns, current_cu.units,
		                                     goal->compute_units, &goal->parts);
	return true;
}

/* N-5. */
static bool raise_for_requested_upscale(const struct core *core, int64_t now_ns, uint32_t original_goal, uint32_t *goal,
                                        struct core_desired *desired, struct error *err)
{
	const struct core_requested_upscale *upscale = &core->monitor.requested_upscale;
	struct resources unit = core->compute_unit;
	uint32_t required = 0;

	if (!upscale->present)
		return true;
	desired->upscale_remaining_ns =
		instant_remaining(upscale->at_ns, core->config.monitor_requested_upscale_valid_period_ns, now_ns);
	if (desired->upscale_remaining_ns <= 0 || (!upscale->cpu && !upscale->memory))
		return true;
	if (!resources_check_unit(unit, err))
		return false;
	if (upscale->cpu)
		required = larger(required, units_above_cpu(upscale->base, unit));
	if (upscale->memory)
		required = larger(required, units_above_mem(upscale->base, unit));
	if (required > original_goal) {
		desired->upscale_affects = true;
		*goal = larger(*goal, required);
	}
	return true;
}

/* N-6: compares with the goal before N-5 raised it, so both can have an effect. */
static bool raise_for_denied_downscale(const struct core *core, int64_t now_ns, uint32_t original_goal, uint32_t *goal,
                                       struct core_desired *desired, struct error *err)
{
	const struct core_denied_downscale *denied = &core->monitor.denied_downscale;
	struct resources unit = core->compute_unit;

	if (!denied->present)
		return true;
	desired->denied_remaining_ns =
		instant_remaining(denied->at_ns, core->config.monitor_denied_downscale_cooldown_ns, now_ns);
	if (desired->denied_remaining_ns <= 0)
		return true;
	if (!resources_check_unit(unit, err))
		return false;

	uint32_t required = larger(units_above_cpu(denied->requested, unit), units_above_mem(denied->requested, unit));

	if (required > original_goal) {
		desired->denied_affects = true;
		*goal = larger(*goal, required);
	}
	return true;
}

/* N-7.4: no resource may go where the vm-monitor has just refused to go. */
static void hold_denied_downscale(const struct core *core, struct core_desired *desired)
{
	const struct core_denied_downscale *denied = &core->monitor.denied_downscale;
	struct resources unit = core->compute_unit;

	if (desired->denied_remaining_ns <= 0)
		return;
	if (!resources_has_greater(desired->resources, denied->requested))
		core_warn(core, WARN_ABOVE_MAXIMUM);

	struct resources one_unit_above = {
		.cpu_milli = unit.cpu_milli * (1 + denied->requested.cpu_milli / unit.cpu_milli),
		.mem_bytes = unit.mem_bytes * (1 + denied->requested.mem_bytes / unit.mem_bytes),
	};
	struct resources least = resources_min(denied->current, one_unit_above);
	struct resources held = resources_max(desired->resources, least);

	if (!resources_equal(held, desired->resources)) {
		desired->denied_affects = true;
		desired->resources = held;
	}
}

/* The goal is taken modulo 2^16, as the reference does (pitfall 22), unless its parts can't be that large (G4). */
static struct resources goal_resources(const struct core *core, uint32_t compute_units)
{
	struct resources unit = core->compute_unit;

	if (core->config.whole_unit_parts)
		return resources_multiply_saturating(unit, compute_units);
	return resources_multiply(unit, (uint16_t)compute_units);
}

/* What is wanted without metrics: B keeps at least what is in use, A only if nothing else is wanted (G7). */
static struct resources without_metrics(const struct core *core, struct resources wanted, uint32_t compute_units)
{
	if (!core->config.no_metrics_keep)
		return resources_max(wanted, core_using(core));
	return compute_units == 0 ? core_using(core) : wanted;
}

/* N-7. */
static bool bound_goal(const struct core *core, const struct goal *goal, uint32_t compute_units,
                       struct core_desired *desired, struct error *err)
{
	struct resources least = vm_info_min(&core->vm);
	struct resources most = vm_info_max(&core->vm);
	struct resources wanted = goal_resources(core, compute_units);

	if (!goal->has_all_metrics)
		wanted = without_metrics(core, wanted, compute_units);
	desired->resources = resources_max(resources_min(wanted, most), least);
	hold_denied_downscale(core, desired);

	if (!desired->denied_affects && resources_has_greater(desired->resources, most))
		return error_set(err, ERROR_INVARIANT,
		                 "produced invalid desired state: result has field greater than max");
	if (resources_has_less(desired->resources, least))
		return error_set(err, ERROR_INVARIANT,
		                 "produced invalid desired state: result has field less than min");
	return true;
}

/* N-8: each change of the target gets a revision of its own. */
static void update_target_revision(struct core *core, int64_t now_ns, struct resources desired)
{
	struct resources last = core->last_desired.present ? core->last_desired.value : core_using(core);

	if (!resources_equal(last, desired)) {
		uint64_t upscale = resources_has_greater(desired, last) ? REVISION_UPSCALE : 0;
		uint64_t downscale = resources_has_less(desired, last) ? REVISION_DOWNSCALE : 0;

		core->target_revision = revision_source_next(&core->revision_source, now_ns, upscale | downscale);
	}
	core->last_desired = resources_some(desired);
}

static void report_calculation(const struct core *core, const struct goal *goal, struct resources desired)
{
	if (core->callbacks.calculated == NULL)
		return;

	struct core_calculation calculation = {
		.current = core_using(core),
		.target = desired,
		.target_revision = core->target_revision,
		.has_lfc = goal->has_lfc_report,
		.lfc = goal->lfc_report,
	};

	core->callbacks.calculated(core->callbacks.context, &calculation);
}

bool core_desired_resources(struct core *core, int64_t now_ns, struct core_desired *ret_desired, struct error *err)
{
	struct core_desired desired = { 0 };
	struct goal goal;

	if (core->config.compute_unit_from_plugin && core->compute_unit.cpu_milli == 0) {
		/* G2: nothing can be counted yet, not even bounds hold. */
		*ret_desired = (struct core_desired){ .resources = core_using(core) };
		return true;
	}
	if (!calculate_goal(core, &goal, err) || !report_hypothetical(core, now_ns, &goal, err))
		return false;

	uint32_t compute_units = goal.compute_units;

	if (!raise_for_requested_upscale(core, now_ns, goal.compute_units, &compute_units, &desired, err) ||
	    !raise_for_denied_downscale(core, now_ns, goal.compute_units, &compute_units, &desired, err))
		return false;
	if (!bound_goal(core, &goal, compute_units, &desired, err))
		return false;

	update_target_revision(core, now_ns, desired.resources);
	report_calculation(core, &goal, desired.resources);
	*ret_desired = desired;
	return true;
}

bool core_desired_wait(const struct core *core, const struct core_desired *desired, bool has_monitor_downscale,
                       int64_t *ret_wait_ns)
{
	struct core_wait wait = { 0 };

	if (desired->denied_affects && !has_monitor_downscale && core->monitor.ongoing == CORE_MONITOR_IDLE)
		core_wait_at_most(&wait, desired->denied_remaining_ns);
	if (desired->upscale_affects)
		core_wait_at_most(&wait, desired->upscale_remaining_ns);
	if (wait.present)
		*ret_wait_ns = wait.ns;
	return wait.present;
}
