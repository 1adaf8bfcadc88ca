#include "cli/replay_convert.h"

#include <string.h>

#include "agent/config_decoded.h"

static const int64_t BASE_NS = INT64_C(946684800000000000); /* 2000-01-01T00:00:00Z since 1970 */
static const int64_t INSTANT_MAX_NS = INT64_C(1) << 60;

bool replay_read_instant(int64_t at_ns, int64_t *ret_instant_ns, struct error *err)
{
	if (at_ns >= INSTANT_MAX_NS || at_ns <= -INSTANT_MAX_NS)
		return error_set(err, ERROR_LIMIT, "an instant is 2^60 ns or more from 2000-01-01");
	*ret_instant_ns = at_ns + BASE_NS;
	return true;
}

int64_t replay_write_instant(int64_t instant_ns)
{
	return instant_ns - BASE_NS;
}

bool replay_read_revision(const struct replay_revision *revision, struct revision_with_time *ret_revision,
                          struct error *err)
{
	int64_t updated_at_ns = RFC3339_ZERO;

	if (revision->has_updated_at_ns && !replay_read_instant(revision->updated_at_ns, &updated_at_ns, err))
		return false;
	*ret_revision = revision_with_time((struct revision){ .value = revision->value, .flags = revision->flags },
	                                   updated_at_ns);
	return true;
}

static struct replay_revision write_revision(struct revision_with_time revision)
{
	bool is_zero = revision.updated_at_ns == RFC3339_ZERO;

	return (struct replay_revision){
		.value = revision.revision.value,
		.flags = revision.revision.flags,
		.has_updated_at_ns = !is_zero,
		.updated_at_ns = is_zero ? 0 : replay_write_instant(revision.updated_at_ns),
	};
}

struct resources replay_read_resources(struct replay_resources amount)
{
	return (struct resources){ .cpu_milli = amount.cpu_milli, .mem_bytes = amount.mem_bytes };
}

struct replay_resources replay_write_resources(struct resources amount)
{
	return (struct replay_resources){ .cpu_milli = amount.cpu_milli, .mem_bytes = amount.mem_bytes };
}

bool replay_read_vm(const struct replay_vm *vm, struct vm_info *ret_vm, struct error *err)
{
	struct vm_info info = {
		.cpu = {
			.min_milli = vm->cpu.min_milli,
			.max_milli = vm->cpu.max_milli,
			.use_milli = vm->cpu.use_milli,
		},
		.mem = {
			.min_slots = vm->mem.min_slots,
			.max_slots = vm->mem.max_slots,
			.use_slots = vm->mem.use_slots,
			.slot_bytes = vm->mem.slot_bytes,
		},
		.auto_migration_enabled = vm->config.auto_migration_enabled,
		.always_migrate = vm->config.always_migrate,
		.scaling_enabled = vm->config.scaling_enabled,
		.has_scaling_config = vm->config.has_scaling_config,
		.scaling_config = config_decoded_scaling(&vm->config.scaling_config),
		.has_current_revision = vm->has_current_revision,
	};

	if (!vm_info_set_name(&info, vm->namespace, vm->name, err))
		return false;
	if (vm->has_current_revision && !replay_read_revision(&vm->current_revision, &info.current_revision, err))
		return false;
	*ret_vm = info;
	return true;
}

/* clamp_instead_of_fail stays off: the reference fails there too (spec README, decision 1). */
struct core_config replay_read_config(const struct replay_config *config)
{
	return (struct core_config){
		.compute_unit = replay_read_resources(config->compute_unit),
		.default_scaling_config = config_decoded_scaling(&config->default_scaling_config),
		.neonvm_retry_wait_ns = config->neonvm_retry_wait_ns,
		.plugin_request_tick_ns = config->plugin_request_tick_ns,
		.plugin_retry_wait_ns = config->plugin_retry_wait_ns,
		.plugin_denied_retry_wait_ns = config->plugin_denied_retry_wait_ns,
		.monitor_denied_downscale_cooldown_ns = config->monitor_denied_downscale_cooldown_ns,
		.monitor_requested_upscale_valid_period_ns = config->monitor_requested_upscale_valid_period_ns,
		.monitor_retry_wait_ns = config->monitor_retry_wait_ns,
	};
}

struct system_metrics replay_read_system_metrics(const struct replay_system_metrics *metrics)
{
	return (struct system_metrics){
		.load_average_1_min = metrics->load_average_1_min,
		.load_average_5_min = metrics->load_average_5_min,
		.memory_usage_bytes = metrics->memory_usage_bytes,
		.memory_cached_bytes = metrics->memory_cached_bytes,
	};
}

struct replay_system_metrics replay_write_system_metrics(const struct system_metrics *metrics)
{
	return (struct replay_system_metrics){
		.load_average_1_min = metrics->load_average_1_min,
		.load_average_5_min = metrics->load_average_5_min,
		.memory_usage_bytes = metrics->memory_usage_bytes,
		.memory_cached_bytes = metrics->memory_cached_bytes,
	};
}

void replay_read_lfc_metrics(const struct replay_lfc_metrics *metrics, struct lfc_metrics *ret_metrics)
{
	ret_metrics->cache_hits_total = metrics->cache_hits_total;
	ret_metrics->cache_misses_total = metrics->cache_misses_total;
	ret_metrics->cache_writes_total = metrics->cache_writes_total;
	ret_metrics->window_count = (uint32_t)metrics->window_pages_count;
	if (metrics->window_pages_count > 0)
		memcpy(ret_metrics->window_pages, metrics->window_pages,
		       metrics->window_pages_count * sizeof metrics->window_pages[0]);
}

struct replay_lfc_metrics replay_write_lfc_metrics(struct lfc_metrics *metrics)
{
	return (struct replay_lfc_metrics){
		.cache_hits_total = metrics->cache_hits_total,
		.cache_misses_total = metrics->cache_misses_total,
		.cache_writes_total = metrics->cache_writes_total,
		.window_pages = metrics->window_pages,
		.window_pages_count = metrics->window_count,
	};
}

static struct replay_change_request write_change_request(const struct core_change_request *request)
{
	return (struct replay_change_request){
		.current = replay_write_resources(request->current),
		.target = replay_write_resources(request->target),
		.target_revision = write_revision(request->target_revision),
	};
}

static struct replay_plugin_request write_plugin_request(const struct core_plugin_request *request)
{
	return (struct replay_plugin_request){
		.has_last_permit = request->last_permit.present,
		.last_permit = replay_write_resources(request->last_permit.value),
		.target = replay_write_resources(request->target),
		.has_metrics = request->has_metrics,
		.metrics = { .load_average_1_min = request->load_average_1_min },
		.target_revision = write_revision(request->target_revision),
	};
}

struct replay_actions replay_write_actions(const struct core_actions *actions)
{
	struct replay_actions written = {
		.has_wait = actions->has_wait,
		.wait = { .duration_ns = actions->wait_ns },
		.has_plugin_request = actions->has_plugin_request,
		.has_neonvm_request = actions->has_neonvm_request,
		.has_monitor_upscale = actions->has_monitor_upscale,
		.has_monitor_downscale = actions->has_monitor_downscale,
	};

	if (actions->has_plugin_request)
		written.plugin_request = write_plugin_request(&actions->plugin_request);
	if (actions->has_neonvm_request)
		written.neonvm_request = write_change_request(&actions->neonvm_request);
	if (actions->has_monitor_upscale)
		written.monitor_upscale = write_change_request(&actions->monitor_upscale);
	if (actions->has_monitor_downscale)
		written.monitor_downscale = write_change_request(&actions->monitor_downscale);
	return written;
}
