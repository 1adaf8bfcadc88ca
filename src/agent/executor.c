/*
 * A change of the core queues one pass. A pass asks for the actions once and starts, out of that one set, every
 * request whose worker is idle; each start changes the core and so queues the next pass, which finds the workers busy
 * and only sets the sleeper's timer. A finished request is a change like any other. That is one of the orders that
 * rule X-2 allows: several workers start from one set, and none from a set that a newer one has replaced.
 */
#include "agent/executor_internal.h"

#include <string.h>

static const char SLEEPER_TASK[] = "executor: sleeper";

/* ---- failure ---- */

void executor_stop(struct executor *executor)
{
	if (executor->stopped)
		return;
	executor->stopped = true;
	loop_task_cancel(executor->loop, &executor->pass);
	loop_timer_stop(executor->loop, &executor->sleeper);
}

void executor_broken(struct executor *executor, const char *task_name, const struct error *err)
{
	if (executor->stopped)
		return;
	executor_stop(executor);
	executor->handler.failed(executor->handler.context, task_name, err);
}

static void worker_broken(struct executor *executor, enum executor_worker_kind kind, const struct error *err)
{
	executor_broken(executor, executor_task_name(kind), err);
}

/* ---- actions ---- */

static void run_pass(void *context);

struct core *executor_update(struct executor *executor)
{
	if (executor->stopped)
		return NULL;
	executor->has_actions = false;
	loop_run_soon(executor->loop, &executor->pass, run_pass, executor);
	return &executor->core;
}

/* */
static bool get_actions(struct executor *executor, struct error *err)
{
	int64_t now_ns = agent_clock_now(executor->clock);

	if (executor->has_actions)
		return true;
	agent_metrics_count_next_actions(executor->metrics);
	executor_log_recalculation(executor, now_ns);
	if (!core_next_actions(&executor->core, now_ns, &executor->actions, err))
		return false;
	if (executor->callback_failed) {
		*err = executor->callback_error;
		return false;
	}
	executor->has_actions = true;
	executor_log_actions(executor, now_ns);
	return true;
}

static bool has_action(const struct core_actions *actions, enum executor_worker_kind kind)
{
	switch (kind) {
	case EXECUTOR_PLUGIN:
		return actions->has_plugin_request;
	case EXECUTOR_NEONVM:
		return actions->has_neonvm_request;
	case EXECUTOR_MONITOR_DOWNSCALE:
		return actions->has_monitor_downscale;
	case EXECUTOR_MONITOR_UPSCALE:
		return actions->has_monitor_upscale;
	case EXECUTOR_WORKERS:
		break;
	}
	return false;
}

static void start_plugin(struct executor *executor, const struct core_actions *actions)
{
	struct executor_worker *worker = &executor->workers[EXECUTOR_PLUGIN];

	worker->plugin_request = actions->plugin_request;
	worker->generation = executor->scheduler_generation;
	executor_log_start(executor, EXECUTOR_PLUGIN);
	core_plugin_starting_request(executor_update(executor), worker->started_at_ns, actions->plugin_request.target);
	executor->handler.start_plugin(executor->handler.context, &worker->plugin_request);
}

static void start_neonvm(struct executor *executor, const struct core_actions *actions)
{
	struct executor_worker *worker = &executor->workers[EXECUTOR_NEONVM];
	const struct core_change_request *request = &actions->neonvm_request;
	struct error err;

	worker->change_request = *request;
	executor_log_start(executor, EXECUTOR_NEONVM);
	if (!core_neonvm_starting_request(executor_update(executor), worker->started_at_ns, request->target, &err)) {
		worker_broken(executor, EXECUTOR_NEONVM, &err);
		return;
	}
	if (executor->callback_failed) {
		worker_broken(executor, EXECUTOR_NEONVM, &executor->callback_error);
		return;
	}
	/* Taken here, not after the reply: so the back-off after a failure counts from the sending. */
	worker->sent_at_ns = agent_clock_now(executor->clock);
	executor->handler.start_neonvm(executor->handler.context, &worker->change_request,
	                               revision_with_time(request->target_revision.revision, worker->sent_at_ns));
}

