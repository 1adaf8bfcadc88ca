/*
 * Events only note what happened (spec agent-core 3); everything follows from the state when core_next_actions is
 * asked.
 */
#include <string.h>

#include "agent/core/core.h"
#include "agent/core/core_internal.h"

static const char WARN_FUTURE_REVISION[] = "Failed to observe clock source: revision is in the future";

static bool fail(struct error *err, const char *text)
{
	return error_set(err, ERROR_INVARIANT, "%s", text);
}

/* E-1.3: the VM says which revision it has applied. */
static void observe_applied_revision(struct core *core, struct revision_with_time applied)
{
	struct error ignored;

	/*
	 * The slot gets our own target, whatever the VM reported; the reported one goes to the source only (pitfall
	 * 13).
	 */
	revision_propagate(applied.updated_at_ns, core->neonvm.target_revision, &core->neonvm.current_revision,
	                   core_report_neonvm_latency, core);
	if (!revision_source_observe(&core->revision_source, applied.updated_at_ns, applied.revision,
	                             core_report_scaling_latency, core, &ignored))
		core_warn(core, WARN_FUTURE_REVISION);
	core->last_desired.present = false;
}

bool core_updated_vm(struct core *core, const struct vm_info *vm, struct error *err)
{
	struct resources using = core_using(core);

	/* Nobody but us changes what is in use, and the incoming object may be older than our last change. */
	core->vm = *vm;
	if (!vm_info_set_using(&core->vm, using, err))
		return false;
	if (vm->has_current_revision)
		observe_applied_revision(core, vm->current_revision);

	struct scaling_config config = core_scaling_config(core);

	if (!config.has_enable_lfc_metrics)
		return fail(err, "scaling configuration has no enable_lfc_metrics");
	if (!config.enable_lfc_metrics)
		core->has_lfc_metrics = false;
	return true;
}

bool core_correct_using(struct core *core, struct resources using, struct error *err)
{
	if (core->neonvm.ongoing_requested.present)
		return fail(err, "what is in use was corrected during a NeonVM request");
	return vm_info_set_using(&core->vm, using, err);
}

void core_update_system_metrics(struct core *core, const struct system_metrics *metrics)
{
	core->metrics = *metrics;
	core->has_metrics = true;
}

void core_update_lfc_metrics(struct core *core, const struct lfc_metrics *metrics)
{
	struct lfc_metrics *to = &core->lfc_metrics;

	to->cache_hits_total = metrics->cache_hits_total;
	to->cache_misses_total = metrics->cache_misses_total;
	to->cache_writes_total = metrics->cache_writes_total;
	to->window_count = metrics->window_count <= LFC_WINDOWS_MAX ? metrics->window_count : LFC_WINDOWS_MAX;
	memcpy(to->window_pages, metrics->window_pages, to->window_count * sizeof to->window_pages[0]);
	core->has_lfc_metrics = true;
}

void core_set_debug(struct core *core, bool enabled)
{
	core->debug = enabled;
}

/* ---- scheduler plugin ---- */

void core_plugin_starting_request(struct core *core, int64_t now_ns, struct resources resources)
{
	core->plugin.has_last_request = true;
	core->plugin.last_request_at_ns = now_ns;
	core->plugin.last_request = resources;
	core->plugin.ongoing_request = true;
}

void core_plugin_request_failed(struct core *core, int64_t now_ns)
{
	core->plugin.ongoing_request = false;
	core->plugin.last_failure_at = instant_some(now_ns);
}

/* Errors about replies, as the generation writes them. */
static const char *letter(const struct core *core, const char *small, const char *capital)
{
	return core->config.capital_texts ? capital : small;
}

static bool refuse_permit(const struct core *core, const char *relation, struct resources permit, const char *versus,
                          struct resources other, struct error *err)
{
	enum { TWO_RESOURCES_TEXT_BYTES_MAX = 256 };
	struct buffer text;

