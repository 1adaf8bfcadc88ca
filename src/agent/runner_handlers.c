#include "agent/runner_events.h"
#include "agent/runner_internal.h"

/* ---- scheduler ---- */

static void start_plugin(void *context, const struct core_plugin_request *request)
{
	struct runner *runner = context;

	scheduler_client_request(&runner->scheduler, request);
}

static void on_plugin_done(void *context, const struct scheduler_result *result)
{
	struct runner *runner = context;

	if (result->outcome == SCHEDULER_DENIED || result->outcome == SCHEDULER_FAILED)
		runner_status_failed(runner->status, RUNNER_FAILURE_SCHEDULER);
	else
		runner_status_refresh(runner->status);
	if (result->outcome != SCHEDULER_FAILED)
		runner_events_tell_permit(runner->environment, &runner->status->vm_info,
		                          &runner->executor.workers[EXECUTOR_PLUGIN].plugin_request, result->permit);
	executor_plugin_done(&runner->executor, result->permit, result->compute_unit, result->response, result->error);
}

static const struct scheduler_peer *current_scheduler(void *context)
{
	const struct runner_peers *peers = &((struct runner *)context)->environment->peers;

	return peers->current_scheduler(peers->context);
}

/* ---- NeonVM ---- */

static void on_patch_done(void *context, const struct error *err)
{
	struct runner *runner = context;

	runner->patch = NULL;
	runner->changed_since_patch = false;
	if (err != NULL)
		runner_status_failed(runner->status, RUNNER_FAILURE_NEONVM);
	runner_events_tell_patch(runner->environment, &runner->status->vm_info,
	                         &runner->executor.workers[EXECUTOR_NEONVM].change_request, err);
	executor_neonvm_done(&runner->executor, err);
}

static void start_neonvm(void *context, const struct core_change_request *request,
                         struct revision_with_time target_revision)
{
	struct runner *runner = context;
	const struct runner_peers *peers = &runner->environment->peers;
	const struct vm_info *vm = &runner->status->vm_info;
	struct runner_patch patch = {
		.namespace = slice_of(vm->namespace),
		.vm_name = slice_of(vm->name),
		.current = request->current,
		.target = request->target,
		.slot_bytes = runner->slot_bytes,
		.target_revision = target_revision,
	};
	struct error err;

	/* A stamp that others read: the wall clock as it is now, even if that has been set since the agent started. */
	patch.target_revision.updated_at_ns = loop_wall_ns(runner->environment->loop);
	runner->patch = peers->patch_vm(peers->context, &patch, on_patch_done, runner, &err);
	if (runner->patch == NULL)
		on_patch_done(runner, &err);
}

void runner_cancel_patch(struct runner *runner)
{
	const struct runner_peers *peers = &runner->environment->peers;

	if (runner->patch == NULL)
		return;
	peers->cancel_patch(peers->context, runner->patch);
	runner->patch = NULL;
	runner_status_failed(runner->status, RUNNER_FAILURE_NEONVM);
}

/* ---- vm-monitor ---- */

static void start_monitor_downscale(void *context, const struct core_change_request *request)
{
	struct runner *runner = context;

	monitor_client_downscale(&runner->monitor, request->current, request->target);
}

static void start_monitor_upscale(void *context, const struct core_change_request *request)
{
	struct runner *runner = context;

	monitor_client_upscale(&runner->monitor, request->current, request->target);
}

static void on_downscale_done(void *context, bool allowed, struct slice response, const struct error *err)
{
	struct runner *runner = context;

	if (err != NULL)
		runner_status_failed(runner->status, RUNNER_FAILURE_MONITOR);
	else if (!allowed)
		runner_events_tell_downscale_denied(
			runner->environment, &runner->status->vm_info,
			&runner->executor.workers[EXECUTOR_MONITOR_DOWNSCALE].change_request);
	executor_monitor_downscale_done(&runner->executor, allowed, response, err);
}

static void on_upscale_done(void *context, const struct error *err)
{
	struct runner *runner = context;

	if (err != NULL)
		runner_status_failed(runner->status, RUNNER_FAILURE_MONITOR);
	executor_monitor_upscale_done(&runner->executor, err);
}

static void on_connected(void *context)
{
	struct runner *runner = context;

	executor_monitor_connected(&runner->executor);
	runner_events_tell_monitor(runner->environment, runner->status, true);
}