static void start_monitor(struct executor *executor, enum executor_worker_kind kind,
                          const struct core_change_request *request)
{
	struct executor_worker *worker = &executor->workers[kind];
	struct core *core;
	struct error err;

	worker->change_request = *request;
	executor_log_start(executor, kind);
	core = executor_update(executor);
	if (kind == EXECUTOR_MONITOR_DOWNSCALE)
		core_monitor_starting_downscale_request(core, worker->started_at_ns, request->target);
	else
		core_monitor_starting_upscale_request(core, worker->started_at_ns, request->target);
	if (!executor->monitor_connected) {
		error_set(&err, ERROR_INVARIANT, "a request to the vm-monitor without a connection to it");
		worker_broken(executor, kind, &err);
		return;
	}
	worker->generation = executor->generation;
	if (kind == EXECUTOR_MONITOR_DOWNSCALE)
		executor->handler.start_monitor_downscale(executor->handler.context, &worker->change_request);
	else
		executor->handler.start_monitor_upscale(executor->handler.context, &worker->change_request);
}

static void start_worker(struct executor *executor, enum executor_worker_kind kind, const struct core_actions *actions)
{
	executor->workers[kind].busy = true;
	executor->workers[kind].started_at_ns = agent_clock_now(executor->clock);
	switch (kind) {
	case EXECUTOR_PLUGIN:
		start_plugin(executor, actions);
		break;
	case EXECUTOR_NEONVM:
		start_neonvm(executor, actions);
		break;
	case EXECUTOR_MONITOR_DOWNSCALE:
		start_monitor(executor, kind, &actions->monitor_downscale);
		break;
	case EXECUTOR_MONITOR_UPSCALE:
		start_monitor(executor, kind, &actions->monitor_upscale);
		break;
	case EXECUTOR_WORKERS:
		break;
	}
}

static void on_slept(void *context)
{
	(void)executor_update(context); /* nothing changed but the time */
}

static void run_pass(void *context)
{
	struct executor *executor = context;
	struct core_actions actions;
	struct error err;

	if (!get_actions(executor, &err)) {
		executor_broken(executor, SLEEPER_TASK, &err);
		return;
	}
	/* A start makes executor->actions void; all workers start from this one set. */
	actions = executor->actions;
	loop_timer_stop(executor->loop, &executor->sleeper);
	if (actions.has_wait)
		loop_timer_start(executor->loop, &executor->sleeper, (uint64_t)actions.wait_ns, on_slept, executor);
	for (enum executor_worker_kind kind = EXECUTOR_PLUGIN; kind < EXECUTOR_WORKERS; kind++) {
		if (executor->stopped)
			return;
		if (has_action(&actions, kind) && !executor->workers[kind].busy)
			start_worker(executor, kind, &actions);
	}
}

/* ---- ends of requests ---- */

void executor_scheduler_changed(struct executor *executor, bool present)
{
	struct core *core;

	if (!executor->core.config.plugin_gate)
		return;
	core = executor_update(executor);
	if (core == NULL)
		return;
	executor->scheduler_generation++;
	core_plugin_scheduler_changed(core, present);
}

/* Ends the plugin's worker. NULL: there is nothing to tell the core. */
static struct core *finish_plugin(struct executor *executor, int64_t end_ns, struct slice response,
                                  const struct error *err)
{
	struct executor_worker *worker = &executor->workers[EXECUTOR_PLUGIN];
	struct logger logger = executor_logger(executor, EXECUTOR_PLUGIN);
	struct core *core = executor_update(executor);

	worker->busy = false;
	if (core == NULL)
		return NULL;
	executor_log_end(executor, EXECUTOR_PLUGIN, end_ns, response, err);
	if (worker->generation == executor->scheduler_generation)
		return core;
	log_warn(&logger, "Skipping state update after plugin request because the scheduler changed",
	         log_text("taskName", executor_task_name(EXECUTOR_PLUGIN)));
	return NULL;
}

void executor_plugin_done(struct executor *executor, struct resources permit, struct resources compute_unit,
                          struct slice response, const struct error *err)
{
	struct revision_with_time revision = executor->workers[EXECUTOR_PLUGIN].plugin_request.target_revision;
	struct logger logger = executor_logger(executor, EXECUTOR_PLUGIN);
	int64_t end_ns = agent_clock_now(executor->clock);
	struct core *core = finish_plugin(executor, end_ns, err != NULL ? SLICE("") : response, err);
	struct error refusal;

	if (core == NULL)
		return;
	if (err != NULL) {
		core_plugin_request_failed(core, end_ns);
		return;
	}
	if (core_plugin_request_answered(core, end_ns, revision, permit, compute_unit, &refusal))
		return;
	if (refusal.code == ERROR_INVARIANT)
		worker_broken(executor, EXECUTOR_PLUGIN, &refusal);
	else
		log_error(&logger, "Plugin response validation failed",
		          log_text("taskName", executor_task_name(EXECUTOR_PLUGIN)), log_error_field(&refusal));
}

