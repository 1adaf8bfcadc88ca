/*
 * Requests to the scheduler plugin and to NeonVM (spec agent-core 4.3, 4.4).
 *
 * Increases are asked of the plugin before they happen, decreases reported after they happened. NeonVM is asked for
 * what lies between the monitor's approval (for less) and the plugin's permit (for more).
 */
#include "agent/core/core.h"
#include "agent/core/core_internal.h"

#define PLUGIN "Wanted to make a request to the scheduler plugin, but "
#define NEONVM "Wanted to make a request to NeonVM API, but "

static const char WARN_PLUGIN_ONGOING[] = PLUGIN "there's already an ongoing request for different resources";
static const char WARN_PLUGIN_FAILED[] = PLUGIN "previous request failed too recently";
static const char WARN_PLUGIN_DENIED[] = PLUGIN "previous request for more resources was denied too recently";
static const char WARN_NEONVM_FAILED[] = NEONVM "recent request failed too recently";
static const char WARN_NEONVM_PLUGIN[] = NEONVM "there's already plugin request ongoing";
static const char WARN_NEONVM_ONGOING[] = NEONVM "there's already NeonVM request (for different resources) ongoing";
static const char WARN_NEONVM_BOTH[] =
	NEONVM "there's already plugin request ongoing and NeonVM request (for different resources) ongoing";

/* The table of 4.3. */
struct plugin_view {
	struct resources target;
	int64_t tick_remaining_ns;
	int64_t denied_remaining_ns;
	bool wants_new;
	bool asks_new; /* wants, and no recent denial forbids it */
};

/* What can be said in memory slots, not less than what is in use (generations 2.3). */
static struct resources sayable(const struct core *core, struct resources amount)
{
	uint64_t slot_bytes = core->vm.mem.slot_bytes;

	if (core->config.plugin_whole_slots && slot_bytes > 0)
		amount.mem_bytes -= amount.mem_bytes % slot_bytes;
	return amount;
}

static struct resources using_or_about_to(const struct core *core, struct resources using)
{
	if (!core->neonvm.ongoing_requested.present)
		return using;
	return resources_max(using, core->neonvm.ongoing_requested.value);
}

static struct plugin_view view_plugin(const struct core *core, const struct core_plan *plan)
{
	const struct core_plugin_state *plugin = &core->plugin;
	struct resources want = resources_max(plan->using, sayable(core, plan->desired.resources));
	bool answered = plugin->has_last_request && plugin->permit.present;
	bool denied = answered && !plugin->ongoing_request &&
	              resources_has_greater(plugin->last_request, plugin->permit.value);
	struct plugin_view view = { 0 };

	if (plugin->has_last_request)
		view.tick_remaining_ns = instant_remaining(plugin->last_request_at_ns,
		                                           core->config.plugin_request_tick_ns, plan->now_ns);
	if (denied)
		view.denied_remaining_ns = instant_remaining(plugin->last_request_at_ns,
		                                             core->config.plugin_denied_retry_wait_ns, plan->now_ns);
	view.wants_new = answered && !resources_equal(want, plugin->permit.value);
	view.asks_new = view.wants_new && view.denied_remaining_ns <= 0;
	view.target = view.asks_new ? want : sayable(core, using_or_about_to(core, plan->using));
	return view;
}

static void ask_plugin(const struct core *core, struct core_plan *plan, struct resources target)
{
	plan->actions.has_plugin_request = true;
	plan->actions.plugin_request = (struct core_plugin_request){
		.last_permit = core->plugin.permit,
		.target = target,
		.has_metrics = core->has_metrics,
		.load_average_1_min = core->has_metrics ? (float)core->metrics.load_average_1_min : 0,
		.load_average_5_min = core->has_metrics ? (float)core->metrics.load_average_5_min : 0,
		.memory_usage_bytes = core->has_metrics ? (float)core->metrics.memory_usage_bytes : 0,
		.target_revision = revision_with_time(core->target_revision, plan->now_ns),
	};
}

bool core_plan_backs_off(struct core_plan *plan, struct optional_instant failed_at, int64_t retry_wait_ns)
{
	if (!failed_at.present)
		return false;

	int64_t remaining_ns = instant_remaining(failed_at.ns, retry_wait_ns, plan->now_ns);

	if (remaining_ns <= 0)
		return false;
	core_wait_at_most(&plan->wait, remaining_ns);
	return true;
}

