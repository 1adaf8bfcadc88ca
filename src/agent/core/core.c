#include "agent/core/core.h"

#include "agent/core/core_internal.h"

void core_init(struct core *ret_core, const struct core_config *config, const struct vm_info *vm,
               const struct core_callbacks *callbacks)
{
	int64_t initial_revision = vm->has_current_revision ? vm->current_revision.revision.value : 0;

	*ret_core = (struct core){ .config = *config, .vm = *vm, .callbacks = *callbacks };
	if (!config->compute_unit_from_plugin)
		ret_core->compute_unit = config->compute_unit;
	ret_core->neonvm.target_revision.updated_at_ns = RFC3339_ZERO;
	revision_source_init(&ret_core->revision_source, initial_revision);
}

struct resources core_using(const struct core *core)
{
	return vm_info_using(&core->vm);
}

struct scaling_config core_scaling_config(const struct core *core)
{
	if (!core->vm.has_scaling_config)
		return core->config.default_scaling_config;
	return scaling_config_merge(&core->config.default_scaling_config, &core->vm.scaling_config);
}

void core_warn(const struct core *core, const char *text)
{
	if (core->callbacks.warn != NULL)
		core->callbacks.warn(core->callbacks.context, text);
}

static void report_latency(const struct core *core, enum core_latency kind, int64_t latency_ns, uint64_t flags)
{
	if (core->callbacks.latency != NULL)
		core->callbacks.latency(core->callbacks.context, kind, latency_ns, flags);
}

void core_report_plugin_latency(void *context, int64_t latency_ns, uint64_t flags)
{
	report_latency(context, CORE_LATENCY_PLUGIN, latency_ns, flags);
}

void core_report_monitor_latency(void *context, int64_t latency_ns, uint64_t flags)
{
	report_latency(context, CORE_LATENCY_MONITOR, latency_ns, flags);
}

void core_report_neonvm_latency(void *context, int64_t latency_ns, uint64_t flags)
{
	report_latency(context, CORE_LATENCY_NEONVM, latency_ns, flags);
}

void core_report_scaling_latency(void *context, int64_t latency_ns, uint64_t flags)
{
	report_latency(context, CORE_LATENCY_SCALING, latency_ns, flags);
}

void core_wait_at_most(struct core_wait *wait, int64_t ns)
{
	if (!wait->present || ns < wait->ns)
		*wait = (struct core_wait){ .present = true, .ns = ns };
}

bool core_next_actions(struct core *core, int64_t now_ns, struct core_actions *ret_actions, struct error *err)
{
	struct core_plan plan = { .now_ns = now_ns };
	int64_t desired_wait_ns;

	/* The order is observable: by warnings, callbacks, and what a later step sees of an earlier one (N-1). */
	if (!core_desired_resources(core, now_ns, &plan.desired, err))
		return false;
	plan.using = core_using(core);
	core_plan_plugin(core, &plan);
	if (!core_plan_neonvm(core, &plan, err))
		return false;
	if (!core_plan_monitor_upscale(core, &plan, err))
		return false;
	if (!core_plan_monitor_downscale(core, &plan, err))
		return false;
	if (core_desired_wait(core, &plan.desired, plan.actions.has_monitor_downscale, &desired_wait_ns))
		core_wait_at_most(&plan.wait, desired_wait_ns);

	plan.actions.has_wait = plan.wait.present;
	plan.actions.wait_ns = plan.wait.ns;
	*ret_actions = plan.actions;
	return true;
}