	buffer_init(&text, TWO_RESOURCES_TEXT_BYTES_MAX);
	resources_print(permit, &text);
	buffer_append_format(&text, " %s ", versus);
	resources_print(other, &text);
	error_set(err, ERROR_REFUSED, "%sermit has resources %s (%.*s)", letter(core, "p", "P"), relation,
	          SLICE_ARGS(buffer_slice(&text)));
	buffer_destroy(&text);
	return false;
}

/* E-7.1 … 3, and the second of the checks of generations 2.5. */
static bool check_reply(const struct core *core, struct resources permit, struct resources compute_unit,
                        struct error *err)
{
	const struct core_plugin_state *plugin = &core->plugin;
	struct resources using = core_using(core);

	if (!resources_validate_nonzero(permit, err))
		return error_wrap(err, "%snvalid permit", letter(core, "i", "I"));
	if (core->config.compute_unit_from_plugin && !resources_validate_nonzero(compute_unit, err))
		return error_wrap(err, "%snvalid compute unit", letter(core, "i", "I"));
	if (!plugin->has_last_request)
		return fail(err, "a plugin request succeeded that was never started");
	if (resources_has_greater(permit, plugin->last_request))
		return refuse_permit(core, "greater than request", permit, "vs.", plugin->last_request, err);
	if (resources_has_less(permit, using))
		return refuse_permit(core, "less than VM", permit, "vs", using, err);
	return true;
}

bool core_plugin_request_successful(struct core *core, int64_t now_ns, struct revision_with_time target_revision,
                                    struct resources permit, struct error *err)
{
	return core_plugin_request_answered(core, now_ns, target_revision, permit, (struct resources){ 0 }, err);
}

bool core_plugin_request_answered(struct core *core, int64_t now_ns, struct revision_with_time target_revision,
                                  struct resources permit, struct resources compute_unit, struct error *err)
{
	core->plugin.ongoing_request = false;
	if (!check_reply(core, permit, compute_unit, err)) {
		core->plugin.last_failure_at = instant_some(now_ns);
		return false;
	}
	core->plugin.permit = resources_some(permit);
	if (core->config.compute_unit_from_plugin)
		core->compute_unit = compute_unit;
	revision_propagate(now_ns, target_revision, &core->plugin.current_revision, core_report_plugin_latency, core);
	return true;
}

void core_plugin_scheduler_changed(struct core *core, bool present)
{
	struct core_plugin_state *plugin = &core->plugin;

	if (!core->config.plugin_gate)
		return;
	plugin->alive = present;
	plugin->ongoing_request = false;
	plugin->has_last_request = false;
	plugin->last_failure_at.present = false;
}

/* ---- vm-monitor ---- */

void core_monitor_reset(struct core *core)
{
	core->monitor = (struct core_monitor_state){ 0 };
}

void core_monitor_active(struct core *core, bool active)
{
	core->monitor.approved = active ? resources_some(core_using(core)) : (struct optional_resources){ 0 };
}

bool core_monitor_upscale_requested(struct core *core, int64_t now_ns, bool cpu, bool memory, struct error *err)
{
	if (!core->monitor.approved.present)
		return fail(err, "the vm-monitor requested an upscale before it was active");
	core->monitor.requested_upscale = (struct core_requested_upscale){
		.present = true,
		.cpu = cpu,
		.memory = memory,
		.at_ns = now_ns,
		.base = core->monitor.approved.value,
	};
	return true;
}

void core_monitor_starting_upscale_request(struct core *core, int64_t now_ns, struct resources resources)
{
	(void)now_ns;
	core->monitor.ongoing = CORE_MONITOR_UPSCALE;
	core->monitor.ongoing_requested = resources;
	core->monitor.upscale_failure_at.present = false;
}

