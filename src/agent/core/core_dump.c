#include "agent/core/core_dump.h"

#include <string.h>

static struct plugin_resources dump_resources(struct resources amount)
{
	return (struct plugin_resources){ .cpu_milli = amount.cpu_milli, .mem_bytes = amount.mem_bytes };
}

static struct scaling_revision dump_revision(struct revision revision)
{
	return (struct scaling_revision){ .value = revision.value, .flags = revision.flags };
}

static struct scaling_revision_with_time dump_revision_with_time(struct revision_with_time revision)
{
	return (struct scaling_revision_with_time){
		.revision = dump_revision(revision.revision),
		.updated_at_ns = revision.updated_at_ns,
	};
}

static int64_t dump_instant(struct optional_instant instant)
{
	return instant.present ? instant.ns : RFC3339_ZERO;
}

static struct scaling_scaling_config dump_scaling_config(const struct scaling_config *config)
{
	return (struct scaling_scaling_config){
		.has_load_average_fraction_target = config->has_load_average_fraction_target,
		.load_average_fraction_target = config->load_average_fraction_target,
		.has_memory_usage_fraction_target = config->has_memory_usage_fraction_target,
		.memory_usage_fraction_target = config->memory_usage_fraction_target,
		.has_memory_total_fraction_target = config->has_memory_total_fraction_target,
		.memory_total_fraction_target = config->memory_total_fraction_target,
		.has_enable_lfc_metrics = config->has_enable_lfc_metrics,
		.enable_lfc_metrics = config->enable_lfc_metrics,
		.has_lfc_use_largest_window = config->has_lfc_use_largest_window,
		.lfc_use_largest_window = config->lfc_use_largest_window,
		.has_lfc_to_memory_ratio = config->has_lfc_to_memory_ratio,
		.lfc_to_memory_ratio = config->lfc_to_memory_ratio,
		.has_lfc_min_wait_before_downscale_minutes = config->has_lfc_min_wait_before_downscale_minutes,
		.lfc_min_wait_before_downscale_minutes = config->lfc_min_wait_before_downscale_minutes,
		.has_lfc_window_size_minutes = config->has_lfc_window_size_minutes,
		.lfc_window_size_minutes = config->lfc_window_size_minutes,
		.has_cpu_stable_zone_ratio = config->has_cpu_stable_zone_ratio,
		.cpu_stable_zone_ratio = config->cpu_stable_zone_ratio,
		.has_cpu_mixed_zone_ratio = config->has_cpu_mixed_zone_ratio,
		.cpu_mixed_zone_ratio = config->cpu_mixed_zone_ratio,
	};
}

static struct state_dump_config dump_config(const struct core_config *config)
{
	return (struct state_dump_config){
		.compute_unit = dump_resources(config->compute_unit),
		.default_scaling_config = dump_scaling_config(&config->default_scaling_config),
		.neonvm_retry_wait_ns = config->neonvm_retry_wait_ns,
		.plugin_request_tick_ns = config->plugin_request_tick_ns,
		.plugin_retry_wait_ns = config->plugin_retry_wait_ns,
		.plugin_denied_retry_wait_ns = config->plugin_denied_retry_wait_ns,
		.monitor_denied_downscale_cooldown_ns = config->monitor_denied_downscale_cooldown_ns,
		.monitor_requested_upscale_valid_period_ns = config->monitor_requested_upscale_valid_period_ns,
		.monitor_retry_wait_ns = config->monitor_retry_wait_ns,
	};
}

static struct state_dump_plugin dump_plugin(const struct core_plugin_state *plugin)
{
	return (struct state_dump_plugin){
		.ongoing_request = plugin->ongoing_request,
		.has_last_request = plugin->has_last_request,
		.last_request = {
			.at_ns = plugin->last_request_at_ns,
			.resources = dump_resources(plugin->last_request),
		},
		.last_failure_at_ns = dump_instant(plugin->last_failure_at),
		.has_permit = plugin->permit.present,
		.permit = dump_resources(plugin->permit.value),
		.current_revision = dump_revision(plugin->current_revision),
	};
}

