#include "agent/core/core_dump_a.h"

static struct state_dump_a_resources dump_resources(const struct core *core, struct resources amount)
{
	uint64_t slot_bytes = core->vm.mem.slot_bytes;

	return (struct state_dump_a_resources){
		.cpu_milli = amount.cpu_milli,
		.slots = slot_bytes > 0 ? amount.mem_bytes / slot_bytes : 0,
	};
}

static int64_t dump_instant(struct optional_instant instant)
{
	return instant.present ? instant.ns : RFC3339_ZERO;
}

static struct scaling_a_scaling_config dump_scaling_config(const struct scaling_config *config)
{
	return (struct scaling_a_scaling_config){
		.has_load_average_fraction_target = config->has_load_average_fraction_target,
		.load_average_fraction_target = config->load_average_fraction_target,
		.has_memory_usage_fraction_target = config->has_memory_usage_fraction_target,
		.memory_usage_fraction_target = config->memory_usage_fraction_target,
	};
}

static struct state_dump_a_config dump_config(const struct core_config *config)
{
	return (struct state_dump_a_config){
		.default_scaling_config = dump_scaling_config(&config->default_scaling_config),
		.neonvm_retry_wait_ns = config->neonvm_retry_wait_ns,
		.plugin_request_tick_ns = config->plugin_request_tick_ns,
		.plugin_retry_wait_ns = config->plugin_retry_wait_ns,
		.plugin_denied_retry_wait_ns = config->plugin_denied_retry_wait_ns,
		.monitor_denied_downscale_cooldown_ns = config->monitor_denied_downscale_cooldown_ns,
		.monitor_downscale_follow_up_wait_ns = config->monitor_downscale_follow_up_wait_ns,
		.monitor_requested_upscale_valid_period_ns = config->monitor_requested_upscale_valid_period_ns,
		.monitor_retry_wait_ns = config->monitor_retry_wait_ns,
	};
}

static struct state_dump_a_plugin dump_plugin(const struct core *core)
{
	const struct core_plugin_state *plugin = &core->plugin;

	return (struct state_dump_a_plugin){
		.alive = plugin->alive,
		.ongoing_request = plugin->ongoing_request,
		.has_compute_unit = core->compute_unit.cpu_milli != 0,
		.compute_unit = dump_resources(core, core->compute_unit),
		.has_last_request = plugin->has_last_request,
		.last_request = { .at_ns = plugin->last_request_at_ns,
		                  .resources = dump_resources(core, plugin->last_request) },
		.last_failure_at_ns = dump_instant(plugin->last_failure_at),
		.has_permit = plugin->permit.present,
		.permit = dump_resources(core, plugin->permit.value),
	};
}

static struct state_dump_a_monitor dump_monitor(const struct core *core)
{
	const struct core_monitor_state *monitor = &core->monitor;
	const struct core_requested_upscale *upscale = &monitor->requested_upscale;
	const struct core_denied_downscale *denied = &monitor->denied_downscale;

	return (struct state_dump_a_monitor){
		.has_ongoing_request = monitor->ongoing != CORE_MONITOR_IDLE,
		.ongoing_request = {
			.kind = monitor->ongoing == CORE_MONITOR_UPSCALE ? SLICE("upscale") : SLICE("downscale"),
			.resources = dump_resources(core, monitor->ongoing_requested),
		},
		.has_requested_upscale = upscale->present,
		.requested_upscale = {
			.at_ns = upscale->at_ns,
			.base = dump_resources(core, upscale->base),
			.requested = { .cpu = upscale->cpu, .memory = upscale->memory },
		},
		.has_denied_downscale = denied->present,
		.denied_downscale = {
			.at_ns = denied->at_ns,
			.current = dump_resources(core, denied->current),
			.requested = dump_resources(core, denied->requested),
		},
		.has_approved = monitor->approved.present,
		.approved = dump_resources(core, monitor->approved.value),
		.downscale_failure_at_ns = dump_instant(monitor->downscale_failure_at),
		.upscale_failure_at_ns = dump_instant(monitor->upscale_failure_at),
	};
}

bool core_dump_vm_a(const struct vm_info *vm, const struct scaling_config *defaults, struct arena *arena,
                    struct state_dump_a_vm_info *ret_vm, struct error *err)
{
	struct scaling_config effective = scaling_config_merge(defaults, &vm->scaling_config);
	struct slice name;
	struct slice namespace;

	if (!arena_copy(arena, slice_of(vm->name), &name) || !arena_copy(arena, slice_of(vm->namespace), &namespace))
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	*ret_vm = (struct state_dump_a_vm_info){
		.name = name,
		.namespace = namespace,
		.cpu = { .min_milli = vm->cpu.min_milli,
		         .max_milli = vm->cpu.max_milli,
		         .use_milli = vm->cpu.use_milli },
		.mem = { .min_slots = vm->mem.min_slots,
		         .max_slots = vm->mem.max_slots,
		         .use_slots = vm->mem.use_slots,
		         .slot_size_bytes = vm->mem.slot_bytes },
		.has_scaling_config = vm->has_scaling_config,
		.scaling_config = dump_scaling_config(&effective),
		.always_migrate = vm->always_migrate,
		.scaling_enabled = vm->scaling_enabled,
	};
	return true;
}

bool core_dump_a(const struct core *core, struct arena *arena, struct state_dump_a_state *ret_state, struct error *err)
{
	struct state_dump_a_state state = {
		.config = dump_config(&core->config),
		.plugin = dump_plugin(core),
		.monitor = dump_monitor(core),
		.neonvm = { .has_ongoing_requested = core->neonvm.ongoing_requested.present,
		            .ongoing_requested = dump_resources(core, core->neonvm.ongoing_requested.value),
		            .request_failed_at_ns = dump_instant(core->neonvm.request_failed_at) },
		.has_metrics = core->has_metrics,
		.metrics = { .load_average_1_min = (float)core->metrics.load_average_1_min,
		             .load_average_5_min = (float)core->metrics.load_average_5_min,
		             .memory_usage_bytes = (float)core->metrics.memory_usage_bytes },
	};

	if (!core_dump_vm_a(&core->vm, &core->config.default_scaling_config, arena, &state.vm, err))
		return false;
	*ret_state = state;
	return true;
}