/* Whatever is ongoing ends, of either kind (spec agent-core 3.3, last sentence). */
static bool end_monitor_request(struct core *core, struct resources *ret_requested, struct error *err)
{
	if (core->monitor.ongoing == CORE_MONITOR_IDLE)
		return fail(err, "a vm-monitor request ended that was never started");
	*ret_requested = core->monitor.ongoing_requested;
	core->monitor.ongoing = CORE_MONITOR_IDLE;
	return true;
}

bool core_monitor_upscale_request_successful(struct core *core, int64_t now_ns, struct error *err)
{
	struct resources requested;

	(void)now_ns;
	if (!end_monitor_request(core, &requested, err))
		return false;
	core->monitor.approved = resources_some(requested);
	return true;
}

void core_monitor_upscale_request_failed(struct core *core, int64_t now_ns)
{
	core->monitor.ongoing = CORE_MONITOR_IDLE;
	core->monitor.upscale_failure_at = instant_some(now_ns);
}

void core_monitor_starting_downscale_request(struct core *core, int64_t now_ns, struct resources resources)
{
	(void)now_ns;
	core->monitor.ongoing = CORE_MONITOR_DOWNSCALE;
	core->monitor.ongoing_requested = resources;
	core->monitor.downscale_failure_at.present = false;
}

bool core_monitor_downscale_request_allowed(struct core *core, int64_t now_ns,
                                            struct revision_with_time target_revision, struct error *err)
{
	struct resources requested;

	if (!end_monitor_request(core, &requested, err))
		return false;
	core->monitor.approved = resources_some(requested);
	revision_propagate(now_ns, target_revision, &core->monitor.current_revision, core_report_monitor_latency, core);
	return true;
}

bool core_monitor_downscale_request_denied(struct core *core, int64_t now_ns, struct revision_with_time target_revision,
                                           struct error *err)
{
	struct resources requested;

	if (!core->monitor.approved.present)
		return fail(err, "the vm-monitor denied a downscale without being active");
	if (!end_monitor_request(core, &requested, err))
		return false;
	core->monitor.denied_downscale = (struct core_denied_downscale){
		.present = true,
		.at_ns = now_ns,
		.current = core->monitor.approved.value,
		.requested = requested,
	};
	revision_propagate(now_ns, target_revision, &core->monitor.current_revision, core_report_monitor_latency, core);
	return true;
}

void core_monitor_downscale_request_failed(struct core *core, int64_t now_ns)
{
	core->monitor.ongoing = CORE_MONITOR_IDLE;
	core->monitor.downscale_failure_at = instant_some(now_ns);
}

/* ---- NeonVM ---- */

static bool report_actual_scaling(const struct core *core, int64_t now_ns, struct resources target, struct error *err)
{
	struct resources_quotient current_cu;
	struct resources_quotient target_cu;

	if (core->callbacks.actual_scaling == NULL)
		return true;
	if (!resources_divide(core_using(core), core->compute_unit, &current_cu, err) ||
	    !resources_divide(target, core->compute_unit, &target_cu, err))
		return false;
	if (current_cu.whole && target_cu.whole)
		core->callbacks.actual_scaling(core->callbacks.context, now_ns, current_cu.units, target_cu.units);
	return true;
}

bool core_neonvm_starting_request(struct core *core, int64_t now_ns, struct resources resources, struct error *err)
{
	if (!report_actual_scaling(core, now_ns, resources, err))
		return false;
	core->neonvm.ongoing_requested = resources_some(resources);
	return true;
}

bool core_neonvm_request_successful(struct core *core, int64_t now_ns, struct error *err)
{
	(void)now_ns;
	if (!core->neonvm.ongoing_requested.present)
		return fail(err, "a NeonVM request succeeded that was never started");
	if (!vm_info_set_using(&core->vm, core->neonvm.ongoing_requested.value, err))
		return false;
	core->neonvm.ongoing_requested.present = false;
	return true;
}

void core_neonvm_request_failed(struct core *core, int64_t now_ns)
{
	core->neonvm.ongoing_requested.present = false;
	core->neonvm.request_failed_at = instant_some(now_ns);
}
