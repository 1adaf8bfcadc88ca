/*
 * Requests to the vm-monitor (spec agent-core 4.5, 4.6): it is told of more after it happened, and asked for less
 * before, one compute unit at a time, or all at once if the configuration says so.
 */
#include "agent/core/core.h"
#include "agent/core/core_internal.h"

#define UPSCALE "Wanted to send vm-monitor upscale request, but "
#define DOWNSCALE "Wanted to send vm-monitor downscale request, but "

static const char WARN_UPSCALE_UPSCALE[] = UPSCALE "waiting on ongoing upscale request (for different resources)";
static const char WARN_UPSCALE_DOWNSCALE[] = UPSCALE "waiting on ongoing downscale request";
static const char WARN_UPSCALE_FAILED[] = UPSCALE "failed too recently";
static const char WARN_DOWNSCALE_INACTIVE[] = DOWNSCALE "there's no active connection";
static const char WARN_DOWNSCALE_PLANNED[] = DOWNSCALE "waiting on other planned upscale request";
static const char WARN_DOWNSCALE_DOWNSCALE[] =
	DOWNSCALE "waiting on other ongoing downscale request (for different resources)";
static const char WARN_DOWNSCALE_UPSCALE[] = DOWNSCALE "waiting on other ongoing upscale request";
/* Without the comma of the others: as in the reference. */
static const char WARN_DOWNSCALE_FAILED[] = "Wanted to send vm-monitor downscale request but failed too recently";

static const char WARN_DOWNSCALE_DENIED[] = DOWNSCALE "the last one was denied too recently";

static bool ongoing_for(const struct core *core, struct resources target)
{
	return resources_equal(core->monitor.ongoing_requested, target);
}

static struct core_change_request change_request(const struct core *core, const struct core_plan *plan,
                                                 struct resources target)
{
	return (struct core_change_request){
		.current = core->monitor.approved.value,
		.target = target,
		.target_revision = revision_with_time(core->target_revision, plan->now_ns),
	};
}

bool core_plan_monitor_upscale(const struct core *core, struct core_plan *plan, struct error *err)
{
	const struct core_monitor_state *monitor = &core->monitor;
	struct resources approved = monitor->approved.value;
	struct resources target;

	if (!monitor->approved.present)
		return true;

	struct resources most = resources_max(plan->desired.resources, approved);

	if (!resources_clamp(approved, plan->using, resources_some(approved), resources_some(most), false, &target,
	                     err))
		return false;
	if (resources_equal(target, approved))
		return true;
	if (monitor->ongoing == CORE_MONITOR_DOWNSCALE) {
		core_warn(core, WARN_UPSCALE_DOWNSCALE);
		return true;
	}
	if (monitor->ongoing == CORE_MONITOR_UPSCALE) {
		if (!ongoing_for(core, target))
			core_warn(core, WARN_UPSCALE_UPSCALE);
		return true;
	}
	if (core_plan_backs_off(plan, monitor->upscale_failure_at, core->config.monitor_retry_wait_ns)) {
		core_warn(core, WARN_UPSCALE_FAILED);
		return true;
	}
	plan->actions.has_monitor_upscale = true;
	plan->actions.monitor_upscale = change_request(core, plan, target);
	return true;
}

/* N-17: towards what is desired, by at most one compute unit unless it may go at once (G12). */
static struct resources downscale_target(const struct core *core, const struct core_plan *plan)
{
	struct resources approved = core->monitor.approved.value;
	struct resources lowest = resources_subtract(approved, core->compute_unit);

	if (core->config.downscale_at_once)
		return resources_min(approved, plan->desired.resources);
	return resources_max(resources_min(approved, plan->desired.resources), lowest);
}

/* G11: after a denial the next request waits, whatever its size. */
static bool follows_denial(const struct core *core, struct core_plan *plan)
{
	const struct core_denied_downscale *denied = &core->monitor.denied_downscale;
	struct optional_instant denied_at = { .present = denied->present, .ns = denied->at_ns };

	return core->config.monitor_downscale_follow_up_wait_ns > 0 &&
	       core_plan_backs_off(plan, denied_at, core->config.monitor_downscale_follow_up_wait_ns);
}

/* Whether something stands in the way; then the warning has been given (N-18.2 … 4). */
static bool downscale_is_blocked(const struct core *core, struct core_plan *plan, struct resources target)
{
	const struct core_monitor_state *monitor = &core->monitor;

	if (plan->actions.has_monitor_upscale) {
		core_warn(core, WARN_DOWNSCALE_PLANNED);
		return true;
	}
	if (monitor->ongoing == CORE_MONITOR_UPSCALE) {
		core_warn(core, WARN_DOWNSCALE_UPSCALE);
		return true;
	}
	if (monitor->ongoing == CORE_MONITOR_DOWNSCALE) {
		if (!ongoing_for(core, target))
			core_warn(core, WARN_DOWNSCALE_DOWNSCALE);
		return true;
	}
	if (core_plan_backs_off(plan, monitor->downscale_failure_at, core->config.monitor_retry_wait_ns)) {
		core_warn(core, WARN_DOWNSCALE_FAILED);
		return true;
	}
	if (follows_denial(core, plan)) {
		core_warn(core, WARN_DOWNSCALE_DENIED);
		return true;
	}
	return false;
}

bool core_plan_monitor_downscale(const struct core *core, struct core_plan *plan, struct error *err)
{
	const struct core_monitor_state *monitor = &core->monitor;

	if (!monitor->approved.present) {
		if (resources_has_less(plan->desired.resources, plan->using))
			core_warn(core, WARN_DOWNSCALE_INACTIVE);
		return true;
	}

	struct resources target = downscale_target(core, plan);

	if (resources_equal(target, monitor->approved.value) || downscale_is_blocked(core, plan, target))
		return true;
	if (plan->desired.denied_remaining_ns > 0 && !resources_has_less(monitor->denied_downscale.requested, target))
		return error_set(err, ERROR_INVARIANT, "wanted a downscale that the vm-monitor has just denied");
	plan->actions.has_monitor_downscale = true;
	plan->actions.monitor_downscale = change_request(core, plan, target);
	return true;
}