void executor_neonvm_done(struct executor *executor, const struct error *err)
{
	struct executor_worker *worker = &executor->workers[EXECUTOR_NEONVM];
	struct core *core = executor_update(executor);
	struct error broken;

	worker->busy = false;
	if (core == NULL)
		return;
	executor_log_end(executor, EXECUTOR_NEONVM, worker->sent_at_ns, SLICE(""), err);
	if (err != NULL)
		core_neonvm_request_failed(core, worker->sent_at_ns);
	else if (!core_neonvm_request_successful(core, worker->sent_at_ns, &broken))
		worker_broken(executor, EXECUTOR_NEONVM, &broken);
}

void executor_monitor_connected(struct executor *executor)
{
	struct core *core = executor_update(executor);

	if (core == NULL)
		return;
	executor->generation++;
	executor->monitor_connected = true;
	core_monitor_active(core, true);
}

void executor_monitor_disconnected(struct executor *executor)
{
	struct core *core = executor_update(executor);

	if (core == NULL)
		return;
	executor->generation++;
	executor->monitor_connected = false;
	core_monitor_reset(core);
}

/* Whether the core may hear of the result: not if it came over a connection that is gone. */
static bool monitor_unchanged(const struct executor *executor, enum executor_worker_kind kind)
{
	return executor->workers[kind].generation == executor->generation;
}

/* Ends what the two monitor workers have in common. NULL: there is nothing to tell the core. */
static struct core *finish_monitor(struct executor *executor, enum executor_worker_kind kind, int64_t end_ns,
                                   const char *denied, struct slice response, const struct error *err)
{
	struct logger logger = executor_logger(executor, kind);
	struct core *core = executor_update(executor);

	executor->workers[kind].busy = false;
	if (core == NULL)
		return NULL;
	executor_log_monitor_end(executor, kind, end_ns, monitor_unchanged(executor, kind), denied, response, err);
	if (monitor_unchanged(executor, kind))
		return core;
	log_warn(&logger,
	         kind == EXECUTOR_MONITOR_DOWNSCALE
	                 ? "Skipping state update after vm-monitor downscale request because MonitorHandle changed"
	                 : "Skipping state update after vm-monitor upscale request because MonitorHandle changed",
	         log_text("taskName", executor_task_name(kind)));
	return NULL;
}

void executor_monitor_downscale_done(struct executor *executor, bool allowed, struct slice response,
                                     const struct error *err)
{
	const enum executor_worker_kind kind = EXECUTOR_MONITOR_DOWNSCALE;
	struct revision_with_time revision = executor->workers[kind].change_request.target_revision;
	int64_t end_ns = agent_clock_now(executor->clock);
	struct core *core =
		finish_monitor(executor, kind, end_ns, allowed ? NULL : "vm-monitor denied downscale", response, err);
	struct error broken;
	bool fine = true;

	if (core == NULL)
		return;
	if (err != NULL)
		core_monitor_downscale_request_failed(core, end_ns);
	else if (allowed)
		fine = core_monitor_downscale_request_allowed(core, end_ns, revision, &broken);
	else
		fine = core_monitor_downscale_request_denied(core, end_ns, revision, &broken);
	if (!fine)
		worker_broken(executor, kind, &broken);
}

void executor_monitor_upscale_done(struct executor *executor, const struct error *err)
{
	const enum executor_worker_kind kind = EXECUTOR_MONITOR_UPSCALE;
	int64_t end_ns = agent_clock_now(executor->clock);
	struct core *core = finish_monitor(executor, kind, end_ns, NULL, SLICE(""), err);
	struct error broken;

	if (core == NULL)
		return;
	if (err != NULL)
		core_monitor_upscale_request_failed(core, end_ns);
	else if (!core_monitor_upscale_request_successful(core, end_ns, &broken))
		worker_broken(executor, kind, &broken);
}

/* ---- start ---- */

void executor_init(struct executor *executor, const struct executor_options *options)
{
	const struct core_callbacks callbacks = executor_core_callbacks(executor);

	memset(executor, 0, sizeof *executor);
	executor->loop = options->loop;
	executor->clock = options->clock;
	executor->metrics = options->metrics;
	executor->handler = options->handler;
	executor->log_sink = options->log_sink;
	executor->log_context = options->log_context;
	core_init(&executor->core, options->core, options->vm_info, &callbacks);
}