void core_plan_plugin(const struct core *core, struct core_plan *plan)
{
	const struct core_plugin_state *plugin = &core->plugin;
	struct plugin_view view = view_plugin(core, plan);

	if (core->config.plugin_gate && !plugin->alive)
		return; /* G14: nobody to ask, nothing to wait for */
	if (plugin->ongoing_request) {
		if (!resources_equal(plugin->last_request, view.target))
			core_warn(core, WARN_PLUGIN_ONGOING);
		return;
	}
	if (core_plan_backs_off(plan, plugin->last_failure_at, core->config.plugin_retry_wait_ns)) {
		core_warn(core, WARN_PLUGIN_FAILED);
		return;
	}
	if (view.tick_remaining_ns <= 0 || view.asks_new) {
		ask_plugin(core, plan, view.target);
		return;
	}
	core_wait_at_most(&plan->wait, view.tick_remaining_ns);
	if (view.denied_remaining_ns > 0) {
		if (view.wants_new)
			core_warn(core, WARN_PLUGIN_DENIED);
		core_wait_at_most(&plan->wait, view.denied_remaining_ns);
	}
}

/* N-12: the revision is as old as the oldest approval the change rests on. */
static struct revision neonvm_revision(const struct core *core, const struct core_plan *plan)
{
	struct revision revision = core->target_revision;

	if (resources_has_less(plan->desired.resources, plan->using) && core->monitor.current_revision.value > 0)
		revision = revision_min(revision, core->monitor.current_revision);
	if (resources_has_greater(plan->desired.resources, plan->using) && core->plugin.current_revision.value > 0)
		revision = revision_min(revision, core->plugin.current_revision);
	return revision;
}

/* N-2: whether the plugin is being, or about to be, asked for less than target. */
static bool conflicts_with_plugin(const struct core *core, const struct core_plan *plan, struct resources target)
{
	if (core->plugin.ongoing_request)
		return resources_has_less(core->plugin.last_request, target);
	return plan->actions.has_plugin_request && resources_has_less(plan->actions.plugin_request.target, target);
}

static void warn_neonvm_blocked(const struct core *core, struct resources target)
{
	bool by_plugin = core->plugin.ongoing_request;
	bool by_neonvm = core->neonvm.ongoing_requested.present &&
	                 !resources_equal(core->neonvm.ongoing_requested.value, target);

	if (by_plugin && by_neonvm)
		core_warn(core, WARN_NEONVM_BOTH);
	else if (by_plugin)
		core_warn(core, WARN_NEONVM_PLUGIN);
	else if (by_neonvm)
		core_warn(core, WARN_NEONVM_ONGOING);
}

bool core_plan_neonvm(struct core *core, struct core_plan *plan, struct error *err)
{
	struct resources using = plan->using;
	struct optional_resources lower =
		core->monitor.approved.present ? core->monitor.approved : resources_some(using);
	struct optional_resources upper = core->plugin.permit.present ? core->plugin.permit : resources_some(using);
	struct resources target;

	if (!resources_clamp(using, plan->desired.resources, lower, upper, core->config.clamp_instead_of_fail, &target,
	                     err))
		return false;
	if (resources_equal(target, using))
		return true;
	if (core->neonvm.ongoing_requested.present || conflicts_with_plugin(core, plan, target)) {
		warn_neonvm_blocked(core, target);
		return true;
	}
	if (core_plan_backs_off(plan, core->neonvm.request_failed_at, core->config.neonvm_retry_wait_ns)) {
		core_warn(core, WARN_NEONVM_FAILED);
		return true;
	}

	/* Noted on each proposal, whether or not the request is then made: latencies count from here (pitfall 1). */
	core->neonvm.target_revision = revision_with_time(neonvm_revision(core, plan), plan->now_ns);
	plan->actions.has_neonvm_request = true;
	plan->actions.neonvm_request = (struct core_change_request){
		.current = using,
		.target = target,
		.target_revision = core->neonvm.target_revision,
	};
	return true;
}