static struct state_dump_monitor dump_monitor(const struct core_monitor_state *monitor)
{
	return (struct state_dump_monitor){
		.has_ongoing_request = monitor->ongoing != CORE_MONITOR_IDLE,
		.ongoing_request = {
			.kind = monitor->ongoing == CORE_MONITOR_UPSCALE ? SLICE("upscale") : SLICE("downscale"),
			.requested = dump_resources(monitor->ongoing_requested),
		},
		.has_requested_upscale = monitor->requested_upscale.present,
		.requested_upscale = {
			.at_ns = monitor->requested_upscale.at_ns,
			.base = dump_resources(monitor->requested_upscale.base),
			.requested = {
				.cpu = monitor->requested_upscale.cpu,
				.memory = monitor->requested_upscale.memory,
			},
		},
		.has_denied_downscale = monitor->denied_downscale.present,
		.denied_downscale = {
			.at_ns = monitor->denied_downscale.at_ns,
			.current = dump_resources(monitor->denied_downscale.current),
			.requested = dump_resources(monitor->denied_downscale.requested),
		},
		.has_approved = monitor->approved.present,
		.approved = dump_resources(monitor->approved.value),
		.downscale_failure_at_ns = dump_instant(monitor->downscale_failure_at),
		.upscale_failure_at_ns = dump_instant(monitor->upscale_failure_at),
		.current_revision = dump_revision(monitor->current_revision),
	};
}

static struct state_dump_neon_vm dump_neonvm(const struct core_neonvm_state *neonvm)
{
	return (struct state_dump_neon_vm){
		.has_ongoing_requested = neonvm->ongoing_requested.present,
		.ongoing_requested = dump_resources(neonvm->ongoing_requested.value),
		.request_failed_at_ns = dump_instant(neonvm->request_failed_at),
		.target_revision = dump_revision_with_time(neonvm->target_revision),
		.current_revision = dump_revision(neonvm->current_revision),
	};
}

static bool dump_lfc_metrics(const struct lfc_metrics *lfc, struct arena *arena, struct state_dump_lfc_metrics *ret_lfc,
                             struct error *err)
{
	double *pages = arena_allocate_array(arena, lfc->window_count, sizeof *pages);

	if (pages == NULL && lfc->window_count > 0)
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	if (lfc->window_count > 0)
		memcpy(pages, lfc->window_pages, lfc->window_count * sizeof *pages);
	*ret_lfc = (struct state_dump_lfc_metrics){
		.cache_hits_total = lfc->cache_hits_total,
		.cache_misses_total = lfc->cache_misses_total,
		.cache_writes_total = lfc->cache_writes_total,
		.approximate_working_set_size_buckets = pages,
		.approximate_working_set_size_buckets_count = lfc->window_count,
	};
	return true;
}

bool core_dump_vm(const struct vm_info *vm, struct arena *arena, struct scaling_vm_info *ret_vm, struct error *err)
{
	struct slice name;
	struct slice namespace;

	if (!arena_copy(arena, slice_of(vm->name), &name) || !arena_copy(arena, slice_of(vm->namespace), &namespace))
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	*ret_vm = (struct scaling_vm_info){
		.name = name,
		.namespace = namespace,
		.cpu = {
			.min_milli = vm->cpu.min_milli,
			.max_milli = vm->cpu.max_milli,
			.use_milli = vm->cpu.use_milli,
		},
		.mem = {
			.min_slots = vm->mem.min_slots,
			.max_slots = vm->mem.max_slots,
			.use_slots = vm->mem.use_slots,
			.slot_size_bytes = vm->mem.slot_bytes,
		},
		.config = {
			.auto_migration_enabled = vm->auto_migration_enabled,
			.always_migrate = vm->always_migrate,
			.scaling_enabled = vm->scaling_enabled,
			.has_scaling_config = vm->has_scaling_config,
			.scaling_config = dump_scaling_config(&vm->scaling_config),
		},
		.has_current_revision = vm->has_current_revision,
		.current_revision = dump_revision_with_time(vm->current_revision),
	};
	return true;
}

bool core_dump(const struct core *core, struct arena *arena, struct state_dump_state *ret_state, struct error *err)
{
	struct state_dump_state state = {
		.config = dump_config(&core->config),
		.debug = core->debug,
		.plugin = dump_plugin(&core->plugin),
		.monitor = dump_monitor(&core->monitor),
		.neonvm = dump_neonvm(&core->neonvm),
		.has_metrics = core->has_metrics,
		.metrics = {
			.load_average_1_min = core->metrics.load_average_1_min,
			.load_average_5_min = core->metrics.load_average_5_min,
			.memory_usage_bytes = core->metrics.memory_usage_bytes,
			.memory_cached_bytes = core->metrics.memory_cached_bytes,
		},
		.has_lfc_metrics = core->has_lfc_metrics,
		.target_revision = dump_revision(core->target_revision),
		.has_last_desired_resources = core->last_desired.present,
		.last_desired_resources = dump_resources(core->last_desired.value),
	};

	if (!core_dump_vm(&core->vm, arena, &state.vm, err))
		return false;
	if (core->has_lfc_metrics && !dump_lfc_metrics(&core->lfc_metrics, arena, &state.lfc_metrics, err))
		return false;
	*ret_state = state;
	return true;
}