static void on_disconnected(void *context)
{
	struct runner *runner = context;

	/* Also told of attempts that fail, and of the end that a stopped runner makes. */
	if (runner->executor.monitor_connected && !runner->stopped)
		runner_events_tell_monitor(runner->environment, runner->status, false);
	executor_monitor_disconnected(&runner->executor);
}

static void on_upscale_requested(void *context)
{
	struct runner *runner = context;
	struct core *core = executor_update(&runner->executor);
	struct logger logger = runner_logger_named(runner, RUNNER_LOGGER ".vm-monitor");
	struct error err;

	if (core == NULL)
		return;
	log_info(&logger, "Updating requested upscale", log_text("taskName", "vm-monitor message handler"),
	         log_json("requested", SLICE("{\"cpu\":false,\"memory\":true}")));
	if (!core_monitor_upscale_requested(core, agent_clock_now(runner->environment->clock), false, true, &err))
		executor_broken(&runner->executor, "vm-monitor message handler", &err);
}

static void on_contact(void *context)
{
	struct runner *runner = context;

	runner_status_monitor_contact(runner->status);
}

/* ---- metrics ---- */

static void on_system_metrics(void *context, const struct system_metrics *metrics)
{
	struct runner *runner = context;
	struct core *core = executor_update(&runner->executor);

	if (core != NULL)
		core_update_system_metrics(core, metrics);
}

static void on_lfc_metrics(void *context, const struct lfc_metrics *metrics)
{
	struct runner *runner = context;
	struct core *core = executor_update(&runner->executor);

	if (core != NULL)
		core_update_lfc_metrics(core, metrics);
}

static bool lfc_is_active(void *context)
{
	const struct runner *runner = context;
	const struct scaling_config *defaults = &runner->environment->config->core.default_scaling_config;
	const struct vm_info *vm = &runner->status->vm_info;

	if (vm->has_scaling_config && vm->scaling_config.has_enable_lfc_metrics)
		return vm->scaling_config.enable_lfc_metrics;
	return defaults->has_enable_lfc_metrics && defaults->enable_lfc_metrics;
}

/* ---- scaling events ---- */

static bool actual_scaling(void *context, uint32_t current_cu, uint32_t target_cu, struct error *err)
{
	struct runner *runner = context;

	return scaling_events_actual(&runner->scaling_events, loop_wall_ns(runner->environment->loop),
	                             slice_of(runner->status->endpoint_id), current_cu, target_cu, err);
}

static bool hypothetical_scaling(void *context, uint32_t current_cu, uint32_t goal_cu, const struct goal_parts *parts,
                                 struct error *err)
{
	struct runner *runner = context;
	const struct vm_info *vm = &runner->status->vm_info;

	return scaling_events_hypothetical(&runner->scaling_events, loop_wall_ns(runner->environment->loop),
	                                   slice_of(runner->status->endpoint_id), slice_of(vm->namespace),
	                                   slice_of(vm->name), current_cu, goal_cu, parts, err);
}

/* ---- who calls what ---- */

struct executor_handler runner_executor_handler(struct runner *runner)
{
	return (struct executor_handler){
		.context = runner,
		.start_plugin = start_plugin,
		.start_neonvm = start_neonvm,
		.start_monitor_downscale = start_monitor_downscale,
		.start_monitor_upscale = start_monitor_upscale,
		.actual_scaling = actual_scaling,
		.hypothetical_scaling = hypothetical_scaling,
		.failed = runner_on_failed,
	};
}

struct scheduler_client_handler runner_scheduler_handler(struct runner *runner)
{
	return (struct scheduler_client_handler){
		.context = runner,
		.current_scheduler = current_scheduler,
		.on_done = on_plugin_done,
	};
}

struct monitor_client_handler runner_monitor_handler(struct runner *runner)
{
	return (struct monitor_client_handler){
		.context = runner,
		.on_connected = on_connected,
		.on_disconnected = on_disconnected,
		.on_upscale_requested = on_upscale_requested,
		.on_contact = on_contact,
		.on_downscale_done = on_downscale_done,
		.on_upscale_done = on_upscale_done,
	};
}

struct scrape_handler runner_system_scrape_handler(struct runner *runner)
{
	return (struct scrape_handler){ .context = runner, .on_system = on_system_metrics };
}

struct scrape_handler runner_lfc_scrape_handler(struct runner *runner)
{
	return (struct scrape_handler){ .context = runner, .is_active = lfc_is_active, .on_lfc = on_lfc_metrics };
}
